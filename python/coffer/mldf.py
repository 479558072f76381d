"""Training sets: samples with named fields.

>>> with coffer.open("train.mldf") as dataset:
...     len(dataset), dataset[0, "label"]
(3, 0)
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _arrays, _core
from ._mldf_writer import Path, Writer, append, create, expect_optional, infer_schema, put_value, schema_of
from ._open import as_input, pickled
from ._progress import Progress, callback

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["Dataset", "Writer", "create", "append", "set_values", "delete", "concat", "infer_schema", "from_arrow",
           "from_pandas", "from_datasets"]

_INT, _FLOAT = 1, 2  # coffer_mldf_entry_kind
_MODE_RAW = 0
_LARGEST_SIDE = 65535
_RGB = 3
_CODEC_PCM = 0
_ENCODING_UTF8 = 0
_MOST_TARGETS = 64  # fields of one call
_MOST_SAMPLES, _MOST_NUMBERS = 1 << 18, 1 << 22  # of one call; Ctrl-C is seen between two of them


class _Column(NamedTuple):
    """How batch() reads a field. shape : of every value; None when values differ or may be absent."""

    number: int
    shape: "Optional[Tuple[int, ...]]"
    dtype: Any
    pictures: bool


class Dataset(_core.Mldf):
    """The samples of a set. dataset[i] is a dict, dataset[i, "field"] one value, dataset[10:20] a list of dicts.

    Pictures are arrays of height x width x channels, sounds float32 arrays of frames x channels, absent values None.
    decode : False gives pictures and sounds as stored bytes. key : 32 bytes for encrypted fields. verify : compare
    rows with their checksum when the set is opened, and every value when it is read. image_size : (height, width) that
    all pictures are scaled to, in RGB; batches of them are one array.
    """

    def __init__(self, source: Any, *, key: Optional[bytes] = None, verify: bool = True, decode: bool = True,
                 image_size: "Optional[Tuple[int, int]]" = None) -> None:
        if image_size is not None and (len(image_size) != 2 or not all(0 < side <= _LARGEST_SIDE for side in image_size)):
            raise ValueError(f"image_size is {image_size!r}; it is (height, width), from 1 to {_LARGEST_SIDE}")
        given = source if isinstance(source, _core.Source) else _core.Source(as_input(source))
        super().__init__(given, key, verify)
        self.decode = decode
        self._key, self._verify = key, verify
        self.image_size = None if image_size is None else (int(image_size[0]), int(image_size[1]))
        self._fields = self._describe_fields()
        self._columns: "Dict[str, _Column]" = {}
        self._idle: "List[_core.MldfBatch]" = []  # readers that no thread uses

    # ---- Facts ----

    @property
    def path(self) -> Optional[str]:
        return self._source.path

    @property
    def fields(self) -> "Tuple[str, ...]":
        """The names of the fields."""
        return self._names

    @property
    def schema(self) -> "List[Dict[str, Any]]":
        """The fields with their types, as create() takes them."""
        return schema_of(self._fields)

    # ---- Values ----

    def _decode(self, sample: int, field: int) -> Any:
        kind = self._fields[field]["type"] or ""
        if kind.startswith("image"):
            return self._image(sample, field, self.image_size or (0, 0), _RGB if self.image_size else 0)
        if kind in ("audio", "audio-compressed"):
            return self._audio(sample, field)
        if kind == "json":
            raw = self._bytes(sample, field)
            return None if raw is None else json.loads(bytes(raw))
        if kind == "text-tokenised":
            return self._ids(sample, field)
        if self._fields[field]["dtype"] is not None:
            return self._elements(sample, field)
        raw = self._bytes(sample, field)
        return None if raw is None else bytes(raw)

    def _elements(self, sample: int, field: int) -> "Optional[Array]":
        found = self._array(sample, field)
        if found is None:
            return None
        block, shape, name = found
        return _arrays.over(block, _arrays.dtype_of(name), shape)  # type: ignore[arg-type]

    def _ids(self, sample: int, field: int) -> "Optional[Array]":
        import numpy as np

        block = self._tokens(sample, field)
        return None if block is None else np.frombuffer(block, np.uint32)

    def _image(self, sample: int, field: int, size: "Tuple[int, int]" = (0, 0), channels: int = 0) -> Any:
        raw = self._bytes(sample, field)
        if raw is None or not self.decode:
            return None if raw is None else bytes(raw)
        entry = self._entry(sample, field)
        if entry["mode"] == _MODE_RAW:
            shape = (entry["height"], entry["width"], entry["channels"])
            return self._scaled(_arrays.over(raw, _arrays.dtype_of("u8"), shape), size, channels)  # type: ignore[arg-type]
        block, height, width, depth = self._decode_image(raw, channels, size[1], size[0])
        return _arrays.over(block, _arrays.dtype_of("u8"), (height, width, depth))  # type: ignore[arg-type]

    def _scaled(self, pixels: "Array", size: "Tuple[int, int]", channels: int) -> "Array":
        """Stored pixels in another size and with another number of channels; 0 leaves them as they are."""
        import numpy as np

        if size[0] and size != pixels.shape[:2]:
            height, width, depth = pixels.shape
            block = self._scale(pixels, height, width, depth, size[0], size[1])
            pixels = np.frombuffer(block, np.uint8).reshape(*size, pixels.shape[2])
        if channels == _RGB and pixels.shape[2] != _RGB:
            pixels = np.repeat(pixels[:, :, :1], _RGB, 2) if pixels.shape[2] < _RGB else pixels[:, :, :_RGB]
        return pixels

    def _audio(self, sample: int, field: int) -> Any:
        import numpy as np

        raw = self._bytes(sample, field)
        if raw is None or not self.decode:
            return None if raw is None else bytes(raw)
        entry = self._entry(sample, field)
        if entry["codec"] == _CODEC_PCM and bytes(memoryview(raw)[:4]) != b"RIFF":
            return _pcm(raw, entry)
        frames, channels, _, _ = self._probe_audio(raw)
        out = np.empty((frames, channels), np.float32)
        self._decode_audio(raw, out)
        return out

    def image(self, sample: int, field: str = "image", *, size: "Optional[Tuple[int, int]]" = None,
              channels: int = 3) -> "Optional[Array]":
        """A picture with the given number of channels, scaled to size = (height, width)."""
        index = self._names.index(field)
        return self._image(sample, index, size or (0, 0), channels)

    def bytes(self, sample: int, field: str) -> "Optional[bytes]":
        """The stored value, decompressed and decrypted but not decoded."""
        raw = self._bytes(sample, field)
        return None if raw is None else bytes(raw)

    # ---- Many samples ----

    def _select(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2:
            which, field = key
            samples = self._samples(which)
            if self._kind(field) in (_INT, _FLOAT):
                return self._numbers(samples, field)
            return [self[int(sample), field] for sample in samples]
        return [self[int(sample)] for sample in self._samples(key)]

    def _kind(self, field: str) -> int:
        return self._fields[self._index(field)]["kind"]

    def _index(self, field: str) -> int:
        try:
            return self._names.index(field)
        except ValueError:
            raise KeyError(field) from None

    def _samples(self, which: Any) -> "Array":
        """Indices from a slice, a list, an array or a mask, as uint64."""
        import numpy as np

        count = len(self)
        if isinstance(which, slice):
            return np.arange(*which.indices(count)).astype(np.uint64)
        array = np.asarray(which)
        if array.dtype == bool:
            if array.shape != (count,):
                raise IndexError(f"a mask of {array.shape} for {count} samples")
            return np.flatnonzero(array).astype(np.uint64)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(f"cannot select samples by {which!r}")
        signed = array.astype(np.int64)
        signed = np.where(signed < 0, signed + count, signed)
        if signed.size and (signed.min() < 0 or signed.max() >= count):
            raise IndexError(f"samples {array.min()} to {array.max()} of {count}")
        return signed.astype(np.uint64)

    def _which(self, samples: Any) -> Any:
        """Samples in a form that the batch reader takes: lists and arrays of integers as they are, others as indices."""
        if type(samples) in (list, tuple):
            return samples if samples and type(samples[0]) is int else self._samples(samples)
        dtype = getattr(samples, "dtype", None)
        if dtype is not None and dtype.char in "lqLQ" and dtype.isnative and samples.ndim == 1 \
                and samples.flags.c_contiguous:
            return samples
        return self._samples(samples)

    def _reader(self) -> "_core.MldfBatch":
        """A batch reader for one thread, which gives it back to self._idle. Worker processes use one core each."""
        try:
            return self._idle.pop()
        except IndexError:
            return _core.MldfBatch(self, 1 if _in_child() else 0)

    def _numbers(self, samples: "Array", field: str) -> "Array":
        import numpy as np

        out = np.empty(len(samples), np.int64 if self._kind(field) == _INT else np.float64)
        if len(samples):
            reader = self._reader()
            _read_parts(reader, samples, [(self._index(field), out, 0, None, None)])
            self._idle.append(reader)
        return out

    def column(self, field: str, begin: int = 0, end: Optional[int] = None) -> "Array":
        """The numbers of a field as one array; for other fields an array of the bytes of each value (dtype object)."""
        import numpy as np

        begin, end, _ = slice(begin, end).indices(len(self))
        count = max(end - begin, 0)
        if self._kind(field) not in (_INT, _FLOAT):
            out = np.empty(count, object)
            for i in range(count):
                out[i] = self[begin + i, field]
            return out
        numbers = np.empty(count, np.int64 if self._kind(field) == _INT else np.float64)
        for first in range(0, count, _MOST_NUMBERS):
            part = numbers[first:first + _MOST_NUMBERS]
            self._column(self._index(field), part, begin + first, len(part))
        return numbers

    def _column_of(self, field: str) -> _Column:
        """How a field is read, computed once."""
        index = self._index(field)
        found = self._fields[index]
        kind, name = found["type"] or "", found["dtype"]
        shape: "Optional[Tuple[int, ...]]" = None
        pictures = self.image_size is not None and self.decode and kind.startswith("image") and kind != "image-raw"
        if found["kind"] in (_INT, _FLOAT):
            shape, name = (), "i64" if found["kind"] == _INT else "f64"
        elif pictures and self.image_size is not None:
            shape, name = (*self.image_size, _RGB), "u8"
        elif kind == "ndarray" and found["shape"] and 0 not in found["shape"]:
            shape = tuple(found["shape"])
        dtype = None if name is None else _arrays.dtype_of(name)
        if found["optional"] or dtype is None:
            shape = None
        self._columns[field] = _Column(index, shape, dtype, pictures)
        return self._columns[field]

    def _element_type(self, field: str) -> Optional[str]:
        """The type of a field's numbers or arrays, and of pictures of one size; None for other fields."""
        column = self._columns.get(field) or self._column_of(field)
        if column.shape == () or column.pictures:
            return _arrays.name_of(column.dtype)
        found = self._fields[column.number]
        return found["dtype"] if found["type"] == "ndarray" else None

    def _fixed_shape(self, field: str) -> "Optional[Tuple[int, ...]]":
        """The shape that all values of a field have; None when it differs, or when values may be absent."""
        return (self._columns.get(field) or self._column_of(field)).shape

    def batch(self, samples: Any, fields: "Optional[Sequence[str]]" = None, *,
              out: "Optional[Mapping[str, Array]]" = None) -> "Dict[str, Any]":
        """Several samples at once, read in the order of the file by all cores: arrays for numbers, for arrays of one
        shape and for pictures of one size (image_size), lists for everything else. out : arrays to fill instead of new
        ones; their first dimension is at least the number of samples."""
        import numpy as np

        indices = self._which(samples)
        names = self._names if fields is None else fields
        if out and not set(names).issuperset(out):
            raise KeyError(f"out has {', '.join(sorted(set(out) - set(names)))}, which is not read")
        result: "Dict[str, Any]" = {}
        targets: "List[Tuple[int, Any, int, Any, Any]]" = []
        count = len(indices)
        for name in names:
            column = self._columns.get(name) or self._column_of(name)
            given = None if out is None else out.get(name)
            if column.shape == () and given is None:
                array = result[name] = np.empty(count, column.dtype)
                targets.append((column.number, array, 0, None, None))
            elif column.shape is not None:
                array = result[name] = self._target(name, column, count, given)
                if not column.pictures:
                    stride = array.nbytes // count if count and column.shape else 0
                    targets.append((column.number, array.view("u1") if stride else array, stride, None, None))
            elif given is not None:
                raise ValueError(f"{name} has values of different sizes: it cannot be read into an array")
            else:
                result[name] = None  # keeps the order of the fields
        if count:
            reader = self._reader()
            if len(targets) <= _MOST_TARGETS and count <= _MOST_SAMPLES:
                reader.read(indices, targets)
            else:
                _read_parts(reader, indices, targets)
            self._idle.append(reader)
        if len(targets) < len(result):
            self._fill(result, indices)
        return result

    def _fill(self, result: "Dict[str, Any]", indices: Any) -> None:
        """The pictures of a batch, and the values that are read one by one."""
        for name, array in result.items():
            column = self._columns[name]
            if column.pictures and array is not None:
                if len(indices):
                    reader = self._reader()
                    reader.pictures(indices, column.number, array, *array.shape[1:])
                    self._idle.append(reader)
            elif array is None:
                result[name] = _stacked([self[int(sample), name] for sample in indices])

    def _target(self, name: str, column: _Column, count: int, given: "Optional[Array]") -> "Array":
        assert column.shape is not None
        if given is not None:
            if given.ndim == 0 or len(given) < count:
                raise ValueError(f"out[{name!r}] is for {len(given) if given.ndim else 0} samples, expected {count}")
            given = given[:count]
        try:
            return _arrays.output(given, (count, *column.shape), column.dtype)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def __iter__(self) -> "Iterator[Dict[str, Any]]":
        for sample in range(len(self)):
            yield self[sample]

    # ---- Tables ----

    def to_pandas(self, fields: "Optional[Sequence[str]]" = None) -> Any:
        """A pandas DataFrame, one row for each sample."""
        from . import _tables

        return _tables.to_pandas(self, fields)

    def to_arrow(self, fields: "Optional[Sequence[str]]" = None) -> Any:
        """A pyarrow.Table. Numbers, text and bytes are read into Arrow's own layout in one call, without a Python object
        for each value; pictures and sounds are their stored bytes, JSON is text. from_arrow() restores the types."""
        from . import _tables

        return _tables.to_arrow(self, fields)

    def to_datasets(self, fields: "Optional[Sequence[str]]" = None) -> Any:
        """A datasets.Dataset of Hugging Face; pictures are an Image feature."""
        from . import _tables

        return _tables.to_datasets(self, fields)

    def order(self, *, epoch: int = 0, seed: int = 0, first: int = 0, count: Optional[int] = None,
              shuffle: bool = True, window_pages: int = 0, rank: int = 0, world: int = 1,
              tail: str = "uneven") -> "Array":
        """Samples of an epoch in shuffled order, from position `first` on; each of `world` ranks gets its share."""
        import numpy as np

        tails = {"uneven": 0, "drop": 1, "pad": 2}
        pages = self._page_samples if window_pages else 0
        common = (len(self), epoch)
        rest = (seed, not shuffle, window_pages, pages, rank, world, tails[tail])
        length = _core.mldf_order(np.empty(0, np.uint64), *common, 0, *rest)
        stop = length if count is None else min(length, first + count)
        out = np.empty(max(stop - first, 0), np.uint64)
        _core.mldf_order(out, *common, min(first, length), *rest)
        return out

    # ---- Life ----

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        options = {"key": self._key, "verify": self._verify, "decode": self.decode, "image_size": self.image_size}
        return pickled(self.path, "mldf", options)

    def __repr__(self) -> str:
        if self.closed:
            return "<closed Dataset>"
        return f"<Dataset {self.path or 'in memory'}: {len(self)} samples of {', '.join(self._names)}>"

    def _repr_html_(self) -> str:
        from ._html import gallery

        return gallery(self)


