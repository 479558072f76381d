"""The command on whole files next to dd, sha256 and programs that write text, turn and turn about.

usage: files.py COFFER FOLDER [--quick] [--json]

Makes a matrix, a set, a model and a scan in a temporary folder in FOLDER. Rows have the median and the best of several runs. Rows of
text are per second of processor time, so that they say what one core does; the others are of the clock.
"""
import json
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

coffer, folder = sys.argv[1:3]
quick, as_json = "--quick" in sys.argv, "--json" in sys.argv
runs = 3 if quick else 7
rows = []


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def forget(*paths):
    """Drops the pages of files, so that the next reader finds them on the disk."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(tasks, amount, unit, clock=time.perf_counter, before=None):
    """Adds a row for each task, a pair of name and function; they take turns."""
    seconds = {name: [] for name, _ in tasks}
    for turn in range(runs + (before is None)):
        for name, work in tasks:
            if before:
                before()
            start = clock()
            work()
            spent = max(clock() - start, 1e-9)
            if turn or before:  # the first turn warms up
                seconds[name].append(spent)
    for name, spent in seconds.items():
        rows.append({"name": name, "median": amount / statistics.median(spent), "best": amount / min(spent), "unit": unit})


def missing(name, why):
    rows.append({"name": name, "median": 0, "best": 0, "unit": "", "note": why})


def numbers(place):
    """A matrix of doubles that need 16 or 17 digits."""
    count = (2 if quick else 10) * 10**6
    state, values = 1, bytearray()
    for _ in range(count // 1000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values += struct.pack("<d", state / 2**64) * 1
    block = bytes(values)
    raw = os.path.join(place, "raw.npy")
    header = str({"descr": "<f8", "fortran_order": False, "shape": (count // 1000, 1000)}).encode()
    header += b" " * (117 - len(header)) + b"\n"
    with open(raw, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        for _ in range(1000):
            file.write(block)
    return raw, count


def text(place):
    raw, count = numbers(place)
    path = {kind: os.path.join(place, "m." + kind) for kind in ("pycauset", "csv", "mtx", "mldf", "jsonl")}
    table = os.path.join(place, "columns.csv")
    run(coffer, "convert", raw, path["pycauset"], "--force", "--quiet")

    def convert(source, target):
        return lambda: run(coffer, "convert", source, target, "--force", "--quiet")

    millions = count / 1e6
    tasks = [("matrix to CSV", convert(path["pycauset"], path["csv"])),
             ("matrix to Matrix Market", convert(path["pycauset"], path["mtx"]))]
    try:
        import numpy

        array = numpy.load(raw)[: max(1, count // 100000)]  # a hundredth, because it takes as long
        tasks_numpy = [("  numpy.savetxt, repr", lambda: numpy.savetxt(os.path.join(place, "np.csv"), array, fmt="%r", delimiter=","))]
    except ImportError:
        tasks_numpy = []
        missing("  numpy.savetxt", "numpy is not installed")
    measure(tasks, millions, "M numbers/s and core", processor)
    if tasks_numpy:
        measure(tasks_numpy, array.size / 1e6, "M numbers/s and core", time.process_time)
    measure([("CSV to matrix", convert(path["csv"], os.path.join(place, "back.pycauset"))),
             ("Matrix Market to matrix", convert(path["mtx"], os.path.join(place, "back.pycauset")))],
            millions, "M numbers/s and core", processor)
    lines = 20000 if quick else 100000
    with open(path["csv"]) as source, open(table, "w") as target:
        target.write(",".join(f"c{i}" for i in range(10)) + "\n")
        values = source.readline().strip().split(",")
        for i in range(lines):
            target.write(",".join(values[(i + k) % 1000] for k in range(10)) + "\n")
    run(coffer, "convert", table, path["mldf"], "--force", "--quiet")
    measure([("set to CSV", convert(path["mldf"], os.path.join(place, "s.csv"))),
             ("set to JSON lines", convert(path["mldf"], path["jsonl"])),
             ("CSV to set", convert(table, os.path.join(place, "s.mldf")))], lines * 10 / 1e6, "M numbers/s and core", processor)
    measure([("JSON lines to set", convert(path["jsonl"], os.path.join(place, "s.mldf")))], lines * 10 / 1e6,
            "M numbers/s and core", processor)
    return path


def model(place, name, size, seed):
    """A model of tensors of 16 MiB as safetensors, and from it one of ours."""
    count, each = max(1, size // (16 << 20)), 16 << 20
    header = json.dumps({f"layer.{i}": {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]}
                         for i in range(count)}).encode()
    header += b" " * (-len(header) % 8)
    path = os.path.join(place, name)
    with open(path + ".safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for i in range(count):
            file.write(os.urandom(1 << 20) * 16)
    run(coffer, "convert", path + ".safetensors", path + ".mcf", "--force", "--quiet")
    return path + ".mcf"


def dd(*paths):
    return lambda: [run("dd", "if=" + path, "of=/dev/null", "bs=1M") for path in paths]


def whole_files(place, paths):
    first = model(place, "a", (256 if quick else 2048) << 20, 1)
    second = os.path.join(place, "b.mcf")
    shutil.copy(first, second)
    size = os.path.getsize(first) / 1e9

    def command(*words):
        return lambda: run(coffer, *words)

    measure([("info --hash, all cores", command("info", "--hash", first)), ("  sha256sum, one core", lambda: run("sha256sum", first)),
             ("  openssl sha256, one core", lambda: run("openssl", "sha256", first))] if shutil.which("openssl") else
            [("info --hash, all cores", command("info", "--hash", first)), ("  sha256sum, one core", lambda: run("sha256sum", first))],
            size, "GB/s")
    measure([("check --full of a model, cached", command("check", "--full", first)), ("  dd", dd(first))], size, "GB/s")
    measure([("diff of two equal models, cached", command("diff", first, second)), ("  dd of both", dd(first, second))],
            2 * size, "GB/s")
    for kind in ("pycauset", "mldf"):
        measure([(f"check --full of {kind}, cached", command("check", "--full", paths[kind])), ("  dd", dd(paths[kind]))],
                os.path.getsize(paths[kind]) / 1e9, "GB/s")
    measure([("check --full of a model, from the disk", command("check", "--full", first)), ("  dd", dd(first)),
             ("  dd, direct", lambda: run("dd", "if=" + first, "of=/dev/null", "bs=1M", "iflag=direct"))],
            size, "GB/s", before=lambda: forget(first))


def main():
    place = tempfile.mkdtemp(prefix="files-", dir=folder)
    try:
        whole_files(place, text(place))
    finally:
        shutil.rmtree(place)
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['name']:60} {row['median']:12.4g} {row['best']:12.4g}  {row['unit']} {row.get('note', '')}")


main()
