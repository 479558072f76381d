"""Starting Python and importing the package, next to other packages; the interpreter alone is the limit."""
import subprocess
import sys

from harness import OURS, Contest, main


def imports():
    """A new interpreter that imports one package and ends."""
    def run(code):
        return lambda: lambda: subprocess.run([sys.executable, "-P", "-c", code], check=True)

    def peer(name):
        def prepare():
            __import__(name)
            return run(f"import {name}")()

        return prepare

    contest = Contest("import", unit="ms", runs=15)
    contest.enter(OURS, run("import coffer"))
    contest.enter("coffer and its five formats", run("import coffer, coffer.mcf, coffer.mldf, coffer.mscan, coffer.mlyze, coffer.pycauset"))
    contest.enter("safetensors", peer("safetensors"), "safetensors")
    contest.enter("numpy", peer("numpy"), "numpy")
    contest.enter("limit: the interpreter alone", run("pass"))
    contest.run()


main(imports)
