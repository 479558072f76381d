import pickle

import numpy as np
import pytest
import scipy.sparse

import coffer
from conftest import VECTORS


def test_records_are_a_structured_view(scan):
    with coffer.open(scan) as file:
        records = file[:]
        assert len(file) == 12 and records.dtype.names[0] == "token_idx" and not records.flags.writeable
        assert file[3]["activation"] == 30 and list(file["block_idx"][:3]) == [0, 1, 0] and len(file[5:5]) == 0
        np.testing.assert_allclose(file.values("activation"), np.arange(12) * 5 + 1)
        assert file.sequences[0]["source"] == "six tokens" and file.tokens == 6 and file.model_name == "tiny"
        assert file.params == {0: "model.layers.0.mlp.up_proj.weight"}


@pytest.mark.parametrize("by, key", [("block", "block_idx"), ("token", "token_idx"), ("param", "param_id")])
def test_statistics_agree_with_numpy(scan, by, key):
    with coffer.open(scan) as file:
        stats, records, values = file.stats(by=by), file[:], file.values("activation")
        for row, group in enumerate(np.unique(records[key])):
            chosen = values[records[key] == group]
            assert stats["count"][row] == len(chosen)
            assert stats["activation_mean"][row] == pytest.approx(chosen.mean())
            assert stats["activation_std"][row] == pytest.approx(chosen.std(ddof=1) if len(chosen) > 1 else 0)
            assert stats["activation_max"][row] == chosen.max()


def test_statistics_are_data_frames_where_asked(scan):
    pandas = pytest.importorskip("pandas")
    with coffer.open(scan) as file:
        frame = file.stats(by="block", frame=True)
        assert isinstance(frame, pandas.DataFrame) and list(frame) == list(file.stats(by="block")) and len(frame) == 2
        assert file.scores(by="block", frame=True)["count"].sum() == 12


def test_heatmap_and_matrix_show_real_units(scan):
    with coffer.open(scan) as file:
        grid = file.heatmap(rows="block")
        np.testing.assert_allclose(grid, file.matrix("block", "token"))
        np.testing.assert_allclose(file.heatmap(rows="block", raw=True) * 0.5 + 1, grid)
        assert "<img" in file._repr_html_()


def test_a_scan_can_be_appended_to(scan):
    with coffer.mscan.append(scan) as writer:
        writer.sequence(np.zeros(2, coffer.mscan.RECORD), 1)
    with coffer.open(scan) as file:
        assert len(file) == 14 and len(file.sequences) == 2 and pickle.loads(pickle.dumps(file)).tokens == 7


def test_a_trace_answers(folder):
    with coffer.open(VECTORS / "mlyze" / "double-alloc.mlyze") as trace:
        assert len(trace) == 2 and trace.totals()["double_allocs"] == 1
        peak = trace.peak()
        assert peak[0]["peak_bytes"] == 8 and len(peak[0]["stack"]) > 0
        assert trace.flame()["bytes"] == 8 and trace.flame()["children"]
        events = trace.events()
        assert set(events["type"]) == {0} and len(events["time"]) == 2
        assert trace.timeline()["live_bytes"][-1] == 8 and "<svg" in trace._repr_html_()
        assert trace.diff(trace)["equal"]


def test_indexing_agrees_with_numpy_for_every_kind(folder):
    full = np.arange(36.0).reshape(6, 6)
    kinds = {"dense": full, "triangular": np.triu(full, 1), "symmetric": full + full.T,
             "antisymmetric": full - full.T, "causal": np.triu(np.ones((6, 6), bool), 1)}
    keys = [0, -1, (2, 3), slice(1, 4), (slice(None), 2), (slice(5, 0, -2), slice(None, None, 3)), ..., (..., 1),
            ([0, 5, 2],), (np.arange(6) > 3, 0), (slice(4, 2), slice(None)), (None, 1)]
    for kind, values in kinds.items():
        coffer.pycauset.write(f"{kind}.pycauset", values, kind=kind)
        with coffer.open(f"{kind}.pycauset") as matrix:
            assert matrix.shape == (6, 6)
            np.testing.assert_array_equal(np.asarray(matrix), values)
            for key in keys:
                np.testing.assert_array_equal(matrix[key], values[key], err_msg=f"{kind} {key}")
            for bad in (6, (0, -7)):
                with pytest.raises(IndexError):
                    matrix[bad]


