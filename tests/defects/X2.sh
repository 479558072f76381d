# A damaged block is reported by every verb, in JSON too, and the exit status is 1.
python3 "$DATA/support/trace.py" run.mlyze
coffer compress run.mlyze
python3 - <<'PY'
data = bytearray(open("run.mlyze", "rb").read())
data[-3] ^= 16
open("bad.mlyze", "wb").write(data)
PY
for verb in stats peak leaks temporaries flame timeline; do
    echo "--- $verb"
    coffer $verb bad.mlyze >out.txt
    echo "exit $?"
    coffer $verb bad.mlyze --json >out.json 2>/dev/null
    echo "exit $?"
    python3 -c '
import json
answer = json.load(open("out.json"))
print(answer["complete"], answer["lost_blocks"], answer["lost_events"])'
done
echo "--- leaks in CI"
coffer leaks bad.mlyze --fail-over 1G >/dev/null
echo "exit $?"
echo "--- diff"
coffer diff run.mlyze bad.mlyze --fail-over 1G >/dev/null
echo "exit $?"
echo "--- convert and compress stop"
coffer convert bad.mlyze out.collapsed
echo "exit $?"
coffer compress bad.mlyze -o out.mlyze
echo "exit $?"
coffer convert bad.mlyze out.csv
echo "exit $?"
echo "--- a repaired trace says what it lost"
coffer repair bad.mlyze -o repaired.mlyze
echo "exit $?"
coffer check --full repaired.mlyze
echo "exit $?"
coffer leaks repaired.mlyze --fail-over 1G
echo "exit $?"
ls
