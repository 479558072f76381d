# Files of other programs are described, listed and checked without being converted.
for name in truth compressed complex three-dimensions external-storage soft-link-loop huge-chunks; do
    for verb in info ls "check --full"; do
        echo "$ coffer $verb $name.h5"
        coffer $verb "$DATA/hdf5/$name.h5" 2>&1
        echo "exit $?"
    done
done
coffer info --json "$DATA/hdf5/truth.h5"
cat >graph.mtx <<'END'
%%MatrixMarket matrix coordinate integer general
% three edges
4 4 3
1 2 5
2 3 -7
4 1 2
END
for verb in info ls "check --full"; do
    coffer $verb graph.mtx
done
sed 's/^4 1 2/9 1 2/' graph.mtx >outside.mtx
coffer check --full outside.mtx
echo "exit $?"
head -c 900 "$DATA/hdf5/truth.h5" >cut.h5
coffer check cut.h5
echo "exit $?"
