# A download that broke off, a directory that is gone, bytes that changed.
folder=$DATA/compat/mcf/hf-folder
coffer pack -q "$folder" model.mcf >/dev/null
size=40000
head -c $((size / 2)) model.mcf >half.mcf
coffer check half.mcf
echo "exit $?"
coffer repair half.mcf -o saved.mcf
echo "exit $?"
coffer check --full saved.mcf
coffer ls saved.mcf
coffer diff "$folder" saved.mcf >/dev/null
echo "something is lost: exit $?"
echo "a bent byte in a tensor is found by its sum"
cp model.mcf bent.mcf
offset=$(coffer ls model.mcf model.norm.weight --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
printf X | dd of=bent.mcf bs=1 seek="$((offset + 3))" conv=notrunc 2>/dev/null
coffer check --full bent.mcf | sed 's/at [0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'
coffer diff model.mcf bent.mcf >/dev/null
echo "exit $?"
coffer repair model.mcf
echo "exit $?"
