"""Functions for files of every kind that the command knows: info, ls, check, diff, repair, convert, compact, put."""

from __future__ import annotations

import os
from typing import Any, Iterator, NamedTuple, Optional, Union

from . import _core
from ._progress import Progress, callback

Path = Union[str, "os.PathLike[str]"]


class Finding(NamedTuple):
    """One problem of a file: a code ("bad-checksum"), a severity (note, warning, error), a place and a sentence."""

    code: str
    severity: str
    offset: Optional[int]
    text: str

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at {self.offset}"
        return f"{self.severity} {self.code}{place}: {self.text}"


class Report:
    """The findings of check or repair. True when there is neither an error nor a warning."""

    def __init__(self, path: str, format: Optional[str], findings: "list[Finding]", notes: int, warnings: int, errors: int,
                 original: Optional[str] = None, left: "Optional[Report]" = None) -> None:
        self.path, self.format, self.findings = path, format, findings
        self.notes, self.warnings, self.errors = notes, warnings, errors
        self.original, self.left = original, left

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return (f"Report(path={self.path!r}, format={self.format!r}, notes={self.notes}, warnings={self.warnings}, "
                f"errors={self.errors}, original={self.original!r}, left={self.left!r})")

    @property
    def ok(self) -> bool:
        return self.errors == 0 and self.warnings == 0

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> "Iterator[Finding]":
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)


def _report(path: Path, kind: Optional[str], raw: Any, **more: Any) -> Report:
    findings, notes, warnings, errors = raw
    return Report(os.fspath(path), kind, [Finding(*row) for row in findings], notes, warnings, errors, **more)


def info(path: Path, *, generation: int = 0, hash: bool = False, progress: Progress = None) -> "dict[str, Any]":
    """What a file contains: the keys of `coffer info --json`.

    generation : an older state of a matrix. hash : also compute a hash of the content, which reads all of it.
    """
    with callback(progress, "info") as step:
        return _core.describe(os.fspath(path), generation, hash, step)


def ls(path: Path, what: Optional[str] = None, *, glob: Optional[str] = None) -> "list[dict[str, Any]]":
    """The entries of a file: tensors, fields, sequences. what : another list, as in `coffer ls --what`."""
    return list(_core.entries(os.fspath(path), what, glob)["entries"])


def check(path: Path, *, full: bool = False, decode: bool = False, threads: int = 0, key: Optional[bytes] = None,
          progress: Progress = None) -> Report:
    """Checks a file. full : read the payloads too and compare their checksums. decode : also decode the pictures and
    sounds of a training set.

    >>> coffer.check("model.mcf", full=True).ok
    True
    """
    with callback(progress, "check") as step:
        kind, raw = _core.check(os.fspath(path), full, decode, threads, key, step)
    return _report(path, kind, raw)


def diff(a: Path, b: Path, *, tolerance: float = 0.0, max_shown: int = 20, threads: int = 0,
         key: Optional[bytes] = None, progress: Progress = None) -> "dict[str, Any]":
    """The differences of two files; result["equal"] is True without any."""
    with callback(progress, "diff") as step:
        return _core.diff(os.fspath(a), os.fspath(b), tolerance, max_shown, threads, key, step)


def repair(path: Path, out: Optional[Path] = None, *, copy: Optional[Path] = None, keep_tail: bool = False,
           generation: int = 0, overwrite: bool = False, key: Optional[bytes] = None,
           progress: Progress = None) -> Report:
    """Saves what can be saved of a file into `out`, or in its own place: the original is then kept as PATH.orig.

    copy : a second copy of the file, whose intact parts replace damaged ones. The report lists what was repaired and
    what was lost; report.left is the check of a file that was repaired in place.
    """
    source = _core.Source(os.fspath(path))
    other = None if copy is None else _core.Source(os.fspath(copy))
    target = None if out is None else os.fspath(out)
    kind = source.identify()
    with callback(progress, "repair") as step:
        raw, left, original = _core.repair(source, target, other, keep_tail, generation, overwrite, key, step)
    rest = None if target is not None else _report(path, kind, left)
    return _report(path, kind, raw, original=original, left=rest)


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def convert(path: Path, out: Path, *, from_: Optional[str] = None, to: Optional[str] = None, overwrite: bool = False,
            progress: Progress = None, **settings: Any) -> Report:
    """Converts a file; the kinds follow from its content and from the name of `out`. Settings are the options of the
    command with underscores: convert("x.mldf", "x.npz", field="label"). The report lists everything that the output
    does not keep as it was."""
    given = {name.replace("_", "-"): _setting(value) for name, value in settings.items()}
    with callback(progress, "convert") as step:
        raw = _core.convert(_core.Source(os.fspath(path)), os.fspath(out), from_, to, given, overwrite, step)
    return _report(out, to, raw)


def conversions() -> "list[tuple[str, str]]":
    """The conversions there are, as pairs of kinds."""
    return list(_core.conversions())


def compact(path: Path, out: Optional[Path] = None, *, overwrite: bool = False,
            progress: Progress = None) -> "dict[str, Any]":
    """Rewrites a file without its unused bytes, in its own place or into `out`."""
    with callback(progress, "compact") as step:
        return _core.compact(os.fspath(path), None if out is None else os.fspath(out), overwrite, step)


def put(path: Path, address: str, *, overwrite: bool = False, part_size: int = 0, parallel: int = 0,
        progress: Progress = None) -> "dict[str, Any]":
    """Uploads a file to "s3://bucket/key", or continues an upload; a key that ends in "/" gets the name of the file.

    part_size : bytes of a part, at least 5 MiB (default: 8 MiB). parallel : parts that are sent at once (default: 8).
    The object appears when it is complete. After a failure the same call sends only the parts that the server does not
    have; `abort_put` removes them.
    """
    with callback(progress, "put") as step:
        return _core.put(os.fspath(path), address, overwrite, part_size, parallel, False, step)


def abort_put(address: str) -> int:
    """Removes the parts of unfinished uploads to an address; returns the number of uploads."""
    return int(_core.put(None, address, False, 0, 0, True, None)["uploads_removed"])