def _read_parts(reader: "_core.MldfBatch", samples: Any, targets: "List[Tuple[int, Any, int, Any, Any]]") -> None:
    """Reads many samples, or many fields, in several calls."""
    for begin in range(0, len(samples), _MOST_SAMPLES):
        end = begin + _MOST_SAMPLES
        for first in range(0, len(targets), _MOST_TARGETS):
            reader.read(samples[begin:end], [(field, array[begin:end], stride, None, None)
                                             for field, array, stride, _, _ in targets[first:first + _MOST_TARGETS]])


def _in_child() -> bool:
    """Whether this process was started by multiprocessing, as the workers of a DataLoader are."""
    module = sys.modules.get("multiprocessing")
    return module is not None and module.parent_process() is not None


def _pcm(raw: Any, entry: "Dict[str, Any]") -> "Array":
    """Integer samples as floats from -1 to 1."""
    import numpy as np

    depth = entry["bit_depth"]
    kinds = {8: "<i1", 16: "<i2", 32: "<i4"}
    if depth not in kinds:
        raise ValueError(f"samples of {depth} bits are not supported; use decode=False")
    values = np.frombuffer(raw, kinds[depth]).reshape(-1, max(entry["channels"], 1))
    return (values / float(1 << (depth - 1))).astype(np.float32)


