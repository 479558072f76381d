# Exercise 1 of the tutorial, solved literally: flag 4, the CRC-32 of the data region in the reserved bytes of the header, and
# nothing in the last field of the allocation table.
python3 - <<'END'
import struct, zlib
texts = [b"text number %d" % i for i in range(120)]
fields = struct.pack("<64sHHII128s", b"label", 1, 0, 8, 0, b"") + struct.pack("<64sHHII128s", b"text", 40, 0, 16, 0, b"")
metadata = -(-(73 + len(fields)) // 64) * 64
data = 4096
while data < metadata + 24 * len(texts):
    data += 4096
rows, table, at = b"", b"", data
for i, text in enumerate(texts):
    rows += struct.pack("<qQIHBB", i, at, len(text), 0, 0, 0)
    table += struct.pack("<QII", at, len(text), 0)
    at += len(text)
crc = zlib.crc32(b"".join(texts))
header = struct.pack("<HHIQHHI4QII", 1, 0, 1 | 4, len(texts), 2, 0, 4096, 73, metadata, data, at, crc, 0)
whole = (b"\x89MLDF\r\n\x1a\n" + header + fields).ljust(metadata, b"\0") + rows
whole = whole.ljust(data, b"\0") + b"".join(texts) + table
open("set.mldf", "wb").write(whole)
whole = bytearray(whole)
whole[data + 100] ^= 1
open("bad.mldf", "wb").write(whole)
END
coffer check --full set.mldf
coffer get set.mldf 7.text
coffer head set.mldf -n 2
coffer compact set.mldf -o copy.mldf >/dev/null
coffer check --full copy.mldf
coffer diff set.mldf copy.mldf
echo "# a changed byte is found by the checksum of the region"
coffer check bad.mldf
echo "exit $?"
for verb in "get bad.mldf 7.text" "compact bad.mldf -o out.mldf" "convert bad.mldf out.jsonl" "append bad.mldf set.mldf"; do
    coffer $verb >/dev/null 2>err
    echo "exit $?: ${verb%% *}: $(head -n 1 err | cut -d ' ' -f 3-)"
done
coffer repair bad.mldf -o saved.mldf
echo "exit $?"
echo "# a set that is changed gets checksums for all payloads"
coffer append set.mldf copy.mldf
coffer check --full set.mldf
coffer get set.mldf 119..122 --field text
