# What was live at the peak, what leaked, what churns: as text and as JSON.
python3 "$DATA/support/trace.py" run.mlyze
coffer stats run.mlyze
coffer peak run.mlyze
coffer peak run.mlyze --by function
coffer peak run.mlyze --at 10ms
coffer peak run.mlyze --at end --json
coffer leaks run.mlyze
coffer leaks run.mlyze --min-age 30ms --min-size 1K
coffer leaks run.mlyze --suppress remember
printf '# known\nleak:rememb\n' >known.txt
coffer leaks run.mlyze --suppressions known.txt --json
coffer leaks run.mlyze --growth
coffer leaks run.mlyze --fail-over 1K >/dev/null
echo "exit $?"
coffer leaks run.mlyze --fail-over 1M >/dev/null
echo "exit $?"
coffer temporaries run.mlyze
coffer temporaries run.mlyze --within 1us
coffer stats run.mlyze --window begin..1ms --json | python3 -c '
import json, sys
stats = json.load(sys.stdin)
print(stats["events"], stats["allocs"], stats["total_allocated_bytes"])'
ls
