# Locale, colors, width, pager and folders: as git and ripgrep do.
exec 2>&1
v=$DATA/vectors
scan=$v/mscan/two-sequences.mscan
echo "LC_ALL=C: what people read is ASCII, data stays UTF-8"
for verb in "ls $scan" "info $scan" "help" "help convert" "check $v/mscan/bad-json.mscan" "heatmap $scan" "nonsense"; do
    LC_ALL=C coffer $verb >out 2>&1
    echo "$(LC_ALL=C tr -d '\000-\177' <out | wc -c) other bytes: ${verb%% *}"
done
LC_ALL=C coffer ls "$scan" | tail -1
LC_ALL=C coffer ls "$scan" --json >a
coffer ls "$scan" --json >b
cmp a b && echo "the same JSON"
echo "CLICOLOR_FORCE, NO_COLOR and CLICOLOR"
escape=$(printf '\033')
echo "forced: $(CLICOLOR_FORCE=1 coffer help | grep -c "$escape" | sed 's/^[1-9].*/yes/')"
echo "forced with 0: $(CLICOLOR_FORCE=0 coffer help | grep -c "$escape")"
echo "NO_COLOR wins: $(NO_COLOR=1 CLICOLOR_FORCE=1 coffer help | grep -c "$escape")"
echo "help in 50 columns"
for verb in ls convert pack check; do
    COLUMNS=50 coffer help $verb | sed '/^Examples/,$d' | awk 'length($0) > 50' | grep -v -e '--'
done
COLUMNS=50 coffer help ls | sed -n '/^Examples/,$p' | head -4
echo "a pager on a terminal"
cat >on_terminal.py <<'PY'
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])
text = b""
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    text += data
os.waitpid(child, 0)
print(text.decode().replace("\r", "").strip().splitlines()[-1])
PY
PAGER='sed s/^/paged:/ | tail -1' python3 on_terminal.py coffer ls "$scan" --color never
PAGER='sed s/^/paged:/ | tail -1' python3 on_terminal.py coffer ls "$scan" --color never --no-pager
COFFER_PAGER=cat PAGER='sed s/^/paged:/ | tail -1' python3 on_terminal.py coffer ls "$scan" --color never
PAGER='sed s/^/paged:/' coffer ls "$scan" | tail -1
echo "check -r"
mkdir -p tree/deep
cp "$scan" tree/good.mscan
cp "$v/mcf/plain.mcf" tree/deep/model
cp "$v/mscan/bad-json.mscan" tree/deep/bad.mscan
: >tree/deep/empty.mcf
echo text >tree/notes.txt
ln -s ../good.mscan tree/deep/link
coffer check -r tree | grep -v '^  '
coffer check -r tree >/dev/null
echo "exit $?"
coffer check -r --json tree | python3 -c '
import json, sys
for row in map(json.loads, sys.stdin):
    print(row["file"], row["format"], row.get("ok"), row.get("skipped"))'
