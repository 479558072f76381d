"""PyTorch: weights, data sets with a resumable order, and scans of a model.

>>> loader = torch.utils.data.DataLoader(dataset, batch_sampler=coffer.torch.BatchSampler(dataset, 32))
"""

from __future__ import annotations

import fnmatch
import math
import os
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from . import _arrays, _core
from . import mcf as _mcf
from . import mldf as _mldf
from . import mscan as _mscan

Path = Union[str, "os.PathLike[str]"]

__all__ = ["from_numpy", "to_stored", "load_file", "save_file", "load_state_dict", "QuantLinear", "quantize", "Dataset",
           "BatchSampler", "IterableDataset", "scan"]

# ---- Tensors ----

_STORED = {
    torch.bool: "bool", torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.complex64: "c64", torch.complex128: "c128",
}
for _name, _code in (("float8_e4m3fn", "f8_e4m3"), ("float8_e5m2", "f8_e5m2"), ("uint16", "u16"), ("uint32", "u32"),
                     ("uint64", "u64")):
    if hasattr(torch, _name):
        _STORED[getattr(torch, _name)] = _code
_BY_NAME = {name: dtype for dtype, name in _STORED.items()}
_SIZES = {"bf16": torch.int16, "f8_e4m3": torch.uint8, "f8_e5m2": torch.uint8}


def from_numpy(array: Any, dtype: Optional[str] = None) -> torch.Tensor:
    """A tensor over the memory of an array, without a copy; unsigned integers that this torch lacks are copied into the
    next larger signed type. dtype : the element type, where NumPy does not know it
    ("bf16")."""
    name = dtype or _arrays.name_of(array.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the memory is read-only, which torch cannot express
        if name in _SIZES:
            flat = array.view("i2" if name == "bf16" else "u1")
            return torch.from_numpy(flat).view(_BY_NAME[name])
        if name in ("u16", "u32", "u64") and name not in _BY_NAME:
            if name == "u64" and array.size and int(array.max()) >= 1 << 63:
                raise ValueError("this torch has no uint64, and a value is too large for int64; use NumPy for it")
            return torch.from_numpy(array.astype({"u16": "i4", "u32": "i8", "u64": "i8"}[name]))
        return torch.from_numpy(array)


def to_stored(tensor: torch.Tensor) -> "Tuple[str, Tuple[int, ...], Any]":
    """Element type, shape and bytes of a tensor."""
    if tensor.dtype not in _STORED:
        raise ValueError(f"a file cannot store {tensor.dtype}; convert the tensor to float32 or another type first")
    name = _STORED[tensor.dtype]
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if name in _SIZES:
        flat = flat.view(_SIZES[name])
    return name, tuple(tensor.shape), flat.numpy().view("u1")


def _tensor(model: "_mcf.Model", name: str, device: Any = "cpu") -> torch.Tensor:
    value = model[name]
    if isinstance(value, _mcf.QuantTensor):
        return torch.from_numpy(value.dequantize()).to(device)
    return from_numpy(value, model.tensor_info(name)["dtype"]).to(device)


def load_file(path: Path, device: Any = "cpu") -> "Dict[str, torch.Tensor]":
    """All tensors by name. On the CPU they share the memory of the file, so do not change them in place."""
    with _mcf.Model(path) as model:
        return {name: _tensor(model, name, device) for name in model}


def save_file(tensors: "Mapping[str, torch.Tensor]", path: Path, metadata: "Optional[Mapping[str, str]]" = None, *,
              overwrite: bool = False) -> None:
    """Writes tensors to an .mcf or .safetensors file."""
    _mcf.save_file(tensors, path, metadata, overwrite=overwrite)


def load_state_dict(module: torch.nn.Module, path: Path, *, strict: bool = True) -> Any:
    """Copies the weights of a file into a module; quantized ones are decoded. The result lists missing and unexpected
    keys, as module.load_state_dict does."""
    return module.load_state_dict(load_file(path), strict=strict)


# ---- Quantized layers ----

_AT_ONCE = 32  # columns of one product
_pool: "Tuple[int, Optional[_core.QuantWorkers]]" = (-1, None)


def _workers() -> "_core.QuantWorkers":
    """The threads of this process; a child of a fork starts its own."""
    global _pool
    if _pool[0] != os.getpid() or _pool[1] is None:
        _pool = (os.getpid(), _core.QuantWorkers(torch.get_num_threads()))
    assert _pool[1] is not None
    return _pool[1]


class QuantLinear(torch.nn.Module):
    """A linear layer that multiplies quantized weights directly, on the CPU and in float32. For inference: it has no
    gradient.

    >>> layer = QuantLinear.from_linear(torch.nn.Linear(512, 256), "k4")
    >>> layer(torch.ones(3, 512)).shape
    torch.Size([3, 256])
    """

    payload: torch.Tensor
    bias: Optional[torch.Tensor]

    def __init__(self, quant_type: str, out_features: int, in_features: int, payload: torch.Tensor,
                 bias: Optional[torch.Tensor] = None) -> None:
        super().__init__()
        needed = _core.quant_size(quant_type, out_features, in_features)
        if payload.dtype != torch.uint8 or payload.numel() != needed:
            raise ValueError(f"{quant_type} of {out_features} x {in_features} takes {needed} bytes of uint8")
        self.quant_type, self.out_features, self.in_features = quant_type, out_features, in_features
        self.register_buffer("payload", payload.contiguous())
        self.register_buffer("bias", None if bias is None else bias.detach().float())

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, quant_type: str = "k4", *, method: str = "fit") -> "QuantLinear":
        """Quantizes the weights of a layer. method : fit, absmax or exact."""
        rows, cols = linear.weight.shape
        weights = linear.weight.detach().cpu().float().contiguous()
        payload = torch.empty(_core.quant_size(quant_type, rows, cols), dtype=torch.uint8)
        _core.quant_encode(quant_type, rows, cols, weights.numpy(), payload.numpy(), _mcf._METHODS[method])
        return cls(quant_type, rows, cols, payload, linear.bias)

    @classmethod
    def from_tensor(cls, tensor: "_mcf.QuantTensor", bias: Optional[torch.Tensor] = None) -> "QuantLinear":
        """A layer over a quantized tensor of a file, without decoding it."""
        rows, cols = tensor.shape
        return cls(tensor.quant_type, rows, cols, torch.from_numpy(tensor.raw.copy()), bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.detach().reshape(-1, self.in_features).float().contiguous()
        result = torch.empty(flat.shape[0], self.out_features)
        payload = self.payload.numpy()
        for begin in range(0, flat.shape[0], _AT_ONCE):
            part = flat[begin:begin + _AT_ONCE]
            out = torch.empty(self.out_features, part.shape[0])
            _core.quant_matmul(_workers(), self.quant_type, self.out_features, self.in_features, payload, part.numpy(),
                               out.numpy(), part.shape[0])
            result[begin:begin + _AT_ONCE] = out.t()
        if self.bias is not None:
            result += self.bias
        return result.reshape(*x.shape[:-1], self.out_features).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.quant_type}, in_features={self.in_features}, out_features={self.out_features}"


