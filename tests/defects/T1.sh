# Stacks list the outermost frame first, as the public example does.
cat >make.py <<'PY'
import json, struct, sys
# The public example: main calls load, which calls grab.
frames = [{"file_id": 0, "line": 42, "func_id": 0}, {"file_id": 0, "line": 7, "func_id": 1}, {"file_id": 0, "line": 3, "func_id": 2}]
extra, flags = {}, 0
if "innermost" in sys.argv:
    frames.reverse()
    extra = {"stack_order": "innermost-first"}
separators = (",", ":") if "compact" in sys.argv else (", ", ": ")
metadata = json.dumps({"stack_traces": {"0": frames}, "files": {"0": "app.py"},
                       "functions": {"0": "main", "1": "load", "2": "grab"}, **extra}, separators=separators).encode()
event = b"\0\5" + struct.pack("<Q", 4096) + b"\x64\0" + struct.pack("<H", 1)
open(sys.argv[1], "wb").write(struct.pack("<4sIQI", b"MTRC", 1, 1700000000000000, len(metadata)).ljust(256, b"\0") + metadata + event)
PY
python3 make.py public.mlyze
coffer peak public.mlyze
coffer flame public.mlyze
coffer ls public.mlyze
echo "--- a file that says that it is the other way round"
python3 make.py marked.mlyze innermost
coffer flame marked.mlyze
coffer check marked.mlyze
echo "--- our own files say their order, and keep it when they are rewritten"
coffer compress marked.mlyze -o packed.mlyze
coffer flame packed.mlyze
coffer convert public.mlyze back.collapsed
coffer convert back.collapsed again.mlyze
coffer flame again.mlyze
grep -ao '"stack_order":"[a-z-]*"' again.mlyze
echo "--- a plain file that Coffer 0.1 may have written"
python3 make.py unknown.mlyze compact
coffer flame unknown.mlyze
coffer flame unknown.mlyze --stack-order innermost-first
coffer check unknown.mlyze
