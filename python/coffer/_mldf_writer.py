"""Writing of training sets: the schema of samples, values into fields, and the writer."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _arrays, _core
from ._progress import Progress, callback
from ._transaction import Transaction

Path = Union[str, "os.PathLike[str]"]
Sample = Mapping[str, Any]
Schema = Union[Sequence[Mapping[str, Any]], Mapping[str, str]]

_NO_NUMBER = ("field {name} ({kind}) has no value, and the format cannot mark numbers as absent; give a number, or use the "
              "type json for this field")


# ---- Schemas ----

def _schema_row(field: "Dict[str, Any]") -> "Dict[str, Any]":
    row = {"name": field["name"], "type": field["type"]}
    if field["dtype"] is not None:
        row["dtype"], row["shape"] = field["dtype"], list(field["shape"])
    for name in ("optional", "zstd", "encrypted", "sample_rate", "jpeg_quality"):
        if field[name]:
            row[name] = field[name]
    return row


def schema_of(fields: "Sequence[Dict[str, Any]]") -> "List[Dict[str, Any]]":
    """The schema that gives a set the same fields."""
    return [_schema_row(field) for field in fields]


def infer_schema(sample: Sample) -> "List[Dict[str, Any]]":
    """The fields that hold the values of a sample: numbers, text, arrays, bytes (pictures and sounds are recognized by
    their first bytes), dicts and lists as JSON."""
    return [infer_field(name, value) for name, value in sample.items()]


def infer_field(name: str, value: Any) -> "Dict[str, Any]":
    import numpy as np

    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return {"name": name, "type": "int"}
    if isinstance(value, (float, np.floating)):
        return {"name": name, "type": "float"}
    if isinstance(value, str):
        return {"name": name, "type": "text"}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"name": name, "type": bytes_type(bytes(memoryview(value)[:16]))}
    if isinstance(value, (dict, list)) or value is None:
        return {"name": name, "type": "json", "optional": True}
    if hasattr(value, "detach"):
        from ._torch_tensors import to_stored

        dtype, shape, _ = to_stored(value)
        return {"name": name, "type": "ndarray", "dtype": dtype, "shape": [0] * len(shape)}
    array = np.asarray(value)
    return {"name": name, "type": "ndarray", "dtype": _arrays.name_of(array.dtype), "shape": [0] * array.ndim}


def bytes_type(head: bytes) -> str:
    if head.startswith(b"\xff\xd8\xff"):
        return "image-jpeg"
    if head.startswith(b"\x89PNG"):
        return "image-png"
    is_wav = head.startswith(b"RIFF") and head[8:12] == b"WAVE"
    if is_wav or head.startswith((b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3")):
        return "audio-compressed"
    return "bytes"


class Writer(Transaction):
    """Writes samples: writer.add(sample), where sample is a dict. The file appears when the `with` block ends without
    an exception."""

    def __init__(self, path: Path, schema: Optional[Schema] = None, *,
                 append: bool = False, overwrite: bool = False, page_size: int = 0, zstd_level: int = 0,
                 dedup: bool = False, threads: int = 0, key: Optional[bytes] = None) -> None:
        self._path, self._append = os.fspath(path), append
        self._options = (overwrite, page_size, zstd_level, dedup, threads, key)
        self._writer: "Optional[_core.MldfWriter]" = None
        self._fields: "List[Tuple[str, str]]" = []
        self._lock = threading.Lock()  # a sample is added by one thread at a time
        if append:
            self._start(None)
        elif schema is not None:
            self._start(full_schema(schema))
        elif os.path.exists(self._path) and not overwrite:
            raise FileExistsError(17, "the file exists; pass overwrite=True to replace it", self._path)

    def _start(self, schema: "Optional[List[Dict[str, Any]]]") -> None:
        text = None if schema is None else json.dumps(schema)
        self._writer = _core.MldfWriter(self._path, text, *self._options)
        self._fields = [(name, kind or "") for name, kind, _, _ in self._writer.fields()]

    def add(self, sample: Sample) -> None:
        """Adds a sample. Without a schema, the first sample decides the fields and their types. Threads may share a
        writer."""
        with self._lock:
            self._add(sample)

    def _add(self, sample: Sample) -> None:
        if self._writer is None:
            self._start(infer_schema(sample))
        assert self._writer is not None
        unknown = set(sample) - {name for name, _ in self._fields}
        if unknown:
            raise KeyError(f"no field for {', '.join(sorted(unknown))}; there are "
                           f"{', '.join(name for name, _ in self._fields)}")
        try:
            for index, (name, kind) in enumerate(self._fields):
                if sample.get(name) is not None:
                    put_value(self._writer, index, kind, name, sample[name])
                else:
                    expect_optional(name, kind)
            self._writer.end_sample()
        except BaseException:
            self._writer.cancel_sample()
            raise

    def extend(self, samples: "Iterable[Sample]") -> None:
        for sample in samples:
            self.add(sample)

    def copy(self, dataset: "_core.Mldf", *, progress: Progress = None) -> None:
        """Adds all samples of a set with the same fields. Stored values are copied unchanged: pictures are not decoded.
        Without a schema, the first set decides the fields."""
        with self._lock, callback(progress, "copy") as step:
            if self._writer is None:
                self._start(schema_of(dataset._describe_fields()))
            assert self._writer is not None
            self._writer.copy(dataset, step)

    def __len__(self) -> int:
        return 0 if self._writer is None else self._writer.samples()

    def commit(self) -> None:
        """Makes the file complete, durable and visible."""
        if self._writer is None:
            raise ValueError("nothing was added, and no schema was given")
        self._writer.commit()

    def discard(self) -> None:
        """Leaves nothing behind."""
        if self._writer is not None:
            self._writer.discard()


def expect_optional(name: str, kind: str) -> None:
    """A value is absent: refuses that for numbers."""
    if kind in ("int", "float"):
        raise ValueError(_NO_NUMBER.format(name=name, kind=kind))


def full_schema(schema: Schema) -> "List[Dict[str, Any]]":
    if isinstance(schema, Mapping):
        return [{"name": name, "type": kind} for name, kind in schema.items()]
    return [dict(row) for row in schema]


def put_value(writer: "_core.MldfWriter", index: int, kind: str, name: str, value: Any) -> None:
    try:
        if kind == "int":
            writer.set_int(index, int(value))
        elif kind == "float":
            writer.set_float(index, float(value))
        elif kind == "text":
            writer.set_text(index, value)
        elif kind == "json":
            writer.set_bytes(index, json.dumps(value, ensure_ascii=False).encode(), None)
        elif kind == "ndarray":
            _put_array(writer, index, value)
        elif kind in ("audio", "audio-compressed"):
            writer.set_bytes(index, value, _core.mldf_sound(value))
        else:
            writer.set_bytes(index, value, None)
    except TypeError as error:
        raise TypeError(f"field {name} ({kind}): {error}") from None


def _put_array(writer: "_core.MldfWriter", index: int, value: Any) -> None:
    import numpy as np

    name = writer.fields()[index][3] or ""
    if hasattr(value, "detach"):
        from ._torch_tensors import to_stored

        given, shape, data = to_stored(value)
    else:
        array = np.ascontiguousarray(value)
        given, shape, data = _arrays.name_of(array.dtype), np.shape(value), array.reshape(-1).view("u1")
        if array.dtype == np.dtype(_arrays.bits_of(name)):
            given = name  # the bits of a type that NumPy lacks
        if array.dtype.byteorder == ">":
            raise TypeError(f"an array of {array.dtype}, expected {_arrays.dtype_of(name)}")
    if given != name:
        raise TypeError(f"an array of {given}, expected {name}")
    writer.set_array(index, shape, data)


def create(path: Path, schema: Optional[Schema] = None,
           **options: Any) -> Writer:
    """A writer for a new set.

    >>> with coffer.mldf.create("new.mldf") as writer:
    ...     writer.add({"text": "a cat", "label": 3})
    """
    return Writer(path, schema, **options)


def append(path: Path, **options: Any) -> Writer:
    """A writer that appends to a set; readers see the old state until it is committed."""
    return Writer(path, append=True, **options)
