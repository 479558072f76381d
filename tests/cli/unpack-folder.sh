# A folder of Hugging Face comes back byte for byte: shards with headers in any order, and every small file.
mkdir -p folder/1_Pooling folder/notes
python3 - <<'PY'
import json, struct
def shard(name, tensors, metadata, pad):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for tensor, (dtype, shape, payload) in tensors:
        header[tensor] = {"shape": shape, "data_offsets": [len(data), len(data) + len(payload)], "dtype": dtype}
        data += payload
    text = json.dumps(dict(reversed(list(header.items()))), indent=pad).encode() + b" " * 5
    open("folder/" + name, "wb").write(struct.pack("<Q", len(text)) + text + data)
same = bytes(range(64))
first = [("model.z.weight", ("F32", [4, 4], same)), ("model.a.weight", ("BF16", [32], same)),
         ("model.empty", ("F16", [0, 3], b"")), ("model.scalar", ("I64", [], b"\7" * 8))]
second = [("lm_head.weight", ("F32", [4, 4], same)), ("model.mask", ("BOOL", [3], b"\0\1\1"))]
shard("model-00001-of-00002.safetensors", first, {"format": "pt"}, None)
shard("model-00002-of-00002.safetensors", second, None, 2)
index = {"metadata": {"total_size": 203}, "weight_map":
         {name: "model-0000%d-of-00002.safetensors" % (1 + (part is second)) for part in (second, first) for name, _ in part}}
open("folder/model.safetensors.index.json", "w").write(json.dumps(index, indent=4))
PY
printf '{"model_type":  "llama",\r\n "vocab_size": 4}' >folder/config.json
printf '{"do_sample": true, "temperature": 0.60}\n' >folder/generation_config.json
printf '{"bos_token": "<s>"}' >folder/special_tokens_map.json
printf '{"chat_template": null, "b": 1, "a": 1e0}' >folder/tokenizer_config.json
echo '{% for m in messages %}{{ m }}{% endfor %}' >folder/chat_template.jinja
printf '#version: 0.2\na b\n' >folder/merges.txt
printf '{"a": 0, "b": 1, "ab": 2}' >folder/vocab.json
printf '# A model\n\377\376 not UTF-8\n' >folder/README.md
: >folder/empty
printf '*.safetensors filter=lfs\n' >folder/.gitattributes
printf '{"pooling_mode_cls_token": true}' >folder/1_Pooling/config.json
printf 'a name with spaces\n' >'folder/notes/odd name (1).txt'
coffer pack folder model.mcf
coffer unpack model.mcf restored
diff -r folder restored && echo "the folders are the same"
coffer check model.mcf
# Also a model that was packed again, and one whose file was compacted.
coffer pack model.mcf again.mcf >/dev/null
coffer unpack again.mcf second >/dev/null
diff -r folder second && echo "and after packing it again"
# Weights that were changed are written to one file, and the command says so.
coffer quantize --type '*z*=q8' model.mcf quantized.mcf >/dev/null
coffer unpack quantized.mcf third
diff -rq folder third || echo "the folders differ"
