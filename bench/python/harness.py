"""What the benchmarks of the Python package share: contestants that take turns, and rows of JSON on standard output.

A row is {"task", "who", "version", "unit", "per", "wall": [seconds], "cpu": [seconds]}, or {"task", "who", "missing"}.
Seconds are those of one run; a run does "per" operations. "cpu" counts this process and its children.
"""
import gc
import importlib.metadata
import json
import os
import resource
import sys
import time
from pathlib import Path

OURS = "coffer"
data = Path(os.environ.get("COFFER_BENCH_DATA", "build/bench-data")) / "python"


def say(**row):
    print(json.dumps(row), flush=True)


def missing(task, who, why):
    say(task=task, who=who, missing=str(why)[:100])


def version_of(package):
    """The version of an installed package; None for what is not a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor_seconds():
    """Of this process, its children that ended, and those that run: the workers of a loader outlive an epoch."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total + sum(seconds_of(pid) for pid in children())


def children():
    try:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return []


def seconds_of(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended meanwhile
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Contest:
    """One task and those who do it. They take turns, so that what else the machine does hits all of them."""

    def __init__(self, task, unit="µs", per=1, runs=7, repeat=1):
        self.task, self.unit, self.per, self.runs, self.repeat = task, unit, per * repeat, runs, repeat
        self.contestants = []

    def enter(self, who, prepare, package=None, per=None):
        """prepare() returns the function to measure. It may raise ImportError: the row then says what is missing."""
        try:
            work = prepare()
            work()  # warm up
        except ImportError as error:
            return missing(self.task, who, f"not installed (make bench-peers): {error}")
        except Exception as error:  # a peer that fails has a row that says so
            return missing(self.task, who, f"failed: {type(error).__name__}: {error}")
        version = version_of(package) if package else None
        self.contestants.append((who, version, work, per * self.repeat if per else self.per, [], []))

    def run(self):
        for _ in range(self.runs):
            for _, _, work, _, wall, cpu in self.contestants:
                gc.collect()
                began, start = processor_seconds(), time.perf_counter()
                for _ in range(self.repeat):
                    work()
                wall.append(time.perf_counter() - start)
                cpu.append(processor_seconds() - began)
        for who, version, _, per, wall, cpu in self.contestants:
            say(task=self.task, who=who, version=version, unit=self.unit, per=per, wall=wall, cpu=cpu)
        self.contestants.clear()


def cached(name, make):
    """A file or folder of test data; make(path) creates it. It appears complete or not at all."""
    path = data / name
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        scratch = data / f"new-{os.getpid()}-{name}"
        make(scratch)
        scratch.rename(path)
    return path


def main(*benches):
    wanted = sys.argv[1:]
    for bench in benches:
        if not wanted or bench.__name__ in wanted:
            bench()
