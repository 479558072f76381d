# A window becomes a trace of its own; extension events can be dropped; pictures of small traces are small.
python3 "$DATA/support/trace.py" run.mlyze
coffer convert run.mlyze part.mlyze --window 10ms..20ms
coffer check --full part.mlyze
coffer get part.mlyze metadata.cut
for window in 10ms..20ms ..20ms begin..; do
    coffer convert run.mlyze part.mlyze --window "$window" -f
    coffer stats run.mlyze --window "$window" --json >whole.json
    coffer stats part.mlyze --json >part.json
    python3 - <<'PY'
import json
whole, part = json.load(open("whole.json")), json.load(open("part.json"))
print([whole[k] == part[k] for k in ("frees", "peak_bytes", "live_bytes_at_end", "live_allocs_at_end")])
PY
done
coffer leaks part.mlyze --by function
coffer convert run.mlyze all.mlyze --plain
coffer diff run.mlyze all.mlyze
cat >make.py <<'PY'
import json, struct
metadata = json.dumps({"stack_traces": {"0": [{"file_id": 0, "line": 1, "func_id": 0}]}, "files": {"0": "a.c"}, "functions": {"0": "main"}}).encode()
events = b"\7\1\3\1\0\0" + b"\0\1" + struct.pack("<Q", 4096) + b"\x40\0" + struct.pack("<H", 1) + b"\x09\5\2ab" + b"\1\7" + struct.pack("<Q", 4096)
open("ext.mlyze", "wb").write(struct.pack("<4sIQI", b"MTRC", 2, 0, len(metadata)).ljust(256, b"\0") + metadata + events)
PY
python3 make.py
coffer compress ext.mlyze --plain -o plain.mlyze 2>&1 | tail -2
coffer compress ext.mlyze --plain --drop-extensions -o plain.mlyze 2>/dev/null
coffer check --full plain.mlyze
coffer stats plain.mlyze --json | python3 -c 'import json, sys; s = json.load(sys.stdin); print(s["events"], s["duration_us"])'
coffer timeline run.mlyze -o run.svg
[ "$(stat -c %s run.svg)" -lt 80000 ] && echo 'a small picture'
coffer help compress | grep -c 'FILE.idx'
