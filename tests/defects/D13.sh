# Hierarchical texts and multimodal samples can be read, and the allocation table can be listed.
python3 - <<'END'
import struct
def hierarchy(texts):
    ends, end = b"", 0
    for text in texts:
        end += len(text.encode())
        ends += struct.pack("<I", end)
    return struct.pack("<I", len(texts)) + ends + "".join(texts).encode()
def mixture(parts):
    whole = struct.pack("<I", len(parts))
    for kind, name, payload in parts:
        whole += struct.pack("<HHI", kind, len(name), len(payload)) + name.encode() + payload
    return whole
values = [(hierarchy(["one", "zwei é", "", "four"]), mixture([(40, "caption", b"a kite"), (10, "pixels", bytes(12)), (999, "new", b"?")])),
          (hierarchy([]), mixture([])),
          (hierarchy(["x"])[:-1], mixture([(40, "t", b"\xff")]))]
fields = struct.pack("<64sHHII128s4x", b"story", 43, 0, 16, 0, b"") + struct.pack("<64sHHII128s4x", b"mix", 50, 0, 16, 0, b"")
rows = table = data = b""
for pair in values:
    for value in pair:
        rows += struct.pack("<QII", 4096 + len(data), len(value), 0)
        table += struct.pack("<QII", 4096 + len(data), len(value), 0)
        data += value
header = struct.pack("<HHIQHHI4Q8x", 1, 0, 1, len(values), 2, 0, 4096, 73, 512, 4096, 4096 + len(data))
whole = (b"\x89MLDF\r\n\x1a\n" + header + fields).ljust(512, b"\0") + rows
open("set.mldf", "wb").write(whole.ljust(4096, b"\0") + data + table)
END
coffer get set.mldf 0.story
coffer get set.mldf 0.story --json
coffer get set.mldf 0.mix
coffer get set.mldf 0.mix --json
coffer get set.mldf 0.story --raw | od -An -tx1
coffer get set.mldf 1 --json
coffer get set.mldf 2.story
echo "exit $?"
coffer get set.mldf 2.mix --json
echo "# the allocation table, and a payload by its offset"
coffer ls set.mldf --what table
coffer ls set.mldf --what table --json | head -n 1
coffer get set.mldf @4096 | od -An -c | head -n 1
coffer get set.mldf @4097
echo "exit $?"
coffer get set.mldf @x
echo "exit $?"
coffer ls set.mldf --what tables
echo "exit $?"
coffer get "$DATA/vectors/mldf/payload-bit-flip.mldf" @8192 2>&1 | head -n 1
