# A truncated file keeps the sections that are there: the copy of the directory near the front locates them.
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
head -c 3000 model.mcf >half.mcf
coffer repair half.mcf -o saved.mcf 2>/dev/null | grep -v "lost: tensor"
for section in config.json tokenizer.json tokenizer_config.json; do
    coffer get model.mcf $section >expected
    coffer get saved.mcf $section | cmp - expected && echo "$section is there"
done
coffer info saved.mcf | grep 'model name'
echo "--- complete tensors of a partial download are verified"
head -c 20000 model.mcf >most.mcf
coffer repair most.mcf -o most-saved.mcf | grep -v "lost: tensor"
coffer check --full most-saved.mcf
coffer get most-saved.mcf model.layers.0.edge.weight >/dev/null && echo "readable"
echo "--- what is lost stays known"
coffer convert most-saved.mcf lost.safetensors
coffer check lost.safetensors
coffer pack lost.safetensors packed.mcf
coffer compact packed.mcf >/dev/null
coffer check packed.mcf
