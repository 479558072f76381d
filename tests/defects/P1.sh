# An element of a dense matrix is changed in place; what is not a key is refused with the right command.
printf '1,2,3\n4,5,6\n' >m.csv
coffer convert m.csv m.pycauset --dtype f64
coffer set m.pycauset 1,2=7
echo "exit $?"
coffer set m.pycauset label=foo
echo "exit $?"
coffer get m.pycauset values
echo '# changed, with a new checksum, and nothing is left of the journal'
coffer set m.pycauset '[1,2]=7' '[0,0]=-0.5' -m 'typing error'
coffer get m.pycauset values
coffer check --full m.pycauset
ls
coffer log m.pycauset -n 1 | grep -v payload_uuid
echo '# what cannot be stored'
for element in '[2,0]=1' '[0,0]=1+2j' '[0,0]=x' '[0]=' '[0,0]=1 [0,0]=2'; do
    coffer set m.pycauset $element
    echo "exit $?"
done
coffer convert m.csv i.pycauset --dtype i8
coffer set i.pycauset '[0,0]=128'
echo "exit $?"
coffer set i.pycauset '[0,0]=1.5'
echo "exit $?"
echo '# through the view, and in every layout'
coffer set i.pycauset view.is_transposed=true
coffer set i.pycauset '[2,0]=-9'
coffer get i.pycauset values
printf '1,2\n2,3\n' >s.csv
coffer convert s.csv s.pycauset --type symmetric --dtype f64
coffer set s.pycauset '[1,0]=8'
coffer get s.pycauset values
printf '0,1\n0,0\n' >c.csv
coffer convert c.csv c.pycauset --type causal
coffer set c.pycauset '[0,1]=0'
coffer get c.pycauset values
coffer set c.pycauset '[1,0]=1'
echo "exit $?"
coffer check --full i.pycauset s.pycauset c.pycauset
echo '# damaged values are not given a new checksum'
printf X | dd of=m.pycauset bs=1 seek=4100 conv=notrunc 2>/dev/null
coffer set m.pycauset '[1,1]=1'
echo "exit $?"
coffer set m.pycauset --checksum
echo "exit $?"
coffer get m.pycauset values
echo "exit $?"
