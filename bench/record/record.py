#!/usr/bin/env python3
"""Runs programs alone and under recorders: record.py BUILD [--runs N] [--only NAME] [--python PYTHON] [--json]"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("build", type=Path)
parser.add_argument("--runs", type=int, default=3)
parser.add_argument("--only")
parser.add_argument("--python", default=sys.executable)
parser.add_argument("--events", type=int, default=4_000_000, help="events of the torture")
parser.add_argument("--json", action="store_true")
options = parser.parse_args()

HERE = Path(__file__).resolve().parent
COFFER = str(options.build.resolve() / "coffer")
HEADERS = "algorithm bitset chrono deque filesystem fstream functional future iostream list map memory numeric queue random regex set sstream string thread tuple unordered_map variant vector"
JSON_APP = """
import json
data = [{"name": str(i), "values": list(range(20)), "nested": {"a": i, "b": [i] * 5}} for i in range(5000)]
for _ in range(12):
    data = json.loads(json.dumps(data))
print(len(data))
"""
NUMPY_APP = """
import numpy as np
a = np.random.default_rng(1).random((300, 300))
for i in range(100):
    b = (a @ a) / 300
    a = b - b.mean() + np.sqrt(np.abs(a))
print(a.shape)
"""


def has(module):
    return subprocess.run([options.python, "-c", f"import {module}"], capture_output=True).returncode == 0


def programs(folder):
    (folder / "large.cc").write_text("".join(f"#include <{name}>\n" for name in HEADERS.split()) +
                                     "int main() { std::map<std::string, std::vector<std::regex>> m; return (int)m.size(); }\n")
    (folder / "app_json.py").write_text(JSON_APP)
    (folder / "app_numpy.py").write_text(NUMPY_APP)
    subprocess.run(["cc", "-O2", "-g", "-o", folder / "torture", HERE / "torture.c", "-lpthread"], check=True)
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    if Path(compiler).exists():
        source = subprocess.run(["g++", "-E", folder / "large.cc", "-o", folder / "large.ii"])
        if source.returncode == 0:
            yield "compile", [compiler, "-quiet", "-O1", "-fpreprocessed", folder / "large.ii", "-o", folder / "large.s"], False
    yield "json", [options.python, folder / "app_json.py"], True
    if has("numpy"):
        yield "numpy", [options.python, folder / "app_numpy.py"], True
    for threads in (1, 2):
        yield f"torture-{threads}", [folder / "torture", threads, options.events], False


def recorders(python):
    yield "alone", [], None
    yield "coffer --no-stacks", [COFFER, "record", "-q", "-f", "--no-symbols", "--no-stacks", "-o", "run.mlyze", "--"], None
    yield "coffer", [COFFER, "record", "-q", "-f", "--no-symbols", "-o", "run.mlyze", "--"], None
    if python:
        yield "coffer --native", [COFFER, "record", "-q", "-f", "--native", "--no-symbols", "-o", "run.mlyze", "--"], None
    yield "coffer, names", [COFFER, "record", "-q", "-f", "-o", "run.mlyze", "--"], None
    if shutil.which("heaptrack"):
        yield "heaptrack", ["heaptrack", "--raw", "-o", "heap"], "heaptrack"
        yield "heaptrack, names", ["heaptrack", "-o", "heap"], "heaptrack"
    if python and has("memray"):
        yield "memray", [options.python, "-m", "memray", "run", "-q", "-f", "-o", "memray.bin"], "memray"
        yield "memray --native", [options.python, "-m", "memray", "run", "-q", "-f", "--native", "-o", "memray.bin"], "memray"


def measure(command, folder):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{command}: status {done.returncode}\n{done.stderr}")
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def own_figures(text):
    """What torture prints: wall-clock and CPU nanoseconds per event."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and all(word.replace(".", "", 1).isdigit() for word in words):
            return tuple(map(float, words))
    return None


def bench(folder):
    for name, command, python in programs(folder):
        if options.only and options.only not in name:
            continue
        rows = {label: [] for label, _, _ in recorders(python)}
        for _ in range(options.runs):  # in turns, so that a busy moment hits all of them
            for label, prefix, kind in recorders(python):
                words = prefix + (command[1:] if kind == "memray" else command)
                rows[label].append(measure(words, folder))
        base = [statistics.median(run[i] for run in rows["alone"]) for i in (0, 1)]
        for label, runs in rows.items():
            wall, cpu = (statistics.median(run[i] for run in runs) for i in (0, 1))
            figures = [own_figures(run[2]) for run in runs]
            per_event = [statistics.median(figure[i] for figure in figures) for i in (0, 1)] if all(figures) else None
            yield {"program": name, "recorder": label, "wall_s": wall, "cpu_s": cpu, "wall_ratio": wall / base[0],
                   "cpu_ratio": cpu / base[1], "ns_per_event": per_event}


with tempfile.TemporaryDirectory(prefix="coffer-bench-") as place:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    results = []
    for row in bench(Path(place)):
        results.append(row)
        if options.json:
            continue
        events = f"   {row['ns_per_event'][0]:6.1f} ns/event, CPU {row['ns_per_event'][1]:6.1f}" if row["ns_per_event"] else ""
        print(f"{row['program']:10} {row['recorder']:20} {row['wall_s']:7.2f} s {row['wall_ratio']:6.2f} x   "
              f"CPU {row['cpu_s']:7.2f} s {row['cpu_ratio']:6.2f} x{events}", flush=True)
    if options.json:
        print(json.dumps(results))
