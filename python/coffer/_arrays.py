"""NumPy arrays over bytes of files. NumPy is imported when the first array is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

if TYPE_CHECKING:
    import numpy as np

# Element types of Coffer and NumPy's names. bf16 and the 8-bit floats need ml_dtypes; without it the bits are shown.
_NUMPY = {
    "bool": "?", "i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8",
    "u64": "<u8", "f16": "<f2", "f32": "<f4", "f64": "<f8", "c64": "<c8", "c128": "<c16",
}
_ML_DTYPES = {"bf16": ("bfloat16", "<u2"), "f8_e4m3": ("float8_e4m3fn", "u1"), "f8_e5m2": ("float8_e5m2", "u1")}
_BY_NAME = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32",
    "int64": "i64", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64",
    "complex128": "c128", "bfloat16": "bf16", "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2",
}

_CACHE_LINE = 64
_LARGE = 1 << 20


def dtype_of(name: str) -> "Optional[np.dtype[Any]]":
    """The NumPy type of an element type; None for a packed or quantized one."""
    import numpy as np

    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name not in _ML_DTYPES:
        return None
    full, bits = _ML_DTYPES[name]
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(bits)
    return np.dtype(getattr(ml_dtypes, full))


def bits_of(name: str) -> str:
    """The NumPy type of the bits of an element type: unsigned integers for types that NumPy lacks."""
    return _ML_DTYPES[name][1] if name in _ML_DTYPES else _NUMPY.get(name, "V")


def name_of(dtype: Any) -> str:
    """The element type of a NumPy type, of its name ("float32"), or of Coffer's own name ("f32")."""
    if isinstance(dtype, str) and (dtype in _NUMPY or dtype in _ML_DTYPES):
        return dtype
    import numpy as np

    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in _BY_NAME:
        raise ValueError(f"a file cannot store {dtype!r}; use one of {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


def over(view: Any, dtype: "np.dtype[Any]", shape: Sequence[int]) -> "np.ndarray[Any, Any]":
    """An array over the bytes of a view, without a copy."""
    import numpy as np

    if 0 in shape:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    return np.frombuffer(view, dtype).reshape(shape)


def _aligned(shape: Sequence[int], dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
    """A new array that begins at a cache line: kernels can then store past the caches. np.empty aligns to 16 bytes."""
    import math

    import numpy as np

    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    room = np.empty(size + _CACHE_LINE, np.uint8)
    skip = -room.ctypes.data % _CACHE_LINE
    return room[skip:skip + size].view(dtype).reshape(shape)


def output(out: "Optional[np.ndarray[Any, Any]]", shape: Sequence[int], dtype: Any) -> "np.ndarray[Any, Any]":
    """The caller's array after a check of its shape and type, or a new one."""
    import numpy as np

    dtype = np.dtype(dtype)
    if out is None:
        return _aligned(shape, dtype)
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise ValueError(f"out is {out.dtype}{list(out.shape)}, expected {dtype}{list(shape)}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError("out must be contiguous and writable")
    return out


def data_frame(rows: Any, columns: "Optional[Sequence[str]]" = None) -> Any:
    """A pandas.DataFrame of columns or rows."""
    try:
        import pandas
    except ImportError:
        raise ImportError("frame=True needs pandas: pip install pandas") from None
    return pandas.DataFrame(rows, columns=None if columns is None else list(columns))
