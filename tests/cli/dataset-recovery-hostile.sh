# Recovery blocks of a malicious set cost repair neither hours nor a full disk.
python3 - <<'END'
import json
with open("rows.jsonl", "w") as out:
    for i in range(400):
        out.write(json.dumps({"n": i, "text": "word %d " % i * 60}) + "\n")
END
coffer pack -q rows.jsonl set.mldf --page-size 4K >/dev/null
python3 - <<'END'
import struct, zlib
whole = bytearray(open("set.mldf", "rb").read())
start = whole.index(b"CFMLROWS")
row_size, = struct.unpack_from("<I", whole, start + 52)
metadata, data, table = struct.unpack_from("<QQQ", whole, 9 + 32)


def head(place, rows, body, crc=0):
    summed = struct.pack("<QQQIIIIQ", place, 0, 0, rows, 0, body, row_size, 0)
    return b"CFMLROWS" + struct.pack("<II", 1, crc) + summed


# Every 64 bytes a block that would take the rest of the file.
cut = whole[: start + start % 64]
size = 8 << 20
out = cut + bytes(-len(cut) % 64)
while len(out) < size:
    out += head(len(out), 300, size - len(out) - 64)
open("heads.mldf", "wb").write(out)
# The same with heads that the format allows: bodies of as many bytes as a block may have.
rows = (1 << 20) // row_size
out = cut + bytes(-len(cut) % 64)
while len(out) < size:
    out += head(len(out), min(rows, 400), 9000)
open("allowed.mldf", "wb").write(out)
END
for name in heads allowed; do
    timeout 20 coffer repair $name.mldf -o saved.mldf -f >out 2>&1
    echo "exit $?"
    grep -o 'no sample of it can be saved\|samples kept: [0-9]* of [0-9]*' out
done
