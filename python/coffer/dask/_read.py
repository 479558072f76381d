"""Collections over files: one task per chunk, which opens the file by path."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._parts import Path, Stamp, expect, located, ranges, set_facts, stamp, stamps

_TASK_BYTES = 64 << 20
Range = Tuple[int, int]


class _Reader:
    """A task without its range: the path, the state that the file had, and options. A file that was changed since is an
    error, so that a result is never made of two versions."""

    def __init__(self, path: str, before: Stamp, **options: Any) -> None:
        self.path, self.before, self.options = path, before, options

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.path, self.before, sorted(self.options.items(), key=lambda item: item[0])

    def __call__(self, span: Range) -> Any:
        expect({self.path: self.before})
        found = self.read(span[0], span[1], **self.options)
        expect({self.path: self.before})
        return found

    def read(self, begin: int, end: int, **options: Any) -> Any:
        raise NotImplementedError


def _name(kind: str, reader: _Reader, *more: Any) -> str:
    """Names a collection by what identifies its data: a file that was rewritten gives another name."""
    from dask.base import tokenize

    return f"{kind}-{tokenize(reader, *more)}"


def _per_task(given: Optional[int], count: int, size: int) -> int:
    if given is not None and given < 1:
        raise ValueError(f"{given} per task; at least 1 is needed")
    return given or max(1, count * _TASK_BYTES // max(size, 1))


# ---- Training sets ----

def _owned(value: Any) -> Any:
    """Arrays over the mapped file would change with it."""
    return value.copy() if hasattr(value, "flags") and not value.flags.owndata else value


class _Samples(_Reader):
    def read(self, begin: int, end: int, fields: "Optional[Sequence[str]]" = None, **options: Any) -> "List[Any]":
        columns = _columns(self.path, begin, end, fields, options)
        return [{name: column[i] for name, column in columns.items()} for i in range(end - begin)]


class _SampleTable(_Reader):
    """Dask asks for the columns that a computation needs: by `project_columns`, new versions by the argument."""

    @property
    def columns(self) -> "List[str]":
        return self.options["fields"]

    def project_columns(self, columns: "Sequence[str]") -> "_SampleTable":
        return _SampleTable(self.path, self.before, **{**self.options, "fields": list(columns)})

    def __call__(self, span: Range, columns: "Optional[Sequence[str]]" = None) -> Any:
        if columns is not None and list(columns) != self.columns:
            return self.project_columns(columns)(span)
        return super().__call__(span)

    def read(self, begin: int, end: int, fields: "Optional[Sequence[str]]" = None, **options: Any) -> Any:
        import pandas

        columns = _columns(self.path, begin, end, fields, options)
        table = {name: column if getattr(column, "ndim", 0) == 1 else pandas.Series(list(column), dtype=object)
                 for name, column in columns.items()}
        return pandas.DataFrame(table)


def _columns(path: str, begin: int, end: int, fields: "Optional[Sequence[str]]",
             options: "Dict[str, Any]") -> "Dict[str, Any]":
    from ..mldf import Dataset

    with Dataset(path, **options) as dataset:
        columns = dataset.batch(range(begin, end), fields or dataset.fields)
    return {name: [_owned(value) for value in column] if isinstance(column, list) else column
            for name, column in columns.items()}


def from_mldf(path: Path, *, samples_per_task: Optional[int] = None, fields: "Optional[Sequence[str]]" = None,
              collection: str = "bag", **options: Any) -> Any:
    """The samples of a set as a dask.bag of dicts, or with collection="dataframe" as a dask.dataframe.

    samples_per_task : by default as many as have 64 MiB. fields : some of them; the others are not read, and neither
    are columns of a data frame that a computation does not need. options : those of coffer.mldf.Dataset.
    """
    if collection not in ("bag", "dataframe"):
        raise ValueError(f"collection is {collection!r}; it can be bag or dataframe")
    full = located(path)
    before, count, chosen = set_facts(full, fields, options)
    spans = ranges(count, _per_task(samples_per_task, count, before[0]))
    kind = _SampleTable if collection == "dataframe" else _Samples
    reader = kind(full, before, fields=chosen, **options)
    if collection == "dataframe":
        return _dataframe(reader, spans, "mldf")
    from dask.bag import Bag

    name = _name("mldf", reader, spans)
    return Bag({(name, i): (reader, span) for i, span in enumerate(spans)}, name, len(spans))


def _dataframe(reader: _Reader, spans: "List[Range]", label: str) -> Any:
    import dask.dataframe

    return dask.dataframe.from_map(reader, spans, meta=reader((0, 0)), label=f"from-{label}", enforce_metadata=False)


# ---- Scans and traces ----

class _Records(_Reader):
    def read(self, begin: int, end: int, **options: Any) -> Any:
        import pandas

        from ..mscan import Scan

        with Scan(self.path) as scan:
            return pandas.DataFrame.from_records(scan[begin:end].copy())


def from_mscan(path: Path, *, records_per_task: int = 1 << 20) -> Any:
    """The records of a scan as a dask.dataframe, with the stored integers."""
    from ..mscan import Scan

    full = located(path)
    before = stamp(full)
    with Scan(full) as scan:
        count = len(scan)
    return _dataframe(_Records(full, before), ranges(count, _per_task(records_per_task, count, 0)), "mscan")


class _Events(_Reader):
    """Spans are blocks of the trace: each is decoded by one task."""

    def read(self, begin: int, end: int, **options: Any) -> Any:
        import numpy as np
        import pandas

        from ..mlyze import Trace

        kinds = {"time": "<u8", "address": "<u8", "size": "<u8", "id": "<u8", "thread": "<u2", "type": "u1"}
        with Trace(self.path) as trace:
            blocks = [trace._trace.block(index)[2:] for index in range(begin, min(end, trace._trace.block_count()))]
        columns = {name: [np.frombuffer(block[i], kind) for block in blocks]
                   for i, (name, kind) in enumerate(kinds.items())}
        return pandas.DataFrame({name: np.concatenate(parts) if parts else np.empty(0, kinds[name])
                                 for name, parts in columns.items()})


def from_mlyze(path: Path, *, events_per_task: int = 1 << 20) -> Any:
    """The events of a trace as a dask.dataframe: time (us), address, size, id, thread, type. Tasks read whole blocks of
    the file, about events_per_task events each. A file of another profiler is read by one task."""
    from .. import _core
    from ..mlyze import Trace

    full = located(path)
    before = stamp(full)
    native = _core.Source(full).identify() == "mlyze"
    with Trace(full) as trace:
        blocks, events = trace._trace.block_count(), len(trace)
    together = _per_task(events_per_task, events, 0) * blocks // max(events, 1) if native else blocks
    return _dataframe(_Events(full, before), ranges(blocks, max(together, 1)), "mlyze")


# ---- Matrices ----

class _Tiles:
    """What dask.array.from_array needs: a shape, a type and slices; the file is opened where a slice is taken."""

    ndim = 2

    def __init__(self, path: str, before: "Dict[str, Stamp]", shape: "Tuple[int, int]", dtype: Any) -> None:
        self.path, self.before, self.shape, self.dtype = path, before, shape, dtype

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        from ..pycauset import Matrix

        expect(self.before)
        with Matrix(self.path) as matrix:
            tile = np.array(matrix[key])
        expect(self.before)
        return tile


def from_pycauset(path: Path, *, chunks: "Union[str, int, Tuple[Any, ...]]" = "auto") -> Any:
    """The values of a matrix as a dask.array. chunks : as in dask.array.from_array."""
    import dask.array
    from dask.base import tokenize

    from ..pycauset import Matrix

    full = located(path)
    before = stamps([full, *([f"{full}.blocks"] if os.path.isdir(f"{full}.blocks") else [])])
    with Matrix(full) as matrix:
        tiles = _Tiles(full, before, matrix.shape, matrix.dtype)
    name = f"pycauset-{tokenize(full, sorted(before.items()), chunks)}"
    return dask.array.from_array(tiles, chunks=chunks, name=name, fancy=False, inline_array=True)


__all__ = ["from_mldf", "from_mscan", "from_mlyze", "from_pycauset"]
