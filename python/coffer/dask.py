"""Dask: collections over files, and work spread over processes or machines.

Tasks open files by path, so every worker must see the same folder. Outputs appear when they are complete: tasks write
parts under names of their own, and only parts that were returned are joined.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import mldf as _mldf
from ._open import file_identity

Path = Union[str, "os.PathLike[str]"]

__all__ = ["from_mldf", "from_mscan", "from_pycauset", "from_mlyze", "to_mldf", "to_pycauset"]

_TRIES, _PAUSE = 200, 0.02


def _full(path: Path) -> str:
    return os.path.abspath(os.fspath(path))


def _token(path: str, *more: Any) -> str:
    """Names a collection by what identifies its data: a file that was rewritten gives another name."""
    from dask.base import tokenize

    return tokenize(path, file_identity(path), *more)


def _ranges(count: int, size: int) -> "List[Tuple[int, int]]":
    return [(begin, min(begin + size, count)) for begin in range(0, count, size)]


# ---- Reading ----

def _samples(path: str, begin: int, end: int, fields: "Optional[Sequence[str]]",
             options: "Dict[str, Any]") -> "List[Dict[str, Any]]":
    with _mldf.Dataset(path, **options) as dataset:
        names = fields or dataset.fields
        columns = dataset.batch(range(begin, end), names)
        return [{name: columns[name][i] for name in names} for i in range(end - begin)]


def from_mldf(path: Path, *, samples_per_task: int = 4096, fields: "Optional[Sequence[str]]" = None,
              **options: Any) -> Any:
    """A dask.bag of samples (dicts)."""
    import dask.bag

    full = _full(path)
    with _mldf.Dataset(full, **options) as dataset:
        count = len(dataset)
    parts = _ranges(count, samples_per_task)
    bag = dask.bag.from_sequence(parts, npartitions=max(len(parts), 1))
    return bag.map_partitions(_read_parts, full, fields, options, token=_token(full, fields))


def _read_parts(parts: "Iterable[Tuple[int, int]]", path: str, fields: "Optional[Sequence[str]]",
                options: "Dict[str, Any]") -> "List[Dict[str, Any]]":
    return [sample for begin, end in parts for sample in _samples(path, begin, end, fields, options)]


def _records(path: str, begin: int, end: int) -> Any:
    import pandas

    from .mscan import Scan

    with Scan(path) as scan:
        return pandas.DataFrame.from_records(scan[begin:end])


def from_mscan(path: Path, *, records_per_task: int = 1 << 20) -> Any:
    """A dask.dataframe of the records, with the raw integers."""
    import dask.dataframe
    from dask.delayed import delayed

    from .mscan import Scan

    full = _full(path)
    with Scan(full) as scan:
        count = len(scan)
    read = delayed(_records, pure=True)
    token = _token(full)
    parts = [read(full, begin, end, dask_key_name=f"mscan-{token}-{begin}")
             for begin, end in _ranges(count, records_per_task)]
    return dask.dataframe.from_delayed(parts, meta=_records(full, 0, 0))


class _Tiles:
    """What dask.array.from_array needs: a shape, a type and slices; the file is opened where a slice is taken."""

    ndim = 2

    def __init__(self, path: str, shape: "Tuple[int, int]", dtype: Any) -> None:
        self.path, self.shape, self.dtype = path, shape, dtype

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        from .pycauset import Matrix

        with Matrix(self.path) as matrix:
            return np.array(matrix[key])


def from_pycauset(path: Path, *, chunks: Any = "auto") -> Any:
    """A dask.array of the values."""
    import dask.array

    from .pycauset import Matrix

    full = _full(path)
    with Matrix(full) as matrix:
        tiles = _Tiles(full, matrix.shape, matrix.dtype)
    return dask.array.from_array(tiles, chunks=chunks, name=f"pycauset-{_token(full, chunks)}", fancy=False)


def _events(path: str, begin: int, end: int) -> Any:
    import pandas

    from .mlyze import Trace

    with Trace(path) as trace:
        return pandas.DataFrame(trace.events(begin, end))


def from_mlyze(path: Path, *, events_per_task: int = 1 << 20) -> Any:
    """A dask.dataframe of the events."""
    import dask.dataframe
    from dask.delayed import delayed

    from .mlyze import Trace

    full = _full(path)
    with Trace(full) as trace:
        count = len(trace)
    read = delayed(_events, pure=True)
    token = _token(full)
    parts = [read(full, begin, end, dask_key_name=f"mlyze-{token}-{begin}")
             for begin, end in _ranges(count, events_per_task)]
    return dask.dataframe.from_delayed(parts, meta=_events(full, 0, 0))


# ---- Writing ----

def _write_part(samples: "Iterable[Mapping[str, Any]]", folder: str, schema: "List[Dict[str, Any]]",
                options: "Dict[str, Any]") -> "Tuple[str, int]":
    """One part under a name of its own: a task that runs twice writes two, and one of them is used."""
    path = os.path.join(folder, f"{uuid.uuid4().hex}.mldf")
    with _mldf.create(path, schema, **options) as writer:
        writer.extend(samples)
        count = len(writer)
    return path, count


def _discard(folder: str) -> None:
    """Removes the parts. Tasks may still be writing after another one failed: under another name, the folder is out of
    their reach."""
    gone = f"{folder}.gone"
    os.rename(folder, gone)
    for _ in range(_TRIES):
        shutil.rmtree(gone, ignore_errors=True)
        if not os.path.exists(gone):
            return
        time.sleep(_PAUSE)


def to_mldf(bag: Any, path: Path, schema: "Optional[Sequence[Mapping[str, Any]]]" = None, *, overwrite: bool = False,
            **options: Any) -> None:
    """Writes a dask.bag of dicts as one set, in the order of the bag. Each partition is written by a task; the file
    appears when all of them are complete. schema : inferred from the first sample."""
    import dask
    from dask.delayed import delayed

    full = _full(path)
    if os.path.exists(full) and not overwrite:
        raise FileExistsError(17, "the file exists; pass overwrite=True to replace it", full)
    fields = _mldf._full_schema(schema) if schema is not None else _mldf.infer_schema(bag.take(1, warn=False)[0])
    folder = f"{full}.parts-{uuid.uuid4().hex}"
    os.mkdir(folder)
    try:
        write = delayed(_write_part)
        parts = dask.compute(*[write(part, folder, fields, options) for part in bag.to_delayed()])
        _mldf.concat([name for name, _ in parts], full, overwrite=overwrite)
    finally:
        _discard(folder)


def to_pycauset(array: Any, path: Path, *, overwrite: bool = False, **options: Any) -> None:
    """Writes a two-dimensional dask.array as a matrix. Blocks of rows are computed one after the other."""
    import numpy as np

    from .pycauset import write

    write(path, np.asarray(array.compute()), overwrite=overwrite, **options)
