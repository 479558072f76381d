"""Training sets from Python: single values and batches of numbers, then DataLoaders next to those of other formats."""
import random

import numpy as np

import coffer
from harness import OURS, Contest, cached, main

SAMPLES = 200_000
DRAWN = 100_000


def numbers():
    def write(path):
        with coffer.mldf.create(path) as writer:
            for i in range(SAMPLES):
                writer.add({"label": i % 1000, "score": i * 0.5, "id": i})

    return coffer.open(cached("numbers.mldf", write))


def drawn():
    return [random.Random(2).randrange(SAMPLES) for _ in range(DRAWN)]


def values():
    """One number of one sample, in random order; a list of Python and a row of LMDB for comparison."""
    dataset, order = numbers(), drawn()

    def with_coffer():
        for i in order:
            dataset[i, "label"]

    def with_list():
        labels = [i % 1000 for i in range(SAMPLES)]

        def work():
            for i in order:
                labels[i]

        return work

    def with_lmdb():
        import struct

        import lmdb

        def write(path):
            environment = lmdb.open(str(path), map_size=1 << 30, sync=False)
            with environment.begin(write=True) as transaction:
                for i in range(SAMPLES):
                    transaction.put(i.to_bytes(8, "big"), struct.pack("<qdq", i % 1000, i * 0.5, i), append=True)
            environment.close()

        environment = lmdb.open(str(cached("numbers.lmdb", write)), readonly=True, lock=False)
        unpack = struct.Struct("<q").unpack_from

        def work():
            with environment.begin(buffers=True) as transaction:
                for i in order:
                    unpack(transaction.get(i.to_bytes(8, "big")))

        return work

    contest = Contest('ds[i, "label"]', unit="ns", per=DRAWN, runs=9)
    contest.enter(OURS, lambda: with_coffer)
    contest.enter("LMDB and struct", with_lmdb, "lmdb")
    contest.enter("limit: a list in memory", with_list)
    contest.run()


def batches():
    """Batches of three numbers a sample, in random order; an array in memory is the limit."""
    dataset, order = numbers(), np.array(drawn())
    for size in (32, 256, 1024):
        pieces = [order[first:first + size] for first in range(0, DRAWN - size + 1, size)]
        columns = {name: dataset.column(name) for name in ("label", "score", "id")}

        def with_coffer():
            for piece in pieces:
                dataset.batch(piece)

        def one_field():
            for piece in pieces:
                dataset.batch(piece, ["label"])

        def in_memory():
            for piece in pieces:
                {name: column[piece] for name, column in columns.items()}

        contest = Contest(f"ds.batch of {size}, numbers, per sample", unit="ns", per=size * len(pieces), runs=9)
        contest.enter(OURS, lambda: with_coffer)
        contest.enter("coffer, one field", lambda: one_field)
        contest.enter("limit: NumPy arrays in memory", lambda: in_memory)
        contest.run()


main(values, batches)
