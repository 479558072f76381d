# Tensors, rows of them, and the texts beside them.
vectors=$DATA/vectors/mcf
model=$vectors/plain.mcf
coffer get "$model" scalar
coffer get "$model" i16
coffer get "$model" i64
coffer get "$model" u64
coffer get "$model" empty | wc -c
coffer get "$model" model.norm.weight -o norm.npy
head -c 128 norm.npy | tail -c 118
coffer get "$model" model.norm.weight --as raw | wc -c
coffer get "$model" model.embed_tokens.weight --rows 1..3 -o rows.safetensors
head -c 96 rows.safetensors | tail -c 88; echo
coffer ls rows.safetensors
coffer get "$model" '名前.weight' --rows 0 | head -c 40; echo
echo "quantized tensors decode to the bit"
for expected in "$vectors"/quant-expected/*.f32; do
    name=$(basename "$expected" .f32)
    coffer get "$vectors/quantised.mcf" "$name" --dequantize -o "$name.npy" || echo "$name: exit $?"
    tail -c +129 "$name.npy" | cmp - "$expected" || echo "$name differs"
done
coffer get "$vectors/quantised.mcf" k4.3x300 --dequantize --rows 1..2 --as raw | cmp - k4.3x300.npy | head -c 0
coffer get "$vectors/quantised.mcf" k4.3x300 --as raw | wc -c
echo "texts"
coffer get "$DATA/compat/mcf/mantle-pack.mcf" config.json | head -c 60; echo
coffer get "$model" model_name
coffer get "$DATA/compat/mcf/hf-folder" format
coffer get "$DATA/compat/mcf/mantle-pack.mcf" tokenizer.json -o tokenizer.json
cmp tokenizer.json "$DATA/compat/mcf/hf-folder/tokenizer.json"
