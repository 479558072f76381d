# heatmap --minus draws the difference of two matrices, of any kind of file.
exec 2>&1
m=$DATA/vectors/pycauset
matrix() { # FILE FACTOR
    python3 - "$1" "$2" <<'END'
import struct, sys
head = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 6), }".ljust(117) + "\n"
values = [float(sys.argv[2]) * row * col for row in range(4) for col in range(6)]
open(sys.argv[1], "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<24d", *values))
END
}
matrix old.npy 1
matrix new.npy 3
coffer convert old.npy old.pycauset
coffer heatmap new.npy --minus old.pycauset
coffer heatmap old.pycauset --minus new.npy -o change.svg
head -c 5 change.svg
echo
coffer heatmap new.npy --minus new.npy
coffer heatmap new.npy --minus "$m/dense-f64.pycauset" || echo "status $?"
coffer heatmap new.npy --minus missing.npy || echo "status $?"
echo text > text.npy
coffer heatmap new.npy --minus text.npy || echo "status $?"
