# A file of a newer version is read, and every verb says so once on stderr.
v=$DATA/vectors
cp "$v/mldf/minor-7.mldf" d.mldf
cp "$v/mcf/minor-42.mcf" m.mcf
python3 "$DATA/support/trace.py" t.mlyze
printf '\011' | dd of=t.mlyze bs=1 seek=4 conv=notrunc 2>/dev/null
{
    coffer info d.mldf
    coffer ls d.mldf
    coffer head d.mldf
    coffer stats d.mldf
    coffer convert d.mldf d.jsonl
    coffer convert - d2.jsonl --from mldf <d.mldf
    coffer compact d.mldf -o c.mldf
    coffer info m.mcf
    coffer ls - <m.mcf
    coffer peak t.mlyze
    coffer flame t.mlyze
    coffer diff t.mlyze t.mlyze
    coffer stats t.mlyze --json
} >out 2>err
sed 's/than [0-9.]*/than N/' err
echo "check notes it among its findings"
coffer check d.mldf m.mcf t.mlyze 2>&1 | sed -n '/unsupported-version/s/ at .*//p'
