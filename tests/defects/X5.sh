# Rows that nothing vouches for are reported and stay marked, and an absent value in a required field is an error.
# Where the rows are depends on how well zstd compresses their second copy.
without_offsets() {
    sed 's/ at *[0-9]* / at N /; s/, [0-9]* to [0-9]*, / /; s/[0-9a-f]\{8\}/CRC/g'
}
seq 1 40 | sed 's/.*/{"label": &, "text": "caption of sample &"}/' >list.jsonl
coffer pack list.jsonl good.mldf --page-size 4K >/dev/null
cat >damage.py <<'END'
import struct, sys
name, out, first, count, blocks = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
whole = bytearray(open(name, "rb").read())
rows, = struct.unpack_from("<Q", whole, 9 + 32)
for i in range(24 * first, 24 * (first + count)):
    whole[rows + i] = 0
if blocks == "spoilt":
    at = whole.find(b"CFMLROWS")
    while at >= 0:
        whole[at + 64] ^= 1
        at = whole.find(b"CFMLROWS", at + 1)
open(out, "wb").write(whole)
END
echo "# zeroed rows come back from their second copy"
python3 damage.py good.mldf zeroed.mldf 5 3 intact
coffer check zeroed.mldf | without_offsets
coffer repair zeroed.mldf -o out.mldf >said
echo "exit $?"
without_offsets <said
coffer check --full out.mldf && coffer diff good.mldf out.mldf
echo "# without the second copy they are lost, and the others cannot be verified"
python3 damage.py good.mldf worse.mldf 5 3 spoilt
coffer repair worse.mldf -o marked.mldf >said
echo "exit $?"
without_offsets <said
coffer check marked.mldf
echo "exit $?"
echo "# the marks follow the samples until they are replaced or deleted"
coffer split marked.mldf --parts a=0.5,b=0.5 -o parts >/dev/null
coffer check parts/marked-a.mldf
coffer convert marked.mldf marked.jsonl
echo "exit $?"
coffer delete marked.mldf 1..36 >/dev/null
coffer check marked.mldf
coffer set marked.mldf 0.label=1 0.text="caption of sample 1" >/dev/null
coffer check --full marked.mldf
echo "# an absent value where there must be one"
python3 - <<'END'
import struct, zlib
whole = bytearray(open("good.mldf", "rb").read())
fields, = struct.unpack_from("<H", whole, 9 + 16)
descriptors, rows, data, table = struct.unpack_from("<4Q", whole, 9 + 24)
for i in range(8, 24):
    whole[rows + 24 * 2 + i] = 0
crc = zlib.crc32(whole[descriptors:descriptors + 208 * fields])
crc = zlib.crc32(whole[rows:rows + 24 * 40], crc)
struct.pack_into("<I", whole, 9 + 60, zlib.crc32(whole[table:], crc))
whole[data - 256:data] = whole[table - 256:table] = bytes(256)
open("absent.mldf", "wb").write(whole)
END
coffer check --full absent.mldf >said
echo "exit $?"
without_offsets <said
