"""Quantizing and packing, spread over workers, with the bytes that the command writes."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .. import _core
from .. import mcf as _mcf
from .._mldf_pack import pack_options
from ._parts import Job, Path, Stamp, absolute, compute, expect, located, part_path, ranges, same_version, stamps

_TASK_BYTES = 256 << 20
_TARGETS = ("target_bpw", "max_size", "min_snr", "max_error")
_MOST_TASKS = 1000
_QUANTIZED = ("q8", "q4", "k6", "k4", "k3", "k2", "int8", "int4")


# ---- Models ----

def _quantize_part(model: str, folder: str, names: "List[str]", options: "Dict[str, Any]",
                   before: "Dict[str, Stamp]", version: str) -> "Tuple[str, Dict[str, Any]]":
    same_version(version)
    expect(before)
    path = part_path(folder, ".mcf")
    report = _core.quantize(model, path, {**options, "only": names}, None)
    expect(before)
    return path, report


def _files_of(model: str, others: "Sequence[Optional[str]]") -> "Tuple[Dict[str, Stamp], Dict[str, int]]":
    """The files of a model with their state, and the bytes of its tensors."""
    with _mcf.Model(model) as opened:
        rows = [opened.tensor_info(name) for name in opened]
    found = {model}
    for name in {row["file"] for row in rows if row["file"]}:
        full = os.path.join(model if os.path.isdir(model) else os.path.dirname(model), name)
        if os.path.exists(full):
            found.add(full)
    return stamps([*sorted(found), *(path for path in others if path)]), {row["name"]: row["bytes"] for row in rows}


def _groups(names: "Sequence[str]", sizes: "Mapping[str, int]", limit: int) -> "List[List[str]]":
    """Tensors for one task: neighbors, up to a number of bytes."""
    groups: "List[List[str]]" = []
    room = 0
    for name in names:
        if not groups or sizes[name] > room:
            groups.append([])
            room = limit
        groups[-1].append(name)
        room -= sizes[name]
    return groups


def _fixed(options: "Dict[str, Any]", plan: "Dict[str, Any]", names: "Sequence[str]") -> "Dict[str, Any]":
    """A target needs the errors of all tensors: the plan has found the types, and tasks follow it for their tensors."""
    if not any(options[target] for target in _TARGETS):
        return options
    chosen = set(names)
    rules = [(re.sub(r"([*?\[\]\\])", r"\\\1", row["name"]), row["type"]) for row in plan["tensors"]
             if row["name"] in chosen]
    return {**options, **dict.fromkeys(_TARGETS, 0), "rules": [*options.get("rules", ()), *rules]}


def _joined_moments(file: Path, parts: "Sequence[Dict[str, Any]]") -> "Dict[str, Any]":
    """The reports of the parts on the moments: each has used those of its own tensors."""
    unused = set.intersection(*(set(part["unused"]) for part in parts))
    return {"file": os.fspath(file), "used": sum(part["used"] for part in parts),
            "without": sorted(name for part in parts for name in part["without"]),
            "unused": [name for name in parts[0]["unused"] if name in unused]}


def quantize(model: Path, out: Path, type: "Union[str, Mapping[str, str], None]" = None, *, method: str = "fit",
             include: "Sequence[str]" = (), exclude: "Sequence[str]" = (), weights: Optional[Path] = None,
             hessian: Optional[Path] = None, damping: float = 0.0, target_bpw: float = 0.0, max_size: int = 0,
             min_snr: float = 0.0, max_error: float = 0.0, requantize: bool = False, nan_to_zero: bool = False, activations: bool = False,
             percentile: float = 0.0, portable_scales: bool = False, allow_damaged: bool = False, align: int = 0,
             dedup: bool = True, checksums: bool = True, name: Optional[str] = None, overwrite: bool = False,
             threads: int = 1, bytes_per_task: int = _TASK_BYTES) -> "Dict[str, Any]":
    """Quantizes a model on the workers of the current client, and writes the same bytes as `coffer quantize`.

    type : one for all matrices ("k4"), or a dict of patterns to types, of which the last match counts; not needed with
    a target. threads : of each task. bytes_per_task : tensors are read in tasks of about this size. The other options
    are those of the command. The file appears when it is complete; the result lists each tensor with its error.
    """
    if method not in _mcf._METHODS:
        raise ValueError(f"method is {method!r}; it can be {', '.join(_mcf._METHODS)}")
    targets = {"target_bpw": target_bpw, "max_size": max_size, "min_snr": min_snr, "max_error": max_error}
    if type is None and not any(targets.values()):
        raise ValueError("no type given; pass type=\"k4\", a dict of patterns to types, or a target such as target_bpw")
    full = located(model)
    importance = None if weights is None else located(weights)
    moments = None if hessian is None else located(hessian)
    before, sizes = _files_of(full, [importance, moments])
    options: "Dict[str, Any]" = {
        **_mcf.choice_of(type), "method": _mcf._METHODS[method], "include": list(include), "exclude": list(exclude),
        "weights": importance, "hessian": moments, "damping": damping, **targets, "requantize": requantize, "nan_to_zero": nan_to_zero,
        "activations": activations, "percentile": percentile, "portable_scales": portable_scales,
        "allow_damaged": allow_damaged, "align": align, "name": name, "threads": threads}
    job = Job(out, overwrite, [full, *before])
    named = os.fspath(model)  # the name of the model comes from its path
    plan = _core.quantize(named, None, {**options, "plan": True, "threads": 0}, None)
    names = [row["name"] for row in plan["tensors"]
             if row["type"] in _QUANTIZED and (requantize or row["type"] != row["from"])]
    from dask.delayed import delayed

    with job:
        work = delayed(_quantize_part, pure=False)
        made = compute([work(full, job.folder, group, _fixed(options, plan, group), before, _core.version)
                        for group in _groups(names, sizes, bytes_per_task)])
        report = _core.quantize(named, job.joined(), {
            **_fixed(options, plan, names), "parts": [path for path, _ in made], "threads": 0, "no_dedup": not dedup,
            "no_checksums": not checksums}, None)
        expect(before)
        job.publish()
    rows = {row["name"]: row for _, part in made for row in part["tensors"]}
    report["tensors"] = [rows.get(row["name"], row) for row in report["tensors"]]
    if hessian is not None and made:
        report["moments"] = _joined_moments(hessian, [part["moments"] for _, part in made])
    report["small_scales"] += sum(part["small_scales"] for _, part in made)
    return report


# ---- Training sets ----

def _pack_part(inputs: "List[str]", folder: str, span: "Tuple[int, int]", options: "Dict[str, Any]",
               version: str) -> "Tuple[str, Dict[str, Any]]":
    same_version(version)
    path = part_path(folder, ".mldf")
    return path, _core.pack_set(inputs, path, {**options, "first": span[0], "count": span[1] - span[0]}, None)


def _pack_model(folder: str, inputs: "List[str]", options: "Dict[str, Any]",
                before: "Dict[str, Stamp]") -> "Tuple[str, Dict[str, Any]]":
    expect(before)
    path = part_path(folder, ".mcf")
    report = _mcf.pack(inputs, path, **options)
    expect(before)
    return path, report


def pack(files: "Union[Path, Sequence[Path]]", out: Path, *, overwrite: bool = False,
         samples_per_task: Optional[int] = None, threads: int = 1, **options: Any) -> "Dict[str, Any]":
    """Packs folders, shards or a manifest into a set, on the workers of the current client, and writes the same bytes
    as `coffer pack`; what is encrypted differs in every run.

    options : those of the command with underscores (kind, exclude, strict, decode, store_damaged, follow_links, root,
    labels, jpeg_quality, max_size, raw, zstd, zstd_level, dictionary, dedup, keep_going, page_size, checksums,
    descriptor_stride), and key to encrypt. threads : of each task. The result accounts for every file, as
    `coffer pack --json` does. Every task lists the input and trains dictionaries again, so there are at most 1000 of
    them. An .mcf file is packed by one task, because copying tensors needs the disk only; its options are those of
    coffer.mcf.pack.
    """
    given = [os.fspath(item) for item in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    inputs = [located(item) for item in given]
    target = absolute(out)
    if not inputs:
        raise ValueError("no input to pack")
    if target.endswith(".mcf"):
        return _pack_to_model(inputs, target, overwrite, threads, options)
    return _pack_to_set(inputs, given, target, overwrite, threads, samples_per_task, options)


def _pack_to_model(inputs: "List[str]", out: str, overwrite: bool, threads: int,
                   options: "Dict[str, Any]") -> "Dict[str, Any]":
    from dask.delayed import delayed

    before = stamps(inputs)
    with Job(out, overwrite, [*inputs, *before]) as job:
        work = delayed(_pack_model, pure=False)
        [(path, report)] = compute([work(job.folder, inputs, {**options, "threads": threads}, before)])
        os.rename(path, job.joined())
        job.publish()
    return report


def _pack_to_set(inputs: "List[str]", names: "List[str]", out: str, overwrite: bool, threads: int,
                 samples_per_task: Optional[int], given: "Dict[str, Any]") -> "Dict[str, Any]":
    from dask.delayed import delayed

    # Workers have other current folders: they get absolute paths, and the names that samples have in the set.
    options = {**pack_options(threads, given), "names": names}
    job = Job(out, overwrite, inputs)
    plan = _core.pack_set(inputs, None, {**options, "plan": True}, None)
    count = plan["samples"]
    if samples_per_task is not None and samples_per_task < 1:
        raise ValueError(f"{samples_per_task} samples per task; at least 1 is needed")
    usual = max(1, count * _TASK_BYTES // plan["bytes"]) if plan["bytes"] else 4096
    size = max(samples_per_task or usual, -(-count // _MOST_TASKS), 1)
    expected = {**options, "expected_input": plan["input"]}
    with job:
        work = delayed(_pack_part, pure=False)
        made = compute([work(inputs, job.folder, span, expected, _core.version) for span in ranges(count, size) if span[1]])
        report = _core.pack_set(inputs, job.joined(), {**expected, "parts": [path for path, _ in made], "threads": 0}, None)
        job.publish()
    return _account(report, [part for _, part in made])


def _account(report: "Dict[str, Any]", parts: "List[Dict[str, Any]]") -> "Dict[str, Any]":
    """The report of the join, with the samples that the tasks packed and left out."""
    for name in ("packed", "skipped"):
        report[name] += sum(part[name] for part in parts)
    report["complete"] = report["complete"] and all(part["complete"] for part in parts)
    report["left_out"] = [row for part in parts for row in part["left_out"]] + report["left_out"]
    notes: "Dict[str, int]" = {}
    for note in [note for part in parts for note in part["notes"]] + report["notes"]:
        notes[note["text"]] = notes.get(note["text"], 0) + note["count"]
    report["notes"] = [{"count": count, "text": text} for text, count in notes.items()]
    return report


__all__ = ["quantize", "pack"]
