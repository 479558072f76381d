"""The examples of docs/python.md and of the docstrings are true."""

import doctest
import importlib

import numpy as np
import pytest

import coffer
from conftest import ROOT, VECTORS

torch = pytest.importorskip("torch")
MODULES = ["_editor", "_mldf_writer", "_open", "_verbs", "mcf", "mldf", "mscan", "mlyze", "pycauset"]


@pytest.fixture
def files(folder):
    rng = np.random.default_rng(0)
    coffer.mcf.save_file({"embed": np.array([[0, 0.5, 1], [1.5, 2, -1]], "f4"), "head": np.zeros(2, "f4")}, "model.mcf")
    coffer.mcf.save_file({"head": rng.standard_normal((2, 256)).astype("f4")}, "wide.mcf")
    coffer.mcf.quantize("wide.mcf", "k4.mcf", "k4")
    coffer.mcf.save_file({"w": rng.standard_normal((8, 512)).astype("f4")}, "weights.safetensors")
    with coffer.mldf.create("train.mldf") as writer:
        for i in range(3):
            writer.add({"label": i})
    with coffer.mscan.create("run.mscan") as writer:
        writer.param("model.layers.0.mlp.up_proj")
        writer.sequence(np.zeros(1, coffer.mscan.RECORD), 1)
    coffer.pycauset.write("links.pycauset", np.array([[1.0, 2.0], [3.0, 4.0]]))
    with open("stacks.txt", "w") as file:
        file.write("main (main.c:3);grow (grow.c:9) 96\n")
    coffer.convert("stacks.txt", "run.mlyze", from_="collapsed")


def _run(tests):
    names = {"coffer": coffer, "np": np, "torch": torch}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in tests:
        test.globs = dict(names)
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


def test_the_guide(files, capsys):
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    _run([doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", "python.md", 0)])


@pytest.mark.parametrize("name", MODULES)
def test_the_docstrings(files, name):
    module = importlib.import_module(f"coffer.{name}")
    found = [test for test in doctest.DocTestFinder(exclude_empty=True).find(module, name) if test.examples]
    _run(found)
