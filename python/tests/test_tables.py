"""Sets as tables: pandas, Arrow, Hugging Face's datasets."""

import builtins

import numpy as np
import pytest

import coffer


def _same(one, other):
    assert one.fields == other.fields and len(one) == len(other)
    for a, b in zip(one, other):
        for name in one.fields:
            np.testing.assert_equal(a[name], b[name], err_msg=name)


@pytest.fixture
def mixed(folder):
    schema = [{"name": "n", "type": "int"}, {"name": "x", "type": "float"}, {"name": "t", "type": "text"},
              {"name": "raw", "type": "bytes"}, {"name": "j", "type": "json", "optional": True},
              {"name": "maybe", "type": "text", "optional": True},
              {"name": "fixed", "type": "ndarray", "dtype": "f32", "shape": [2, 2]},
              {"name": "free", "type": "ndarray", "dtype": "i16", "shape": [0]}]
    with coffer.mldf.create("mixed.mldf", schema) as writer:
        for i in range(7):
            writer.add({"n": i - 3, "x": i / 2, "t": "ü" * i, "raw": bytes(range(i)), "j": {"a": [i]},
                        "maybe": None if i % 2 else f"m{i}", "fixed": np.full((2, 2), i, "f4"),
                        "free": np.arange(i, dtype="i2")})
    return coffer.open("mixed.mldf")


def test_arrow_and_back_keeps_every_type(mixed):
    arrow = pytest.importorskip("pyarrow")
    table = mixed.to_arrow()
    assert table.num_rows == 7 and table.schema.field("t").type == arrow.large_string()
    assert table.column("maybe").null_count == 3 and table.column("raw").to_pylist()[3] == b"\0\1\2"
    assert coffer.mldf.from_arrow(table, "again.mldf") == 7
    _same(mixed, coffer.open("again.mldf"))
    assert coffer.open("again.mldf").schema == mixed.schema
    assert coffer.check("again.mldf", full=True).ok
    assert mixed.to_arrow(["n"]).column_names == ["n"]
    with pytest.raises(KeyError):
        mixed.to_arrow(["nothing"])


def test_numbers_and_text_of_arrow_are_not_copied_per_value(mixed):
    pytest.importorskip("pyarrow")
    column = mixed.to_arrow(["t"]).column("t").chunk(0)
    assert column.buffers()[2].size >= sum(2 * i for i in range(7)) and column.buffers()[0] is None


def test_a_table_of_arrow_becomes_a_set(folder):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"flag": [True, False], "rate": [0.5, None], "word": arrow.array(["a", "b"]).dictionary_encode(), "list": [[1, 2], []],
                         "tags": [["x"], ["y", "z"]], "struct": [{"a": 1}, {"a": 2}], "blob": [b"x", None]})
    reader = arrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    assert coffer.mldf.from_arrow(reader, "t.mldf") == 2
    data = coffer.open("t.mldf")
    assert data[1]["flag"] == 0 and np.isnan(data[1]["rate"]) and data[0]["word"] == "a" and data[1]["tags"] == ["y", "z"]
    assert data[0]["list"].tolist() == [1, 2] and data[1]["struct"] == {"a": 2} and data[1]["blob"] is None
    gaps = arrow.table({"count": [1, None]})
    with pytest.raises(ValueError, match="count.*cannot mark numbers as absent"):
        coffer.mldf.from_arrow(gaps, "gaps.mldf")
    coffer.mldf.from_arrow(gaps, "gaps.mldf", [{"name": "count", "type": "json", "optional": True}])
    assert [sample["count"] for sample in coffer.open("gaps.mldf")] == [1, None]
    times = arrow.table({"when": arrow.array([1], arrow.timestamp("s"))})
    with pytest.raises(TypeError, match="when"):
        coffer.mldf.from_arrow(times, "bad.mldf")
    with pytest.raises(TypeError, match="not a table"):
        coffer.mldf.from_arrow([1], "bad.mldf")
    with pytest.raises(FileExistsError):
        coffer.mldf.from_arrow(table, "t.mldf")


def test_pandas_and_back(mixed):
    pandas = pytest.importorskip("pandas")
    assert list(mixed.to_pandas(["x", "n"]).columns) == ["x", "n"]
    frame = mixed.to_pandas()
    assert frame["n"].dtype == np.int64 and frame["x"].dtype == np.float64 and frame["maybe"].isna().sum() == 3
    assert coffer.mldf.from_pandas(frame, "again.mldf") == 7
    _same(mixed, coffer.open("again.mldf"))
    made = pandas.DataFrame({"k": [1, 2], "x": [0.5, float("nan")], "b": [True, False], "s": ["a", None],
                             "gap": pandas.array([3, None], "Int64")})
    coffer.mldf.from_pandas(made, "made.mldf")
    data = coffer.open("made.mldf")
    assert [sample["gap"] for sample in data] == [3, None]
    assert data[1]["s"] is None and np.isnan(data[1]["x"]) and data[0]["b"] == 1 and data.column("k").tolist() == [1, 2]
    with pytest.raises(TypeError, match="when"):
        coffer.mldf.from_pandas(pandas.DataFrame({"when": pandas.to_datetime(["2026-01-01"])}), "bad.mldf")


def test_datasets_and_back(folder):
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("PIL")
    from coffer._html import _png
    import base64

    png = base64.b64decode(_png(np.full((4, 5, 3), 200, np.uint8)).split(",")[1])
    with coffer.mldf.create("p.mldf") as writer:
        for i in range(3):
            writer.add({"image": png, "label": i, "text": f"picture {i}"})
    data = coffer.open("p.mldf")
    theirs = data.to_datasets()
    assert theirs[1]["image"].size == (5, 4) and theirs[1]["text"] == "picture 1" and theirs["label"][:] == [0, 1, 2]
    assert coffer.mldf.from_datasets(theirs, "again.mldf") == 3
    again = coffer.open("again.mldf")
    np.testing.assert_array_equal(again[2, "image"], data[2, "image"])
    assert again.bytes(0, "image") == png and again.schema[0]["type"] == "image-png"
    made = datasets.Dataset.from_dict({"a": [1, 2], "s": ["x", "y"]}).select([1])
    assert coffer.mldf.from_datasets(made, "made.mldf") == 1 and coffer.open("made.mldf")[0] == {"a": 2, "s": "y"}
    with pytest.raises(TypeError, match="one split"):
        coffer.mldf.from_datasets({"train": made}, "bad.mldf")


@pytest.mark.parametrize("package, call", [
    ("pyarrow", lambda data: data.to_arrow()), ("pyarrow", lambda data: coffer.mldf.from_arrow(None, "x.mldf")),
    ("pandas", lambda data: data.to_pandas()), ("datasets", lambda data: data.to_datasets())])
def test_a_missing_package_is_named(dataset, monkeypatch, package, call):
    def without(name, *rest, **more):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return original(name, *rest, **more)

    import importlib

    original = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        call(coffer.open(dataset))
