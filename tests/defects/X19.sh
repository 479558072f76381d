# A value that was encrypted with the same key for the same place of another file is refused.
printf '%064d\n' 7 >key
for name in one two; do
    printf '{"text": "%s: first"}\n{"text": "%s: other"}\n' $name $name >$name.jsonl
    coffer pack $name.jsonl $name.mldf --encrypt --key-file key --page-size 4K >/dev/null
done
cat >swap.py <<'END'
import struct, sys, zlib
def parts(path):
    whole = bytearray(open(path, "rb").read())
    rows, data, table = struct.unpack_from("<3Q", whole, 9 + 32)
    return whole, rows, data, table
def payload(whole, rows, sample):
    return struct.unpack_from("<QI", whole, rows + 16 * sample)
a, rows_a, data, table = parts(sys.argv[1])
b, rows_b, _, _ = parts(sys.argv[2])
at, size = payload(a, rows_a, 1)
other, other_size = payload(b, rows_b, 1)
assert size == other_size
a[at:at + size] = b[other:other + size]
# All checksums are put right, as an attacker would.
struct.pack_into("<I", a, len(a) - 4, zlib.crc32(a[at:at + size]))
end = at + size
struct.pack_into("<I", a, 9 + 56, zlib.crc32(a[data:end]))
fields, = struct.unpack_from("<H", a, 9 + 16)
crc = zlib.crc32(a[73:73 + 208 * fields])
crc = zlib.crc32(a[rows_a:rows_a + 16 * 2], crc)
struct.pack_into("<I", a, 9 + 60, zlib.crc32(a[table:], crc))
for place in data, table:
    if a[place - 256:place - 248] == b"CFMLGARD":
        a[place - 256 + 80:place - 256 + 153] = a[:73]
        struct.pack_into("<I", a, place - 256 + 56, zlib.crc32(a[:data - 256]))
        struct.pack_into("<I", a, place - 4, zlib.crc32(a[place - 256:place - 4]))
open(sys.argv[3], "wb").write(a)
END
python3 swap.py one.mldf two.mldf swapped.mldf
coffer check --full swapped.mldf | sed 's/ at *[0-9]* / /'
coffer get swapped.mldf 0.text --key-file key
coffer get swapped.mldf 1.text --key-file key 2>&1 | sed 's/ (at offset.*//'
coffer check --full swapped.mldf --key-file key | sed 's/ at *[0-9]* / /'
echo "# identifiers are random, and stay in a copy that is made without the key"
coffer compact one.mldf -o copy.mldf >/dev/null
coffer get copy.mldf 1.text --key-file key
python3 - <<'END'
def identifier(path):
    whole = open(path, "rb").read()
    at = whole.index(b"CFMLGARD")
    return whole[at + 64:at + 80]
assert identifier("one.mldf") == identifier("copy.mldf") != identifier("two.mldf")
assert any(identifier("one.mldf"))
END
echo "# files of version 0.1 have none: they are read, and check notes it"
coffer get "$DATA/defects/X19-0.1.mldf" 1.text --key-file key
coffer check --full "$DATA/defects/X19-0.1.mldf" --key-file key
coffer concat "$DATA/defects/X19-0.1.mldf" tied.mldf --key-file key >/dev/null
coffer check --full tied.mldf --key-file key
coffer get tied.mldf 1.text --key-file key
echo "# the first encrypted field of a set gives it an identifier"
printf '{"n": 1}\n{"n": 2}\n' >plain.jsonl
printf '"secret of one"\n"secret of two"\n' >values.jsonl
coffer pack plain.jsonl plain.mldf --page-size 4K >/dev/null
coffer set plain.mldf --add-field s:text --values values.jsonl --encrypt --key-file key >/dev/null
coffer get plain.mldf 1.s --key-file key
coffer check --full plain.mldf --key-file key
