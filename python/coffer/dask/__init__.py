"""Dask: collections over files, and work spread over processes or machines.

Tasks open files by path, so the client and every worker must see the same folders. A file that changes while a job
reads it is an error. Outputs appear when they are complete: tasks write parts next to the output under names of their
own, and only parts that were returned are joined. A task of a worker that died runs again on another one.
"""

from __future__ import annotations

from ._jobs import pack, quantize
from ._read import from_mldf, from_mlyze, from_mscan, from_pycauset
from ._write import to_mldf, to_pycauset

__all__ = ["from_mldf", "from_mscan", "from_pycauset", "from_mlyze", "to_mldf", "to_pycauset", "quantize", "pack"]
