"""Real programs, recorded three ways: bench/mlyze.py BUILD DATA.

A compiler run and a Python program are recorded by trace_preload (then made a .mlyze), by heaptrack and, the Python
program, by memray. Printed beside each other: bytes per event, and events per second of the analysis. A peer that is not
there is a row that says so."""
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

build, data = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
data.mkdir(parents=True, exist_ok=True)
coffer = build / "coffer"

SOURCE = "\n".join(["#include <algorithm>", "#include <functional>", "#include <map>", "#include <regex>",
                    "#include <string>", "#include <vector>"] +
                   [f"int f{i}(std::map<int, std::string> &m) {{ std::vector<int> v(m.size()); "
                    f"std::sort(v.begin(), v.end(), std::greater<int>()); return std::regex_match(m[{i}], std::regex(\"a+{i}\")); }}"
                    for i in range(60)])
SCRIPT = """
import json
rows = [{"id": i, "name": f"row {i}", "values": [i, i * 2.5, str(i)]} for i in range(20000)]
for _ in range(6):
    text = json.dumps(rows)
    rows = json.loads(text)
"""


def programs():
    source, script = data / "unit.cc", data / "program.py"
    source.write_text(SOURCE)
    script.write_text(SCRIPT)
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    triple = subprocess.run(["g++", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    multiarch = ["-imultiarch", triple] if triple else []
    if compiler and os.path.isabs(compiler):
        yield "compiler", [compiler, "-quiet", *multiarch, "-D_GNU_SOURCE", "-O1", str(source), "-o", "/dev/null"], {}
    yield "python", ["/usr/bin/python3", str(script)], {"PYTHONMALLOC": "malloc"}


def timed(command, **options):
    """The best of three."""
    best = None
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, **options)
        seconds = time.perf_counter() - start
        if done.returncode:
            return None
        best = seconds if best is None else min(best, seconds)
    return best


def row(name, value):
    print(f"  {name:<58} {value}", flush=True)


def archive(name, trace, events):
    """Size and speed of the archive of a trace in LZ4 blocks; the times are those of whole commands on one core."""
    out = trace.with_name(trace.stem + "-archive.mlyze")
    one = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    seconds = timed([*one, coffer, "compress", "--archive", "--force", trace, "-o", out])
    row(f"{name}: .mlyze, archive", f"{out.stat().st_size / events:.3f} bytes per event")
    row(f"{name}: coffer compress --archive", f"{events / seconds / 1e6:.1f} M events/s")
    for label, path in (("LZ4", trace), ("archive", out)):
        seconds = timed([*one, coffer, "stats", "--json", "--threads", "1", path])
        row(f"{name}: coffer stats --threads 1, {label}", f"{events / seconds / 1e6:.1f} M events/s")


def ours(name, command, environment):
    raw = data / f"{name}.raw"
    raw.unlink(missing_ok=True)
    subprocess.run(command, env={**os.environ, **environment, "LD_PRELOAD": str(build / "bench/libtrace_preload.so"),
                                 "COFFER_TRACE_RAW": str(raw)}, check=True, capture_output=True)
    events = raw.stat().st_size // 40
    row(f"{name}: events", f"{events:,}")
    for label, level in (("plain", "plain"), ("LZ4 (default)", "0"), ("LZ4 HC 9", "9")):
        out = data / f"{name}-{level}.mlyze"
        subprocess.run([build / "bench/mlyze_from_raw", raw, out, level], check=True)
        row(f"{name}: .mlyze, {label}", f"{out.stat().st_size / events:.2f} bytes per event")
    archive(name, data / f"{name}-0.mlyze", events)
    print(subprocess.run([build / "bench/bench_mlyze", "--runs", "5", data / f"{name}-0.mlyze", data / f"{name}-plain.mlyze"],
                         capture_output=True, text=True, check=True).stdout, end="", flush=True)
    seconds = timed([coffer, "stats", "--json", data / f"{name}-0.mlyze"])
    row(f"{name}: coffer stats", f"{events / seconds / 1e6:.1f} M events/s ({seconds:.2f} s, the whole command)")
    raw.unlink()


def heaptrack(name, command, environment):
    if not shutil.which("heaptrack"):
        return row(f"{name}: heaptrack", "is not installed")
    for old in data.glob(f"{name}-heaptrack*"):
        old.unlink()
    # Newer ones would open a window when they are done.
    usage = subprocess.run(["heaptrack", "--help"], capture_output=True, text=True).stdout
    only = ["--record-only"] if "--record-only" in usage else []
    subprocess.run(["heaptrack", *only, "-o", str(data / f"{name}-heaptrack"), *command],
                   env={**os.environ, **environment}, capture_output=True)
    found = list(data.glob(f"{name}-heaptrack*"))
    if not found:
        return row(f"{name}: heaptrack", "did not record")
    text = subprocess.run(["zstdcat" if found[0].suffix == ".zst" else "zcat", found[0]], capture_output=True).stdout
    events = sum(line[:2] in (b"+ ", b"- ") for line in text.splitlines())
    row(f"{name}: heaptrack's file", f"{found[0].stat().st_size / events:.2f} bytes per event (full stacks, {events:,} events)")
    seconds = timed(["heaptrack_print", "-f", str(found[0])])
    row(f"{name}: heaptrack_print", f"{events / seconds / 1e6:.2f} M events/s" if seconds else "failed")
    imported = data / f"{name}-imported.mlyze"
    done = subprocess.run([coffer, "convert", "--force", found[0], imported], capture_output=True, text=True)
    if done.returncode == 0:
        row(f"{name}: the same events as .mlyze", f"{imported.stat().st_size / events:.2f} bytes per event")
        archive(f"{name}, all stacks", imported, events)
        seconds = timed([coffer, "stats", "--json", imported])
        row(f"{name}: coffer stats of them", f"{events / seconds / 1e6:.1f} M events/s")


def memray(name, command, environment):
    python = Path(sys.executable)
    if name != "python" or subprocess.run([python, "-c", "import memray"], capture_output=True).returncode:
        return row(f"{name}: memray", "is not there, or the program is not Python")
    out = data / "memray.bin"
    out.unlink(missing_ok=True)
    subprocess.run([python, "-m", "memray", "run", "--trace-python-allocators", "-q", "-o", out, *command[1:]],
                   env={**os.environ, **environment}, capture_output=True, check=True)
    report = subprocess.run([python, "-m", "memray", "stats", "--json", "-f", "-o", data / "memray.json", out],
                            capture_output=True, text=True)
    import json
    total = json.loads((data / "memray.json").read_text())["total_num_allocations"] if report.returncode == 0 else 0
    if not total:
        return row(f"{name}: memray", "gave no statistics")
    row(f"{name}: memray's file", f"{out.stat().st_size / (2 * total):.2f} bytes per event ({total:,} allocations, frees taken as many)")
    seconds = timed([python, "-m", "memray", "stats", "--json", "-f", "-o", data / "memray.json", out])
    row(f"{name}: memray stats", f"{2 * total / seconds / 1e6:.2f} M events/s" if seconds else "failed")


for name, command, environment in programs():
    ours(name, command, environment)
    heaptrack(name, command, environment)
    memray(name, command, environment)
