# A byte that was removed moves everything after it. Tensors are found where they are now, verified, and the
# one that lost the byte stays marked; without checksums all stay marked.
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
without() { # IN TENSOR OUT
    offset=$(coffer ls "$1" "$2" --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
    head -c $((offset + 5)) "$1" >"$3"
    tail -c +$((offset + 7)) "$1" >>"$3"
}
hide() { sed 's/at [0-9][0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'; }
without model.mcf model.layers.0.edge.weight short.mcf
coffer repair short.mcf -o saved.mcf >out
echo "exit $?"
hide <out
coffer check --full saved.mcf | hide
for tensor in lm_head.weight model.layers.0.k_proj.weight model.norm.weight; do
    coffer get model.mcf $tensor >expected
    coffer get saved.mcf $tensor | cmp - expected && echo "$tensor is intact"
done
coffer get saved.mcf model.layers.0.edge.weight 2>&1 | hide

echo "--- without checksums"
coffer pack -q --no-checksums "$DATA/compat/mcf/hf-folder" plain.mcf >/dev/null
without plain.mcf model.layers.0.edge.weight short.mcf
coffer repair short.mcf -f -o saved.mcf >/dev/null
echo "exit $?"
coffer check --full saved.mcf | hide
