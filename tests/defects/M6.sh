# M6: two .npy files are compared with each other, whatever their names.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
from models import *
def npy(path, shape, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (tuple(shape),)
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + values)
values = floats([4, 4])
npy("a.npy", [4, 4], values)
npy("same.npy", [4, 4], values)
npy("other.npy", [4, 4], values[:20] + struct.pack("<f", 99) + values[24:])
npy("shape.npy", [2, 8], values)
safetensors("one.safetensors", {"weight": ("F32", [4, 4], values)})
END
for other in same other shape; do
    coffer diff a.npy $other.npy
    echo "exit $?"
done
coffer diff a.npy one.safetensors
echo "exit $?"
