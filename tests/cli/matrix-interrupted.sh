# A reader that has seen enough, a full disk, Ctrl-C: no message too many, no file too many.
python3 - <<'END'
import struct
rows, cols = 3000, 1000
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
python3 - <<'END'
import os, signal, subprocess, time
before = open("big.pycauset", "rb").read()
tasks = {
    "compact in place": ["coffer", "compact", "big.pycauset"],
    "compact to another": ["coffer", "compact", "big.pycauset", "-o", "small.pycauset", "--force"],
    "set --checksum": ["coffer", "set", "big.pycauset", "--checksum"],
    "get": ["coffer", "get", "big.pycauset", "values", "-o", "out.csv", "--force"],
}
for name, words in tasks.items():
    for pause in 0.001, 0.005, 0.01, 0.03:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        status = process.wait()
        assert status in (0, -signal.SIGINT), (name, status)
        left = set(os.listdir()) - {"big.pycauset", "small.pycauset", "out.csv"}
        assert not left, (name, left)
        check = subprocess.run(["coffer", "check", "--full", "--json", "big.pycauset"], stdout=subprocess.PIPE)
        assert check.returncode == 0, (name, check.stdout)
        now = open("big.pycauset", "rb").read()
        assert now[4096:4096 + 24000000] == before[4096:4096 + 24000000], name
    print(name, "was interrupted: the file is whole, nothing is left behind")
END
