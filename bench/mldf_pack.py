"""Packing a folder of small files into a training set, beside tar, turn and turn about.

usage: mldf_pack.py COFFER FOLDER [FILES [RUNS]]

FILES (100,000) files of about 10 KB are made in a temporary folder in FOLDER, read once, and packed by `coffer pack`, by
`tar cf`, and by `tar cf` with the archive brought to the disk as coffer does. Prints a table of seconds and the ratio to
the last: at most 1.3 is the goal.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

coffer, folder = sys.argv[1:3]
files = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
runs = int(sys.argv[4]) if len(sys.argv) > 4 else 3
FOLDERS = 100


def make(place):
    payload = random.Random(1).randbytes(20000)
    for i in range(FOLDERS):
        os.makedirs(os.path.join(place, "in", f"class-{i:03}"))
    for i in range(files):
        size, start = 9000 + i % 2000, i % 9000
        with open(os.path.join(place, "in", f"class-{i % FOLDERS:03}", f"{i:07}.bin"), "wb") as file:
            file.write(payload[start : start + size])


def clock(work, out):
    if os.path.exists(out):
        os.unlink(out)
    os.sync()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    place = tempfile.mkdtemp(prefix="pack-", dir=folder)
    try:
        make(place)
        source, tar, mldf = (os.path.join(place, name) for name in ("in", "out.tar", "out.mldf"))

        def pack():
            subprocess.run([coffer, "pack", source, mldf, "--quiet"], check=True, stdout=subprocess.DEVNULL)

        def archive():
            subprocess.run(["tar", "cf", tar, "-C", place, "in"], check=True)

        def archive_durably():
            archive()
            subprocess.run(["sync", "-d", tar], check=True)

        tasks = {"coffer pack": (pack, mldf), "tar": (archive, tar), "tar, then sync": (archive_durably, tar)}
        seconds = {name: [] for name in tasks}
        archive()
        for _ in range(runs):
            for name, (work, out) in tasks.items():
                seconds[name].append(clock(work, out))
        limit = sorted(seconds["tar, then sync"])[runs // 2]
        print(f"{files} files of 10 KB into one, warm{'':20} median s     best s")
        for name, values in seconds.items():
            values.sort()
            print(f"  {name:48} {values[runs // 2]:10.2f} {values[0]:10.2f}   {values[runs // 2] / limit:.2f}")
    finally:
        shutil.rmtree(place, ignore_errors=True)


main()
