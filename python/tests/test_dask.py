import os

import numpy as np
import pytest

import coffer

dask = pytest.importorskip("dask")
import dask.bag  # noqa: E402

import coffer.dask  # noqa: E402


def test_a_bag_becomes_a_set_and_back(folder):
    bag = dask.bag.from_sequence(range(100), npartitions=7).map(lambda i: {"label": i, "text": str(i)})
    coffer.dask.to_mldf(bag, "out.mldf")
    assert os.listdir(".") == ["out.mldf"]
    np.testing.assert_array_equal(coffer.open("out.mldf").column("label"), np.arange(100))
    labels = coffer.dask.from_mldf("out.mldf", samples_per_task=13).pluck("label").compute(scheduler="sync")
    assert labels == list(range(100))


def test_a_failing_task_leaves_nothing(folder):
    def broken(i):
        if i == 90:
            raise RuntimeError("broken sample")
        return {"label": i}

    bag = dask.bag.from_sequence(range(100), npartitions=5).map(broken)
    with pytest.raises(RuntimeError, match="broken sample"):
        coffer.dask.to_mldf(bag, "out.mldf")
    assert os.listdir(".") == []


def test_arrays_and_tables(matrix, scan):
    array = coffer.dask.from_pycauset(matrix, chunks=(2, 3))
    np.testing.assert_array_equal(array.compute(), np.arange(12.0).reshape(3, 4))
    table = coffer.dask.from_mscan(scan, records_per_task=5)
    assert table.npartitions == 3 and table["activation"].sum().compute() == 660


def test_a_rewritten_file_gets_another_name(matrix):
    first = coffer.dask.from_pycauset(matrix).name
    coffer.pycauset.write(matrix, np.zeros((3, 4)), overwrite=True)
    assert coffer.dask.from_pycauset(matrix).name != first
