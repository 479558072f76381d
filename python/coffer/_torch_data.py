"""Data sets of PyTorch over mldf files, in an order that can be stopped and resumed."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from . import _core
from . import mldf as _mldf
from ._open import is_remote
from ._torch_memory import Batch, lend
from ._torch_samples import Samples
from ._torch_tensors import BY_NAME, from_numpy, memory

Path = Union[str, "os.PathLike[str]"]
Buffers = Dict[str, torch.Tensor]

_MOST_WORKERS = 1024
_ORDER = ("samples", "seed", "shuffle", "window_pages")


class Dataset(torch.utils.data.Dataset):
    """A map-style data set over an mldf file. The file is opened in each worker; batches are read in one call.

    transform : called with each sample, a dict.
    """

    def __init__(self, path: Path, *, fields: "Optional[Sequence[str]]" = None,
                 transform: "Optional[Callable[[Dict[str, Any]], Any]]" = None, **options: Any) -> None:
        self.path = os.fspath(path) if is_remote(path) else os.path.abspath(os.fspath(path))
        self.fields, self.transform, self._options = fields, transform, options
        self._open: "Optional[_mldf.Dataset]" = None
        self._pid = -1
        self._forms: "Optional[List[Tuple[str, str, torch.dtype, Tuple[int, ...]]]]" = None
        self._length = len(self.set)

    @property
    def set(self) -> "_mldf.Dataset":
        """The open set of this process."""
        if self._open is None or self._pid != os.getpid():
            self._open = _mldf.Dataset(_core.Source(self.path), **self._options)
            self._pid = os.getpid()
        return self._open

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        if self.fields is None:
            sample = self.set[index]
        else:
            sample = {name: self.set[index, name] for name in self.fields}
        return sample if self.transform is None else self.transform(sample)

    def __getitems__(self, indices: "Sequence[int]") -> "List[Any]":
        names = self.fields or self.set.fields
        if self.transform is not None:
            columns = self.set.batch(list(indices), names)
            return [self.transform({name: columns[name][i] for name in names}) for i in range(len(indices))]
        lent = None if torch.utils.data.get_worker_info() is None else self._lend(len(indices))
        columns = self.set.batch(list(indices), names, out=lent and {name: memory(lent[name]) for name in lent})
        return Samples(columns, {name: kind for name, kind, _, _ in self._tensors()}, lent)

    def _tensors(self) -> "List[Tuple[str, str, torch.dtype, Tuple[int, ...]]]":
        """The fields whose values a tensor can hold, with their stored type, and type and shape in torch."""
        if self._forms is None:
            source = self.set
            found = [(name, _form(source, name)) for name in self.fields or source.fields]
            self._forms = [(name, source._element_type(name) or "", *form) for name, form in found if form is not None]
        return self._forms

    def _lend(self, count: int) -> "Optional[Buffers]":
        """Tensors in memory that the training process sees, too, for a batch of this worker."""
        forms = [(name, dtype, shape) for name, _, dtype, shape in self._tensors()]
        return lend(forms, count) if forms else None

    def batch(self, indices: "Sequence[int]", out: "Optional[Buffers]" = None) -> "Dict[str, Any]":
        """Samples as tensors, without a dict for each sample; values that are not numbers are lists. out : tensors of
        allocate(), which are filled from the file without another copy. The transform is not called."""
        names = self.fields or self.set.fields
        arrays = None if out is None else {name: memory(tensor) for name, tensor in out.items()}
        columns = self.set.batch(list(indices), names, out=arrays)
        result: "Dict[str, Any]" = {}
        for name in names:
            if out is not None and name in out:
                result[name] = out[name][:len(indices)]
            elif isinstance(columns[name], list):
                result[name] = columns[name]
            else:
                result[name] = from_numpy(columns[name], self.set._element_type(name))
        return result

    def __getstate__(self) -> "Dict[str, Any]":
        state = dict(self.__dict__)
        state["_open"], state["_pid"] = None, -1
        return state


# ---- Memory for batches ----

def allocate(dataset: "Union[Dataset, _mldf.Dataset]", batch_size: int, *, pin_memory: bool = False) -> Buffers:
    """Tensors for batches of up to batch_size samples: one for each field of numbers, and of arrays with a fixed shape.

    pin_memory : in memory that a GPU copies from without waiting. Without a GPU the memory is ordinary, with a warning,
    as DataLoader does it.
    """
    if pin_memory and not torch.cuda.is_available():
        warnings.warn("pin_memory=True without a GPU: the memory is not pinned", stacklevel=2)
        pin_memory = False
    source = dataset.set if isinstance(dataset, Dataset) else dataset
    chosen = dataset.fields if isinstance(dataset, Dataset) else None
    names = tuple(chosen or source._names)
    buffers = {}
    for name in names:
        form = _form(source, name)
        if form is not None:
            buffers[name] = torch.empty((batch_size, *form[1]), dtype=form[0], pin_memory=pin_memory)
    if not buffers:
        raise ValueError(f"no field of {', '.join(names)} has numbers or arrays of a fixed shape")
    return buffers


def _form(source: "_mldf.Dataset", name: str) -> "Optional[Tuple[torch.dtype, Tuple[int, ...]]]":
    """Type and shape of a field whose values a tensor can hold; None for others."""
    shape = source._fixed_shape(name)
    dtype = BY_NAME.get(source._element_type(name) or "")
    return None if shape is None or dtype is None else (dtype, shape)


def collate(samples: "Sequence[Mapping[str, Any]]", out: "Optional[Buffers]" = None) -> "Dict[str, Any]":
    """Joins samples to a batch: tensors of numbers and of arrays with the same shape, lists of everything else.

    out : tensors of allocate(), or others whose first dimension is at least the number of samples. They are filled
    instead of new ones; the batch has views of them, which the next batch overwrites.
    """
    if not samples:
        raise ValueError("a batch has at least one sample")
    result: "Dict[str, Any]" = {}
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        target = None if out is None else out.get(name)
        if target is not None:
            result[name] = _filled(target, values, name)
        else:
            result[name] = _joined(values)
    return result


def _filled(target: torch.Tensor, values: "List[Any]", name: str) -> torch.Tensor:
    if len(values) > target.shape[0]:
        raise ValueError(f"{name}: {len(values)} samples do not fit into a tensor for {target.shape[0]}")
    part = target[:len(values)]
    for i, value in enumerate(values):
        tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        if tensor.shape != part.shape[1:]:
            raise ValueError(f"{name}: a value of {list(tensor.shape)} does not fit into {list(part.shape[1:])}")
        part[i] = tensor
    return part


def _joined(values: "List[Any]") -> Any:
    first = values[0]
    if isinstance(first, (bool, int, float)) or hasattr(first, "dtype") and getattr(first, "ndim", None) == 0:
        return torch.as_tensor(values)
    if hasattr(first, "dtype") and all(getattr(value, "shape", None) == first.shape for value in values):
        tensors = [value if isinstance(value, torch.Tensor) else from_numpy(value) for value in values]
        return torch.stack(tensors) if all(tensor.dtype == tensors[0].dtype for tensor in tensors) else values
    return values


# ---- Order ----

class BatchSampler(torch.utils.data.Sampler):
    """Batches of sample numbers in a shuffled order that can be stopped and resumed, also with another number of ranks.

    Order is a function of seed, epoch and position; workers and prefetching do not change it. state_dict() counts the
    samples of the epoch that all ranks have drawn: give it to load_state_dict() of a new sampler. tail : "uneven" (every
    sample exactly once; ranks may differ by one), "drop" or "pad" (the same number for all ranks).
    """

    def __init__(self, dataset: "Union[Dataset, _mldf.Dataset]", batch_size: int, *, shuffle: bool = True, seed: int = 0,
                 window_pages: int = 0, rank: Optional[int] = None, world: Optional[int] = None,
                 drop_last: bool = False, tail: str = "uneven") -> None:
        self._set = dataset.set if isinstance(dataset, Dataset) else dataset
        if batch_size < 1:
            raise ValueError("batch_size is at least 1")
        if tail not in ("uneven", "drop", "pad"):
            raise ValueError(f"tail is {tail!r}; it can be uneven, drop or pad")
        self.batch_size, self.drop_last, self.tail = batch_size, drop_last, tail
        self.rank, self.world = _rank_and_world(rank, world)
        self.epoch = 0
        self._start = 0  # samples of this epoch that all ranks had drawn before the first batch
        self._drawn = 0  # batches of this rank since then
        self._facts = {"samples": len(self._set), "seed": seed, "shuffle": shuffle, "window_pages": window_pages}

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch. It begins with its first sample, unless a state of the same epoch was loaded."""
        if epoch != self.epoch:
            self.epoch, self._start, self._drawn = epoch, 0, 0

    def _left(self) -> int:
        """Samples of this rank in the rest of the epoch."""
        rest = max(self._facts["samples"] - self._start, 0)
        if self.tail == "drop":
            rest -= rest % self.world
        elif self.tail == "pad":
            rest += -rest % self.world
        return (rest - self.rank + self.world - 1) // self.world if rest > self.rank else 0

    def __len__(self) -> int:
        left = self._left()
        return left // self.batch_size if self.drop_last else -(-left // self.batch_size)

    def _order(self, first: int, count: int) -> "List[int]":
        facts = self._facts
        return self._set.order(epoch=self.epoch, seed=facts["seed"], shuffle=bool(facts["shuffle"]),
                               window_pages=facts["window_pages"], first=first, count=count).tolist()

    def _at(self, index: int) -> "List[int]":
        """Batch number `index` of this rank, counted from the start."""
        begin = index * self.batch_size
        count = min(self.batch_size, self._left() - begin)
        first = self._start + begin * self.world
        end = first + count * self.world
        whole = self._order(first, end - first)
        while self.tail == "pad" and len(whole) < end - first:
            whole += self._order(0, end - first - len(whole))
        return whole[self.rank::self.world][:count]

    def __iter__(self) -> "Iterator[List[int]]":
        epoch, self._drawn = self.epoch, 0
        for index in range(len(self)):
            batch = self._at(index)
            self._drawn = index + 1
            yield batch
        if self.epoch == epoch:
            self.epoch, self._start, self._drawn = epoch + 1, 0, 0

    def state_dict(self, batches: Optional[int] = None) -> "Dict[str, Any]":
        """The state for a checkpoint. batches : how many batches the training loop has finished in this iteration; needed
        with a plain DataLoader with workers, which draws batches ahead. StatefulDataLoader does not need it."""
        drawn = self._drawn if batches is None else batches
        consumed = min(self._start + drawn * self.batch_size * self.world, self._facts["samples"])
        return {"version": 1, "epoch": self.epoch, "consumed": consumed, **self._facts}

    def load_state_dict(self, state: "Mapping[str, Any]") -> None:
        """Continues where another sampler stopped. Raises ValueError when the set or the order differ."""
        _expect_order(self._facts, state)
        self.epoch, self._start, self._drawn = state["epoch"], state["consumed"], 0


