"""Samples of a map-style data set that were read in one call: torch's default_collate joins them without a copy.

DataLoader asks a data set for the samples of a batch (`__getitems__`) and joins them afterwards. The columns of the batch are
at hand already, in a worker even in memory that the training process sees; the joined batch is made of those.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import torch
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from ._torch_memory import Batch
from ._torch_tensors import from_numpy


class Sample(Dict[str, Any]):
    """A dict, which default_collate recognizes."""


class Samples(List[Sample]):
    """The samples of a batch, and the batch.

    columns : an array or a list for each field. kinds : element types of those that tensors can hold. lent : tensors over
    shared memory that have these columns.
    """

    def __init__(self, columns: "Dict[str, Any]", kinds: "Dict[str, str]", lent: "Optional[Dict[str, torch.Tensor]]") -> None:
        names = list(columns)
        super().__init__(Sample(zip(names, values)) for values in zip(*columns.values()))
        self._made = [list(sample.values()) for sample in self]
        self._columns, self._kinds, self._lent = columns, kinds, lent

    def is_unchanged(self) -> bool:
        """Whether the samples have the values that they were made with: a function of the caller may have changed them."""
        return len(self) == len(self._made) and all(
            len(sample) == len(made) and all(value is old for value, old in zip(sample.values(), made))
            for sample, made in zip(self, self._made))

    def joined(self, functions: Any) -> "Dict[str, Any]":
        result: "Dict[str, Any]" = {}
        for name, column in self._columns.items():
            if self._lent is not None and name in self._lent:
                result[name] = self._lent[name]
            elif name in self._kinds:
                result[name] = from_numpy(column, self._kinds[name])
            else:
                result[name] = collate([sample[name] for sample in self], collate_fn_map=functions)
        return result if self._lent is None else Batch(result)


def _join(samples: "Sequence[Sample]", *, collate_fn_map: Any = None) -> Any:
    if isinstance(samples, Samples) and samples.is_unchanged():
        return samples.joined(collate_fn_map)
    return collate([dict(sample) for sample in samples], collate_fn_map=collate_fn_map)


default_collate_fn_map[Sample] = _join
