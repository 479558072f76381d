"""Training sets as tables: pandas, Arrow and Hugging Face's datasets, in both directions."""

from __future__ import annotations

import importlib
import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence

from . import _arrays

if TYPE_CHECKING:
    from .mldf import Dataset

_KEY = b"coffer"  # of Arrow's metadata of a column: the field as the schema has it


def _need(name: str, call: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{call} needs {name}: pip install {name}") from None


# ---- Out ----

def to_pandas(dataset: "Dataset", fields: "Optional[Sequence[str]]") -> Any:
    pandas = _need("pandas", "to_pandas")
    return pandas.DataFrame({name: dataset.column(name) for name in fields or dataset.fields})


def to_arrow(dataset: "Dataset", fields: "Optional[Sequence[str]]") -> Any:
    arrow = _need("pyarrow", "to_arrow")
    columns, described = [], []
    for name in fields or dataset.fields:
        row = next((row for row in dataset.schema if row["name"] == name), None)
        if row is None:
            raise KeyError(name)
        column = _column(arrow, dataset, name, row)
        columns.append(column)
        described.append(arrow.field(name, column.type, metadata={_KEY: json.dumps(row).encode()}))
    return arrow.Table.from_arrays(columns, schema=arrow.schema(described))


def _column(arrow: Any, dataset: "Dataset", name: str, row: "Dict[str, Any]") -> Any:
    import numpy as np

    count, kind = len(dataset), row["type"]
    if kind in ("int", "float"):
        return arrow.array(dataset.column(name))
    shape = dataset._fixed_shape(name)
    if shape is not None:
        values = dataset.batch(slice(None), [name])[name]
        flat = arrow.array(values.reshape(-1))
        for length in reversed(shape):
            flat = arrow.FixedSizeListArray.from_arrays(flat, length)
        return flat
    if kind == "ndarray":
        found = [dataset[i, name] for i in range(count)]
        return arrow.array([None if value is None else value.tolist() for value in found],
                           _nested(arrow, row["dtype"], len(row["shape"])))
    text = kind in ("text", "json")
    if row.get("optional") or row.get("encrypted") or row.get("zstd") or kind == "text-tokenised":
        stored = [dataset.bytes(i, name) for i in range(count)]
        if kind == "text-tokenised":
            return arrow.array([dataset[i, name] for i in range(count)], arrow.list_(arrow.uint32()))
        return arrow.array([value if value is None or not text else value.decode() for value in stored],
                           arrow.large_string() if text else arrow.large_binary())
    samples = np.arange(count, dtype=np.uint64)
    size = 0
    if count:
        reader = dataset._reader()
        size = reader.size(samples, dataset._index(name))
        dataset._idle.append(reader)
    data, offsets = np.empty(max(size, 1), np.uint8), np.zeros(count + 1, np.uint64)
    if count:
        reader = dataset._reader()
        reader.read(samples, [(dataset._index(name), data, 0, offsets, None)])
        dataset._idle.append(reader)
    column = arrow.Array.from_buffers(arrow.large_string() if text else arrow.large_binary(), count,
                                      [None, arrow.py_buffer(offsets), arrow.py_buffer(data)])
    column.validate(full=True)  # text that is not UTF-8 is an error here, not later
    return column


def _nested(arrow: Any, dtype: str, rank: int) -> Any:
    kind = arrow.from_numpy_dtype(_arrays.dtype_of(dtype))
    for _ in range(rank):
        kind = arrow.list_(kind)
    return kind


def to_datasets(dataset: "Dataset", fields: "Optional[Sequence[str]]") -> Any:
    datasets, arrow = _need("datasets", "to_datasets"), _need("pyarrow", "to_datasets")
    table = to_arrow(dataset, fields)
    columns, features = [], {}
    for name, column in zip(table.column_names, table.columns):
        kind = next(row["type"] for row in dataset.schema if row["name"] == name) or ""
        column = column.combine_chunks()
        if kind in ("image-jpeg", "image-png"):
            paths = arrow.nulls(len(column), arrow.string())
            column = arrow.StructArray.from_arrays([column.cast(arrow.binary()), paths], ["bytes", "path"])
            features[name] = datasets.Image()
        else:
            features[name] = datasets.features.features.generate_from_arrow_type(column.type)
        columns.append(column)
    return datasets.Dataset(arrow.Table.from_arrays(columns, table.column_names),
                            info=datasets.DatasetInfo(features=datasets.Features(features)))


# ---- In ----

def _write(rows: "Iterable[Dict[str, Any]]", schema: "List[Dict[str, Any]]", path: str, **options: Any) -> int:
    from .mldf import Writer

    with Writer(path, schema, **options) as writer:
        for row in rows:
            writer.add(row)
        return len(writer)


def _batches(arrow: Any, table: Any) -> "tuple[Any, Iterable[Any]]":
    """The schema and the record batches of anything that has them."""
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    if isinstance(table, arrow.Table):
        return table.schema, table.to_batches()
    if isinstance(table, arrow.RecordBatchReader):
        return table.schema, table
    if hasattr(table, "__arrow_c_stream__"):
        reader = arrow.RecordBatchReader.from_stream(table)
        return reader.schema, reader
    raise TypeError(f"{type(table).__name__} is not a table: pass a pyarrow.Table, a RecordBatchReader or an object with "
                    "__arrow_c_stream__")


def from_arrow(table: Any, path: str, schema: Any, **options: Any) -> int:
    from ._mldf_writer import full_schema

    arrow = _need("pyarrow", "from_arrow")
    columns, found = _batches(arrow, table)
    batches = iter(found)
    first = next(batches, None)
    if schema is None:
        described = [_field(arrow, column, None if first is None else first.column(i)) for i, column in enumerate(columns)]
    else:
        described = full_schema(schema)
    kinds = {row["name"]: row for row in described}
    ours = {column.name for column in columns if column.metadata and _KEY in column.metadata}

    def rows() -> "Iterator[Dict[str, Any]]":
        batch = first
        while batch is not None:
            values = {name: batch.column(name).to_pylist() for name in kinds if name in batch.schema.names}
            for i in range(batch.num_rows):
                yield {name: _value(kinds[name], column[i], name in ours) for name, column in values.items()}
            batch = next(batches, None)

    return _write(rows(), described, path, **options)


def _field(arrow: Any, column: Any, values: Any) -> "Dict[str, Any]":
    """The field for a column of Arrow. Fields are optional, except numbers, because a later batch may have nulls."""
    types = arrow.types
    if column.metadata and _KEY in column.metadata:
        return dict(json.loads(column.metadata[_KEY]))
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    row: "Dict[str, Any]" = {"name": column.name, "optional": True}
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return {"name": column.name, "type": "float" if types.is_floating(kind) else "int"}
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        row["type"] = "text"
    elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        row["type"] = _media(values, lambda value: value)
    elif types.is_struct(kind) and {kind.field(i).name for i in range(kind.num_fields)} == {"bytes", "path"}:
        row["type"] = _media(values, lambda value: value["bytes"])
    elif _is_list(types, kind):
        row.update(_array_field(types, kind))
    elif types.is_struct(kind) or types.is_map(kind) or types.is_null(kind):
        row["type"] = "json"
    else:
        raise TypeError(f"column {column.name} has type {kind}, which a set cannot store; cast it to int64, float64 or "
                        "string first")
    return row


def _is_list(types: Any, kind: Any) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _array_field(types: Any, kind: Any) -> "Dict[str, Any]":
    """Lists of numbers are arrays; anything else in lists is JSON."""
    shape = []
    while _is_list(types, kind):
        shape.append(kind.list_size if types.is_fixed_size_list(kind) else 0)
        kind = kind.value_type
    if not (types.is_integer(kind) or types.is_floating(kind)) or (len(shape) > 1 and 0 in shape):
        return {"type": "json"}
    return {"type": "ndarray", "dtype": _arrays.name_of(kind.to_pandas_dtype()), "shape": shape}


def _media(values: Any, content: Any) -> str:
    from ._mldf_writer import bytes_type

    for value in () if values is None else values:
        found = value.as_py()
        if found is not None and content(found) is not None:
            return bytes_type(content(found)[:16])
    return "bytes"


def _value(row: "Dict[str, Any]", value: Any, ours: bool) -> Any:
    """A value for a field. ours : to_arrow wrote the column, with JSON as text."""
    kind = row["type"]
    if value is None:
        return float("nan") if kind == "float" else None
    if kind == "ndarray":
        import numpy as np

        return np.asarray(value, _arrays.dtype_of(row["dtype"]))
    if kind == "json" and ours:
        return json.loads(value)
    if isinstance(value, dict) and kind != "json":
        return _media_bytes(row["name"], value)
    return value


def _media_bytes(name: str, value: "Dict[str, Any]") -> "Optional[bytes]":
    """The bytes of a picture or sound as datasets stores it: inside the table, or in a file."""
    if value.get("bytes") is not None:
        return value["bytes"]
    path = value.get("path")
    if path is None:
        return None
    if not os.path.isfile(path):
        raise FileNotFoundError(2, f"column {name} names a file that does not exist", path)
    with open(path, "rb") as file:
        return file.read()


def from_pandas(frame: Any, path: str, schema: Any, **options: Any) -> int:
    from ._mldf_writer import full_schema

    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        raise ValueError("two columns have the same name")
    described = full_schema(schema) if schema is not None else [
        _pandas_field(name, frame.iloc[:, i]) for i, name in enumerate(names)]
    kinds = {row["name"]: row for row in described}
    columns = [(name, frame.iloc[:, i].tolist()) for i, name in enumerate(names) if name in kinds]
    rows = ({name: _pandas_value(kinds[name], values[i]) for name, values in columns} for i in range(len(frame)))
    return _write(rows, described, path, **options)


def _pandas_field(name: str, column: Any) -> "Dict[str, Any]":
    from ._mldf_writer import infer_field

    if column.dtype.kind in "mM":
        raise TypeError(f"column {name} has type {column.dtype}, which a set cannot store; convert it to int64 or str first")
    present = column[column.notna()] if column.dtype.kind == "O" or column.hasnans else column
    missing = len(present) != len(column)
    if len(present) == 0:
        return {"name": name, "type": "json", "optional": True}
    value = present.iloc[0]
    row = infer_field(name, value.item() if column.dtype.kind in "biuf" and hasattr(value, "item") else value)
    if missing and row["type"] == "int":
        row["type"] = "json"  # numbers cannot be absent
    if missing and row["type"] != "float":
        row["optional"] = True
    return row


def _pandas_value(row: "Dict[str, Any]", value: Any) -> Any:
    """None for what pandas calls missing; NaN stays NaN in a column of floats."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return float("nan") if row["type"] == "float" else None
    if isinstance(value, float) and value != value and row["type"] != "float":
        return None
    return value.item() if row["type"] == "json" and hasattr(value, "item") else value


def from_datasets(dataset: Any, path: str, schema: Any, **options: Any) -> int:
    _need("datasets", "from_datasets")
    if not hasattr(dataset, "with_format") or not hasattr(dataset, "features"):
        raise TypeError(f"{type(dataset).__name__} is not a datasets.Dataset; pass one split of a DatasetDict")
    arrow = _need("pyarrow", "from_datasets")
    tables = dataset.with_format("arrow").iter(batch_size=1000)
    first = next(iter(tables), None) if dataset.features is None else None
    columns = first.schema if first is not None else dataset.features.arrow_schema

    def batches() -> "Iterator[Any]":
        for table in dataset.with_format("arrow").iter(batch_size=1000):
            yield from table.cast(columns).to_batches()

    return from_arrow(arrow.RecordBatchReader.from_batches(columns, batches()), path, schema, **options)
