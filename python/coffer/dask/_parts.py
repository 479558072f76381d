"""What the jobs share: the state of the files that tasks read, and the folder in which tasks leave parts of a file."""

from __future__ import annotations

import os
import shutil
import time
import uuid
import zlib
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from .. import _core
from .._errors import ChangedError, CofferError
from .._open import is_remote, is_url

try:
    import fcntl
except ImportError:  # not a POSIX system: parts of a client that was killed are not recognized
    fcntl = None  # type: ignore[assignment]

Path = Union[str, "os.PathLike[str]"]
Stamp = Tuple[int, int, int]

_TRIES, _PAUSE = 200, 0.02
_OWNER = "owner"
_END_BYTES = 64 << 10
_YOUNG = 60  # seconds: a folder of this age may not have its lock yet


def absolute(path: Path) -> str:
    """The path of a file that is written."""
    if is_url(path):
        raise ValueError(f"{path}: files are written to paths; choose a folder that all machines see")
    return os.path.abspath(os.fspath(path))


def located(path: Path) -> str:
    """Where every machine finds a file that is read: an absolute path, or an address that the library reads from."""
    if is_remote(path):
        return os.fspath(path)
    if is_url(path):
        raise ValueError(f"{path}: tasks open paths and addresses of http, https, s3 and hf; mount the storage on all "
                         "machines, or download the file")
    return absolute(path)


def same_version(client: str) -> None:
    """Another version may encode or compress differently, and the parts would not fit together."""
    if _core.version != client:
        raise RuntimeError(f"this worker has coffer {_core.version}, the client {client}; "
                           "install the same version everywhere")


def ranges(count: int, size: int) -> "List[Tuple[int, int]]":
    """[0, count) in ranges of `size`; one empty range for nothing."""
    return [(begin, min(begin + size, count)) for begin in range(0, count, size)] or [(0, 0)]


def set_facts(path: str, fields: "Optional[Sequence[str]]", options: "Dict[str, Any]") -> "Tuple[Stamp, int, List[str]]":
    """The state of a set, its number of samples and the chosen fields. options : those of Dataset."""
    from ..mldf import Dataset

    before = stamp(path)
    with Dataset(path, **options) as dataset:
        count, names = len(dataset), dataset.fields
    missing = set(fields or ()) - set(names)
    if missing:
        raise KeyError(f"{path}: no field {', '.join(sorted(missing))}; the fields are {', '.join(names)}")
    return before, count, list(fields or names)


# ---- The state of files ----

def stamp(path: str) -> Stamp:
    """Identifies the content of a file on every machine: inode numbers differ between mounts, so they are not in it. A
    file of a server is identified by its size, first and last bytes, where the formats have their tables."""
    if is_remote(path):
        source = _core.Source(path)
        ends = [source.read(0, _END_BYTES), source.read(max(source.size - _END_BYTES, 0), _END_BYTES)]
        return source.size, zlib.crc32(ends[0]), zlib.crc32(ends[1])
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def stamps(paths: "Iterable[str]") -> "Dict[str, Stamp]":
    """The same for files, and for everything inside folders."""
    found: "Dict[str, Stamp]" = {}
    for path in paths:
        if not os.path.isdir(path):
            found[path] = stamp(path)
            continue
        for folder, _, names in os.walk(path):
            for name in names:
                full = os.path.join(folder, name)
                if os.path.exists(full):
                    found[full] = stamp(full)
    return found


def _changed(path: str) -> ChangedError:
    error = ChangedError(f"{path}: the file changed while the job ran; start the job again when the file is complete")
    error.code, error.path = "changed", path
    return error


def expect(before: "Dict[str, Stamp]") -> None:
    """Raises ChangedError for a file that is not what it was: tasks must not read different versions of it."""
    for path, old in before.items():
        try:
            now = stamp(path)
        except FileNotFoundError:
            raise _changed(path) from None
        if now != old:
            raise _changed(path)


# ---- The folder of a job ----

