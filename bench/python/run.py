"""Runs the benchmarks of the Python package and prints their results next to the goals.

usage: run.py [--cpu-time] [--only NAME] [--json FILE] [--from FILE] [--docs FILE]

--cpu-time : compare processor time, for a machine that has other work; otherwise the clock. --only : models, sets, loaders,
scans or imports; repeatable. --json : writes the rows and goals (default: python.json in the data folder). --from : prints
an earlier result instead of running. --docs : replaces the table between the markers in a Markdown file.
Every part runs in its own process; one that fails or takes too long has a row that says so.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Programs and their parts, with the seconds that each part may take.
PROGRAMS = {
    "models": {"opening": 60, "loading": 240, "dequantizing": 120},
    "sets": {"values": 40, "batches": 40},
    "loaders": {"samples": 180, "pictures": 180},
    "scans": {"stats": 90},
    "imports": {"imports": 60},
}
OURS = "coffer"
SCALES = {"ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1.0}
BEGIN, END = "<!-- bench-python begin -->", "<!-- bench-python end -->"

MAP_STYLE = "coffer, map style and default_collate"
# (task, peer, least ratio of the peer's time to ours), or (task, None, most seconds of ours); a fourth item names one of
# several ways of ours
GOALS = [
    ("open, list 1000 names, one tensor", "safetensors", 2.0),
    ("load 1 GB as NumPy arrays", "safetensors", 1.0),
    ("load 1 GB as torch tensors", "safetensors", 1.0),
    ("load 1 GB as NumPy arrays and sum them", "safetensors", 1 / 1.05),
    ("load 1 GB as torch tensors and sum them", "safetensors", 1 / 1.05),
    ("dequantize q8, 4096 x 4096", "C", 1 / 1.05),
    ("dequantize k4, 4096 x 4096", "C", 1 / 1.05),
    ('ds[i, "label"]', None, 1e-6),
    ("ds.batch of 32, numbers, per sample", None, 150e-9),
    ("ds.batch of 256, numbers, per sample", None, 150e-9),
    ("DataLoader, 2 workers, 100 KB samples", "WebDataset", 2.0),
    ("DataLoader, 2 workers, 100 KB samples", "image folder (torchvision)", 2.0),
    ("DataLoader, 2 workers, 100 KB samples", "MDS (mosaicml-streaming)", 1.0),
    ("DataLoader, 2 workers, 100 KB samples", "ArrayRecord", 1.0),
    ("DataLoader, 2 workers, 100 KB samples", "WebDataset", 2.0, MAP_STYLE),
    ("DataLoader, 2 workers, JPEG to 224 x 224", "torchvision + Pillow, image folder", 1.0),
    ("scan.stats, 39 million records", "coffer stats, the command", 1 / 1.05),
    ("import", None, 50e-3),
]


def run_program(name, part, seconds):
    """The rows of one part of a program."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    command = [sys.executable, str(HERE / f"{name}.py"), part]
    rows = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                               start_new_session=True)
    try:
        output, errors = process.communicate(timeout=seconds)
        why = f"ended with {process.returncode}: {errors.strip().splitlines()[-1:] or ''}" if process.returncode else None
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # with the workers of its loaders
        output, errors = process.communicate()
        why = f"took more than {seconds} s"
    for line in output.splitlines():
        if line.startswith("{"):
            rows.append(dict(json.loads(line), program=name))
    if why:
        rows.append({"program": name, "task": f"{name}.py {part}", "who": OURS, "missing": why})
    return rows


def seconds_of(row, clock):
    """The fastest run, for one operation: other programs only make runs slower."""
    found = row.get(clock) or row.get("wall") or row.get("cpu")
    return min(found) / row["per"] if found else None


def merged(rows):
    """Rows of the same task and contestant as one: they may have one clock each, or more runs."""
    result = {}
    for row in rows:
        one = result.setdefault((row["task"], row["who"]), dict(row, wall=[], cpu=[]) if "missing" not in row else row)
        for clock in ("wall", "cpu"):
            one.get(clock, []).extend(row.get(clock, ()))
    return list(result.values())


def judged(rows, clock):
    found = {(row["task"], row["who"]): seconds_of(row, clock) for row in rows if "missing" not in row}
    found["import", OURS] = without_interpreter(found)
    verdicts = []
    for task, peer, limit, *way in GOALS:
        who = way[0] if way else OURS
        ours, theirs = found.get((task, who)), found.get((task, peer))
        verdict = {"task": task, "peer": peer, "limit": limit, "who": who}
        if ours is not None and peer is None:
            verdict.update(value=ours, met=ours <= limit)
        elif ours is not None and theirs is not None:
            verdict.update(value=theirs / ours, met=theirs / ours >= limit)
        verdicts.append(verdict)
    return verdicts


def without_interpreter(found):
    """What importing adds to the start of Python."""
    whole, alone = found.get(("import", OURS)), found.get(("import", "limit: the interpreter alone"))
    return whole if whole is None or alone is None else whole - alone


