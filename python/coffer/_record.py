"""What a program that runs under `coffer record` can add to its trace."""

from __future__ import annotations

import os

__all__ = ["mark"]

_mark = None


def _attach() -> None:
    """Finds the recorder in this process; without one, nothing is loaded."""
    global _mark
    if "COFFER_RECORD" not in os.environ:
        return
    import ctypes
    import gc

    process = ctypes.CDLL(None)
    try:
        _mark, collected = process.coffer_record_mark, process.coffer_record_collection
    except AttributeError:
        return
    _mark.argtypes, _mark.restype = [ctypes.c_char_p], None
    collected.argtypes, collected.restype = [ctypes.c_uint64, ctypes.c_uint64], None

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            collected(info["collected"], 0)

    gc.callbacks.append(note)


def mark(name: str) -> None:
    """Adds a marker to the trace, such as ``coffer.mark("epoch 3")``. Without the recorder it does nothing.

    After ``import coffer``, the garbage collections of a recorded program are in its trace too.
    """
    if _mark is not None:
        _mark(name.encode("utf-8", "replace"))


_attach()
