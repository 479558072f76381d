# Ctrl-C while a file grows: it has the old content or all of the new one, and no journal is left.
PYTHONPATH=$DATA/cli python3 - <<'END'
import os, struct, subprocess
from interrupt import interrupt, points
def npy(path, count):
    descr = "{'descr': [('token_idx','<u4'),('param_id','<u2'),('block_idx','<u2'),('activation','<u2'),('grad_norm','<u2')], 'fortran_order': False, 'shape': (%d,), }" % count
    head = descr.ljust(64 * 4 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        for token in range(count // 100):
            file.write(struct.pack("<IHHHH", token, 0, 0, 1, 2) * 100)
npy("more.npy", 300000)
npy("small.npy", 100)
for name in "more", "small":
    subprocess.run(["coffer", "convert", name + ".npy", name + ".mscan"], check=True)
before = open("small.mscan", "rb").read()
words = ["append", "grown.mscan", "more.mscan"]
def restore():
    open("grown.mscan", "wb").write(before)
restore()
where = points(words)
statuses = set()
for point in where:
    restore()
    status, said = interrupt(words, point)
    leftovers = [name for name in os.listdir() if "grown" in name and name != "grown.mscan"]
    assert leftovers == [], (point, leftovers)
    size = os.path.getsize("grown.mscan")
    assert size > 3600000 if status == 0 else size == len(before), (point, status, size)
    statuses.add(status)
print("interrupted" if len(statuses) == 2 else statuses)
END