def _stacked(values: "List[Any]") -> Any:
    """One array of arrays that have the same shape and type; otherwise the list."""
    import numpy as np

    if not values or not all(isinstance(value, np.ndarray) for value in values):
        return values
    first = values[0]
    if any(value.shape != first.shape or value.dtype != first.dtype for value in values):
        return values
    return np.stack(values)


# ---- Changes ----

def set_values(path: Path, changes: "Mapping[Tuple[int, str], Any]", *, key: Optional[bytes] = None) -> None:
    """Replaces single values in one commit: {(sample, field): value}; None makes a value absent."""
    import numpy as np

    with Dataset(path, key=key) as dataset:
        kinds = {name: (i, dataset._fields[i]["type"] or "") for i, name in enumerate(dataset.fields)}
        pairs = [(int(dataset._samples([sample])[0]), name) for sample, name in changes]
    missing = {name for _, name in pairs} - set(kinds)
    if missing:
        raise KeyError(", ".join(sorted(missing)))
    values = {(sample, kinds[name][0]): value for (sample, name), value in zip(pairs, changes.values())}
    names = {index: (name, kind) for name, (index, kind) in kinds.items()}

    def fill(writer: "_core.MldfWriter", sample: int, field: int) -> None:
        value = values[sample, field]
        if value is not None:
            name, kind = names[field]
            put_value(writer, field, kind, name, value)

    for (_, field), value in values.items():
        name, kind = names[field]
        if value is None:
            expect_optional(name, kind)

    samples = np.array([sample for sample, _ in values], np.uint64)
    fields = np.array([field for _, field in values], np.uint64)
    _core.mldf_replace(os.fspath(path), samples, fields, fill, key)


