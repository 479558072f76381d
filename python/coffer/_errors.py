"""Exceptions. Programs decide by the class or by `code`; the text is for people."""

from __future__ import annotations

import errno as _errno
import os as _os
from typing import Optional, Type

__all__ = [
    "CofferError", "FormatError", "NotRecognisedError", "UnsupportedVersionError", "TruncatedError", "ChecksumError",
    "LimitError", "KeyNeededError", "AuthenticationError", "UndecodableError", "MissingError", "LockedError",
    "UnsupportedError", "ChangedError", "CancelledError",
]


class CofferError(Exception):
    """The base of all exceptions of this package.

    code : the name of the error, as `coffer check --json` shows it ("bad-checksum").
    offset : the place in the file, or None.
    path : the file, or None.
    """

    code: str = "unknown"
    offset: Optional[int] = None
    path: Optional[str] = None


class FormatError(CofferError, ValueError):
    """The content of a file is damaged or is not what the format allows."""


class NotRecognisedError(FormatError):
    """No format recognizes the file."""


class UnsupportedVersionError(FormatError):
    """The file has a version that this package cannot read."""


class TruncatedError(FormatError):
    """The file ends too early."""


class ChecksumError(FormatError):
    """The data does not match its checksum."""


class LimitError(FormatError):
    """Reading the file would need more resources than allowed."""


class KeyNeededError(FormatError):
    """The data is encrypted and no key was given."""


class AuthenticationError(FormatError):
    """The key is wrong, or the encrypted data was changed."""


class UndecodableError(FormatError):
    """The data is stored as the file says, but its codec cannot decode it."""


class MissingError(FormatError, KeyError):
    """A part that the call needs is not in the file."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class LockedError(CofferError, OSError):
    """Another program is writing to the file."""


class UnsupportedError(CofferError, NotImplementedError):
    """The format, or this installation, cannot do it."""


class ChangedError(CofferError, OSError):
    """The file was changed or cut while it was read."""


class CancelledError(CofferError):
    """A progress function stopped the work."""


_BY_CODE: dict[str, Type[CofferError]] = {
    "not-recognised": NotRecognisedError,
    "bad-magic": NotRecognisedError,
    "unsupported-version": UnsupportedVersionError,
    "truncated": TruncatedError,
    "bad-checksum": ChecksumError,
    "limit": LimitError,
    "key-needed": KeyNeededError,
    "authentication-failed": AuthenticationError,
    "undecodable": UndecodableError,
    "missing": MissingError,
    "locked": LockedError,
    "unsupported": UnsupportedError,
    "changed": ChangedError,
    "cancelled": CancelledError,
}

_FIRST_OF_SYSTEM = -40  # COFFER_E_IO; smaller numbers are errors of the system or the arguments


def _of_system(code: str, system_error: int, text: str, path: Optional[str]) -> Optional[Exception]:
    """The built-in exception that Python programs expect, if there is one."""
    if code == "exists":
        return FileExistsError(_errno.EEXIST, text, path)
    if code == "not-found" and system_error == 0:
        if path is not None and _os.path.isdir(path):
            return FileNotFoundError(_errno.ENOENT, text, path)
        return KeyError(text)
    if code == "invalid-argument" and system_error == 0:
        return ValueError(text)
    if code in ("io", "not-found", "invalid-argument"):
        return OSError(system_error or _errno.EIO, text or _os.strerror(system_error or _errno.EIO), path)
    return None


def make(status: int, code: str, system_error: int, subject: int, text: str, offset: Optional[int],
         path: Optional[object]) -> Exception:
    """Called by the C part: the exception for an error. subject 2 is another file, which the text names."""
    name = _os.fsdecode(path) if isinstance(path, (str, bytes, _os.PathLike)) else None
    shown = name if subject != 2 else None
    error = _of_system(code, system_error, text, shown)
    if error is None:
        kind = _BY_CODE.get(code, FormatError if status > _FIRST_OF_SYSTEM else CofferError)
        error = kind(f"{shown}: {text}" if shown else text)
    error.code = code  # type: ignore[attr-defined]
    error.offset = offset  # type: ignore[attr-defined]
    error.path = name  # type: ignore[attr-defined]
    return error
