"""Packing of folders, shards and manifests into training sets."""

from __future__ import annotations

import os
from typing import Any, Dict, Sequence, Union

from . import _core
from ._mldf_writer import Path
from ._progress import Progress, callback

_KINDS = ("images", "audio", "text", "arrays", "webdataset", "manifest", "video")
_FLAGS = ("strict", "decode", "store_damaged", "follow_links", "raw", "zstd", "dedup", "keep_going")
_VALUES = ("exclude", "root", "labels", "jpeg_quality", "max_size", "zstd_level", "dictionary", "page_size",
           "descriptor_stride", "key")


def pack_options(threads: int, given: "Dict[str, Any]") -> "Dict[str, Any]":
    """The options of a user as the C part takes them."""
    names = ("kind", "checksums", *_FLAGS, *_VALUES)
    unknown = set(given) - set(names)
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    options: "Dict[str, Any]" = {name: given[name] for name in (*_FLAGS, *_VALUES) if name in given}
    kind = given.get("kind")
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}; it can be {', '.join(_KINDS)}")
    if isinstance(options.get("exclude"), str):
        options["exclude"] = [options["exclude"]]
    if options.get("root") is not None:
        options["root"] = os.path.abspath(os.fspath(options["root"]))
    if options.get("dictionary") and not options.get("zstd"):
        raise ValueError("a dictionary requires zstd=True")
    return {**options, "kind": 0 if kind is None else _KINDS.index(kind) + 1,
            "no_checksums": not given.get("checksums", True), "encrypt": options.get("key") is not None,
            "threads": threads}


def pack(files: "Union[Path, Sequence[Path]]", out: Path, *, overwrite: bool = False, threads: int = 0,
         progress: Progress = None, **options: Any) -> "Dict[str, Any]":
    """Packs a folder of pictures, sounds, texts or arrays, tar shards, or a manifest into a set, as `coffer pack` does.

    options : those of the command with underscores (kind, exclude, strict, decode, store_damaged, follow_links, root,
    labels, jpeg_quality, max_size, raw, zstd, zstd_level, dictionary, dedup, keep_going, page_size, checksums,
    descriptor_stride), and key to encrypt. The result accounts for every file, as `coffer pack --json` does.

    >>> report = coffer.mldf.pack("pictures", "pictures.mldf")
    >>> report["found"], report["packed"], report["complete"]
    (2, 2, True)
    """
    given = [os.fspath(item) for item in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    if not given:
        raise ValueError("no input to pack")
    with callback(progress, "pack") as step:
        return _core.pack_set(given, os.fspath(out), {**pack_options(threads, options), "overwrite": overwrite}, step)
