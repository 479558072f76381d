"""open(): recognizes a file and gives the object for its kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, Optional, Union

from . import _core

if TYPE_CHECKING:
    from .mcf import Model
    from .mldf import Dataset
    from .mlyze import Trace
    from .mscan import Scan
    from .pycauset import Matrix

    AnyFile = Union[Model, Dataset, Trace, Scan, Matrix]

Input = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO]

_TRACES = {"heaptrack", "massif", "dhat", "pprof", "collapsed"}
_ONE_FILE = {"mcf", "safetensors", "gguf", "npy", "npz"}  # kinds of models that one open source is enough for


def is_url(path: object) -> bool:
    return isinstance(path, str) and "://" in path


_NATIVE = ("http://", "https://", "s3://", "hf://")  # coffer_is_remote


def is_remote(path: object) -> bool:
    """Whether the library itself reads from the server."""
    return isinstance(path, str) and path.startswith(_NATIVE)


def as_input(path: Any) -> Any:
    """A path as str, also of a server that the library reads from; other URLs as a file object of fsspec; bytes and file
    objects as they are."""
    if is_url(path) and not is_remote(path):
        try:
            import fsspec
        except ImportError:
            raise ImportError(f"{path} is a URL: pip install fsspec") from None
        return fsspec.open(path, "rb").open()
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def open(path: Input, mode: str = "r", **options: Any) -> Any:
    """Opens a file of any kind: a path, bytes, a binary file object, an address (http, https, s3, hf), or any
    other URL when fsspec is installed.

    Models (mcf, safetensors, GGUF, npy, npz, a Hugging Face folder) give a coffer.mcf.Model, training sets a
    coffer.mldf.Dataset, scans a coffer.mscan.Scan, traces (also of heaptrack) a coffer.mlyze.Trace, matrices a
    coffer.pycauset.Matrix. Options are those of the class.

    mode : "r" reads. "r+" changes metadata: a coffer.mcf.Editor, or a Matrix, whose `meta` can be assigned to. "a"
    appends: the writer of coffer.mldf.append or coffer.mscan.append.

    >>> with coffer.open("model.mcf") as model:
    ...     model["embed"].shape
    (2, 3)
    """
    if mode in ("r+", "a"):
        return _open_for_change(path, mode, options)
    if mode != "r":
        raise ValueError(f"mode is {mode!r}; it can be r, r+ or a. New files are written by coffer.mldf.create, "
                         "coffer.mscan.create, coffer.pycauset.write and coffer.mcf.save_file")
    given = as_input(path)
    if isinstance(given, str) and os.path.isdir(given):
        from .mcf import Model

        return Model(given, **options)
    source = _core.Source(given, options.pop("access", "auto"))
    return open_source(source, source.identify(), given, options)


def _open_for_change(path: Any, mode: str, options: "dict[str, Any]") -> Any:
    if not isinstance(path, (str, os.PathLike)) or is_url(path):
        raise ValueError(f"mode is {mode!r}: only a file with a path can be changed")
    name = os.fspath(path)
    kind = _core.Source(name).identify()
    if (kind, mode) == ("mcf", "r+"):
        from .mcf import Editor

        return Editor(name, **options)
    if (kind, mode) == ("pycauset", "r+"):
        return open(name, **options)
    if (kind, mode) == ("mldf", "a"):
        from . import mldf

        return mldf.append(name, **options)
    if (kind, mode) == ("mscan", "a"):
        from . import mscan

        return mscan.append(name, **options)
    raise ValueError(f"{name}: mode {mode!r} is not possible for {kind} files; r+ changes the metadata of mcf and pycauset "
                     "files, a appends to mldf and mscan files")


def open_source(source: Any, kind: str, given: Any, options: "dict[str, Any]") -> "AnyFile":
    if kind == "mldf":
        from .mldf import Dataset

        return Dataset(source, **options)
    if kind == "mscan":
        from .mscan import Scan

        return Scan(source, **options)
    if kind == "pycauset":
        from .pycauset import Matrix

        return Matrix(source, **options)
    if kind == "mlyze" or kind in _TRACES:
        from .mlyze import Trace

        return Trace(source, **options)
    from .mcf import Model

    return Model(source if kind in _ONE_FILE or not isinstance(given, str) else given, **options)


def reopen(path: str, kind: str, identity: "Optional[tuple[int, int]]", options: "dict[str, Any]") -> "AnyFile":
    """Unpickles a handle: opens the file again and compares what identifies it."""
    if identity is not None and file_identity(path) != identity:
        from ._errors import ChangedError

        raise ChangedError(f"{path}: the file changed after the object was pickled")
    return open(path, **options)


def file_identity(path: str) -> "tuple[int, int]":
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def pickled(path: Optional[str], kind: str, options: "dict[str, Any]") -> "tuple[Any, tuple[Any, ...]]":
    if path is None:
        raise TypeError("only files that were opened by path can be pickled")
    full = path if is_url(path) else os.path.abspath(path)
    identity = file_identity(full) if os.path.isfile(full) else None
    return reopen, (full, kind, identity, options)
