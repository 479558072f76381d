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
