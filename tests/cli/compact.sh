# Old states go, what is in force stays.
exec 2>&1
cp "$DATA/vectors/pycauset/dense-f64.pycauset" m.pycauset
for i in 1 2 3 4 5 6 7 8; do
    coffer set m.pycauset --durability none properties.round=$i >/dev/null
done
cp m.pycauset grown.pycauset
coffer info m.pycauset
coffer compact m.pycauset -o small.pycauset
coffer diff m.pycauset small.pycauset
cmp m.pycauset grown.pycauset && echo "the file itself is as it was"
coffer compact m.pycauset -o small.pycauset
echo "exit $?"
coffer compact m.pycauset -o small.pycauset --force --json
coffer compact m.pycauset
cmp m.pycauset small.pycauset && echo "the same in place"
coffer check --full m.pycauset
coffer log m.pycauset
coffer compact m.pycauset
coffer set m.pycauset properties.round=9

mkdir folder
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
say compact
say compact folder
say compact missing.pycauset
say compact m.pycauset -o nowhere/m.pycauset
say compact -
say compact "$DATA/vectors/pycauset/both-slots-corrupt.pycauset" -o x.pycauset
say compact "$DATA/vectors/mscan/two-sequences.mscan" -o x.mscan
ls