def delete(path: Path, samples: Any, *, key: Optional[bytes] = None) -> None:
    """Deletes samples in one commit; the following ones move up."""
    import numpy as np

    with Dataset(path, key=key) as dataset:
        gone = np.unique(dataset._samples(samples))
    _core.mldf_delete(os.fspath(path), gone, key)


def concat(paths: "Sequence[Path]", out: Path, *, overwrite: bool = False, progress: Progress = None) -> None:
    """Writes the samples of several sets with the same fields, one set after the other."""
    sets = [Dataset(path) for path in paths]
    with callback(progress, "concat") as step:
        _core.mldf_concat(os.fspath(out), sets, overwrite, step)


# ---- Tables ----

def from_arrow(table: Any, path: Path, schema: Any = None, *, overwrite: bool = False, **options: Any) -> int:
    """Writes the rows of a pyarrow.Table, a RecordBatchReader or any object with __arrow_c_stream__ (polars, DuckDB) as
    a new set and returns their number. schema : as in create(); by default the types of the columns decide."""
    from . import _tables

    return _tables.from_arrow(table, os.fspath(path), schema, overwrite=overwrite, **options)


def from_pandas(frame: Any, path: Path, schema: Any = None, *, overwrite: bool = False, **options: Any) -> int:
    """Writes the rows of a pandas.DataFrame as a new set, without the index, and returns their number."""
    from . import _tables

    return _tables.from_pandas(frame, os.fspath(path), schema, overwrite=overwrite, **options)


def from_datasets(dataset: Any, path: Path, schema: Any = None, *, overwrite: bool = False, **options: Any) -> int:
    """Writes the rows of a datasets.Dataset of Hugging Face as a new set and returns their number. Pictures and sounds
    are stored with the bytes that they have there."""
    from . import _tables

    return _tables.from_datasets(dataset, os.fspath(path), schema, overwrite=overwrite, **options)
