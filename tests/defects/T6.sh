# info has the values of nested metadata, get prints single ones, stats names threads by THREAD events.
cp "$DATA/compat/mlyze-tools/grow.massif" .
coffer convert grow.massif m.mlyze
coffer info m.mlyze --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["metadata"]["source"])'
coffer get m.mlyze metadata.source
coffer get m.mlyze metadata.source.format
coffer get m.mlyze metadata.source.format --json
coffer get m.mlyze metadata.stack_traces.3
coffer get m.mlyze | python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)))'
coffer get m.mlyze metadata.nothing
echo "exit $?"
coffer get grow.massif metadata.source.time_unit
coffer get m.mlyze metadata.command -o command.txt
cat command.txt
cat >make.py <<'PY'
import json, struct
metadata = json.dumps({"stack_traces": {"0": [{"file_id": 0, "line": 1, "func_id": 0}]}, "files": {"0": "a.c"},
                       "functions": {"0": "main", "1": "loader", "2": "trainer"}, "threads": {"1": "old name", "3": "io"}}).encode()
alloc = lambda address, thread: b"\0\1" + struct.pack("<Q", address) + b"\x40\0" + struct.pack("<H", thread)
name = lambda thread, name: b"\7\1\3" + struct.pack("<H", thread) + bytes([name])
events = name(1, 1) + alloc(4096, 1) + name(2, 2) + alloc(8192, 2) + alloc(12288, 3) + alloc(16384, 4)
open("threads.mlyze", "wb").write(struct.pack("<4sIQI", b"MTRC", 2, 0, len(metadata)).ljust(256, b"\0") + metadata + events)
PY
python3 make.py
coffer stats threads.mlyze | sed -n '/^threads/,/^$/p'
coffer stats threads.mlyze --window 5.. --json | python3 -c 'import json, sys; print([t["name"] for t in json.load(sys.stdin)["threads"]])'
