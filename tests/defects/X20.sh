# A small file cannot make a huge trace: the limit is an error that says how to raise it.
cat >make.py <<'PY'
import gzip
def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
field = lambda number, value: varint(number << 3 | 2) + varint(len(value)) + value
number = lambda n, value: varint(n << 3) + varint(value)
strings = ["", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "main"]
profile = b"".join(field(1, number(1, t) + number(2, u)) for t, u in ((1, 2), (3, 4), (5, 2), (6, 4)))
profile += field(2, field(1, varint(1)) + field(2, b"".join(map(varint, (60000000, 960000000, 100, 6400)))))
profile += field(4, number(1, 1) + field(4, number(1, 1) + number(2, 7)))
profile += field(5, number(1, 1) + number(2, 7))
profile += b"".join(field(6, s.encode()) for s in strings)
open("big.pb.gz", "wb").write(gzip.compress(profile, mtime=0))
head = b"desc: --x\ncmd: ./app\ntime_unit: i\n"
snapshot = b"#-----------\nsnapshot=%d\n#-----------\ntime=%d\nmem_heap_B=%d\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n"
open("big.massif", "wb").write(head + snapshot % (0, 0, 100) * 700000)
PY
python3 make.py
zstd -q --rm big.massif -o big.massif.zst
coffer convert big.pb.gz big.mlyze
echo "exit $?"
coffer convert big.pb.gz merged.mlyze --merge --max-events 200000
coffer stats merged.mlyze --json | python3 -c '
import json, sys
s = json.load(sys.stdin)
print(s["total_allocated_bytes"], s["live_bytes_at_end"], s["allocs"] < 500000)'
coffer peak big.pb.gz --max-events 200000
coffer peak big.pb.gz --max-events 1000
echo "exit $?"
coffer peak big.massif.zst
echo "exit $?"
coffer convert big.massif.zst out.mlyze
echo "exit $?"
coffer convert big.massif.zst out.mlyze --max-unpacked 100000000
echo "exit $?"
ls
