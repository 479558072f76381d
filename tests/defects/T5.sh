# Every verb for traces reads the files of other profilers, compressed or not.
tools=$DATA/compat/mlyze-tools
cp "$tools/grow.heaptrack.zst" "$tools/grow.massif" "$tools/grow.dhat" "$tools/grow.pb.gz" .
gzip -cn grow.massif >packed.massif.gz
printf 'main;load 300\nmain;work 100\n' >run.collapsed
gzip -cn run.collapsed >run.collapsed.gz
coffer convert run.collapsed own.mlyze
gzip -cn own.mlyze >own.mlyze.gz
rm -f own.mlyze.idx
for file in grow.heaptrack.zst grow.massif grow.dhat grow.pb.gz run.collapsed; do
    echo "--- $file"
    coffer peak $file --by function --top 2
    coffer leaks $file --by function --top 1
    coffer flame $file --what total | tail -1
    coffer stats $file --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["peak_bytes"])'
    coffer timeline $file --csv -n 1 | tail -1
done
for file in packed.massif.gz run.collapsed.gz own.mlyze.gz; do
    echo "--- $file"
    coffer peak $file --by function --top 1
done
echo "--- diff"
coffer diff grow.heaptrack.zst grow.dhat --what leaks
echo "exit $?"
coffer diff own.mlyze own.mlyze.gz
echo "--- a packed trace, in other verbs"
coffer check own.mlyze.gz
coffer info run.collapsed.gz
coffer convert own.mlyze.gz - --to collapsed
coffer leaks grow.heaptrack.zst --suppress main --fail-over 1
echo "exit $?"
echo "--- a truncated recording is used as far as it goes"
zstd -qdc grow.heaptrack.zst | head -c 900 >cut.heaptrack
coffer peak cut.heaptrack --by function --top 1
echo "exit $?"
ls
