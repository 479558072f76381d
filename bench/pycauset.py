"""Opening and reading a matrix with numpy and h5py; durable small commits with SQLite and LMDB.

usage: pycauset.py FOLDER ROWS COLS RUNS COMMITS

Prints one line of JSON for each peer and task: {"peer", "version", "task", "seconds": [...]}, or {"peer", "task",
"missing"}. Tasks: "open" (a float64 matrix of ROWS x COLS, its shape known afterwards), "read" (all of it into memory),
"commit" (about 300 bytes, on disk when the call returns; a run is the mean of COMMITS of them). Files are made in FOLDER and removed.
"""
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time

folder, rows, cols, runs, commits = sys.argv[1], *map(int, sys.argv[2:6])
OPENS = 200
NOTE = json.dumps({"label": "first run", "beta": 0.5, "tags": ["a", "b"], "comment": "x" * 230})


def say(**values):
    print(json.dumps(values), flush=True)


def measure(peer, version, task, work, times):
    """A run does the work `times` times; the result is the time of one."""
    work(0)
    seconds = []
    for run in range(runs):
        start = time.perf_counter()
        for turn in range(times):
            work(1 + run * times + turn)
        seconds.append((time.perf_counter() - start) / times)
    say(peer=peer, version=version, task=task, seconds=seconds)


def with_numpy(numpy, place):
    path = os.path.join(place, "matrix.npy")
    numpy.save(path, numpy.random.default_rng(1).random((rows, cols)))
    out = numpy.empty((rows, cols))
    out[:] = 0  # its pages are there before the clock runs

    def read(_):
        out[:] = numpy.load(path, mmap_mode="r")

    measure("numpy.load(mmap_mode)", numpy.__version__, "open", lambda _: numpy.load(path, mmap_mode="r").shape, OPENS)
    measure("numpy.load(mmap_mode)", numpy.__version__, "read", read, 1)
    os.unlink(path)


def with_h5py(h5py, place):
    import numpy

    path = os.path.join(place, "matrix.h5")
    with h5py.File(path, "w") as file:
        file["matrix"] = numpy.random.default_rng(1).random((rows, cols))
    out = numpy.empty((rows, cols))
    out[:] = 0

    def opening(_):
        with h5py.File(path, "r") as file:
            return file["matrix"].shape

    def read(_):
        with h5py.File(path, "r") as file:
            file["matrix"].read_direct(out)

    measure("h5py", h5py.__version__, "open", opening, OPENS)
    measure("h5py", h5py.__version__, "read", read, 1)
    os.unlink(path)


def with_sqlite(place):
    connection = sqlite3.connect(os.path.join(place, "notes.sqlite"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)")
    connection.execute("INSERT INTO notes VALUES (1, '')")

    def commit(turn):
        connection.execute("UPDATE notes SET note = ? WHERE id = 1", (f"{turn}{NOTE}",))

    measure("SQLite, WAL, synchronous=FULL", sqlite3.sqlite_version, "commit", commit, commits)
    connection.close()


def with_lmdb(lmdb, place):
    environment = lmdb.open(os.path.join(place, "notes.lmdb"), map_size=1 << 28)

    def commit(turn):
        with environment.begin(write=True) as transaction:
            transaction.put(b"note", f"{turn}{NOTE}".encode())

    measure("LMDB", ".".join(map(str, lmdb.version())), "commit", commit, commits)
    environment.close()


def with_module(name, module, tasks, run, place):
    try:
        peer = __import__(module)
    except ImportError:
        for task in tasks:
            say(peer=name, task=task, missing="not installed (make bench-peers)")
        return
    run(peer, place)


def main():
    place = tempfile.mkdtemp(prefix="peers-", dir=folder)
    try:
        with_module("numpy.load(mmap_mode)", "numpy", ("open", "read"), with_numpy, place)
        with_module("h5py", "h5py", ("open", "read"), with_h5py, place)
        with_sqlite(place)
        with_module("LMDB", "lmdb", ("commit",), with_lmdb, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


main()
