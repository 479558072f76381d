"""Payloads on GPUs, through the memory and the current stream of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

import torch

from . import _arrays, _core
from ._errors import UnsupportedError
from ._torch_tensors import BY_NAME

if TYPE_CHECKING:
    from . import mcf as _mcf

DECODED = ("q8", "q4", "k6", "k4", "k3", "k2", "int8", "int4")
_usable: Optional[bool] = None


def is_cuda(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def is_usable() -> bool:
    """Whether the module coffer-cuda is installed and finds a GPU."""
    global _usable
    if _usable is None:
        try:
            _usable = _core.cuda_device_count() > 0
        except UnsupportedError:
            _usable = False
    return _usable


def _stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream


def _address(tensor: torch.Tensor) -> int:
    return tensor.data_ptr()


def load(model: "_mcf.Model", index: int, out: torch.Tensor) -> torch.Tensor:
    """Reads the stored bytes of a tensor into a contiguous one on a GPU, and compares their checksums."""
    model._tensors.cuda_load(index, _address(out), out.numel() * out.element_size(), _stream(out.device))
    return out


def _matrix(shape: "Sequence[int]") -> "Tuple[int, int]":
    """Rows and columns: the product of all dimensions but the first."""
    rows, cols = (shape[0], 1) if len(shape) > 1 else (1, 1)
    for dim in shape[1:] if len(shape) > 1 else shape:
        cols *= dim
    return rows, cols


def decode(quant_type: str, shape: "Sequence[int]", payload: torch.Tensor, dtype: str,
           activations: bool = False) -> torch.Tensor:
    """The elements of a payload that is on a GPU, with the bits that the processor would give them."""
    out = torch.empty(tuple(shape), dtype=BY_NAME[dtype], device=payload.device)
    rows, cols = _matrix(shape)
    _core.cuda_decode((quant_type, rows, cols, activations, _address(payload), payload.numel()), _address(out), dtype,
                      _stream(payload.device))
    return out


def dequantize(tensor: "_mcf.QuantTensor", dtype: Any, device: Any) -> torch.Tensor:
    """The elements of a quantized tensor on a device. What the module cannot decode is decoded by the processor."""
    name = _arrays.name_of(dtype)
    if not is_cuda(device) or tensor.quant_type not in DECODED or name not in ("f32", "f16", "bf16") or not is_usable():
        from .torch import from_numpy

        return from_numpy(tensor.dequantize(dtype), name).to(device)
    payload = load(tensor._model, tensor._index, torch.empty(tensor.nbytes, dtype=torch.uint8, device=device))
    return decode(tensor.quant_type, tensor.shape, payload, name, tensor._has_zero_point())


def multiply(quant_type: str, rows: int, cols: int, payload: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """x of n vectors times the weights, as n x rows. x : contiguous float32 on the same GPU."""
    if x.device != payload.device:
        raise ValueError(f"the weights are on {payload.device}, the input is on {x.device}")
    out = torch.empty(x.shape[0], rows, device=x.device)
    _core.cuda_matmul((quant_type, rows, cols, False, _address(payload), payload.numel()), _address(x), _address(out),
                      x.shape[0], _stream(x.device))
    return out
