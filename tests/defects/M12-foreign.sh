# M12: a check says what it did not verify. (Files of other programs.)
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
import struct, zipfile
from models import *
safetensors("a.safetensors", {"x": ("F32", [4, 4])})
gguf("a.gguf", {"general.architecture": ("string", "llama")}, {"x": ("F32", [4, 4], None)})
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + floats([4])
with zipfile.ZipFile("a.npz", "w") as archive:
    archive.writestr(zipfile.ZipInfo("x.npy"), array)
with open("a.npy", "wb") as out:
    out.write(array)
END
coffer check a.safetensors a.gguf a.npz a.npy
coffer check --full a.safetensors a.gguf a.npz a.npy
coffer check --json a.gguf
coffer check --json --full a.npz
# A damaged payload: an archive has checksums.
for file in a.safetensors a.npz; do
    python3 -c 'import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.find(b"\x00\x00\x70\xc1") # the first element, -15
data[at] ^= 1
open(sys.argv[1], "wb").write(data)' $file
    coffer check --full $file
    echo "exit $?"
done
