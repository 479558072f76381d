"""Reading samples of 1 KB and 100 KB with the readers of other formats, from Python, one process.

usage: mldf_read.py FOLDER SMALL LARGE RUNS

Prints one line of JSON for each peer and task: {"peer", "version", "task", "seconds": [...]}, or {"peer", "task",
"missing"}. Tasks: "1k" (SMALL samples of 1024 bytes, all of them) and "100k" (LARGE samples of 100,000 bytes). Peers that
support it are read at random, the others sequentially, and the result says which. Files are made in FOLDER and removed.
"""
import importlib
import importlib.metadata
import json
import os
import random
import shutil
import sys
import tempfile
import time

folder, small, large, runs = sys.argv[1], *map(int, sys.argv[2:5])
PART = 20000  # samples are enough for readers that take microseconds and more for each; times are scaled to all
TASKS = (("1k", small, 1024), ("100k", large, 100000))
scale = 1.0


def say(**values):
    print(json.dumps(values), flush=True)


def measure(peer, version, task, work):
    work()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    say(peer=peer, version=version, task=task, seconds=[scale * value for value in seconds])


def sample(i, size):
    return i.to_bytes(8, "little") + payload[: size - 8]


payload = random.Random(1).randbytes(100000)


def shuffled(count):
    order = list(range(count))
    random.Random(2).shuffle(order)
    return order


def with_lmdb(lmdb, version, task, count, size, place):
    environment = lmdb.open(os.path.join(place, "peer.lmdb"), map_size=8 << 30, sync=False)
    with environment.begin(write=True) as transaction:
        for i in range(count):
            transaction.put(i.to_bytes(8, "big"), sample(i, size), append=True)
    order = [i.to_bytes(8, "big") for i in shuffled(count)]

    def work():
        with environment.begin() as transaction:
            for key in order:
                transaction.get(key)

    measure("LMDB, Python, random", version, task, work)
    environment.close()


def with_h5py(h5py, version, task, count, size, place):
    import numpy

    path = os.path.join(place, "peer.h5")
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", (count, size), dtype="u1")
        for i in range(count):
            if i % 1000 == 0:
                end = min(count, i + 1000)
                data[i:end] = numpy.frombuffer(b"".join(sample(j, size) for j in range(i, end)), "u1").reshape(-1, size)
    # A read costs tens of microseconds: a part is enough.
    order = shuffled(count)[: max(1, count // 20)]

    def work():
        with h5py.File(path, "r") as file:
            data = file["data"]
            for i in order:
                data[i]

    work()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(scale * (time.perf_counter() - start) * count / len(order))
    say(peer="h5py, random", version=version, task=task, seconds=seconds)


def with_webdataset(webdataset, version, task, count, size, place):
    path = os.path.join(place, "peer.tar")
    with webdataset.TarWriter(path) as writer:
        for i in range(count):
            writer.write({"__key__": f"{i:08}", "bin": sample(i, size)})

    def work():
        for _ in webdataset.WebDataset(path, shardshuffle=False):
            pass

    measure("WebDataset, in order", version, task, work)


def with_tfrecord(tfrecord, version, task, count, size, place):
    path = os.path.join(place, "peer.tfrecord")
    writer = tfrecord.TFRecordWriter(path)
    for i in range(count):
        writer.write({"data": (sample(i, size), "byte")})
    writer.close()
    from tfrecord import reader

    def work():
        for _ in reader.tfrecord_iterator(path):
            pass

    measure("TFRecord (tfrecord), in order", version, task, work)


def with_array_record(array_record, version, task, count, size, place):
    from array_record.python import array_record_module as module

    path = os.path.join(place, "peer.array_record")
    writer = module.ArrayRecordWriter(path, "group_size:1,uncompressed")
    for i in range(count):
        writer.write(sample(i, size))
    writer.close()
    order = shuffled(count)
    reader = module.ArrayRecordReader(path, "readahead_buffer_size:0")

    def work():
        for i in range(0, count, 256):
            reader.read(order[i : i + 256])

    measure("ArrayRecord, random, 256 at once", version, task, work)
    reader.close()


def with_mds(streaming, version, task, count, size, place):
    path = os.path.join(place, "peer.mds")
    with streaming.MDSWriter(out=path, columns={"data": "bytes"}, compression=None) as writer:
        for i in range(count):
            writer.write({"data": sample(i, size)})
    data = streaming.LocalDataset(path)
    order = shuffled(count)

    def work():
        for i in order:
            data[i]

    measure("MDS (mosaicml-streaming), random", version, task, work)


PEERS = (
    ("LMDB, Python", "lmdb", "lmdb", with_lmdb),
    ("h5py", "h5py", "h5py", with_h5py),
    ("WebDataset", "webdataset", "webdataset", with_webdataset),
    ("TFRecord (tfrecord)", "tfrecord", "tfrecord", with_tfrecord),
    ("ArrayRecord", "array_record", "array_record", with_array_record),
    ("MDS (mosaicml-streaming)", "streaming", "mosaicml-streaming", with_mds),
)


def main():
    global scale
    for name, module, package, run in PEERS:
        for task, total, size in TASKS:
            count = min(total, PART)
            scale = total / count
            place = tempfile.mkdtemp(prefix="peers-", dir=folder)
            try:
                run(importlib.import_module(module), importlib.metadata.version(package), task, count, size, place)
            except ImportError as error:
                say(peer=name, task=task, missing=f"not installed (make bench-peers): {error}"[:70])
            except Exception as error:  # a peer that fails has a row that says so
                say(peer=name, task=task, missing=f"failed: {type(error).__name__}: {error}"[:70])
            finally:
                shutil.rmtree(place, ignore_errors=True)


main()
