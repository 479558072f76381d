# Counters end on the exact last value; a timeline shows the true maximum of each column.
cat >make.py <<'PY'
import json, struct
metadata = json.dumps({"stack_traces": {"0": [{"file_id": 0, "line": 1, "func_id": 0}]}, "files": {"0": "a.c"}, "functions": {"0": "main"}}).encode()
events = b""
for i in range(502):
    events += b"\0\1" + struct.pack("<Q", 4096 + 64 * i) + b"\x40\0" + struct.pack("<H", 1)
for i in range(502):
    events += b"\1\0" + struct.pack("<Q", 4096 + 64 * i)
open("up.mlyze", "wb").write(struct.pack("<4sIQI", b"MTRC", 1, 0, len(metadata)).ljust(256, b"\0") + metadata + events)
PY
python3 make.py
coffer convert up.mlyze - --to chrome --resolution 1000 | python3 -c '
import json, sys
counters = [e for e in json.load(sys.stdin)["traceEvents"] if e["ph"] == "C"]
for e in counters:
    print(e["name"], e["ts"], e["args"])'
coffer timeline up.mlyze | grep 'up to' | sed 's/^ *\([a-z]*\).*up to/\1 up to/'
coffer timeline up.mlyze --csv -n 4
