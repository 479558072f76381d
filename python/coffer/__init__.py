"""Coffer: the binary files that machine learning leaves behind, as NumPy arrays.

>>> import coffer
>>> model = coffer.open("model.mcf")          # also safetensors, GGUF, npz
>>> dataset = coffer.open("train.mldf")       # dataset[0]["image"]
>>> scan = coffer.open("run.mscan")           # scan.stats(by="param")
>>> trace = coffer.open("run.mlyze")          # trace.peak()
>>> matrix = coffer.open("links.pycauset")    # matrix[10:20, ::2]
"""

from ._core import about, version as __version__
from ._errors import *  # noqa: F401,F403
from ._errors import __all__ as _errors
from ._open import open
from ._page import Page, page
from ._record import mark, snapshot
from ._verbs import Finding, Report, abort_put, check, compact, conversions, convert, diff, info, ls, put, repair

__all__ = ["open", "abort_put", "check", "compact", "conversions", "convert", "diff", "info", "ls", "mark", "page", "put", "repair",
           "snapshot", "Finding", "Page", "Report", "about", "__version__", *_errors]


def __getattr__(name: str) -> object:
    """coffer.mcf and the others are imported when they are first used."""
    if name in ("mcf", "mldf", "mscan", "mlyze", "pycauset", "torch", "dask", "ray"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