def quantize(model: torch.nn.Module, quant_type: str = "k4", *, layers: "Sequence[str]" = ("*",),
             method: str = "fit") -> torch.nn.Module:
    """Replaces the Linear layers of a model, in place, by QuantLinear. layers : patterns of names."""
    for name, linear in _matching(model, layers):
        parent, _, child = name.rpartition(".")
        owner = model.get_submodule(parent)
        setattr(owner, child, QuantLinear.from_linear(linear, quant_type, method=method))
    return model


# ---- Data sets ----

class Dataset(torch.utils.data.Dataset):
    """A map-style data set over an mldf file. The file is opened in each worker; batches are read in one call.

    transform : called with each sample, a dict.
    """

    def __init__(self, path: Path, *, fields: "Optional[Sequence[str]]" = None,
                 transform: "Optional[Callable[[Dict[str, Any]], Any]]" = None, **options: Any) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.fields, self.transform, self._options = fields, transform, options
        self._open: "Optional[_mldf.Dataset]" = None
        self._pid = -1
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
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: "Sequence[int]") -> "List[Any]":
        names = self.fields or self.set.fields
        columns = self.set.batch(list(indices), names)
        samples = [{name: columns[name][i] for name in names} for i in range(len(indices))]
        return samples if self.transform is None else [self.transform(sample) for sample in samples]

    def __getstate__(self) -> "Dict[str, Any]":
        state = dict(self.__dict__)
        state["_open"], state["_pid"] = None, -1
        return state


