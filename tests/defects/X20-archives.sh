# Compressed files that grow too much are refused, and the limit can be raised.
exec 2>&1
python3 - <<'PY'
import gzip, struct, zipfile
header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1024, 1024), }"
header += b" " * (117 - len(header)) + b"\n"
npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8 << 20)
with zipfile.ZipFile("zeros.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("a.npy", npy)
text = "desc: --time-unit=i\ncmd: ./a\ntime_unit: i\n"
for i in range(60000):
    text += "#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n"
with open("massif.gz", "wb") as file:
    file.write(gzip.compress(text.encode(), mtime=0))
# 80 MB of empty snapshots, in one member of gzip after the other
with open("large.gz", "wb") as file:
    snapshots = text[text.index("#"):][:107 * 5000]
    head = gzip.compress(text[:text.index("#")].encode(), mtime=0)
    file.write(head + gzip.compress(snapshots.encode(), mtime=0) * (80 * 1024 * 1024 // len(snapshots)))
PY
coffer convert large.gz large.mlyze --from massif >/dev/null 2>&1
echo "without options: exit $?"
coffer convert zeros.npz m.pycauset --limit memory=1M
echo "exit $?"
coffer convert zeros.npz m.pycauset --limit memory=1M --limit unpack-ratio=2000
echo "exit $?"
coffer convert zeros.npz n.pycauset
echo "exit $?"
coffer convert massif.gz t.mlyze --from massif --limit unpacked=1M
echo "exit $?"
coffer info zeros.npz --limit memory
echo "exit $?"
coffer info zeros.npz --limit nonsense=3
echo "exit $?"
