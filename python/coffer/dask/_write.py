"""Collections into files: tasks write parts in parallel, and the client joins them in one commit."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .. import _arrays
from .. import mldf as _mldf
from .. import pycauset as _pycauset
from .._errors import CofferError
from .._mldf_writer import full_schema
from ._parts import Job, Path, compute, part_path

_SET_OPTIONS = ("page_size", "zstd_level", "dedup", "threads", "key")
_STRIP_BYTES = 16 << 20


# ---- Training sets ----

def _named(error: Exception, where: str) -> Exception:
    """The same error, with the file that was to be written."""
    text = error.args[0] if error.args else error
    for kind in (KeyError, TypeError, ValueError):
        if isinstance(error, kind) and not isinstance(error, CofferError):
            return kind(f"{where}: {text}")
    return error


def _write_samples(samples: "Iterable[Mapping[str, Any]]", folder: str, where: str, schema: "List[Dict[str, Any]]",
                   options: "Dict[str, Any]") -> "Tuple[str, int]":
    """One part under a name of its own: a task that runs twice writes two, and one of them is used."""
    path = part_path(folder, ".mldf")
    with _mldf.create(path, schema, page_size=4096, **options) as writer:
        for sample in samples:
            try:
                writer.add(sample)
            except Exception as error:
                raise _named(error, f"{where}, sample {len(writer)}") from error
        count = len(writer)
    return path, count


def _schema_of(bag: Any, path: Path) -> "List[Dict[str, Any]]":
    # As a delayed value it runs where the tasks run; a bag by itself starts processes.
    [first] = compute(bag.take(1, compute=False, warn=False).to_delayed())
    first = list(first)
    if not first:
        raise ValueError(f"{path}: the first partition has no samples to infer the fields from; pass a schema")
    return _mldf.infer_schema(first[0])


def _join(parts: "Sequence[str]", path: str, schema: "List[Dict[str, Any]]", options: "Dict[str, Any]") -> int:
    with _mldf.create(path, schema, **options) as writer:
        for part in parts:
            with _mldf.Dataset(part, key=options.get("key")) as dataset:
                writer.copy(dataset)
        return len(writer)


def to_mldf(bag: Any, path: Path, schema: "Optional[Sequence[Mapping[str, Any]]]" = None, *, overwrite: bool = False,
            **options: Any) -> None:
    """Writes a dask.bag of dicts as one set, in the order of the bag.

    Each partition is written by a task; the file appears when all of them are complete, with the same bytes as if one
    process had written it. schema : inferred from the first sample, which is computed twice then.
    options : page_size, zstd_level, dedup, threads and key, as in coffer.mldf.create.
    """
    from dask.delayed import delayed

    unknown = set(options) - set(_SET_OPTIONS)
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(_SET_OPTIONS)}")
    job = Job(path, overwrite)
    fields = full_schema(schema) if schema is not None else _schema_of(bag, path)
    of_part = {name: options[name] for name in ("zstd_level", "threads", "key") if name in options}
    with job:
        write = delayed(_write_samples, pure=False)
        parts = compute([write(part, job.folder, f"{job.out}: partition {i}", fields, of_part)
                         for i, part in enumerate(bag.to_delayed())])
        joined = _join([name for name, _ in parts], job.joined(), fields, options)
        expected = sum(count for _, count in parts)
        if joined != expected:
            raise RuntimeError(f"{job.out}: the tasks wrote {expected} samples, {joined} were joined")
        job.publish()


# ---- Matrices ----

def _write_block(block: Any, folder: str, out: str, kind: str, dtype: Any,
                 place: "Tuple[int, int]") -> "Tuple[str, bool]":
    """A block as a matrix of its own, and whether it has a value on the diagonal of the whole."""
    import numpy as np

    array = np.asarray(block)
    if array.dtype != dtype:
        raise TypeError(f"{out}: the block at {place} has elements of type {array.dtype}, the array is of {dtype}")
    if kind == "causal":
        try:
            _pycauset._expect_kind(array, kind)
        except ValueError as error:
            raise _named(error, f"{out}: block at {place}") from error
        array = array.astype(bool)
    row, col = place
    diagonal = bool(np.any(np.diagonal(array, row - col))) if -array.shape[0] < row - col < array.shape[1] else False
    path = part_path(folder, ".pycauset")
    _pycauset.write(path, array)
    return path, diagonal


class _Grid:
    """The matrix that the parts form."""

    def __init__(self, paths: "List[List[str]]", rows: "Sequence[int]", cols: "Sequence[int]", dtype: Any) -> None:
        self._paths, self._dtype = paths, dtype
        self._rows, self._cols = _bounds(rows), _bounds(cols)

    @property
    def shape(self) -> "Tuple[int, int]":
        return self._rows[-1], self._cols[-1]

    def tile(self, rows: "Tuple[int, int]", cols: "Tuple[int, int]") -> Any:
        import numpy as np

        out = np.empty((rows[1] - rows[0], cols[1] - cols[0]), self._dtype)
        for i, row_begin, row_end in _overlaps(self._rows, rows):
            for j, col_begin, col_end in _overlaps(self._cols, cols):
                with _pycauset.Matrix(self._paths[i][j]) as part:
                    values = part[row_begin - self._rows[i]:row_end - self._rows[i],
                                  col_begin - self._cols[j]:col_end - self._cols[j]]
                    out[row_begin - rows[0]:row_end - rows[0], col_begin - cols[0]:col_end - cols[0]] = values
        return out

    def strips(self, kind: str) -> "Iterator[Any]":
        """Some rows at a time; a matrix of which only half is stored is compared with its mirror image."""
        import numpy as np

        count, width = self.shape
        step = max(1, _STRIP_BYTES // max(width * np.dtype(self._dtype).itemsize, 1))
        for begin in range(0, count, step):
            rows = begin, min(begin + step, count)
            strip = self.tile(rows, (0, width))
            if kind in ("symmetric", "antisymmetric"):
                mirror = self.tile((0, count), rows).T
                if not np.array_equal(strip, mirror if kind == "symmetric" else -mirror):
                    raise ValueError(f"the matrix is not {kind}: half of it would be lost; use kind=\"dense\"")
            yield strip.reshape(-1).view("u1")


def _bounds(sizes: "Sequence[int]") -> "List[int]":
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + int(size))
    return bounds


def _overlaps(bounds: "List[int]", span: "Tuple[int, int]") -> "Iterator[Tuple[int, int, int]]":
    for i in range(len(bounds) - 1):
        begin, end = max(bounds[i], span[0]), min(bounds[i + 1], span[1])
        if begin < end:
            yield i, begin, end


def _settled_kind(array: Any, kind: str, path: Path) -> str:
    import numpy as np

    if array.ndim not in (1, 2):
        raise ValueError(f"{path}: an array of {array.ndim} dimensions is not a matrix")
    if any(np.isnan(size) for size in array.shape):
        raise ValueError(f"{path}: the sizes of the chunks are unknown; call compute_chunk_sizes() first")
    if kind == "auto":
        return "vector" if array.ndim == 1 else "integer" if array.dtype == np.int32 else "dense"
    if kind not in _pycauset._TYPES:
        raise ValueError(f"kind is {kind!r}; it can be auto, {', '.join(_pycauset._TYPES)}")
    if kind in ("symmetric", "antisymmetric") and array.shape[0] != array.shape[-1]:
        raise ValueError(f"{path}: a {kind} matrix is square, not {array.shape[0]} x {array.shape[-1]}")
    return kind


def to_pycauset(array: Any, path: Path, *, kind: str = "auto", metadata: "Optional[Mapping[str, Any]]" = None,
                overwrite: bool = False) -> None:
    """Writes a dask.array of one or two dimensions as a matrix.

    Each chunk is written by a task; the client joins them, a few rows at a time. The file appears when it is complete,
    with the same bytes as coffer.pycauset.write gives. kind, metadata : as in coffer.pycauset.write.
    """
    from dask.delayed import delayed

    chosen = _settled_kind(array, kind, path)
    changes = [_pycauset._change(key, value) for key, value in (metadata or {}).items()]
    job = Job(path, overwrite)
    if 0 in array.shape:
        with job:
            _pycauset.write(job.joined(), array.compute(), kind=kind, metadata=metadata)
            job.publish()
        return
    table = array[:, None] if array.ndim == 1 else array
    rows, cols = (_bounds(sizes) for sizes in table.chunks)
    stored = bool if chosen == "causal" else table.dtype
    name = "bit" if stored == bool else _arrays.name_of(stored)
    with job:
        write = delayed(_write_block, pure=False)
        blocks = table.to_delayed()
        made = compute([write(blocks[i, j], job.folder, job.out, chosen, table.dtype, (rows[i], cols[j]))
                        for i in range(len(rows) - 1) for j in range(len(cols) - 1)])
        width = len(cols) - 1
        paths = [[path for path, _ in made[i * width:(i + 1) * width]] for i in range(len(rows) - 1)]
        grid = _Grid(paths, table.chunks[0], table.chunks[1], stored)
        diagonal = chosen == "symmetric" or (chosen == "triangular" and any(found for _, found in made))
        try:
            _pycauset.write_rows(job.joined(), chosen, name, grid.shape, diagonal, grid.strips(chosen), changes)
        except ValueError as error:
            raise _named(error, job.out) from error
        job.publish()


__all__ = ["to_mldf", "to_pycauset"]
