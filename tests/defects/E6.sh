# The documentation says what the program does.
docs=$DATA/../docs
echo "bad-magic is a magic that a transfer changed; one that only looks similar is not recognised"
printf 'MSCAM\001\000' >similar.mscan
coffer check --json similar.mscan 2>/dev/null | grep -o '"code":"[a-z-]*"'
coffer check --json "$DATA/vectors/mldf/magic-lf-converted.mldf" 2>/dev/null | grep -o '"code":"bad-magic"'
grep -c 'similar\|nearly it' "$docs/formats/mscan.md" "$docs/formats/mcf.md" "$docs/formats/mlyze.md" | sed 's|.*/||' | grep -v ':0' | grep magic
echo "the picture of the layers shows folders that exist"
sed -n 's/.*class="n"[^>]*>\([a-z]*\)<.*/\1/p' "$docs/layers.svg" | while read -r layer; do
    [ "$layer" = libraries ] || [ -d "$DATA/../src/$layer" ] || [ -d "$DATA/../$layer" ] || echo "$layer does not exist"
done
echo "three keys: a sequence in the order of its records has them, one of a table does not"
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,1,2\n' >rows.csv
coffer convert rows.csv table.mscan -q
coffer get table.mscan sequences --json 2>/dev/null | grep -c first_record
grep -c 'its sequences do not have these keys' "$docs/formats/mscan.md"
echo "a chat template of its own file is part of tokenizer_config.json"
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
coffer get model.mcf tokenizer_config.json | grep -c chat_template
grep -q 'chat_template.jinja' "$docs/formats/mcf.md" && echo documented
exit 0
