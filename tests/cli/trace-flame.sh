# Flame graphs: collapsed stacks, a tree, a picture, a page.
python3 "$DATA/support/trace.py" run.mlyze
coffer flame run.mlyze
coffer flame run.mlyze --what leaks
coffer flame run.mlyze --what temporaries --inverted --lines
coffer flame run.mlyze --what total --window 1ms..5ms
coffer flame run.mlyze --at 3ms
coffer flame run.mlyze --json
coffer flame run.mlyze -o peak.svg
python3 - <<'PY'
import xml.etree.ElementTree as tree
root = tree.parse("peak.svg").getroot()
print(root.tag.split("}")[1], root.get("width"), [t.text.split("\n")[0] for t in root.iter("{http://www.w3.org/2000/svg}title")])
PY
coffer flame run.mlyze --what total --title 'a <b>' -o total.html
grep -c '<script' total.html
grep '<h1>' total.html
coffer flame run.mlyze -o run.mlyze
echo "exit $?"
# Equal stacks are one line here, and one line each in a file made by convert; the frames are the same.
sums() { awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END { for (stack in sum) print stack, sum[stack] }' | sort; }
for options in '--what peak' '--what total --lines' '--what leaks' '--what temporaries'; do
    coffer flame run.mlyze $options | sums >ours.txt
    coffer convert run.mlyze - --to collapsed $options | sums | diff ours.txt - && echo "agree: $options"
done
