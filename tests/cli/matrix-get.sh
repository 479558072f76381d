# A value of the metadata by its path; values of the matrix by row and column.
m=$DATA/vectors/pycauset
say() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
cd "$m" || exit
say get updated-once.pycauset
say get updated-once.pycauset rows
say get updated-once.pycauset properties.note
say get updated-once.pycauset properties.note --json
say get updated-once.pycauset properties.is_hermitian
say get updated-once.pycauset properties.blob
say get updated-once.pycauset properties.blob --as json
coffer get updated-once.pycauset properties.blob --as raw | od -An -tx1
say get updated-once.pycauset provenance.made.2.deep
say get updated-once.pycauset provenance.made.1
say get updated-once.pycauset future_key.x
say get updated-once.pycauset view

echo "# a cached result is given while it fits, and only then"
say get updated-once.pycauset cached.trace
say get updated-once.pycauset cached.norm
say get updated-once.pycauset cached.norm.value
say get updated-once.pycauset cached.norm --stale
say get updated-once.pycauset cached
say get updated-once.pycauset cached --stale --json
say get updated-once.pycauset cached.det

echo "# older states"
say get updated-twice.pycauset properties
say get updated-twice.pycauset properties --generation 2
say get updated-twice.pycauset properties --generation 9

echo "# elements, rows, tiles, columns"
say get dense-f64.pycauset 1,2
say get dense-f64.pycauset 1
say get dense-f64.pycauset 0..2,1..4
say get dense-f64.pycauset ..,4
say get dense-f64.pycauset values
say get transposed.pycauset 0..2
say get complex-f64.pycauset 0,0
say get complex-f64.pycauset 0
say get complex-f64.pycauset 0 --part imag
say get complex-f16.pycauset 1,1
say get transposed.pycauset .. --stored
say get dense-f64.pycauset 0 --dtype f32
say get causal-bit.pycauset 0..3
say get dense-uint64.pycauset 0
say get identity.pycauset 1
cd "$OLDPWD" || exit
coffer get "$m/dense-f64.pycauset" 0..2,1..4 -o tile.npy && od -An -c -N 8 tile.npy
say get "$m/dense-f64.pycauset" 1 -o tile.npy
say get "$m/dense-f64.pycauset" 1 -o tile.npy --force
coffer get "$m/updated-once.pycauset" properties.blob -o blob && od -An -tx1 blob
coffer get "$m/updated-once.pycauset" properties.note -o note.txt && cat note.txt
coffer get - properties.note <"$m/updated-once.pycauset"
ls
