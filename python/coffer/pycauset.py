"""Matrices on disk, with metadata that survives crashes.

>>> with coffer.open("links.pycauset") as matrix:
...     matrix[0, :]
array([1., 2.])
"""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from . import _arrays, _core
from ._open import as_input, pickled
from ._progress import Progress, callback

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Path = Union[str, "os.PathLike[str]"]

__all__ = ["Matrix", "write"]

_TYPES = {"dense": 0, "integer": 1, "causal": 2, "triangular": 3, "triangular_integer": 4, "symmetric": 5,
          "antisymmetric": 6, "vector": 7}
_STRIP_BYTES = 16 << 20  # written at once; Ctrl-C is seen between two of them


class Matrix:
    """A matrix with NumPy's indexing; transposition, conjugation and scalar of the file are applied.

    verify : compare the values with the checksums of the file, where it has them, before they are first shown.
    """

    def __init__(self, source: Any, *, generation: int = 0, verify: bool = True) -> None:
        self._source = source if isinstance(source, _core.Source) else _core.Source(as_input(source))
        self._generation, self._verify, self._verified = generation, verify, not verify
        self._matrix = _core.Pycauset(self._source, generation)
        self._info = self._matrix.info()

    # ---- Facts ----

    @property
    def path(self) -> Optional[str]:
        return self._source.path

    @property
    def shape(self) -> "Tuple[int, int]":
        return self._info["rows"], self._info["cols"]

    @property
    def ndim(self) -> int:
        return 2

    @property
    def size(self) -> int:
        return self._info["rows"] * self._info["cols"]

    @property
    def dtype(self) -> "np.dtype[Any]":
        kind = _arrays.dtype_of(self._info["value_dtype"])
        if kind is None:
            raise TypeError(f"NumPy has no type for {self._info['value_dtype']}")
        return kind

    @property
    def matrix_type(self) -> str:
        """The type in the file: "DENSE_FLOAT", "CAUSAL", "SYMMETRIC"."""
        return self._info["type"]

    @property
    def generation(self) -> int:
        return self._info["generation"]

    # ---- Values ----

    def _tile(self, row: int, rows: int, col: int, cols: int) -> "Array":
        name = self._info["value_dtype"]
        out = _arrays.output(None, (rows, cols), self.dtype)
        if rows and cols:
            self._matrix.read(out, name, row, rows, col, cols)
        return out

    def _view(self) -> "Optional[Array]":
        import numpy as np

        found = self._matrix.view()
        if found is None:
            return None
        if not self._verified:
            self._matrix.verify()
            self._verified = True
        view, name, rows, cols, row_stride, col_stride = found
        flat = np.frombuffer(view, _arrays.dtype_of(name))
        shown = np.lib.stride_tricks.as_strided(flat, (rows, cols), (row_stride, col_stride), writeable=False)
        return shown

    def __getitem__(self, key: Any) -> Any:
        """Elements, rows, tiles: integers, slices with steps, ellipsis, lists and masks, as in NumPy. Only the bytes of
        the tile that encloses them are read."""
        view = self._view()
        if view is not None:
            return view[key]
        rows, cols, rest = _bounds(key, self.shape)
        tile = self._tile(rows[0], rows[1] - rows[0], cols[0], cols[1] - cols[0])
        return tile[rest]

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "Array":
        array = self._view()
        if array is None or (dtype is not None and array.dtype != dtype):
            if copy is False:
                raise ValueError("this matrix is not stored as such an array; copy=False is not possible")
            array = self._tile(0, self.shape[0], 0, self.shape[1]) if array is None else array
            return array if dtype is None else array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> "Iterator[Array]":
        for row in range(self.shape[0]):
            yield self[row]

    def stats(self, *, threads: int = 0, progress: Progress = None) -> "Dict[str, Any]":
        """Elements, nonzero, density, minimum, maximum, mean, deviation, Frobenius norm."""
        with callback(progress, "stats") as step:
            return self._matrix.stats(threads, step)

    def heatmap(self, height: int = 256, width: int = 256) -> "Array":
        """Means of equal cells, at most height x width of them."""
        shape = (min(height, self.shape[0]), min(width, self.shape[1]))
        out = _arrays.output(None, shape, "f8")
        if out.size:
            self._matrix.downsample(out, *shape)
        return out

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_array of the nonzero values, built a stripe of rows at a time."""
        import numpy as np
        import scipy.sparse

        stripes = []
        step = max(1, (1 << 22) // max(self.shape[1], 1))
        for begin in range(0, self.shape[0], step):
            stripes.append(scipy.sparse.csr_matrix(self[begin:begin + step]))
        if not stripes:
            return scipy.sparse.csr_matrix(self.shape, dtype=np.float64)
        return scipy.sparse.vstack(stripes, format="csr")

    # ---- Metadata ----

    @property
    def meta(self) -> "Metadata":
        """The metadata; each assignment is one durable commit."""
        return Metadata(self)

    @property
    def history(self) -> "List[Dict[str, Any]]":
        """All intact states of the metadata, oldest first."""
        keys = ("generation", "committed", "active", "date", "metadata")
        return [dict(zip(keys, row)) for row in self._matrix.history()]

    def revert(self, generation: int) -> None:
        """Makes an older state of the metadata the current one, as a new commit."""
        states = {row["generation"]: row["metadata"] for row in self.history if row["committed"]}
        if generation not in states:
            raise KeyError(f"generation {generation}; there are {', '.join(map(str, states))}")
        current = self._matrix.metadata()
        changes = [("delete", _escape(key), None) for key in current if key not in states[generation]]
        for key, value in states[generation].items():
            if current.get(key) != value:
                changes.append(_change(_escape(key), value))
        self._edit(changes)

    def add_checksums(self) -> None:
        """Stores checksums of the values in the file; from then on, readers compare what they read with them."""
        self._edit([("checksums", "", None)])

    def _edit(self, changes: "List[Tuple[str, str, Any]]") -> None:
        if self.path is None:
            raise ValueError("a matrix in memory cannot be changed")
        if changes:
            _core.pycauset_edit(self.path, changes)
        self._reopen()

    def _reopen(self) -> None:
        self._verified = not self._verify
        self._source = _core.Source(self.path)
        self._matrix = _core.Pycauset(self._source, 0)
        self._info = self._matrix.info()

    # ---- Life ----

    @property
    def closed(self) -> bool:
        return self._matrix.closed

    def close(self) -> None:
        self._matrix.close()

    def __enter__(self) -> "Matrix":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        options: "Dict[str, Any]" = {"generation": self._generation} if self._generation else {}
        return pickled(self.path, "pycauset", options if self._verify else {**options, "verify": False})

    def __repr__(self) -> str:
        if self.closed:
            return "<closed Matrix>"
        rows, cols = self.shape
        return f"<Matrix {self.path or 'in memory'}: {self.matrix_type} {rows} x {cols}, {self._info['value_dtype']}>"

    def _repr_html_(self) -> str:
        from ._html import heat_picture

        return heat_picture(repr(self), self.heatmap(128, 256))


class Metadata(MutableMapping):  # type: ignore[type-arg]
    """A matrix's metadata as a dict. Paths reach inside: meta["properties.label"]."""

    def __init__(self, matrix: Matrix) -> None:
        self._owner = matrix

    def _tree(self) -> "Dict[str, Any]":
        return self._owner._matrix.metadata()

    def __getitem__(self, path: str) -> Any:
        found: Any = self._tree()
        if path in found:
            return found[path]
        for part in path.split("."):
            if isinstance(found, dict) and part in found:
                found = found[part]
            elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
                found = found[int(part)]
            else:
                raise KeyError(path)
        return found

    def __setitem__(self, path: str, value: Any) -> None:
        self._owner._edit([_change(path, value)])

    def __delitem__(self, path: str) -> None:
        self[path]
        self._owner._edit([("delete", path, None)])

    def update(self, *args: Any, **kwargs: Any) -> None:
        """All changes in one commit."""
        self._owner._edit([_change(path, value) for path, value in dict(*args, **kwargs).items()])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree())

    def __len__(self) -> int:
        return len(self._tree())

    def __repr__(self) -> str:
        return repr(self._tree())


