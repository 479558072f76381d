# Matrices survive a round trip; a file that cannot contain a matrix is refused with a reason.
vectors=$DATA/vectors/pycauset
coffer convert "$vectors/transposed.pycauset" - --to csv
coffer convert "$vectors/transposed.pycauset" - --to csv --stored
coffer convert "$vectors/triangular-i32.pycauset" - --to mtx --rows 0..3 --cols 0..3
coffer convert "$vectors/complex-f16.pycauset" - --to csv --part imag
coffer convert "$vectors/complex-f16.pycauset" complex.csv
coffer convert "$vectors/dense-int8.pycauset" small.npy --dtype u8
# Through every kind of file, and the values are the same.
for kind in npy mtx csv; do
    coffer convert "$vectors/dense-f64.pycauset" there.$kind
    coffer convert there.$kind back.pycauset --force
    coffer convert back.pycauset back.raw --force
    coffer convert "$vectors/dense-f64.pycauset" expected.raw --force
    cmp back.raw expected.raw && echo "$kind keeps every bit"
done
# Metadata goes along as JSON.
printf '1 2\n3 4\n' >m.csv
printf '{"properties": {"label": "four"}}' >m.json
coffer convert m.csv m.pycauset --delimiter space --metadata m.json
coffer get m.pycauset properties.label
coffer convert m.csv m.pycauset --delimiter space
coffer convert m.csv sym.pycauset --delimiter space --type symmetric
ls
