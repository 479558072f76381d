# DIAGONAL of pycauset 0.6 is read; an unknown type leaves the metadata readable.
cp "$DATA/compat/pycauset/diagonal.pycauset" d.pycauset
coffer info d.pycauset | grep type
coffer get d.pycauset values
coffer stats d.pycauset | grep nonzero
coffer set d.pycauset '[1,1]=9' properties.label=x
coffer get d.pycauset 1,1
coffer check --full d.pycauset
echo '# written, too'
printf '1,0\n0,2\n' >m.csv
coffer convert m.csv m.pycauset --type diagonal
coffer get m.pycauset values
coffer convert m.csv n.pycauset
coffer diff m.pycauset n.pycauset | grep differing
printf '1,1\n0,2\n' >x.csv
coffer convert x.csv x.pycauset --type diagonal
echo "exit $?"
echo '# a type of the future'
cp "$DATA/defects/future-type.pycauset" f.pycauset
coffer info f.pycauset | head -n 6
coffer get f.pycauset properties.label
coffer set f.pycauset properties.label=new
coffer get f.pycauset properties.label
coffer get f.pycauset values
echo "exit $?"
coffer stats f.pycauset
echo "exit $?"
coffer check f.pycauset
echo "exit $?"
