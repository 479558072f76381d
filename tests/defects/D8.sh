# NumPy arrays in Fortran order and of booleans, and WAV files with floats, become sets.
python3 - <<'EOF'
import struct

def npy(name, descr, fortran, shape, data):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data)

values = [[[100 * i + 10 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
columns = [values[i][j][k] for k in range(4) for j in range(3) for i in range(2)]
npy("fortran.npy", "<i2", True, (2, 3, 4), struct.pack("<24h", *columns))
npy("flags.npy", "|b1", False, (2, 3), bytes([1, 0, 1, 0, 0, 1]))
EOF
coffer convert fortran.npy fortran.mldf
coffer get fortran.mldf 1.array --json
coffer convert flags.npy flags.mldf
coffer get flags.mldf 0.array --json
coffer pack flags.npy packed.mldf | sed 's/, [0-9.]* [KM]iB//'
mkdir arrays
cp flags.npy fortran.npy arrays/
mkdir more
cp flags.npy more/a.npy
coffer pack more more.mldf >/dev/null
coffer get more.mldf 0.array --json
echo "# floats"
mkdir sounds
cp "$DATA/media/float.wav" sounds/
coffer pack sounds sounds.mldf | sed 's/, [0-9.]* [KM]iB//'
coffer get sounds.mldf 0.audio -o back.wav
cmp back.wav sounds/float.wav && echo "the same file"
coffer get sounds.mldf 0.audio --as npy | tail -c 800 | cksum
tail -c 800 sounds/float.wav | cksum
coffer check --full sounds.mldf
coffer check --decode sounds.mldf