class Job:
    """Makes one file out of parts. Tasks write parts into `folder`, each under a name of its own; only parts that were
    returned are joined, so that a task may run twice or die. The file appears at `out` when publish() is called;
    leaving the block removes the folder."""

    def __init__(self, out: Path, overwrite: bool, inputs: "Sequence[str]" = ()) -> None:
        path = absolute(out)
        self.out = os.path.realpath(path) if os.path.islink(path) else path  # a link stays what it is
        self._overwrite = overwrite
        if os.path.exists(self.out):
            if not overwrite:
                raise self._exists()
            self._refuse_input(list(inputs))
        self._prefix = _outside(self.out, inputs)
        self.folder = f"{self._prefix}{uuid.uuid4().hex}"
        self._lock = -1

    def _refuse_input(self, inputs: "Sequence[str]") -> None:
        """A job never replaces what it reads."""
        if any(os.path.exists(path) and os.path.samefile(path, self.out) for path in inputs):
            raise ValueError(f"{self.out}: input and output are the same file")
        inside = any(os.path.isdir(path) and _is_inside(self.out, path) for path in inputs)
        if inside and not _is_ours(self.out):
            raise ValueError(f"{self.out}: refusing to replace a file of the input")

    def _exists(self) -> FileExistsError:
        return FileExistsError(17, "the file exists; pass overwrite=True to replace it", self.out)

    def __enter__(self) -> "Job":
        _remove_stale(self._prefix)
        new = f"{self.folder}.new"  # the folder must not be seen without its lock
        os.mkdir(new)
        try:
            self._lock = os.open(os.path.join(new, _OWNER), os.O_RDWR | os.O_CREAT, 0o666)
            _try_lock(self._lock)
            os.rename(new, self.folder)
        except BaseException:
            _remove(new)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        gone = f"{self.folder}.gone"  # out of the reach of tasks that still run
        os.rename(self.folder, gone)
        _remove(gone)
        os.close(self._lock)

    def joined(self) -> str:
        """The path under which the file is put together."""
        return os.path.join(self.folder, f"joined{os.path.splitext(self.out)[1]}")

    def publish(self) -> None:
        """Gives the file its name, in one step."""
        path = self.joined()
        if self._overwrite:
            _take_attributes(path, self.out)
            os.replace(path, self.out)
        else:
            try:
                os.link(path, self.out)
            except FileExistsError:
                raise self._exists() from None
            except OSError:  # a file system without hard links
                if os.path.exists(self.out):
                    raise self._exists() from None
                os.rename(path, self.out)
        _sync(os.path.dirname(self.out))


def part_path(folder: str, extension: str) -> str:
    return os.path.join(folder, f"{uuid.uuid4().hex}{extension}")


def _take_attributes(path: str, old: str) -> None:
    """A file that replaces another one keeps its permissions and, where that is allowed, its owner."""
    try:
        found = os.stat(old)
    except FileNotFoundError:
        return
    try:
        os.chown(path, found.st_uid, found.st_gid)
    except OSError:
        pass
    os.chmod(path, found.st_mode & 0o777)


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: str) -> None:
    """A task may add a file between the listing and the removal: tries again. The lock is removed last, so that a
    folder that remains is still recognized."""
    for _ in range(_TRIES):
        for entry in os.scandir(folder):
            if entry.name != _OWNER:
                _remove_file(entry.path)
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(_PAUSE)


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # another process removed it, or the next try does


def _is_ours(path: str) -> bool:
    try:
        return _core.Source(path).identify() in ("mldf", "mcf")
    except CofferError:
        return False


def _is_inside(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _outside(out: str, inputs: "Sequence[str]") -> str:
    """The path of the folder of parts without its random end: next to the output, but never inside a folder that is
    packed, where the parts would be found."""
    place = os.path.dirname(out)
    for path in inputs:
        if os.path.isdir(path) and _is_inside(place, path):
            place = os.path.dirname(path)
    if os.stat(place).st_dev != os.stat(os.path.dirname(out)).st_dev:
        raise ValueError(f"{out}: the output is inside the input, parts cannot be next to it; choose another folder")
    return os.path.join(place, f"{os.path.basename(out)}.parts-")


def _remove_stale(prefix: str) -> None:
    """Removes the parts that a client left when it was killed: nobody holds their lock."""
    folder, prefix = os.path.split(prefix)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not name.startswith(prefix) or (name.endswith(".new") and time.time() - os.stat(path).st_mtime < _YOUNG):
            continue
        try:
            handle = os.open(os.path.join(path, _OWNER), os.O_RDWR)
        except OSError:
            continue
        free = _try_lock(handle)
        if free:
            _remove(path)
        os.close(handle)


def compute(tasks: "List[Any]") -> "Tuple[Any, ...]":
    """Runs tasks on the cluster of the current client, or in threads of this process without one."""
    import dask

    return tuple(dask.compute(*tasks))
