"""What a program that runs under `coffer record` can add to its trace."""

from __future__ import annotations

import os

__all__ = ["mark", "snapshot"]

_mark = _snapshot = None


def _attach() -> None:
    """Finds the recorder in this process; without one, nothing is loaded."""
    global _mark, _snapshot
    if "COFFER_RECORD" not in os.environ:
        return
    import ctypes
    import gc

    process = ctypes.CDLL(None)
    try:
        _mark, collected = process.coffer_record_mark, process.coffer_record_collection
        _snapshot = ctypes.PyDLL(None).coffer_record_snapshot  # which needs the interpreter's lock
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


def snapshot() -> bool:
    """Adds a snapshot of the heap to the trace: every object with its type, its size and what it refers to, for ``coffer
    heap``. False when nothing was written, as it is without the recorder."""
    return _snapshot is not None and _snapshot() == 1


_attach()
