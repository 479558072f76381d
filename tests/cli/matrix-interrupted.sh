# A reader that closes its pipe, a full disk, Ctrl-C: no needless message, no file left.
python3 - <<'END'
import struct
rows, cols = 300, 1000
head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, cols)
head = head.ljust(117) + "\n"
with open("big.npy", "wb") as file:
    file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
    for row in range(rows):
        file.write(struct.pack("<1000d", *range(row, row + cols)))
END
coffer convert big.npy big.pycauset
rm big.npy
coffer get big.pycauset values | head -n 1 | cut -c 1-20
coffer get big.pycauset >/dev/full 2>errors
echo "exit $?"
cat errors
coffer log big.pycauset >/dev/full 2>errors
echo "exit $?"
cat errors
rm errors
PYTHONPATH=$DATA/cli python3 - <<'END'
import os, subprocess
from interrupt import interrupt, points
before = open("big.pycauset", "rb").read()
tasks = {
    "compact in place": ["compact", "big.pycauset"],
    "compact to another": ["compact", "big.pycauset", "-o", "small.pycauset", "--force"],
    "set --checksum": ["set", "big.pycauset", "--checksum"],
    "get": ["get", "big.pycauset", "values", "-o", "out.csv", "--force"],
}
for name, words in tasks.items():
    interrupted = 0
    where = points(words, 16)
    for point in where:
        open("big.pycauset", "wb").write(before)
        status, said = interrupt(words, point)
        interrupted += status != 0
        if name == "set --checksum":
            # The change is short: a signal waits for it, and the command finishes.
            assert status == 0, (name, point)
        left = set(os.listdir()) - {"big.pycauset", "small.pycauset", "out.csv"}
        assert not left, (name, point, left)
        check = subprocess.run(["coffer", "check", "--full", "--json", "big.pycauset"], stdout=subprocess.PIPE)
        assert check.returncode == 0, (name, point, check.stdout)
        now = open("big.pycauset", "rb").read()
        if name == "set --checksum":
            assert now != before, (name, point)
        assert now[4096:4096 + 2400000] == before[4096:4096 + 2400000], (name, point)
    assert interrupted or name == "set --checksum", name
    print(name, "was interrupted: the file is intact, nothing is left")
END
