# Blocks of different parameters are kept apart; layers are a grouping; the default heat map shows layers.
python3 - <<'END'
import json, struct
names = {str(i): f"model.layers.{layer}.{kind}" for i, (layer, kind) in enumerate(
    [(10, "up"), (2, "up"), (0, "up"), (1, "up"), (0, "down")])}
names["5"] = "model.embed_tokens.weight"
names["6"] = "lm_head.weight"
names["7"] = "rotary"
meta = json.dumps({"id_to_param_name_map": names, "model_name": "m", "format_version": "1.1",
                   "sequences": [{"sequence_id": 0, "num_tokens": 6}]}).encode()
records = b"".join(struct.pack("<IHHHH", t, p, b, 1000 * p + 10 * b + t, p)
                   for t in range(6) for p in range(8) for b in range(2))
open("s.mscan", "wb").write(struct.pack("<5sHII", b"MSCAN", 1, 15 + len(meta), 6 * 8 * 2) + meta + records)
END
coffer stats s.mscan --by param,block --csv --metric activation | cut -d, -f1-5
coffer stats s.mscan --by param,block --param 'model.layers.2.*'
coffer stats s.mscan --by layer
coffer stats s.mscan --by layer --json | grep -o '"by":.*' | head -c 120
echo
coffer stats s.mscan --metric sps --by param,block --scope layer --csv | head -3
coffer stats s.mscan --by block
coffer heatmap s.mscan
coffer heatmap s.mscan --rows param
coffer heatmap s.mscan --rows block
coffer heatmap s.mscan --rows block --param model.layers.2.up
