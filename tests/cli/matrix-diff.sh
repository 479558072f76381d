# Two matrices: shape, type, values as they are seen, metadata; 1 means different.
m=$DATA/vectors/pycauset
printf '1,2,3\n4,5,6.5\n' >a.csv
printf '1,2.25,3\n4,5,6\n' >b.csv
printf '1,4\n2,5\n3,6.5\n' >turned.csv
coffer convert a.csv a.pycauset
coffer convert b.csv b.pycauset
coffer convert turned.csv turned.pycauset
coffer diff a.pycauset b.pycauset
echo "exit $?"
coffer diff a.pycauset b.pycauset --tolerance 0.5
echo "exit $?"
coffer diff --json a.pycauset b.pycauset --max 1 | python3 -c '
import json, sys
diff = json.load(sys.stdin)
print(diff["equal"], diff["values"], diff["differences"])'

echo "# another shape: values are not compared"
coffer diff a.pycauset turned.pycauset
echo "exit $?"

echo "# the same through a view that turns it back"
coffer set turned.pycauset view.is_transposed=true
coffer diff a.pycauset turned.pycauset
echo "exit $?"

echo "# notes count, the payload's place does not"
coffer set a.pycauset properties.label=mine
coffer diff a.pycauset turned.pycauset | grep -A 4 metadata
coffer diff "$m/dense-f64.pycauset" "$m/length-plus-64.pycauset"
coffer diff a.pycauset missing.pycauset 2>&1
echo "exit $?"
coffer diff a.pycauset "$m/newest-metadata-corrupt.pycauset" 2>&1
echo "exit $?"
