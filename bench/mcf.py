"""Models side by side: opening and listing, packing next to cp, reading next to dd.

usage: mcf.py FOLDER [BYTES]

Opening and listing a model of 1000 tensors runs in this process: the library through ctypes, safetensors (whose core is Rust)
and gguf as the packages of their makers. Packing and reading run the command, cp and dd, in turn, on a model of BYTES
(1 GiB) in FOLDER. Files that are read are dropped from the page cache first where that is possible.
Prints a table with the ratio to each row's yardstick; $COFFER_BENCH_JSON names a file for the same as JSON.
"""
import ctypes
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TENSORS, RUNS = 1000, 5
folder = Path(sys.argv[1])
payload_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 30
rows = []


def add(name, seconds, unit="ms", peer_of=None, speed_of=None):
    """A row: of a peer with how much longer it takes than ours, of ours with its speed relative to a yardstick's."""
    row = {"name": name, "median": statistics.median(seconds), "unit": unit}
    if peer_of:
        row["ratio"] = row["median"] / statistics.median(peer_of)
        row["says"] = f"{row['ratio']:.1f} times as long"
    if speed_of:
        row["ratio"] = statistics.median(speed_of) / row["median"]
        row["says"] = f"{100 * row['ratio']:.0f} % of that speed"
    rows.append(row)
    return seconds


def missing(name, why):
    rows.append({"name": name, "missing": why})


def measure(work, runs=RUNS):
    work()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


# ---- Opening and listing ----


def make_small_models(numpy):
    """The same thousand tensors as safetensors, GGUF and mcf."""
    weights = {f"model.layers.{i // 10}.part{i % 10}.weight": numpy.full((64, 64), i, numpy.float32) for i in range(TENSORS)}
    plain, container = folder / "list.safetensors", folder / "list.mcf"
    from safetensors.numpy import save_file

    save_file(weights, plain)
    subprocess.run(["coffer", "pack", "--force", "--quiet", plain, container], check=True, stdout=subprocess.DEVNULL)
    try:
        import gguf
    except ImportError:
        return
    writer = gguf.GGUFWriter(folder / "list.gguf", "llama")
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def list_with_library():
    library = ctypes.CDLL(os.environ.get("COFFER_LIBRARY", "libcoffer.so"))
    path = os.fsencode(folder / "list.mcf")

    def work():
        source, root = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.coffer_source_open(ctypes.byref(source), path, None, None) == 0
        assert library.coffer_node_new(ctypes.byref(root), None) == 0
        assert library.coffer_list(root, source, None, None) == 0
        library.coffer_node_free(root)
        library.coffer_source_close(source)

    return measure(work)


def list_with_safetensors():
    from safetensors import safe_open

    path = folder / "list.safetensors"

    def work():
        with safe_open(path, framework="numpy") as model:
            return [(name, part.get_dtype(), part.get_shape()) for name in model.keys() for part in [model.get_slice(name)]]

    return measure(work)


def list_with_gguf():
    import gguf

    path = folder / "list.gguf"
    return measure(lambda: [(t.name, t.tensor_type, t.shape) for t in gguf.GGUFReader(path).tensors])


def bench_listing():
    try:
        import numpy

        make_small_models(numpy)
    except ImportError as why:
        return missing(f"open and list {TENSORS} tensors", f"{why.name} is not installed (make bench-peers)")
    ours = list_with_library()
    add(f"open and list {TENSORS} tensors, coffer", ours)
    for name, work in (("safetensors", list_with_safetensors), ("gguf", list_with_gguf)):
        try:
            add(f"the same, {name} {importlib.metadata.version(name)}", work(), peer_of=ours)
        except ImportError:
            missing(f"the same, {name}", "not installed (make bench-peers)")


# ---- Packing and reading ----


def make_large_model():
    """A header and random bytes: what is in a model does not matter to whoever copies it, but holes would."""
    path = folder / "large.safetensors"
    count = 64
    each = payload_bytes // count // 4 * 4
    header = {
        f"model.layers.{i}.weight": {"dtype": "F32", "shape": [each // 4], "data_offsets": [i * each, (i + 1) * each]}
        for i in range(count)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if path.exists() and path.stat().st_size == 8 + len(text) + count * each:
        return path
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for i in range(count):
            # Different in each tensor, and finite as floats.
            out.write((os.urandom(4096).translate(bytes(b & 0x3F for b in range(256))) * (each // 4096 + 1))[:each])
    return path


def drop_from_cache(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(command, reads, writes=None):
    seconds = []
    for _ in range(3):
        if writes:
            Path(writes).unlink(missing_ok=True)
        drop_from_cache(reads)
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return seconds


def bench_packing():
    model, packed, copy = make_large_model(), folder / "large.mcf", folder / "copy.safetensors"
    # The container is durable when the command ends, so the copy has to be as well.
    cp = add("cp and sync", timed(["sh", "-c", f"cp '{model}' '{copy}' && sync '{copy}'"], model, copy), "s")
    add("pack", timed(["coffer", "pack", "-q", model, packed], model, packed), "s", speed_of=cp)
    add("pack, no checksums", timed(["coffer", "pack", "-q", "--no-checksums", model, packed], model, packed), "s", speed_of=cp)
    add("pack --cast bf16, half as much to write", timed(["coffer", "pack", "-q", "--cast", "bf16", model, packed], model, packed), "s", speed_of=cp)
    copy.unlink()


def bench_reading():
    packed = folder / "large.mcf"
    packed.unlink(missing_ok=True)
    subprocess.run(["coffer", "pack", "-q", folder / "large.safetensors", packed], check=True, stdout=subprocess.DEVNULL)
    dd = add("dd to nowhere", timed(["dd", f"if={packed}", "of=/dev/null", "bs=1M"], packed), "s")
    add("check --full", timed(["coffer", "check", "-q", "--full", packed], packed), "s", speed_of=dd)
    add("info --hash", timed(["coffer", "info", "-q", "--hash", packed], packed), "s", speed_of=dd)
    packed.unlink()


def print_table():
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        if "missing" in row:
            print(f"{row['name']:{width}}  {row['missing']}")
            continue
        scale = 1e3 if row["unit"] == "ms" else 1.0
        print(f"{row['name']:{width}}  {row['median'] * scale:9.3f} {row['unit']:2}  {row.get('says', '')}".rstrip())
    if os.environ.get("COFFER_BENCH_JSON"):
        with open(os.environ["COFFER_BENCH_JSON"], "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


folder.mkdir(parents=True, exist_ok=True)
bench_listing()
bench_packing()
bench_reading()
print_table()
