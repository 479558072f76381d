"""PyTorch: weights, data sets with a resumable order, and scans of a model.

>>> loader = torch.utils.data.DataLoader(dataset, batch_sampler=coffer.torch.BatchSampler(dataset, 32))
"""

from __future__ import annotations

import fnmatch
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from . import _arrays, _core, _torch_calibrate
from . import mcf as _mcf
from ._torch_data import BatchSampler, Dataset, IterableDataset, allocate, collate
from ._torch_scan import scan
from ._torch_tensors import from_numpy, to_stored

Path = Union[str, "os.PathLike[str]"]

__all__ = ["from_numpy", "to_stored", "load_file", "save_file", "load_state_dict", "QuantLinear", "quantize", "calibrate",
           "Dataset", "BatchSampler", "IterableDataset", "allocate", "collate", "scan"]

# ---- Tensors ----

def _tensor(model: "_mcf.Model", name: str, device: Any = "cpu") -> torch.Tensor:
    value = model[name]
    if isinstance(value, _mcf.QuantTensor):
        return torch.from_numpy(value.dequantize()).to(device)
    return from_numpy(value, model.tensor_info(name)["dtype"]).to(device)


def load_file(path: Path, device: Any = "cpu") -> "Dict[str, torch.Tensor]":
    """All tensors by name. On the CPU they lie over the mapped file; what you change in place becomes a private copy,
    and the file stays as it is."""
    with _mcf.Model(path, access="copy") as model:
        return model._read_all(lambda name: _tensor(model, name, device))


def save_file(tensors: "Mapping[str, torch.Tensor]", path: Path, metadata: "Optional[Mapping[str, str]]" = None, *,
              overwrite: bool = False) -> None:
    """Writes tensors to an .mcf or .safetensors file."""
    _mcf.save_file(tensors, path, metadata, overwrite=overwrite)


def load_state_dict(module: torch.nn.Module, path: Path, *, strict: bool = True) -> Any:
    """Copies the weights of a file into a module; quantized ones are decoded. The result lists missing and unexpected
    keys, as module.load_state_dict does."""
    return module.load_state_dict(load_file(path), strict=strict)


# ---- Quantized layers ----

_pool: "Tuple[int, Optional[_core.QuantWorkers]]" = (-1, None)


def _workers() -> "_core.QuantWorkers":
    """The threads of this process; a child of a fork starts its own."""
    global _pool
    if _pool[0] != os.getpid() or _pool[1] is None:
        _pool = (os.getpid(), _core.QuantWorkers(torch.get_num_threads()))
    assert _pool[1] is not None
    return _pool[1]


class QuantLinear(torch.nn.Module):
    """A linear layer that multiplies quantized weights directly, on the CPU. For inference: it has no gradient.

    inputs : what the layer's input enters the product as. "f32" (default): as it is. "int8": rounded to 8 bits in blocks of
    32 numbers, which is several times as fast and changes the result by less than the quantization of the weights does.

    >>> layer = QuantLinear.from_linear(torch.nn.Linear(512, 256), "k4")
    >>> layer(torch.ones(3, 512)).shape
    torch.Size([3, 256])
    """

    payload: torch.Tensor
    bias: Optional[torch.Tensor]

    def __init__(self, quant_type: str, out_features: int, in_features: int, payload: torch.Tensor,
                 bias: Optional[torch.Tensor] = None, *, inputs: str = "f32") -> None:
        super().__init__()
        if inputs not in ("f32", "int8"):
            raise ValueError(f"inputs is {inputs!r}, not 'f32' or 'int8'")
        needed = _core.quant_size(quant_type, out_features, in_features)
        if payload.dtype != torch.uint8 or payload.numel() != needed:
            raise ValueError(f"{quant_type} of {out_features} x {in_features} takes {needed} bytes of uint8")
        self.quant_type, self.out_features, self.in_features = quant_type, out_features, in_features
        self.inputs = inputs
        self.register_buffer("payload", payload.contiguous())
        self.register_buffer("bias", None if bias is None else bias.detach().float())

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, quant_type: str = "k4", *, method: str = "fit",
                    inputs: str = "f32") -> "QuantLinear":
        """Quantizes the weights of a layer. method : fit, absmax or exact."""
        rows, cols = linear.weight.shape
        weights = linear.weight.detach().cpu().float().contiguous()
        payload = torch.empty(_core.quant_size(quant_type, rows, cols), dtype=torch.uint8)
        _core.quant_encode(quant_type, rows, cols, weights.numpy(), payload.numpy(), _mcf._METHODS[method])
        return cls(quant_type, rows, cols, payload, linear.bias, inputs=inputs)

    @classmethod
    def from_tensor(cls, tensor: "_mcf.QuantTensor", bias: Optional[torch.Tensor] = None, *,
                    inputs: str = "f32") -> "QuantLinear":
        """A layer over a quantized tensor of a file, without decoding it."""
        rows, cols = tensor.shape
        return cls(tensor.quant_type, rows, cols, torch.from_numpy(tensor.raw.copy()), bias, inputs=inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.detach().reshape(-1, self.in_features).float().contiguous()
        result = torch.empty(flat.shape[0], self.out_features)
        _core.quant_matmul(_workers(), self.quant_type, self.out_features, self.in_features, self.payload.numpy(),
                           flat.numpy(), result.numpy(), flat.shape[0], self.inputs == "int8")
        if self.bias is not None:
            result += self.bias
        return result.reshape(*x.shape[:-1], self.out_features).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.quant_type}, in_features={self.in_features}, out_features={self.out_features}, inputs={self.inputs}"


def _matching(model: torch.nn.Module, patterns: "Sequence[str]") -> "List[Tuple[str, torch.nn.Linear]]":
    found = [(name, module) for name, module in model.named_modules()
             if isinstance(module, torch.nn.Linear) and any(fnmatch.fnmatch(name, p) for p in patterns)]
    if not found:
        raise ValueError(f"no Linear layer matches {', '.join(patterns)}")
    return found


def quantize(model: torch.nn.Module, quant_type: str = "k4", *, layers: "Sequence[str]" = ("*",),
             method: str = "fit", inputs: str = "f32") -> torch.nn.Module:
    """Replaces the Linear layers of a model, in place, by QuantLinear. layers : patterns of names. inputs : as QuantLinear
    has it."""
    for name, linear in _matching(model, layers):
        parent, _, child = name.rpartition(".")
        owner = model.get_submodule(parent)
        setattr(owner, child, QuantLinear.from_linear(linear, quant_type, method=method, inputs=inputs))
    return model


def calibrate(model: torch.nn.Module, batches: "Iterable[Any]", out: Path, *, layers: "Sequence[str]" = ("*",),
              overwrite: bool = False) -> "Dict[str, int]":
    """Runs a model on batches and writes the second moments of the inputs of its Linear layers, which
    coffer.mcf.quantize(..., hessian=out) and `coffer quantize --hessian` use.

    batches : each is the argument of the model, a tuple of arguments, or a dict of named ones. Some thousand rows (tokens)
    in all are enough; more than a layer has inputs. out : an .mcf or .safetensors file. layers : patterns of names. The
    result is the number of rows that each layer has seen. Takes 8 bytes of memory for each pair of inputs of a layer: a
    large model can be calibrated a few layers at a time.

    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    >>> coffer.torch.calibrate(model, [torch.ones(3, 8), torch.eye(8)], "moments.mcf")
    {'0': 11}
    """
    return _torch_calibrate.run(model, batches, out, _matching(model, layers), overwrite)
