# Every verb that reads tensors compares them with their checksums; damage stops it, or stays recorded.
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
offset=$(coffer ls model.mcf model.norm.weight --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
cp model.mcf bent.mcf
printf X | dd of=bent.mcf bs=1 seek="$((offset + 3))" conv=notrunc 2>/dev/null
cp bent.mcf before.mcf
run() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1 >/dev/null | head -1
}
run compact bent.mcf
run compact bent.mcf -o out.mcf
run quantize bent.mcf out.mcf --type q8
run convert bent.mcf out.safetensors
run convert bent.mcf out.gguf --as-is
run get bent.mcf model.norm.weight
run stats bent.mcf
run diff model.mcf bent.mcf
run pack bent.mcf out.mcf
run set bent.mcf --checksum
run info bent.mcf --hash
ls out* 2>/dev/null
cmp before.mcf bent.mcf && echo "the damaged file is unchanged"
coffer get bent.mcf model.layers.0.k_proj.weight --rows 0 >/dev/null && echo "other tensors can be read"

echo "--- on request"
for verb in "compact bent.mcf -o" "pack bent.mcf" "quantize --type q8 bent.mcf"; do
    echo "\$ coffer $verb out.mcf --damaged keep"
    coffer $verb out.mcf -f --damaged keep >/dev/null
    echo "exit $?"
    coffer check --full out.mcf | sed 's/at [0-9][0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'
done
coffer set bent.mcf --checksum --damaged keep >/dev/null
coffer check --full bent.mcf | grep error | sed 's/at [0-9][0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'
