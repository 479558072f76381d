# History: messages and times, revert, compact that keeps states.
printf '1,2,3\n4,5,6\n' >m.csv
coffer convert m.csv m.pycauset --dtype f64
coffer set m.pycauset properties.label=one -m 'first label' --author me
coffer set m.pycauset '[1,2]=7' properties.label=two -m 'second label'
coffer set m.pycauset '[1,2]=8'
coffer log m.pycauset | grep -v payload_uuid
coffer revert m.pycauset 2
coffer get m.pycauset values
coffer get m.pycauset properties.label
coffer revert m.pycauset
coffer get m.pycauset values
coffer check --full m.pycauset
coffer revert m.pycauset 99
echo "exit $?"
coffer revert m.pycauset 6
echo "exit $?"
coffer revert m.pycauset 2 --json
coffer compact m.pycauset --keep 3
coffer log m.pycauset | grep generation
coffer revert m.pycauset 5
coffer get m.pycauset values
coffer compact m.pycauset -o small.pycauset
coffer log small.pycauset | grep generation
coffer check --full m.pycauset small.pycauset
