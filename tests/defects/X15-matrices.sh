# Every verb says when a matrix shows an older state because a slot is damaged.
printf '1,2\n3,4\n' >m.csv
coffer convert m.csv m.pycauset
coffer set m.pycauset properties.label=two
cp m.pycauset good.pycauset
printf X | dd of=m.pycauset bs=1 seek=150 conv=notrunc 2>/dev/null
for verb in 'get m.pycauset metadata' 'get m.pycauset 0,0' 'ls m.pycauset' 'stats m.pycauset' 'log m.pycauset' \
    'diff m.pycauset good.pycauset' 'convert m.pycauset m.npy' 'compact m.pycauset' 'set m.pycauset properties.a=1' \
    'heatmap m.pycauset' 'revert m.pycauset 1'; do
    echo "# $verb"
    coffer $verb >out.txt 2>err.txt
    echo "exit $?"
    cat err.txt
done
coffer info m.pycauset | grep damage
coffer check m.pycauset
coffer check --full m.pycauset
echo "exit $?"
coffer repair m.pycauset -o new.pycauset
echo "exit $?"
coffer get new.pycauset 0,0
