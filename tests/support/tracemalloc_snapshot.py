"""Writes snapshots of tracemalloc with known blocks: tracemalloc_snapshot.py FOLDER

Three blocks of load, one of keep, and one of another domain: 100 + 200 + 300, 5000, and 64 bytes. The same blocks in every
protocol of pickle and in the tuples of all versions of Python give the same answers; evil.tracemalloc wants to run a program."""
import os
import pickle
import sys
import tracemalloc

LOAD = (("/app/load.py", 7), ("/app/main.py", 3))
KEEP = (("/app/keep.py", 12), ("/app/main.py", 4))
BLOCKS = [(0, 100, LOAD, 2), (0, 200, LOAD, 2), (0, 5000, KEEP, 9), (0, 300, LOAD, 2), (389047, 64, LOAD, 2)]


def write(name, traces, protocol):
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        pickle.dump(tracemalloc.Snapshot(traces, 2), file, protocol)


class Evil(tracemalloc.Snapshot):
    def __reduce__(self):
        return os.system, ("echo a pickle ran a program",)


for protocol in range(2, 6):
    write(f"p{protocol}.tracemalloc", BLOCKS, protocol)
write("three.tracemalloc", [block[:3] for block in BLOCKS], 4)
write("two.tracemalloc", [block[1:3] for block in BLOCKS[:4]], 4)
write("empty.tracemalloc", [], 5)
write("wrong.tracemalloc", [(0, 100, LOAD, 2), (0, "large", LOAD, 2)], 5)
write("many.tracemalloc", BLOCKS * 1000, 5)
with open(os.path.join(sys.argv[1], "evil.tracemalloc"), "wb") as file:
    pickle.dump(["tracemalloc", Evil([], 1)], file, 5)
