# Real units by default in every verb, the stored integers with --raw, and no digits of rounding errors.
python3 - <<'END'
import json, struct
meta = json.dumps({"id_to_param_name_map": {"0": "wq"}, "model_name": "m", "format_version": "1.1",
                   "quantization": {"activation": {"kind": "linear", "scale": 0.001, "offset": 0, "scope": "file"},
                                    "grad_norm": {"kind": "linear", "scale": 0.3, "offset": -1, "scope": "file"}},
                   "sequences": [{"sequence_id": 0, "num_tokens": 3}]}).encode()
records = b"".join(struct.pack("<IHHHH", t, 0, 0, a, g) for t, a, g in [(0, 1162, 7), (1, 3, 1), (2, 65535, 0)])
open("s.mscan", "wb").write(struct.pack("<5sHII", b"MSCAN", 1, 15 + len(meta), 3) + meta + records)
END
coffer get s.mscan
coffer get s.mscan --raw
coffer get s.mscan --as jsonl
coffer convert s.mscan out.csv --metadata out.json
cat out.csv
coffer convert s.mscan raw.csv --raw
cat raw.csv
coffer stats s.mscan --by param --csv | cut -d, -f1-8
coffer get s.mscan activation -o activation.npy
head -c 60 activation.npy | tail -c 50 | tr -d '\n'
echo
# The table and its metadata give the same scan again.
coffer convert out.csv again.mscan --metadata out.json
coffer diff s.mscan again.mscan
coffer convert s.mscan out.npy --metadata out-npy.json
coffer convert out.npy again-npy.mscan --metadata out-npy.json
coffer diff s.mscan again-npy.mscan
# A table without units is one of integers, as before.
coffer convert raw.csv integers.mscan
coffer get integers.mscan
coffer get s.mscan --raw --real
