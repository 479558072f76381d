# --fail-over says why it failed, --suppress works with --by, --growth works without times.
python3 "$DATA/support/trace.py" run.mlyze
python3 "$DATA/support/trace.py" more.mlyze more
coffer leaks run.mlyze --fail-over 1K | tail -1
coffer leaks run.mlyze --fail-over 1K >/dev/null
echo "exit $?"
coffer leaks run.mlyze --fail-over 1K --json | python3 -c '
import json, sys
a = json.load(sys.stdin)
print(a["leaked_bytes"], a["fail_over_bytes"], a["failed"])'
coffer diff run.mlyze more.mlyze --what leaks --fail-over 1K >/dev/null
echo "exit $?"
coffer diff run.mlyze more.mlyze --what leaks --fail-over 1M >/dev/null
echo "exit $?"
coffer leaks run.mlyze --suppress scratch --by function
coffer leaks run.mlyze --suppress remember --by file
cat >make.py <<'PY'
lines = ["v 10400 3", "X ./app", "I 1000 100", "s 4 main", "s 4 leak", "s 4 once", "i 10 0 1 0 0", "i 20 0 2 0 0", "i 30 0 3 0 0",
         "t 1 0", "t 2 1", "t 3 1", "a 40 2", "a 1000 3", "+ 1"]
lines += ["+ 0"] * 200 + ["c 5"]
open("grow.heaptrack", "w").write("\n".join(lines) + "\n")
PY
python3 make.py
coffer leaks grow.heaptrack --growth
coffer leaks grow.heaptrack --growth --by function
coffer leaks grow.heaptrack --growth --suppress leak
coffer leaks grow.heaptrack --growth --json | python3 -c '
import json, sys
print([round(s["growth_bytes_per_event"]) for s in json.load(sys.stdin)["stacks"]])'
