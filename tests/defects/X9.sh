# A command never replaces what it reads: not with --force, not by another name, not through a second file.
exec 2>&1
v=$DATA/vectors
cp "$v/mscan/two-sequences.mscan" s.mscan
cp "$v/mcf/plain.mcf" m.mcf
cp "$v/mldf/checksummed.mldf" d.mldf
cp "$(ls "$v"/pycauset/*.pycauset | head -1)" p.pycauset
python3 "$DATA/support/trace.py" t.mlyze
sha256sum *.* >before
try() {
    "$@"
    echo "exit $?"
}
try coffer convert s.mscan s.mscan -f --to csv
try coffer convert m.mcf m.mcf -f --to safetensors
try coffer convert d.mldf d.mldf -f --to jsonl
try coffer convert t.mlyze t.mlyze -f --to collapsed
try coffer convert p.pycauset p.pycauset -f --to npy
echo "another name for the same file"
ln s.mscan hard.csv
ln -s s.mscan soft.csv
try coffer convert s.mscan hard.csv -f
try coffer convert s.mscan soft.csv -f
try coffer get s.mscan -o hard.csv -f
try coffer heatmap s.mscan -o soft.csv -f
ln -s s.mscan soft.svg
try coffer heatmap s.mscan -o soft.svg -f
rm hard.csv soft.csv soft.svg
echo "a second output, and a second input"
try coffer convert s.mscan x.csv -f --metadata s.mscan
test -e x.csv || echo "no x.csv"
coffer convert s.mscan rows.csv --metadata meta.mscan
cp meta.mscan meta.before
try coffer convert rows.csv meta.mscan -f --metadata meta.mscan
cmp meta.mscan meta.before && echo "unchanged"
ln -s t.mlyze t.svg
try coffer flame t.mlyze -o t.svg -f
try coffer flame t.mlyze -o m.mcf
try coffer timeline t.mlyze -o t.svg -f
try coffer compact d.mldf -o d.mldf -f
try coffer repair d.mldf -o d.mldf -f
try coffer concat d.mldf d.mldf d.mldf -f
try coffer append s.mscan s.mscan
try coffer append s.mscan - <s.mscan
try coffer append d.mldf ./d.mldf
try coffer quantize m.mcf m.mcf -f --type q8
try coffer pack m.mcf m.mcf -f
rm t.svg
sha256sum -c --quiet before && echo "every file is as it was"
echo "changes in place still work"
try coffer compact d.mldf -q >/dev/null
try coffer compress t.mlyze -q >/dev/null
coffer check -q d.mldf t.mlyze
