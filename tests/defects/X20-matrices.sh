# A few bytes do not become an unlimited file without being asked to.
cp "$DATA/vectors/pycauset/identity.pycauset" i.pycauset
coffer convert i.pycauset i.npy
echo "exit $?"
coffer convert "$DATA/defects/identity-2e9.pycauset" big.npy
echo "exit $?"
coffer convert "$DATA/defects/identity-2e9.pycauset" big.csv
echo "exit $?"
coffer get "$DATA/defects/identity-2e9.pycauset" 5..7,5..7
coffer convert i.pycauset i.csv --max-size 1x
echo "exit $?"
echo '# the option raises and lowers the limit'
coffer convert "$DATA/defects/identity-2e9.pycauset" part.npy --rows 0..1 --max-size 1M
echo "exit $?"
