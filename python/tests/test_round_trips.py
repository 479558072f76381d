"""Whatever is written can be read, and check finds nothing."""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import coffer

quick = settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
numbers = st.sampled_from(["i1", "u2", "i4", "f2", "f4", "f8"])
names = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


def _arrays(dims):
    return numbers.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=dims, min_side=0, max_side=5)))


@quick
@given(st.dictionaries(names, _arrays(4), min_size=1, max_size=5))
def test_models(tensors):
    coffer.mcf.save_file(tensors, "m.mcf", overwrite=True)
    assert coffer.check("m.mcf", full=True).errors == 0
    with coffer.open("m.mcf") as model:
        assert set(model) == set(tensors)
        for name, values in tensors.items():
            np.testing.assert_array_equal(model[name], values)


@quick
@given(st.lists(st.fixed_dictionaries({"n": st.integers(-2**63, 2**63 - 1), "x": st.floats(allow_nan=False),
                                       "t": st.text(st.characters(blacklist_categories=("Cs",)), max_size=30),
                                       "b": st.binary(max_size=30)}), min_size=1, max_size=8))
def test_sets(samples):
    with coffer.mldf.create("s.mldf", {"n": "int", "x": "float", "t": "text", "b": "bytes"}, overwrite=True) as writer:
        writer.extend(samples)
    assert coffer.check("s.mldf", full=True).errors == 0
    with coffer.open("s.mldf") as data:
        assert [data[i] for i in range(len(data))] == samples


@quick
@given(hnp.arrays(st.sampled_from(["i4", "f4", "f8", "c16"]), hnp.array_shapes(min_dims=2, max_dims=2, max_side=7)))
def test_matrices(values):
    coffer.pycauset.write("m.pycauset", values, kind="dense", overwrite=True)
    assert coffer.check("m.pycauset", full=True).errors == 0
    with coffer.open("m.pycauset") as matrix:
        np.testing.assert_array_equal(matrix[:], values)


@quick
@given(hnp.arrays(np.dtype(coffer.mscan.RECORD), st.integers(0, 20), elements=st.tuples(
    st.integers(0, 9), st.just(0), st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535))))
def test_scans(records):
    if os.path.exists("s.mscan"):
        os.remove("s.mscan")
    with coffer.mscan.create("s.mscan", model_name="x") as writer:
        writer.param("p")
        writer.sequence(records, 10)
    assert coffer.check("s.mscan", full=True).errors == 0
    with coffer.open("s.mscan") as scan:
        np.testing.assert_array_equal(scan[:], records)
