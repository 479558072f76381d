# Numbers keep their values on the way through text.
cp "$DATA/defects/large.npy" u.npy
coffer convert u.npy u.mtx
cat u.mtx
coffer get u.mtx
coffer convert u.mtx u.pycauset
coffer get u.pycauset 0,1
printf '%%%%MatrixMarket matrix array real general\n2 1\n1.5D+03\n-2d0\n' >fortran.mtx
coffer get fortran.mtx
printf '%%%%MatrixMarket matrix array unsigned-integer general\n1 1\n-1\n' >bad.mtx
coffer get bad.mtx
echo "exit $?"
printf -- '-0,1\n2,-0.0\n' >zero.csv
coffer convert zero.csv zero.pycauset
coffer get zero.pycauset values
echo '# HDF5: the reason for what cannot be read, and attributes that are not kept'
coffer get "$DATA/defects/lzf.h5"
echo "exit $?"
coffer convert "$DATA/defects/cube.h5" cube.pycauset --slice 0
coffer get cube.pycauset properties
coffer get cube.pycauset provenance
coffer set cube.pycauset --json properties.list='[1,2]'
coffer convert cube.pycauset cube.h5
coffer convert cube.pycauset cube.npy
