"""Programs that run under `coffer record`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import coffer
import pytest

PROGRAM = """
import gc
import coffer
coffer.mark("begin \u00fc")
blocks = [bytearray(100_000) for _ in range(3)]
gc.collect()
coffer.mark("end")
assert coffer.snapshot() is True
"""


def command():
    built = Path(coffer.__file__).parents[2] / "coffer"
    return str(built) if built.is_file() else shutil.which("coffer")


def test_marks_and_snapshots_do_nothing_without_the_recorder():
    assert coffer.mark("nothing") is None
    assert coffer.snapshot() is False


@pytest.mark.skipif(not command(), reason="the command is not built")
def test_marks_collections_and_snapshots_are_in_the_trace(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    trace = tmp_path / "run.mlyze"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([command(), "record", "-q", "-o", trace, "--", sys.executable, program], check=True, env=environment)
    stats = json.loads(subprocess.run([command(), "stats", trace, "--json"], check=True, capture_output=True).stdout)
    assert [marker["name"] for marker in stats["markers"]] == ["begin \u00fc", "end"]
    assert stats["collections"]
    assert coffer.open(trace) is not None
    heap = json.loads(subprocess.run([command(), "heap", trace, "--json"], check=True, capture_output=True).stdout)
    assert [row["bytes"] // 100_000 for row in heap["types"] if row["type"] == "bytearray"] == [3]