def shown(seconds, unit):
    value = seconds * SCALES[unit]
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def print_rows(rows, clock):
    tasks = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    width = max(len(name_of(row)) for row in rows) + 2
    for task, group in tasks.items():
        ours = next((seconds_of(row, clock) for row in group if row["who"] == OURS and "missing" not in row), None)
        print(f"\n{task}")
        for row in group:
            if "missing" in row:
                print(f"  {name_of(row):{width}} {row['missing']}")
                continue
            times = [shown(seconds_of(row, name), row["unit"]) for name in ("wall", "cpu")]
            ratio = f"{seconds_of(row, clock) / ours:8.2f} x" if ours and row["who"] != OURS else ""
            print(f"  {name_of(row):{width}} {times[0]:>11} {times[1]:>11} {ratio}".rstrip())


def name_of(row):
    return row["who"] + (f" {row['version']}" if row.get("version") else "")


def task_text(goal):
    """The task, with the way when it is not the usual one: "coffer, map style …"."""
    return goal["task"] + goal["who"].removeprefix(OURS).partition(" and ")[0]


def goal_text(goal):
    if goal["peer"] is None:
        return f"under {shown(goal['limit'], unit_for(goal['limit']))}"
    if goal["limit"] < 1:
        return f"within 5 % of {goal['peer']}"
    return f"at least {goal['limit']:g} times as fast as {goal['peer']}" if goal["limit"] > 1 else f"faster than {goal['peer']}"


def unit_for(seconds):
    return next(unit for unit in ("s", "ms", "µs", "ns") if seconds * SCALES[unit] >= 0.999 or unit == "ns")


def value_text(goal):
    if "value" not in goal:
        return "not measured"
    return shown(goal["value"], unit_for(goal["value"])) if goal["peer"] is None else f"{goal['value']:.{2 if goal['value'] < 100 else 0}f} times"


def print_goals(verdicts):
    print("\ngoals")
    for goal in verdicts:
        state = {True: "met", False: "MISSED", None: ""}[goal.get("met")]
        print(f"  {task_text(goal):56} {goal_text(goal):55} {value_text(goal):>14}  {state}")


def machine():
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"processor": names[0] if names else platform.machine(), "cores": os.cpu_count(),
            "python": platform.python_version(), "load": os.getloadavg()[0]}


def markdown(result):
    """The goals as a table, with the time of ours and of the peer."""
    clock = result["clock"]
    found = {(row["task"], row["who"]): row for row in result["rows"] if "missing" not in row}
    lines = [BEGIN, "", "| task | Coffer | peer | goal | measured |", "|---|---|---|---|---|"]
    for goal in result["goals"]:
        ours, theirs = found.get((goal["task"], goal["who"])), found.get((goal["task"], goal["peer"]))
        if "value" not in goal:
            continue
        time = shown(goal["value"], unit_for(goal["value"])) if goal["peer"] is None \
            else shown(seconds_of(ours, clock), ours["unit"])
        peer = "" if theirs is None else f"{name_of(theirs)}: {shown(seconds_of(theirs, clock), theirs['unit'])}"
        state = value_text(goal) if goal["met"] else f"{value_text(goal)}, missed"
        lines.append(f"| {task_text(goal)} | {time} | {peer} | {goal_text(goal)} | {state} |")
    of = result["machine"]
    kind = "Processor time" if clock == "cpu" else "Time"
    lines += ["", f"{kind} of the fastest run, on {of['cores']} cores of {of['processor']} with Python {of['python']}, load "
              f"{of['load']:.1f} at the start; made by `make bench-python`.", "", END]
    return "\n".join(lines)


def update_docs(path, result):
    text = Path(path).read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        sys.exit(f"{path}: no table between {BEGIN} and {END}")
    Path(path).write_text(before + markdown(result) + after, encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--only", action="append", choices=list(PROGRAMS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--from", type=Path, dest="earlier")
    parser.add_argument("--docs", type=Path)
    return parser.parse_args()


def main():
    options = arguments()
    if options.earlier:
        result = json.loads(options.earlier.read_text(encoding="utf-8"))
        rows = result["rows"]
    else:
        result = {"machine": machine()}
        rows = []
        for name in options.only or PROGRAMS:
            for part, seconds in PROGRAMS[name].items():
                print(f"running {name}, {part}", file=sys.stderr)
                rows += run_program(name, part, seconds)
        rows = merged(rows)
    clock = "cpu" if options.cpu_time else result.get("clock", "wall")
    result.update(clock=clock, rows=rows, goals=judged(rows, clock))
    target = options.json or Path(os.environ.get("COFFER_BENCH_DATA", "build/bench-data")) / "python.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{'':40} {'time':>13} {'processor':>11}   time relative to coffer")
    print_rows(rows, clock)
    print_goals(result["goals"])
    print(f"\n{target}")
    if options.docs:
        update_docs(options.docs, result)


main()
