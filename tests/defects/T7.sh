# Flame graphs as PNG, filters, and a graph of the difference; other names are refused.
python3 "$DATA/support/trace.py" run.mlyze
python3 "$DATA/support/trace.py" more.mlyze more
coffer flame run.mlyze -o peak.png
head -c 8 peak.png | od -An -tx1
coffer flame run.mlyze -o peak.jpg
echo "exit $?"
coffer flame run.mlyze --what total --focus scratch
coffer flame run.mlyze --what total --ignore scratch --ignore 'remem*'
coffer flame run.mlyze --focus nothing-like-it
coffer flame run.mlyze --what total -o page.html
# The details are in the header, which stays in view.
grep -c 'position:sticky' page.html
python3 -c '
page = open("page.html").read()
print(page.index("<header>") < page.index("id=\"about\"") < page.index("</header>") < page.index("id=\"graph\""))'
coffer diff run.mlyze more.mlyze --what total --flame change.collapsed >/dev/null
cat change.collapsed
coffer diff run.mlyze more.mlyze --what total --flame change.json --focus remember >/dev/null
cat change.json
coffer diff run.mlyze more.mlyze --what total --flame change.svg >/dev/null
python3 - <<'PY'
import xml.etree.ElementTree as tree
ns = "{http://www.w3.org/2000/svg}"
for g in tree.parse("change.svg").getroot().iter(ns + "g"):
    print(g.find(ns + "title").text.replace("\n", ": "), g.find(ns + "rect").get("fill"))
PY
coffer diff run.mlyze more.mlyze --flame change.png >/dev/null
head -c 8 change.png | od -An -tx1
coffer diff run.mlyze more.mlyze --flame more.mlyze
echo "exit $?"
coffer check more.mlyze
ls
