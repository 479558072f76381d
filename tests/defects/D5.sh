# Complete files of the tutorial's writer that have no payload: the data region begins after the end of the file.
python3 - <<'END'
import struct

def descriptor(name, kind, size):
    return struct.pack("<64sHHII128s", name.encode(), kind, 0, size, 0, b"")

def write(path, fields, rows):
    # The tutorial seeks to the data region and then writes an empty allocation table.
    body = b"".join(descriptor(*field) for field in fields)
    metadata = -(-(73 + len(body)) // 64) * 64
    data = -(-(metadata + len(rows)) // (2 << 20)) * (2 << 20)
    samples = len(rows) // sum(size for _, _, size in fields)
    header = struct.pack("<HHIQHHI4Q8x", 1, 0, 1, samples, len(fields), 0, 2 << 20, 73, metadata, data, data)
    whole = b"\x89MLDF\r\n\x1a\n" + header + body
    open(path, "wb").write(whole.ljust(metadata, b"\0") + rows if rows else whole)

numbers = [("label", 1, 8), ("score", 2, 8)]
write("numbers.mldf", numbers, b"".join(struct.pack("<qd", i, i / 2) for i in range(5)))
write("none.mldf", numbers + [("text", 40, 16)], b"")
write("absent.mldf", [("label", 1, 8), ("text", 40, 16)], struct.pack("<q16x", 7) * 2)
END
for set in numbers none absent; do
    echo "# $set"
    coffer check --full $set.mldf
    coffer info $set.mldf | sed -n 's/^ *samples/samples/p'
    coffer ls $set.mldf | cut -c 1-40
    coffer stats $set.mldf >/dev/null || echo "stats: exit $?"
    coffer head $set.mldf
    coffer compact $set.mldf -o $set-2.mldf >/dev/null && coffer diff $set.mldf $set-2.mldf
    coffer convert $set.mldf - --to jsonl
    coffer repair $set.mldf
done
coffer get numbers.mldf 3.score
coffer append numbers.mldf numbers-2.mldf
coffer check --full numbers.mldf
coffer get numbers.mldf label --json
echo "# a file that ends before its payloads is still truncated"
head -c 6000 "$DATA/vectors/mldf/all-types-208.mldf" >cut.mldf
coffer check cut.mldf | head -n 4

