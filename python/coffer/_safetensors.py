"""Writes safetensors files: an 8-byte length, a JSON header, and the payloads."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, Mapping, Optional, Tuple

_TYPES = {
    "bool": "BOOL", "i8": "I8", "u8": "U8", "i16": "I16", "u16": "U16", "i32": "I32", "u32": "U32", "i64": "I64",
    "u64": "U64", "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "f8_e4m3": "F8_E4M3", "f8_e5m2": "F8_E5M2",
    "c64": "C64",
}
_ALIGNMENT = 8


def _header(tensors: "Mapping[str, Tuple[str, Tuple[int, ...], Any]]", metadata: "Optional[Mapping[str, str]]") -> bytes:
    head: "Dict[str, Any]" = {}
    if metadata:
        head["__metadata__"] = dict(metadata)
    at = 0
    for name, (dtype, shape, data) in tensors.items():
        if dtype not in _TYPES:
            raise TypeError(f"{name}: safetensors has no type for {dtype}")
        head[name] = {"dtype": _TYPES[dtype], "shape": list(shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % _ALIGNMENT)


def save(tensors: "Mapping[str, Tuple[str, Tuple[int, ...], Any]]", path: str, metadata: "Optional[Mapping[str, str]]",
         overwrite: bool) -> None:
    """The file appears complete or not at all. tensors : element type, shape and bytes by name."""
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(17, "the file exists; pass overwrite=True to replace it", path)
    header = _header(tensors, metadata)
    folder = os.path.dirname(os.path.abspath(path))
    handle, scratch = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for _, _, data in tensors.values():
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(file.fileno(), 0o666 & ~umask)
        if overwrite:
            os.replace(scratch, path)
        else:
            os.link(scratch, path)
            os.unlink(scratch)
    except BaseException:
        if os.path.exists(scratch):
            os.unlink(scratch)
        raise
