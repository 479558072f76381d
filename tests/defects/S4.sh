# diff of scans: summed up by parameter, layer or token, in real units, and as a map.
python3 - <<'END'
import json, struct
def write(path, change, scale):
    meta = {"id_to_param_name_map": {str(p): f"model.layers.{p // 2}.{'qk'[p % 2]}" for p in range(6)},
            "model_name": "m", "format_version": "1.1", "sequences": [{"sequence_id": 0, "num_tokens": 8}]}
    if scale:
        entry = {"kind": "linear", "scale": 0.001, "offset": 1, "scope": "file"}
        meta["quantization"] = {"activation": entry, "grad_norm": entry}
    meta = json.dumps(meta).encode()
    records = b"".join(struct.pack("<IHHHH", t, p, 0, 1000 * p + t + change(t, p), 10) for t in range(8) for p in range(6))
    open(path, "wb").write(struct.pack("<5sHII", b"MSCAN", 1, 15 + len(meta), 48) + meta + records)
for kind, scale in (("raw", False), ("real", True)):
    write(f"{kind}-a.mscan", lambda t, p: 0, scale)
    write(f"{kind}-b.mscan", lambda t, p: 500 if p == 4 else 7 if t == 3 and p < 2 else 0, scale)
END
coffer diff real-a.mscan real-b.mscan --max 3
echo "exit $?"
coffer diff raw-a.mscan raw-b.mscan --by layer --max 3
coffer diff real-a.mscan real-b.mscan --by token --max 2 --json | python3 -c '
import json, sys
found = json.load(sys.stdin)
print(found["by"], found["group_count"], found["groups"])
print(found["activation"], found["differences"][0])'
coffer diff real-a.mscan real-b.mscan --map --max 0
coffer diff real-a.mscan real-b.mscan --map --rows param --max 0 | tail -9
coffer diff real-a.mscan real-b.mscan -o difference.svg --max 0 >/dev/null
echo "exit $?"
grep -c '<svg' difference.svg
coffer diff real-a.mscan real-b.mscan --by head
coffer diff real-a.mscan real-a.mscan --by layer
