# Array files of other programs answer the same verbs, and convert to each other in one step.
printf '0.5,1,2,3\n4,5,6,7\n8,9,10,11\n' >a.csv
coffer convert a.csv a.npy
coffer convert a.npy a.mtx
coffer convert a.mtx a.h5
coffer convert a.h5 b.csv
cat b.csv
coffer convert a.h5 b.npy
coffer convert a.npy b.h5
coffer info a.npy
for file in a.npy a.mtx a.h5; do
    echo "# $file"
    coffer ls $file
    coffer get $file | head -n 1
    coffer get $file -1,1:3
    coffer get $file '[0:2,-1]'
    coffer get $file 1..,..1
    coffer stats $file | grep -c mean
    coffer heatmap $file | tail -n 1
done
coffer diff a.npy a.h5
coffer diff a.mtx a.h5
echo "exit $?"
coffer convert a.csv c.pycauset
coffer diff c.pycauset a.npy | head -n 1
echo '# tabs, semicolons, blanks'
printf '1\t2\n3\t4\n' >t.tsv
printf 'x;y\n1;2\n' >s.csv
printf '1 2\n3 4\n' >w.csv
for file in t.tsv s.csv w.csv; do
    coffer convert $file o.npy -f
    coffer get o.npy
done
coffer convert o.npy o.tsv
cat o.tsv
echo '# three dimensions'
cp "$DATA/defects/cube.npy" .
coffer info cube.npy
coffer get cube.npy
echo "exit $?"
coffer get cube.npy --slice -1
coffer convert cube.npy cube.csv --slice 0 --rows 1
cat cube.csv
coffer convert cube.npy cube.pycauset --slice 2
echo "exit $?"
echo '# a sparse matrix is not made dense without a word'
printf '%%%%MatrixMarket matrix coordinate real general\n4 4 3\n1 1 1.5\n2 3 2\n4 4 -1\n' >p.mtx
coffer convert p.mtx p.pycauset
echo "exit $?"
coffer convert p.mtx p.pycauset --dense
coffer convert p.mtx p.npy
coffer get p.pycauset 3
echo '# block matrices'
coffer pack c.pycauset c.pycauset wide.pycauset
coffer pack c.pycauset c.pycauset c.pycauset c.pycauset m.pycauset --grid 2x2
coffer get m.pycauset 3:5,3:5
coffer compact m.pycauset -o small.pycauset
coffer get small.pycauset 3,4
coffer repair m.pycauset -o fixed.pycauset
coffer get fixed.pycauset 3,4
coffer check --full m.pycauset small.pycauset fixed.pycauset
coffer pack c.pycauset c.pycauset c.pycauset m.pycauset --grid 2x2
echo "exit $?"
coffer pack a.npy c.pycauset m.pycauset
echo "exit $?"
