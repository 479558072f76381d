"""Runs the benchmarks of a build and prints one table for each subject.

usage: tables.py BUILD DATA [--quick] [--json FILE] [--readme FILE]

--quick takes about two minutes: smaller files and fewer runs. --json writes all rows. --readme replaces what is between the
lines "<!-- bench begin -->" and "<!-- bench end -->" of a document. A row whose peer is missing has a note that says so.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Subject, program, and what makes it quick.
PROGRAMS = [
    ("Models (MCF)", "bench_mcf", ["--mib", "128", "--runs", "3"]),
    ("Quantized types", "bench_quant", ["--size", "1024", "--runs", "3"]),
    ("Training sets (MLDF): reading", "bench_mldf_read", ["--small", "20000", "--large", "500", "--rows", "100000", "--runs", "3"]),
    ("Training sets (MLDF): pictures", "bench_mldf_jpeg", ["--images", "200", "--runs", "3"]),
    ("Traces (MLYZE)", "bench_mlyze", ["--events", "2000000", "--runs", "3"]),
    ("Scans (MSCAN)", "bench_mscan", ["--records", "5000000", "--runs", "3"]),
    ("Matrices (PYCAUSET)", "bench_pycauset", ["--rows", "1000", "--cols", "1000", "--runs", "3", "--commits", "100"]),
]


def rows_of(words):
    """The rows that a program prints as JSON; a row that says why not when it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    start = done.stdout.find("[")
    if done.returncode or start < 0:
        return [{"name": os.path.basename(words[0]), "median": 0, "best": 0, "unit": "", "note": f"ended with status {done.returncode}"}]
    return json.loads(done.stdout[start:])


def machine():
    model = platform.machine()
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    if found:
        model = found.group(1)
    return f"{os.cpu_count()} cores of {model}, load {os.getloadavg()[0]:.1f} at the start"


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def goal(row):
    for key, sign in (("at_least", "≥"), ("at_most", "≤")):
        if key in row:
            return f"{sign} {number(row[key])}{'' if row['met'] else ', missed'}"
    return ""


def show(subject, rows):
    print(f"\n== {subject}")
    print(f"{'':60} {'median':>10} {'best':>10}")
    for row in rows:
        note = ", ".join(filter(None, (goal(row), row.get("note", ""))))
        print(f"{row['name']:60} {number(row['median']):>10} {number(row['best']):>10}  {row['unit']:22} {note}")


def table(subject, rows):
    lines = [f"### {subject}", "", "| | median | best | | |", "|---|---|---|---|---|"]
    for row in rows:
        name = row["name"].replace("|", "\\|")
        name = "&nbsp;&nbsp;" + name.strip() if name.startswith("  ") else name
        note = ", ".join(filter(None, (goal(row), row.get("note", "")))).replace("|", "\\|")
        lines.append(f"| {name} | {number(row['median'])} | {number(row['best'])} | {row['unit']} | {note} |")
    return "\n".join(lines)


def replace(path, text):
    with open(path, encoding="utf-8") as file:
        document = file.read()
    marks = re.compile(r"(<!-- bench begin -->\n).*?(<!-- bench end -->)", re.S)
    if not marks.search(document):
        sys.exit(f"{path} does not have the lines <!-- bench begin --> and <!-- bench end -->")
    with open(path, "w", encoding="utf-8") as file:
        file.write(marks.sub(lambda found: found.group(1) + text + "\n" + found.group(2), document))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("data")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--readme")
    options = parser.parse_args()
    where, tables = machine(), []
    for subject, program, less in PROGRAMS:
        path = os.path.join(options.build, "bench", program)
        if os.path.exists(path):
            tables.append((subject, rows_of([path, "--json"] + (less if options.quick else []))))
            show(*tables[-1])
    words = [sys.executable, os.path.join(HERE, "files.py"), os.path.join(options.build, "coffer"), options.data, "--json"]
    tables.append(("Text, hashes and whole files", rows_of(words + (["--quick"] if options.quick else []))))
    show(*tables[-1])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": where, "quick": options.quick, "tables": dict(tables)}, file, indent=1, ensure_ascii=False)
    if options.readme:
        note = f"Measured by `make {'bench-quick' if options.quick else 'bench'}` on {where}."
        replace(options.readme, "\n\n".join([note] + [table(*each) for each in tables]))


main()