class BatchSampler(torch.utils.data.Sampler):
    """Batches of sample numbers in a shuffled order that can be stopped and resumed, also with another number of ranks.

    Order is a function of seed, epoch and position; workers and prefetching do not change it. state_dict() counts the
    samples of the epoch that all ranks have drawn: give it to load_state_dict() of a new sampler.
    """

    _KEYS = ("samples", "seed", "shuffle", "window_pages")

    def __init__(self, dataset: "Union[Dataset, _mldf.Dataset]", batch_size: int, *, shuffle: bool = True, seed: int = 0,
                 window_pages: int = 0, rank: Optional[int] = None, world: Optional[int] = None,
                 drop_last: bool = False) -> None:
        self._set = dataset.set if isinstance(dataset, Dataset) else dataset
        if batch_size < 1:
            raise ValueError("batch_size is at least 1")
        self.batch_size, self.drop_last = batch_size, drop_last
        self.rank, self.world = _rank_and_world(rank, world)
        self.epoch = 0
        self._consumed = 0  # samples of this epoch that were drawn by all ranks together
        self._facts = {"samples": len(self._set), "seed": seed, "shuffle": shuffle, "window_pages": window_pages}

    def set_epoch(self, epoch: int) -> None:
        """Starts another epoch from its beginning."""
        self.epoch, self._consumed = epoch, 0

    def _left(self) -> int:
        """Samples of this rank that are left of the epoch."""
        rest = self._facts["samples"] - self._consumed
        return (rest - self.rank + self.world - 1) // self.world if rest > self.rank else 0

    def __len__(self) -> int:
        left = self._left()
        return left // self.batch_size if self.drop_last else math.ceil(left / self.batch_size)

    def __iter__(self) -> "Iterator[List[int]]":
        start, left = self._consumed, self._left()
        for first in range(0, left, self.batch_size):
            count = min(self.batch_size, left - first)
            if self.drop_last and count < self.batch_size:
                break
            whole = self._set.order(epoch=self.epoch, seed=self._facts["seed"], shuffle=bool(self._facts["shuffle"]),
                                    window_pages=self._facts["window_pages"], first=start + first * self.world,
                                    count=count * self.world)
            self._consumed = min(start + (first + count) * self.world, self._facts["samples"])
            yield [int(sample) for sample in whole[self.rank::self.world][:count]]
        self.epoch, self._consumed = self.epoch + 1, 0

    def state_dict(self) -> "Dict[str, Any]":
        return {"version": 1, "epoch": self.epoch, "consumed": self._consumed, **self._facts}

    def load_state_dict(self, state: "Mapping[str, Any]") -> None:
        """Continues where another sampler stopped. Raises ValueError when the set or the order differ."""
        for key in self._KEYS:
            if state[key] != self._facts[key]:
                raise ValueError(f"{key} is {self._facts[key]!r}, but {state[key]!r} in the saved state")
        self.epoch, self._consumed = state["epoch"], state["consumed"]


class IterableDataset(torch.utils.data.IterableDataset):
    """Batches of an mldf file in a shuffled order, for DataLoader(dataset, batch_size=None): the same sequence for any
    number of workers, because worker w of W yields the batches w, w + W, w + 2W …

    Each iteration is an epoch. state_dict() and load_state_dict() continue within one; torchdata's StatefulDataLoader
    calls them in its workers.
    """

    def __init__(self, path: Path, batch_size: int, *, fields: "Optional[Sequence[str]]" = None,
                 transform: "Optional[Callable[[Dict[str, Any]], Any]]" = None,
                 collate: "Optional[Callable[[List[Any]], Any]]" = None, shuffle: bool = True, seed: int = 0,
                 window_pages: int = 0, rank: Optional[int] = None, world: Optional[int] = None,
                 drop_last: bool = False, **options: Any) -> None:
        self.data = Dataset(path, fields=fields, transform=transform, **options)
        self._collate = collate or torch.utils.data.default_collate
        self._sampler: "Dict[str, Any]" = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed,
                                           "window_pages": window_pages, "drop_last": drop_last}
        self._rank, self._world = _rank_and_world(rank, world)
        self.epoch = 0
        self._next = 0  # the next batch of this process

    def set_epoch(self, epoch: int) -> None:
        """Starts another epoch from its beginning."""
        self.epoch, self._next = epoch, 0

    def _batches(self) -> BatchSampler:
        sampler = BatchSampler(self.data, rank=self._rank, world=self._world, **self._sampler)
        sampler.set_epoch(self.epoch)
        return sampler

    def __len__(self) -> int:
        return len(self._batches())

    def __iter__(self) -> "Iterator[Any]":
        worker = torch.utils.data.get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        first = self._next
        for batch, samples in enumerate(self._batches()):
            if batch % count == number and batch >= first:
                self._next = batch + 1
                yield self._collate(self.data.__getitems__(samples))
        self.epoch, self._next = self.epoch + 1, 0

    def state_dict(self) -> "Dict[str, Any]":
        return {"version": 1, "epoch": self.epoch, "next": self._next, **self._sampler}

    def load_state_dict(self, state: "Mapping[str, Any]") -> None:
        """Continues where another one stopped. Raises ValueError when the order differs."""
        for key, value in self._sampler.items():
            if state[key] != value:
                raise ValueError(f"{key} is {value!r}, but {state[key]!r} in the saved state")
        self.epoch, self._next = state["epoch"], state["next"]