def _expect_order(facts: "Mapping[str, Any]", state: "Mapping[str, Any]") -> None:
    for key in _ORDER:
        if state[key] != facts[key]:
            raise ValueError(f"{key} is {facts[key]!r}, but {state[key]!r} in the saved state")


class IterableDataset(torch.utils.data.IterableDataset):
    """Batches of an mldf file in a shuffled order, for DataLoader(dataset, batch_size=None): the same sequence for any
    number of workers, because worker w of W yields the batches w, w + W, w + 2W …

    Each complete iteration is an epoch, in persistent and in new workers. state_dict() and load_state_dict() continue
    within one; torchdata's StatefulDataLoader calls them in its workers. To resume with another number of ranks or
    workers, or with another batch size, give the state to load_state_dict() before a loader is made: it takes the state
    of a data set or of a StatefulDataLoader.

    collate : a function of a list of samples; by default numbers and arrays of one shape become tensors. out : tensors
    of allocate() that every batch overwrites, for a loader without workers.
    """

    def __init__(self, path: Path, batch_size: int, *, fields: "Optional[Sequence[str]]" = None,
                 transform: "Optional[Callable[[Dict[str, Any]], Any]]" = None,
                 collate: "Optional[Callable[[List[Any]], Any]]" = None, out: "Optional[Buffers]" = None,
                 shuffle: bool = True, seed: int = 0, window_pages: int = 0, rank: Optional[int] = None,
                 world: Optional[int] = None, drop_last: bool = False, tail: str = "uneven", **options: Any) -> None:
        if out is not None and (collate is not None or transform is not None):
            raise ValueError("out is filled from the file; it cannot be combined with transform or collate")
        self.data = Dataset(path, fields=fields, transform=transform, **options)
        self._collate, self._out = collate, out
        self._rank, self._world = _rank_and_world(rank, world)
        self._sampler: "Dict[str, Any]" = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed, "tail": tail,
                                           "window_pages": window_pages, "drop_last": drop_last}
        # The epoch that each worker is in. The memory is shared: set_epoch() reaches persistent workers, and workers
        # that are started for a later epoch see what earlier ones finished.
        self._epochs = torch.zeros(_MOST_WORKERS, dtype=torch.int64).share_memory_()
        self._resume: "Optional[Dict[str, Any]]" = None  # the state that was loaded
        self._state = {"epoch": 0, "start": 0, "next": 0, "ended": False}

    # ---- Epochs ----

    @property
    def epoch(self) -> int:
        """The epoch of the next iteration."""
        return self._epoch(_worker()[1])

    def _epoch(self, workers: int) -> int:
        return int(self._epochs[:workers].min())

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch. It begins with its first sample, unless a state of the same epoch was loaded."""
        self._epochs.fill_(epoch)
        if self._resume is None or self._resume["epoch"] != epoch:
            self._state = {"epoch": epoch, "start": 0, "next": 0, "ended": False}

    def _finish(self, number: int, count: int, epoch: int) -> None:
        self._epochs[number] = epoch + 1
        if bool((self._epochs[:count] == epoch + 1).all()):
            self._epochs.fill_(epoch + 1)

    # ---- Batches ----

    def _batches(self, epoch: int, start: int) -> BatchSampler:
        sampler = BatchSampler(self.data, rank=self._rank, world=self._world, **self._sampler)
        sampler.epoch, sampler._start = epoch, start
        return sampler

    def __len__(self) -> int:
        epoch = self.epoch
        resumed = self._resume is not None and self._resume["epoch"] == epoch
        return len(self._batches(epoch, self._resume["start"] if resumed and self._resume else 0))

    def _read(self, samples: "List[int]") -> Any:
        if self._collate is not None:
            return self._collate(self.data.__getitems__(samples))
        if self.data.transform is not None:
            found = self.data.__getitems__(samples)
            return collate(found) if isinstance(found[0], Mapping) else torch.utils.data.default_collate(found)
        if torch.utils.data.get_worker_info() is None:
            return self.data.batch(samples, self._out)
        return Batch(self.data.batch(samples, self.data._lend(len(samples))))

    def __iter__(self) -> "Iterator[Any]":
        number, count = _worker()
        if self._out is not None and torch.utils.data.get_worker_info() is not None:
            raise ValueError("out is memory of one process: use it without workers")
        state = self._begin(count)
        self._state = state
        return self._iterate(state, number, count)

    def _begin(self, workers: int) -> "Dict[str, Any]":
        epoch = self._epoch(workers)
        loaded = self._resume
        if loaded is not None and (loaded["epoch"] == epoch or loaded["ended"]):
            if loaded["ended"]:
                self._resume = None
            return dict(loaded)
        return {"epoch": epoch, "start": 0, "next": 0, "ended": False}

    def _iterate(self, state: "Dict[str, Any]", number: int, count: int) -> "Iterator[Any]":
        batches = self._batches(state["epoch"], state["start"])
        first = state["next"] + (number - state["next"]) % count
        for index in range(len(batches) if state["ended"] else first, len(batches), count):
            samples = batches._at(index)
            state["next"] = index + 1
            yield self._read(samples)
        if torch.utils.data.get_worker_info() is None:
            self._resume = None
            self.set_epoch(state["epoch"] + 1)
        else:
            state["ended"] = True
            self._finish(number, count, state["epoch"])

    # ---- State ----

    def state_dict(self) -> "Dict[str, Any]":
        return {"version": 1, "samples": len(self.data), "world": self._world, **self._state, **self._sampler}

    def load_state_dict(self, state: "Mapping[str, Any]") -> None:
        """Continues where another one stopped. Raises ValueError when the set or the order differ."""
        states, steps = _states(state)
        if not states:
            raise ValueError("this is not the state of an IterableDataset or of a StatefulDataLoader over one")
        facts = {**self._sampler, "samples": len(self.data)}
        for found in states:
            _expect_order(facts, found)
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            loaded = _merged(states, steps)
            self._epochs.fill_(loaded["epoch"])
        else:
            loaded = dict(states[0])
            if loaded["world"] != self._world or loaded["batch_size"] != self._sampler["batch_size"]:
                raise ValueError(f"the state is of {loaded['world']} ranks with batches of {loaded['batch_size']}: load it "
                                 "with load_state_dict() of the data set before the loader is made")
            self._epochs[worker.id] = loaded["epoch"] + loaded["ended"]
        self._resume = {key: loaded[key] for key in ("epoch", "start", "next", "ended")}
        self._state = dict(self._resume)


def _states(state: Any) -> "Tuple[List[Dict[str, Any]], int]":
    """The states of data sets inside the state of a loader, and the batches that it delivered after they were taken."""
    if not isinstance(state, Mapping):
        return [], 0
    if "version" in state and "next" in state:
        return [dict(state)], 0
    found, steps = [], int(state.get("_steps_since_snapshot") or 0)
    for part in state.values():
        more, later = _states(part)
        found += more
        steps += later
    return found, steps


def _merged(states: "List[Dict[str, Any]]", steps: int) -> "Dict[str, Any]":
    """Where all ranks and workers stand: batches are delivered in order, so the worker that is ahead says how many."""
    last = max(states, key=lambda state: (state["epoch"], state["next"]))
    if all(state["ended"] for state in states):
        return {"epoch": last["epoch"] + 1, "start": 0, "next": 0, "ended": False}
    batches = last["next"] + steps
    consumed = min(last["start"] + batches * last["batch_size"] * last["world"], last["samples"])
    return {"epoch": last["epoch"], "start": consumed, "next": 0, "ended": False}


def _worker() -> "Tuple[int, int]":
    """Number and count of workers; this process is the only one without workers."""
    worker = torch.utils.data.get_worker_info()
    return (0, 1) if worker is None else (worker.id, worker.num_workers)


def _rank_and_world(rank: Optional[int], world: Optional[int]) -> "Tuple[int, int]":
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    if world is None:
        world = torch.distributed.get_world_size() if distributed else 1
    if rank is None:
        rank = torch.distributed.get_rank() if distributed else 0
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world}")
    return rank, world
