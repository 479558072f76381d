# check says what it did not verify; QuantInfo's bounds are checked and listed; NaN is counted.
header='{"w":{"dtype":"F32","shape":[17000000],"data_offsets":[0,68000000]}}'
printf '%b' "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0" >big.safetensors
printf %s "$header" >>big.safetensors
truncate -s $((8 + ${#header} + 68000000)) big.safetensors
coffer pack -q big.safetensors big.mcf >/dev/null
coffer check big.mcf
coffer check --json big.mcf
printf X | dd of=big.mcf bs=1 seek=50000000 conv=notrunc 2>/dev/null
coffer check big.mcf
coffer check --full big.mcf | sed 's/at [0-9][0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'
rm big.mcf big.safetensors
coffer check "$DATA/compat/mcf/mantle-q4.mcf" | sed 's|.*/||'

folder=$DATA/compat/mcf/hf-folder
coffer quantize -q --no-checksums "$folder" small.mcf --type q8 >/dev/null
coffer ls --what quant small.mcf
offset=$(coffer ls --what sections small.mcf QuantInfo --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
cp small.mcf nan.mcf
printf '\377\377\377\377' | dd of=nan.mcf bs=1 seek=$((offset + 24)) conv=notrunc 2>/dev/null
coffer check nan.mcf
cp small.mcf swapped.mcf
printf '\0\0\0\103' | dd of=swapped.mcf bs=1 seek=$((offset + 24)) conv=notrunc 2>/dev/null
coffer check swapped.mcf
echo "exit $?"
coffer pack -q --no-checksums "$folder" plain.mcf >/dev/null
offset=$(coffer ls plain.mcf model.norm.weight --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
printf '\0\0\300\177' | dd of=plain.mcf bs=1 seek="$offset" conv=notrunc 2>/dev/null
coffer check --full plain.mcf