def test_metadata_is_changed_in_commits_and_reverted(matrix):
    with coffer.open(matrix) as file:
        first = file.generation
        file.meta["properties.label"] = "second"
        file.meta.update({"properties.n": 3, "notes": ["a", "b"]})
        assert file.meta["properties.label"] == "second" and file.meta["notes.1"] == "b"
        assert coffer.open(matrix).meta["properties"]["n"] == 3
        with pytest.raises(KeyError):
            file.meta["nothing"]
        del file.meta["notes"]
        assert "notes" not in file.meta and len(file.history) == 4
        file.revert(first)
        assert file.meta["properties"] == {"label": "first"} and file.generation > first
        with pytest.raises(ValueError):
            file.meta["rows"] = 7
    assert coffer.check(matrix, full=True).ok


def test_sparse_matrices_and_statistics(folder):
    sparse = scipy.sparse.random(40, 30, 0.1, random_state=1, format="csr")
    with pytest.raises(ValueError, match="dense=True"):
        coffer.pycauset.write("s.pycauset", sparse)
    coffer.pycauset.write("s.pycauset", sparse, dense=True)
    with coffer.open("s.pycauset") as matrix:
        assert (matrix.to_scipy() != sparse).nnz == 0
        stats = matrix.stats()
        assert stats["nonzero"] == sparse.nnz and stats["max"] == sparse.max()
        assert matrix.heatmap(4, 5).shape == (4, 5)


@pytest.mark.parametrize("kind", ["symmetric", "antisymmetric", "causal"])
def test_a_kind_that_would_lose_values_is_refused(folder, kind):
    with pytest.raises(ValueError, match="lost|zeros and ones"):
        coffer.pycauset.write("m.pycauset", np.arange(9.0).reshape(3, 3), kind=kind)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c8", "c16", "i8", "u2"])
def test_every_element_type_round_trips(dtype):
    values = (np.arange(6) - 2).astype(dtype).reshape(2, 3)
    coffer.pycauset.write("t.pycauset", values, kind="dense" if dtype != "i4" else "auto")
    with coffer.open("t.pycauset") as matrix:
        assert matrix.dtype == values.dtype
        np.testing.assert_array_equal(matrix[:], values)


def test_answers_are_dicts_or_data_frames(folder):
    pandas = pytest.importorskip("pandas")
    for name, grown in (("a", 96), ("b", 196)):
        with open("stacks.txt", "w") as file:
            file.write(f"main;grow {grown}\nmain;{name} 10\nother 1\n")
        coffer.convert("stacks.txt", f"{name}.mlyze", from_="collapsed", overwrite=True)
    with coffer.open("a.mlyze") as one, coffer.open("b.mlyze") as other:
        for answer in (one.peak, one.leaks):
            frame, rows = answer(frame=True), answer()
            assert isinstance(frame, pandas.DataFrame) and frame.to_dict("records") == rows
            assert frame["peak_bytes"].tolist() == [96, 10, 1] and list(frame["stack"][0][1])[0] == "grow"
        assert len(one.temporaries(frame=True)) == 0 and "temporary_bytes" in one.temporaries(frame=True)
        assert one.stacks(frame=True)["bytes"].sum() == 107
        flame = one.flame(frame=True)
        assert flame["name"].tolist() == ["all", "main", "grow", "a", "other"] and flame["depth"].tolist() == [0, 1, 2, 2, 1]
        assert all(flame["bytes"][flame["parent"] == row].sum() in (0, size) for row, size in enumerate(flame["bytes"]))
        assert one.timeline(frame=True)["live_bytes"].iloc[-1] == 107
        changes = one.diff(other, frame=True).set_index("kind")
        assert changes.loc["grew", "change_bytes"] == 100 and set(changes.index) == {"grew", "new", "gone"}
        for call in (one.flame, lambda measure: one.diff(other, measure)):
            with pytest.raises(ValueError, match="peak, live"):
                call("everything")
