"""Ray Data: training sets as datasets of a Ray cluster.

Tasks open the file by path, so every machine must see it. A file that changes while it is read is an error.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .dask._parts import Path, Stamp, expect, located, ranges, set_facts

__all__ = ["read_mldf"]

Range = Tuple[int, int]


def _as_array(column: Any) -> Any:
    """Ray takes columns as arrays; values of different shapes or types as an array of objects."""
    import numpy as np

    if isinstance(column, np.ndarray):
        return column
    out = np.empty(len(column), object)
    for i, value in enumerate(column):
        out[i] = value
    return out


class _ReadRange:
    """A task: the path, the state that the file had, a range, and options."""

    def __init__(self, path: str, before: Stamp, span: Range, fields: "Optional[List[str]]",
                 options: "Dict[str, Any]") -> None:
        self.path, self.before, self.span, self.fields, self.options = path, before, span, fields, options

    def __call__(self) -> "List[Any]":
        from ray.data.block import BlockAccessor

        from .mldf import Dataset

        expect({self.path: self.before})
        with Dataset(self.path, **self.options) as dataset:
            columns = dataset.batch(range(*self.span), self.fields or dataset.fields)
            batch = {name: _as_array(column) for name, column in columns.items()}
            block = BlockAccessor.batch_to_block(batch)
        expect({self.path: self.before})
        return [block]


def _metadata(count: int, size: int, path: str) -> Any:
    """The members of BlockMetadata differ between versions of Ray."""
    from ray.data.block import BlockMetadata

    known = {"num_rows": count, "size_bytes": size, "input_files": (path,)}
    names = list(inspect.signature(BlockMetadata).parameters)
    return BlockMetadata(**{name: known.get(name) for name in names})


def _source(path: str, fields: "Optional[List[str]]", samples_per_task: Optional[int],
            options: "Dict[str, Any]") -> Any:
    from ray.data import Datasource, ReadTask

    before, count, _ = set_facts(path, fields, options)

    class MldfDatasource(Datasource):
        def estimate_inmemory_data_size(self) -> int:
            return before[0]

        def get_read_tasks(self, parallelism: int, *args: Any, **kwargs: Any) -> "List[Any]":
            size = samples_per_task or max(1, -(-count // max(parallelism, 1)))
            tasks = []
            for span in ranges(count, size):
                share = before[0] * (span[1] - span[0]) // max(count, 1)
                tasks.append(ReadTask(_ReadRange(path, before, span, fields, options),
                                      _metadata(span[1] - span[0], share, path)))
            return tasks

    return MldfDatasource()


def read_mldf(path: Path, *, fields: "Optional[Sequence[str]]" = None, samples_per_task: Optional[int] = None,
              ray_remote_args: "Optional[Dict[str, Any]]" = None, concurrency: Optional[int] = None,
              override_num_blocks: Optional[int] = None, **options: Any) -> Any:
    """The samples of a set as a ray.data.Dataset, one row for each.

    samples_per_task : by default as Ray divides the work. fields : some of them; the others are not read. options :
    those of coffer.mldf.Dataset (key, verify, decode). The other arguments are those of ray.data.read_datasource.
    """
    import ray.data

    if samples_per_task is not None and samples_per_task < 1:
        raise ValueError(f"{samples_per_task} samples per task; at least 1 is needed")
    source = _source(located(path), None if fields is None else list(fields), samples_per_task, options)
    given: "Dict[str, Union[Dict[str, Any], int, None]]" = {
        "ray_remote_args": ray_remote_args, "concurrency": concurrency, "override_num_blocks": override_num_blocks}
    return ray.data.read_datasource(source, **{name: value for name, value in given.items() if value is not None})
