# Real units where the scan says how its numbers were quantized, and the reason where they cannot be shown.
scan() { # NAME QUANTIZATION
    python3 - "$1" "$2" <<'END'
import json, struct, sys
records = [(t, p, b, 1000 * (t + 1) + p, 10 * p + b) for t in range(4) for p in range(2) for b in range(2)]
text = json.dumps({"format_version": "1.1", "model_name": "units",
                   "id_to_param_name_map": {"0": "model.layers.0.a", "1": "model.layers.1.b"},
                   "sequences": [{"sequence_id": 0, "num_tokens": 3, "source": "one, \"two\""},
                                 {"sequence_id": 1, "num_tokens": 1}],
                   "quantization": {"activation": json.loads(sys.argv[2])}}).encode()
with open(sys.argv[1], "wb") as out:
    out.write(b"MSCAN" + struct.pack("<HII", 1, 15 + len(text), len(records)) + text)
    out.write(b"".join(struct.pack("<IHHHH", *record) for record in records))
END
}
scan file.mscan '{"kind": "linear", "scale": 0.5, "offset": -100, "scope": "file"}'
coffer stats file.mscan
coffer stats file.mscan --raw --by param
coffer stats file.mscan --by sequence --csv
scan falling.mscan '{"kind": "linear", "scale": -1, "offset": 0, "scope": "file"}'
coffer stats falling.mscan --by block
coffer stats falling.mscan --metric sps
scan param.mscan '{"kind": "linear", "scope": "param", "values": {"0": {"scale": 1, "offset": 0}, "1": {"scale": 10, "offset": 0}}}'
coffer check --full param.mscan
coffer stats param.mscan --by param
coffer stats param.mscan --by block
coffer stats param.mscan --metric sps --json
