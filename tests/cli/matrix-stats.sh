# Shape, density, extremes, mean, norm.
exec 2>&1
m=$DATA/vectors/pycauset
cd "$m" || exit
for name in dense-f64 causal-bit complex-f64 transposed identity triangular-i32 vector-f32; do
    coffer stats $name.pycauset
done
coffer stats dense-f64.pycauset --json
coffer stats dense-f64.pycauset --json --threads 1
coffer stats dense-f64.pycauset --threads 0
echo "exit $?"
coffer stats dense-f64.pycauset --by param
echo "exit $?"
coffer stats both-slots-corrupt.pycauset
echo "exit $?"
coffer stats - <dense-int8.pycauset
