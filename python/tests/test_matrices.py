"""Matrices index like NumPy arrays: every type, with view flags, against the array itself."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import coffer

quick = settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
SIDE = 7
FULL = np.arange(1.0, SIDE * SIDE + 1).reshape(SIDE, SIDE)
KINDS = {
    "dense": FULL, "float32": FULL.astype("f4"), "integer": FULL.astype("i4"), "int64": FULL.astype("i8"),
    "complex": FULL + 1j * FULL.T, "bit": FULL % 3 == 0, "vector": np.arange(5.0), "wide": FULL[:3],
    "triangular": np.triu(FULL, 1), "with_diagonal": np.triu(FULL), "symmetric": FULL + FULL.T,
    "antisymmetric": FULL - FULL.T, "causal": np.triu(np.ones((SIDE, SIDE), bool), 1),
    "transposed": FULL[:3], "conjugated": FULL + 1j * FULL.T, "scaled": FULL,
}
WRITTEN = {"float32": "dense", "int64": "dense", "complex": "dense", "bit": "dense", "wide": "dense",
           "with_diagonal": "triangular", "transposed": "dense", "conjugated": "dense", "scaled": "dense"}
VIEWS = {"transposed": ({"view.is_transposed": True}, lambda values: values.T),
         "conjugated": ({"view.is_conjugated": True}, np.conj),
         "scaled": ({"view.scalar": 2.5}, lambda values: values * 2.5)}


@pytest.fixture(scope="module")
def matrices(tmp_path_factory):
    """(open matrix, expected array) by kind."""
    folder, found = tmp_path_factory.mktemp("matrices"), {}
    for kind, values in KINDS.items():
        path = str(folder / f"{kind}.pycauset")
        coffer.pycauset.write(path, values, kind=WRITTEN.get(kind, kind))
        expected = values.reshape(-1, 1) if values.ndim == 1 else values
        if kind in VIEWS:
            changes, view = VIEWS[kind]
            with coffer.open(path) as matrix:
                matrix.meta.update(changes)
            expected = view(expected)
        found[kind] = coffer.open(path), np.asarray(expected)
    return found


def _same(matrix, values, key):
    try:
        expected = values[key]
    except IndexError:
        with pytest.raises(IndexError):
            matrix[key]
        return
    found = matrix[key]
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype.kind == np.asarray(expected).dtype.kind


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_matrix_is_its_array(matrices, kind):
    matrix, values = matrices[kind]
    assert matrix.shape == values.shape and len(matrix) == len(values) and matrix.size == values.size
    for array in (np.asarray(matrix), matrix[...], np.array(list(matrix))):
        np.testing.assert_array_equal(array, values)
    assert np.asarray(matrix, dtype="c16").dtype == np.complex128
    assert coffer.check(matrix.path, full=True).errors == 0


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_basic_index_means_the_same(matrices, kind):
    matrix, values = matrices[kind]

    @quick
    @given(hnp.basic_indices(values.shape, allow_newaxis=True, allow_ellipsis=True))
    def check(key):
        _same(matrix, values, key)

    check()


@pytest.mark.parametrize("kind", list(KINDS))
def test_lists_masks_and_mixed_indices_mean_the_same(matrices, kind):
    matrix, values = matrices[kind]
    rows = st.integers(-values.shape[0] - 1, values.shape[0])
    parts = st.one_of(rows, st.lists(rows, max_size=4), hnp.arrays(bool, values.shape[0]), st.slices(values.shape[0]))

    @quick
    @given(parts)
    def one_axis(key):
        _same(matrix, values, np.array(key, int) if isinstance(key, list) else key)

    @quick
    @given(st.one_of(rows, st.slices(values.shape[0]), st.lists(rows, min_size=1, max_size=3)),
           st.one_of(st.integers(-values.shape[1], values.shape[1] - 1), st.slices(values.shape[1])))
    def two_axes(row, col):
        _same(matrix, values, (row, col))

    @quick
    @given(hnp.arrays(bool, values.shape))
    def mask(key):
        _same(matrix, values, key)

    one_axis()
    two_axes()
    mask()


def test_wrong_indices_are_refused_like_numpy(matrices):
    matrix, values = matrices["causal"]
    for key in ((0, 0, 0), "x", 1.5, (0, "x")):
        with pytest.raises((IndexError, TypeError)):
            matrix[key]


@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix", "coo_matrix"])
def test_scipy_in_and_out(folder, form):
    scipy = pytest.importorskip("scipy.sparse")
    sparse = getattr(scipy, form)(scipy.random(30, 40, 0.1, random_state=1))
    with pytest.raises(ValueError, match="dense=True"):
        coffer.pycauset.write("s.pycauset", sparse)
    coffer.pycauset.write("s.pycauset", sparse, dense=True)
    with coffer.open("s.pycauset") as matrix:
        again = matrix.to_scipy()
        assert again.nnz == sparse.nnz and abs(again - sparse).sum() == 0
        assert again.dtype == sparse.dtype


def test_history_and_revert(matrix):
    with coffer.open(matrix) as file:
        for n in range(4):
            file.meta["properties.n"] = n
        generations = [state["generation"] for state in file.history]
        assert len(generations) == 5 and [state["active"] for state in file.history] == [False] * 4 + [True]
        file.revert(generations[2])
        assert file.meta["properties.n"] == 1 and len(file.history) == 6
        file.revert(generations[0])
        assert file.meta["properties"] == {"label": "first"}
        with pytest.raises(KeyError, match="generation 999"):
            file.revert(999)
    with coffer.open(matrix, generation=generations[3]) as old:
        assert old.meta["properties.n"] == 2 and old.generation == generations[3]
    assert coffer.check(matrix, full=True).ok


def test_a_view_is_compared_with_the_checksums(matrix):
    with coffer.open(matrix) as file:
        file.add_checksums()
        assert file[2, 3] == 11.0
    with open(matrix, "rb") as file:
        offset = file.read().index(np.arange(12.0).tobytes())
    with open(matrix, "r+b") as file:
        file.seek(offset + 3)
        file.write(b"\x7f")
    with coffer.open(matrix) as file:
        with pytest.raises(coffer.ChecksumError):
            file[2, 3]
    with coffer.open(matrix, verify=False) as file:
        assert file[2, 3] == 11.0
