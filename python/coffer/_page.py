"""Pages: what a file contains, as arrays that a viewer draws, and as one HTML file that shows them."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, Dict, List, Optional, Union

from . import _core
from ._errors import UnsupportedError
from ._progress import Progress, callback

Path = Union[str, "os.PathLike[str]"]

_TYPES = {"u8": "u1", "u32": "<u4", "f32": "<f4", "f64": "<f8"}


class Page:
    """The page of a file, or of two files that are compared.

    kind is "trace", "model", "set", "scan", "matrix" or "file"; notes says what was left out or reduced; errors is the
    number of errors that the check of the files found. docs/formats/report-chunks.md describes the arrays.
    """

    def __init__(self, kind: str, chunks: "List[tuple[str, str, bytes]]", html: Optional[bytes], notes: "List[str]", errors: int) -> None:
        self.kind, self.notes, self.errors = kind, notes, errors
        self._html = html
        self._chunks = {name: (type_, data) for name, type_, data in chunks}

    def __repr__(self) -> str:
        return f"<Page of a {self.kind}: {len(self._chunks)} arrays>"

    def keys(self) -> "List[str]":
        return list(self._chunks)

    def __contains__(self, name: object) -> bool:
        return name in self._chunks

    def __getitem__(self, name: str) -> Any:
        """An array, a list of texts, or what JSON has."""
        type_, data = self._chunks[name]
        if type_ == "json":
            return json.loads(data)
        if type_ == "texts":
            (count,) = struct.unpack_from("<I", data)
            ends = struct.unpack_from(f"<{count}I", data, 4)
            body = data[4 + 4 * count:]
            return [body[begin:end].decode() for begin, end in zip((0, *ends), ends)]
        import numpy as np

        return np.frombuffer(data, _TYPES[type_])

    @property
    def summary(self) -> "Dict[str, Any]":
        """Facts, findings and numbers: what `coffer info --json` and `coffer check --json` print, and more."""
        summary: "Dict[str, Any]" = self["summary"]
        return summary

    @property
    def html(self) -> bytes:
        """The page itself: one file without requests to any network."""
        if self._html is None:
            raise UnsupportedError("this build of Coffer does not contain the script of its pages: install node and npm, "
                                   "run 'npm ci' in web/ and build again")
        return self._html

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        with open(path, "wb" if overwrite else "xb") as file:
            file.write(self.html)


def page(path: Path, other: Optional[Path] = None, *, max_size: int = 10_000_000, max_read: int = 4 << 30, threads: int = 0,
         progress: Progress = None) -> Page:
    """What `coffer report` shows of a file, or of two files of a kind.

    >>> coffer.page("run.mlyze").save("run.html")
    >>> coffer.page("run.mlyze")["timeline.high_bytes"].max()

    max_size : of the HTML; what does not fit is reduced, which the notes say.     max_read : the largest size of values
    that are read for statistics.
    """
    with callback(progress, "page") as step:
        return Page(*_core.page(os.fspath(path), None if other is None else os.fspath(other), max_size, max_read, threads, step))
