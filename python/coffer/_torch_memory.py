"""Memory that the workers of a DataLoader share with the training process, and use again.

torch makes new shared memory for every tensor of every batch: the kernel clears its pages, both processes fault them in,
and all of it is thrown away after one step. Here a worker fills a buffer, the training process gets tensors over the same
buffer, and when the last of them is gone the worker fills it again. A buffer has no name in any file system: it disappears
with the processes that use it, however they end.

The first bytes of a buffer say who has it: FREE, FILLED (the worker), SENT (the training process). Either process gives it
back when its last array over it is gone.
"""

from __future__ import annotations

import mmap
import os
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch

from . import _arrays
from ._torch_tensors import STORED, from_numpy

_HEAD = 64  # bytes before the tensors, which begin at a cache line
_FREE, _FILLED, _SENT = 0, 1, 2
_MOST_BUFFERS = 256  # of a worker: beyond it, batches go the way of torch

Layout = Tuple[Tuple[str, str, Tuple[int, ...], int], ...]  # name, element type, shape and offset of each tensor


class _Buffer:
    """Shared memory of this worker."""

    def __init__(self, size: int) -> None:
        self.size, self.generation = size, 0
        self.layout: "Layout" = ()
        self.file = os.memfd_create("coffer-batch", os.MFD_CLOEXEC)
        os.ftruncate(self.file, size)
        self.map = mmap.mmap(self.file, size)

    def give_back(self, generation: int) -> None:
        """The worker's own arrays are gone: unless the batch was sent, the buffer is free."""
        if generation == self.generation and self.map[0] == _FILLED:
            self.map[0] = _FREE


_buffers: "List[_Buffer]" = []  # of this process, in the order they are tried
_owner = -1  # the process that made them


def _free_buffer(size: int) -> "Optional[_Buffer]":
    global _owner
    if _owner != os.getpid():  # a fork inherited those of another process
        _buffers.clear()
        _lent.clear()
        _owner = os.getpid()
    for buffer in _buffers:
        if buffer.size >= size and buffer.map[0] == _FREE:
            return buffer
    if len(_buffers) >= _MOST_BUFFERS or not _can_share():
        return None
    _buffers.append(_Buffer(size))
    return _buffers[-1]


def _can_share() -> bool:
    """Whether the training process can open what this one has open. If this process can see its files, so can it."""
    try:
        return bool(os.listdir(f"/proc/{os.getppid()}/fd")) and hasattr(os, "memfd_create")
    except OSError:
        return False


def _layout(forms: "Sequence[Tuple[str, torch.dtype, Tuple[int, ...]]]", count: int) -> "Tuple[Layout, int]":
    """Where the tensors of a batch are, and the size of all."""
    found, end = [], _HEAD
    for name, dtype, shape in forms:
        kind = STORED[dtype]
        size = torch.empty((), dtype=dtype).element_size() * count
        for dim in shape:
            size *= dim
        found.append((name, kind, (count, *shape), end))
        end += -(-size // _HEAD) * _HEAD
    return tuple(found), end


def _tensors(base: "np.ndarray[Any, Any]", layout: Layout) -> "Dict[str, torch.Tensor]":
    result = {}
    for name, kind, shape, offset in layout:
        dtype = _arrays.dtype_of(kind)
        assert dtype is not None
        count = 1
        for dim in shape:
            count *= dim
        part = base[offset:offset + count * dtype.itemsize]
        result[name] = from_numpy(part.view(dtype).reshape(shape), kind)
    return result


class Batch(Dict[str, Any]):
    """A batch in a worker, which sends its tensors in shared memory as a reference. What a function of the caller puts in
    their place is sent as torch sends it. Other picklers see a dict."""


def _send(batch: Batch) -> Any:
    """How multiprocessing pickles a batch."""
    shared = {name: _lent[value.data_ptr()][0] for name, value in batch.items() if _is_lent(value)}
    if len(set(map(id, shared.values()))) != 1:
        return dict, (dict(batch),)
    buffer = next(iter(shared.values()))
    layout = tuple(row for row in buffer.layout if row[0] in shared)
    rest = {name: value for name, value in batch.items() if name not in shared}
    buffer.map[0] = _SENT
    return _receive, (os.getpid(), buffer.file, buffer.size, layout, tuple(batch), rest)


def _is_lent(value: Any) -> bool:
    """Whether a value is a tensor that lend() gave, unchanged in place, shape and type."""
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu" or not value.is_contiguous():
        return False
    buffer, generation, form = _lent.get(value.data_ptr(), (None, 0, None))
    return buffer is not None and generation == buffer.generation and form == (tuple(value.shape), value.dtype)


ForkingPickler.register(Batch, _send)

# By the address of a tensor: its buffer, the buffer's generation, and shape and type.
_lent: "Dict[int, Tuple[_Buffer, int, Tuple[Tuple[int, ...], torch.dtype]]]" = {}


def lend(forms: "Sequence[Tuple[str, torch.dtype, Tuple[int, ...]]]", count: int) -> "Optional[Dict[str, torch.Tensor]]":
    """Tensors for a batch in shared memory; None where processes cannot share it."""
    layout, size = _layout(forms, count)
    buffer = _free_buffer(size)
    if buffer is None:
        return None
    buffer.generation += 1
    buffer.map[0] = _FILLED
    base = np.frombuffer(buffer.map, np.uint8)
    weakref.finalize(base, buffer.give_back, buffer.generation).atexit = False
    tensors = _tensors(base, layout)
    buffer.layout = layout
    for tensor in tensors.values():
        _lent[tensor.data_ptr()] = (buffer, buffer.generation, (tuple(tensor.shape), tensor.dtype))
    return tensors


# ---- In the training process ----

_received: "Dict[Tuple[int, int, int], mmap.mmap]" = {}  # by process, descriptor and size


def _release(map: mmap.mmap, process: int) -> None:
    if os.getpid() == process:  # not in a child that inherited the tensors by a fork
        map[0] = _FREE


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _mapped(process: int, file: int, size: int) -> mmap.mmap:
    key = (process, file, size)
    if key not in _received:
        for other in [other for other in _received if not _is_alive(other[0])]:
            del _received[other]
        opened = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
        try:
            _received[key] = mmap.mmap(opened, size)
        finally:
            os.close(opened)
    return _received[key]


def _receive(process: int, file: int, size: int, layout: Layout, names: "Tuple[str, ...]",
             rest: "Dict[str, Any]") -> "Dict[str, Any]":
    """Unpickles a batch: tensors over the worker's buffer, which is given back when the last one is gone."""
    map = _mapped(process, file, size)
    base = np.frombuffer(map, np.uint8)
    weakref.finalize(base, _release, map, os.getpid()).atexit = False
    tensors = _tensors(base, layout)
    return {name: tensors[name] if name in tensors else rest[name] for name in names}