def _escape(key: str) -> str:
    return key.replace(".", "\\.")


def _change(path: str, value: Any) -> "Tuple[str, str, Any]":
    if isinstance(value, (bytes, bytearray)):
        return "bytes", path, bytes(value)
    return "json", path, json.dumps(value)


def _bounds(key: Any, shape: "Tuple[int, int]") -> "Tuple[Tuple[int, int], Tuple[int, int], Any]":
    """The smallest tile that encloses an index, and the index within it."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(item is Ellipsis for item in keys):
        at = next(i for i, item in enumerate(keys) if item is Ellipsis)
        keys[at:at + 1] = [slice(None)] * (2 - (len(keys) - 1))
    if len(keys) > 2 or any(item is None or getattr(item, "ndim", 1) != 1 or isinstance(item, bool) for item in keys):
        return (0, shape[0]), (0, shape[1]), key  # masks of both axes and new axes: NumPy picks from all values
    keys += [slice(None)] * (2 - len(keys))
    spans, inner = [], []
    for item, length in zip(keys, shape):
        span, rest = _span(item, length)
        spans.append(span)
        inner.append(rest)
    return spans[0], spans[1], tuple(inner)


def _span(item: Any, length: int) -> "Tuple[Tuple[int, int], Any]":
    if isinstance(item, slice):
        chosen = range(*item.indices(length))
        if len(chosen) == 0:
            return (0, 0), slice(0, 0)
        low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]) + 1
        begin, end = chosen[0] - low, chosen[-1] - low
        stop: "Optional[int]" = end + (1 if chosen.step > 0 else -1)
        return (low, high), slice(begin, None if stop is not None and stop < 0 else stop, chosen.step)
    try:
        index = range(length)[item]
    except TypeError:
        return (0, length), item  # a list or a mask: NumPy picks from the whole axis
    except IndexError:
        raise IndexError(f"index {item} is out of bounds for an axis of {length}") from None
    return (index, index + 1), 0


def _expect_kind(array: "Array", kind: str) -> None:
    """These kinds store half of the matrix, or bits: refuse values that they would lose."""
    import numpy as np

    if kind == "symmetric" and not np.array_equal(array, array.T):
        raise ValueError("the matrix is not symmetric: half of it would be lost; use kind=\"dense\"")
    if kind == "antisymmetric" and not np.array_equal(array, -array.T):
        raise ValueError("the matrix is not antisymmetric: half of it would be lost; use kind=\"dense\"")
    if kind == "causal" and not np.array_equal(array, array.astype(bool)):
        raise ValueError("a causal matrix has only zeros and ones; use kind=\"triangular\"")


def write(path: Path, values: Any, *, kind: str = "auto", metadata: "Optional[Mapping[str, Any]]" = None,
          dense: bool = False, overwrite: bool = False) -> None:
    """Writes an array as a new file. dense : also store a scipy.sparse matrix, with all its zeros.

    kind : "auto" (dense or vector, by shape), "dense", "triangular" (zeros below or on the diagonal are not stored),
    "symmetric", "antisymmetric" or "causal" (bits).
    """
    import numpy as np

    if hasattr(values, "toarray"):
        if not dense:
            size = values.shape[0] * values.shape[1] * values.dtype.itemsize
            raise ValueError(f"the format has no sparse form: pass dense=True to store the zeros too, {size} bytes in all")
        values = values.toarray()
    array = np.asarray(values)
    if kind == "auto":
        kind = "vector" if array.ndim == 1 else "integer" if array.dtype == np.int32 else "dense"
    if kind not in _TYPES:
        raise ValueError(f"kind is {kind!r}; it can be auto, {', '.join(_TYPES)}")
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2:
        raise ValueError(f"an array of {array.ndim} dimensions is not a matrix")
    _expect_kind(array, kind)
    name = "bit" if array.dtype == bool or kind == "causal" else _arrays.name_of(array.dtype)
    data = np.ascontiguousarray(array.astype(bool) if name == "bit" else array)
    changes = [_change(key, value) for key, value in (metadata or {}).items()]
    diagonal = bool(kind in ("symmetric",) or (kind == "triangular" and np.any(np.diagonal(array))))
    step = max(1, _STRIP_BYTES // max(data.nbytes // max(len(data), 1), 1))
    strips = (data[begin:begin + step].reshape(-1).view("u1") for begin in range(0, len(data), step))
    write_rows(path, kind, name, (data.shape[0], data.shape[1]), diagonal, strips, changes, overwrite)


def write_rows(path: Path, kind: str, dtype: str, shape: "Tuple[int, int]", diagonal: bool, strips: "Iterable[Any]",
               changes: "List[Tuple[str, str, Any]]", overwrite: bool = False) -> None:
    """A new file from its rows, some at a time. strips : bytes of whole rows."""
    writer = _core.PycausetWriter(os.fspath(path), _TYPES[kind], dtype, *shape, diagonal, changes, overwrite)
    try:
        if shape[1]:
            for strip in strips:
                writer.put_rows(strip)
        writer.commit()
    finally:
        writer.discard()
