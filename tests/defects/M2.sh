# repair keeps damage known: the new file records it, check reports it, and a copy replaces it.
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
offset=$(coffer ls model.mcf model.norm.weight --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
cp model.mcf bent.mcf
printf X | dd of=bent.mcf bs=1 seek="$((offset + 3))" conv=notrunc 2>/dev/null
hide() { sed 's/at [0-9][0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'; }
coffer repair bent.mcf -o saved.mcf >out
echo "exit $?"
hide <out
coffer repair -q saved.mcf -o again.mcf >/dev/null
echo "exit $?"
coffer check --full again.mcf | hide
coffer repair again.mcf --from model.mcf -o healed.mcf >out
echo "exit $?"
hide <out
coffer check --full healed.mcf
coffer diff model.mcf healed.mcf