def _rank_and_world(rank: Optional[int], world: Optional[int]) -> "Tuple[int, int]":
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    if world is None:
        world = torch.distributed.get_world_size() if distributed else 1
    if rank is None:
        rank = torch.distributed.get_rank() if distributed else 0
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world}")
    return rank, world


# ---- Scans ----

_LARGEST = 65535
_HEADROOM = 8


class _Recorder:
    """Norms of the blocks of a layer's output and of its gradient, token by token."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.activation: "Dict[str, torch.Tensor]" = {}
        self.gradient: "Dict[str, torch.Tensor]" = {}
        self.cut = 0  # values that were too large for the scale

    def scales(self) -> "Tuple[float, float]":
        """A step for each metric, so that values somewhat larger than the present ones fit."""
        largest = [max((float(norms.max()) for norms in found.values() if norms.numel()), default=0.0)
                   for found in (self.activation, self.gradient)]
        return tuple(value * _HEADROOM / _LARGEST or 1.0 for value in largest)  # type: ignore[return-value]

    def stored(self, norms: torch.Tensor, step: float) -> Any:
        steps = (norms / step).round()
        self.cut += int((steps > _LARGEST).sum())
        return steps.clamp(0, _LARGEST).cpu().numpy().astype("u2").reshape(-1)

    def blocks(self, values: torch.Tensor) -> torch.Tensor:
        """The norm of each block of the last dimension: tokens x blocks."""
        flat = values.detach().reshape(-1, values.shape[-1]).float()
        rest = -flat.shape[1] % self.block_size
        if rest:
            flat = torch.nn.functional.pad(flat, (0, rest))
        return flat.reshape(flat.shape[0], -1, self.block_size).norm(dim=-1)

    def hook(self, name: str, gradients: bool) -> "Callable[[Any, Any, torch.Tensor], None]":
        def forward(module: Any, inputs: Any, output: torch.Tensor) -> None:
            self.activation[name] = self.blocks(output)
            if gradients and output.requires_grad:
                output.register_hook(lambda gradient: self.gradient.__setitem__(name, self.blocks(gradient)))

        return forward


def _matching(model: torch.nn.Module, patterns: "Sequence[str]") -> "List[Tuple[str, torch.nn.Linear]]":
    found = [(name, module) for name, module in model.named_modules()
             if isinstance(module, torch.nn.Linear) and any(fnmatch.fnmatch(name, p) for p in patterns)]
    if not found:
        raise ValueError(f"no Linear layer matches {', '.join(patterns)}")
    return found


def _loss(output: Any, batch: Any) -> torch.Tensor:
    if hasattr(output, "loss") and output.loss is not None:
        return output.loss
    logits = output.logits if hasattr(output, "logits") else output
    if isinstance(batch, Mapping) and "input_ids" in batch and logits.dim() == 3:
        ids = batch["input_ids"]
        return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
    return logits.float().pow(2).sum()


def scan(model: torch.nn.Module, batches: "Iterable[Any]", path: Path, *, layers: "Sequence[str]" = ("*",),
         block_size: int = 64, gradients: bool = True,
         loss: "Optional[Callable[[Any, Any], torch.Tensor]]" = None, model_name: Optional[str] = None,
         scale: "Optional[Tuple[float, float]]" = None, sources: "Optional[Sequence[str]]" = None,
         overwrite: bool = False) -> None:
    """Runs a model and writes a scan: the norm of every block of features of each Linear layer's output, and of its
    gradient, for each token.

    batches : inputs of the model; a dict is passed as keyword arguments (input_ids, as transformers has it), a tuple as
    arguments, anything else as one argument. Each item along the first dimension is a sequence, the second counts
    tokens. layers : patterns of names. gradients : False runs under torch.no_grad. loss : a function of output and
    batch; the default is output.loss, else next-token cross-entropy, else the sum of squares. scale : how large one
    step of the stored 16-bit integers is, for activation and gradient; the default leaves room for values 8 times as
    large as those of the first batch. Larger ones are stored as 65535 steps, and a warning says how many there were.
    """
    name = model_name or getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__
    recorder = _Recorder(block_size)
    found = _matching(model, layers)
    handles = [module.register_forward_hook(recorder.hook(layer, gradients)) for layer, module in found]
    writer: "Optional[_mscan.Writer]" = None
    count = 0
    try:
        for batch in batches:
            sequences = _run(model, batch, recorder, gradients, loss or _loss)
            if writer is None:
                scale = scale or recorder.scales()
                writer = _mscan.Writer(path, overwrite=overwrite, model_name=name, block_size=block_size,
                                       activation=(scale[0], 0.0), grad_norm=(scale[1], 0.0) if gradients else None)
                ids = {layer: writer.param(f"{layer}.weight") for layer, _ in found}
            assert scale is not None
            _write(writer, recorder, ids, sequences, scale, sources, count)
            count += sequences
        if writer is None:
            raise ValueError("batches is empty; pass at least one input of the model")
        writer.commit()
    finally:
        if writer is not None:
            writer.discard()
        for handle in handles:
            handle.remove()
    if recorder.cut:
        warnings.warn(f"{recorder.cut} values were larger than the scale allows and are stored as its largest; pass a "
                      f"larger scale than {scale}", stacklevel=2)


def _run(model: torch.nn.Module, batch: Any, recorder: _Recorder, gradients: bool,
         loss: "Callable[[Any, Any], torch.Tensor]") -> int:
    """One forward pass, and one backward pass unless without gradients. Returns the number of sequences."""
    recorder.activation.clear()
    recorder.gradient.clear()
    first = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0] if isinstance(batch, tuple) else batch
    with torch.set_grad_enabled(gradients):
        if isinstance(batch, Mapping):
            output = model(**batch)
        else:
            output = model(*batch) if isinstance(batch, tuple) else model(batch)
        if gradients:
            loss(output, batch).backward()
            model.zero_grad(set_to_none=True)
    return int(first.shape[0]) if first.dim() > 1 else 1


def _write(writer: "_mscan.Writer", recorder: _Recorder, ids: "Mapping[str, int]", sequences: int,
           scale: "Tuple[float, float]", sources: "Optional[Sequence[str]]", first: int) -> None:
    import numpy as np

    for sequence in range(sequences):
        source = sources[first + sequence] if sources is not None and first + sequence < len(sources) else None
        parts, tokens = [], 0
        for layer, param in ids.items():
            norms = recorder.activation.get(layer)
            if norms is None:
                continue
            tokens = norms.shape[0] // sequences
            rows = slice(sequence * tokens, (sequence + 1) * tokens)
            parts.append(_records(recorder, norms[rows], _rows(recorder.gradient.get(layer), rows), param, scale))
        records = np.concatenate(parts) if parts else np.empty(0, _mscan.RECORD)
        writer.sequence(records[np.argsort(records["token_idx"], kind="stable")], max(tokens, 0), source)


def _rows(norms: Optional[torch.Tensor], rows: slice) -> Optional[torch.Tensor]:
    return None if norms is None else norms[rows]


def _records(recorder: _Recorder, activation: torch.Tensor, gradient: Optional[torch.Tensor], param: int,
             scale: "Tuple[float, float]") -> Any:
    import numpy as np

    tokens, blocks = activation.shape
    records = np.zeros(tokens * blocks, _mscan.RECORD)
    records["token_idx"] = np.repeat(np.arange(tokens, dtype="u4"), blocks)
    records["block_idx"] = np.tile(np.arange(blocks, dtype="u2"), tokens)
    records["param_id"] = param
    records["activation"] = recorder.stored(activation, scale[0])
    if gradient is not None:
        records["grad_norm"] = recorder.stored(gradient, scale[1])
    return records
