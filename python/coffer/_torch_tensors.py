"""Tensors of PyTorch over the memory of arrays, and back."""

from __future__ import annotations

import warnings
from typing import Any, Optional, Tuple

import torch

from . import _arrays

STORED = {
    torch.bool: "bool", torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.complex64: "c64", torch.complex128: "c128",
}
for _name, _code in (("float8_e4m3fn", "f8_e4m3"), ("float8_e5m2", "f8_e5m2"), ("uint16", "u16"), ("uint32", "u32"),
                     ("uint64", "u64")):
    if hasattr(torch, _name):
        STORED[getattr(torch, _name)] = _code
BY_NAME = {name: dtype for dtype, name in STORED.items()}
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
            return torch.from_numpy(flat).view(BY_NAME[name])
        if name in ("u16", "u32", "u64") and name not in BY_NAME:
            if name == "u64" and array.size and int(array.max()) >= 1 << 63:
                raise ValueError("this torch has no uint64, and a value is too large for int64; use NumPy for it")
            return torch.from_numpy(array.astype({"u16": "i4", "u32": "i8", "u64": "i8"}[name]))
        return torch.from_numpy(array)


def to_stored(tensor: torch.Tensor) -> "Tuple[str, Tuple[int, ...], Any]":
    """Element type, shape and bytes of a tensor."""
    if tensor.dtype not in STORED:
        raise ValueError(f"a file cannot store {tensor.dtype}; convert the tensor to float32 or another type first")
    name = STORED[tensor.dtype]
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if name in _SIZES:
        flat = flat.view(_SIZES[name])
    return name, tuple(tensor.shape), flat.numpy().view("u1")


def memory(tensor: torch.Tensor) -> Any:
    """The elements of a tensor on the CPU as an array over the same memory; types that NumPy lacks as their bits."""
    name = STORED.get(tensor.dtype)
    if name in _SIZES:
        return tensor.view(_SIZES[name]).numpy().view(_arrays.dtype_of(name))
    return tensor.numpy()
