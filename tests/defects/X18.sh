# Text of a file that goes to a terminal is escaped, also in JSON and in what convert writes to it.
cat >on_terminal.py <<'PY'
import os, pty, sys
shown = []
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown.append(data)
os.waitpid(child, 0)
text = b"".join(shown)
bad = sum(text.count(c.encode()) for c in "\u009b\u007f\u202e\u2066\u200f\x1b\x07")
print(" ".join(sys.argv[2:3]), "harmful characters:", bad, "escapes:", text.count(rb"\u009b"), text.count(rb"\u202e"), text.count(rb"\u007f"))
PY
on_terminal() { python3 on_terminal.py "$@" </dev/null; }
printf '{"text": "a\302\233b\177c\342\200\256d\342\201\246\\u001b\\u0007"}\n' >in.jsonl
coffer pack in.jsonl set.mldf -q >/dev/null
on_terminal coffer get set.mldf 0 --color never --json
on_terminal coffer head set.mldf --color never --json
on_terminal coffer head set.mldf --color never
on_terminal coffer convert set.mldf - --to jsonl
on_terminal coffer convert set.mldf /dev/tty --to jsonl
mkdir "$(printf 'x\302\2331m')"
cp "$DATA/vectors/mscan/bad-json.mscan" "$(printf 'x\302\2331m/f.mscan')"
on_terminal coffer check --json --color never "$(printf 'x\302\2331m/f.mscan')"
echo "a pipe gets the text as it is"
coffer convert set.mldf - --to jsonl | grep -c "$(printf 'a\302\233b\177c\342\200\256d')"
