# convert and check warn of files that pycauset 0.6 misreads; --portable avoids them.
printf '1,2\n2,3\n' >s.csv
printf '0,2\n0,0\n' >t.csv
coffer convert s.csv s.pycauset --type symmetric --dtype i64
coffer check s.pycauset
coffer convert t.csv t.pycauset --type triangular --dtype i64
coffer convert t.csv d.pycauset --type triangular --dtype f64 --diagonal
coffer convert t.csv p.pycauset --type triangular --dtype f64
coffer check p.pycauset
coffer convert -f s.csv s.pycauset --type symmetric --dtype i64 --portable
coffer check s.pycauset
coffer get s.pycauset matrix_type
coffer convert -f s.csv s.pycauset --type symmetric --dtype f64 --portable
coffer get s.pycauset matrix_type
echo '# views that it misreads'
printf '1,2,3\n4,5,6\n' >m.csv
coffer convert m.csv m.pycauset
coffer set m.pycauset view.is_transposed=true
