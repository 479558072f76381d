"""Models from Python: opening, loading and decoding, next to safetensors and the C benchmark."""
import json
import os
import subprocess

import numpy as np

import coffer
from harness import OURS, Contest, cached, main, missing, say

TENSORS = 1000
LARGE_TENSORS, LARGE_SIDE = 256, 1024  # 1 GiB of float32
QUANT_SIDE = 4096
NAME = "model.layers.50.part3.weight"


def small_models():
    def weights():
        return {f"model.layers.{i // 10}.part{i % 10}.weight": np.full((64, 64), i, np.float32) for i in range(TENSORS)}

    return tuple(cached(f"list.{kind}", lambda path: save(weights(), path, kind)) for kind in ("mcf", "safetensors"))


def save(tensors, path, kind):
    ready = path.with_name(f"{path.name}.{kind}")  # the extension decides the kind of file
    coffer.mcf.save_file(tensors, ready)
    ready.rename(path)


def large_models():
    def weights():
        draw = np.random.default_rng(1)
        return {f"model.layers.{i // 8}.part{i % 8}.weight": draw.standard_normal((LARGE_SIDE, LARGE_SIDE), np.float32)
                for i in range(LARGE_TENSORS)}

    return tuple(cached(f"large.{kind}", lambda path: save(weights(), path, kind)) for kind in ("mcf", "safetensors"))


def opening():
    """Open a model of 1000 tensors, list the names, take one tensor as an array."""
    container, plain = small_models()

    def with_coffer(path):
        def work():
            with coffer.open(path) as model:
                names = list(model)
                assert model[NAME][0, 0] == 503.0
                return names

        return lambda: work

    def with_safetensors():
        from safetensors import safe_open

        def work():
            with safe_open(plain, framework="numpy") as model:
                names = model.keys()
                assert model.get_tensor(NAME)[0, 0] == 503.0
                return names

        return work

    contest = Contest("open, list 1000 names, one tensor", runs=9, repeat=50)
    contest.enter(OURS, with_coffer(container))
    contest.enter("coffer, the same .safetensors", with_coffer(plain))
    contest.enter("safetensors", with_safetensors, "safetensors")
    contest.run()


def loading():
    """All tensors of a model of 1 GB, as NumPy arrays and torch tensors; then with every number read once."""
    container, plain = large_models()

    def unverified():
        with coffer.mcf.Model(container, verify=False) as model:
            return {name: model[name] for name in model}

    def numpy_peer():
        from safetensors.numpy import load_file

        return lambda: load_file(plain)

    def torch_peer():
        from safetensors.torch import load_file

        return lambda: load_file(plain)

    def torch_of(path):
        def prepare():
            import coffer.torch

            return lambda: coffer.torch.load_file(path)

        return prepare

    def touched(prepare):
        def prepared():
            load = prepare()
            return lambda: sum(float(tensor.sum()) for tensor in load().values())

        return prepared

    for what, into in (("", lambda prepare: prepare), (" and sum them", touched)):
        contest = Contest(f"load 1 GB as NumPy arrays{what}", unit="ms", runs=5)
        contest.enter(OURS, into(lambda: lambda: coffer.mcf.load_file(plain)))
        contest.enter("coffer, .mcf with checksums", into(lambda: lambda: coffer.mcf.load_file(container)))
        contest.enter("coffer, .mcf, verify=False", into(lambda: unverified))
        contest.enter("safetensors", into(numpy_peer), "safetensors")
        contest.run()
        contest = Contest(f"load 1 GB as torch tensors{what}", unit="ms", runs=5)
        contest.enter(OURS, into(torch_of(plain)))
        contest.enter("coffer, .mcf with checksums", into(torch_of(container)))
        contest.enter("safetensors", into(torch_peer), "safetensors")
        contest.run()


def dequantizing():
    """dequantize() into an existing array, next to the same kernels called from C."""
    def quantized(path):
        values = np.random.default_rng(1).normal(0, 0.02, (QUANT_SIDE, QUANT_SIDE)).astype(np.float32)
        plain = path.with_name("quantize.safetensors")
        coffer.mcf.save_file({"q8": values, "k4": values}, plain, overwrite=True)
        coffer.mcf.quantize(plain, path, {"q8": "q8", "k4": "k4"}, method="absmax")
        plain.unlink()

    model = coffer.open(cached("quant.mcf", quantized))
    program = os.path.join(os.environ.get("COFFER_BENCH_BUILD", "build/release"), "bench", "bench_quant")
    for kind in ("q8", "k4"):
        task = f"dequantize {kind}, 4096 x 4096"
        contest = Contest(task, unit="ms", runs=9, repeat=3)
        out = model[kind].dequantize()
        contest.enter(OURS, lambda: lambda: model[kind].dequantize(out=out))
        contest.run()
        if not os.path.exists(program):
            missing(task, "C", f"{program} is not built (make bench-python builds it)")
            continue
        for clock, option in (("wall", []), ("cpu", ["--cpu-time"])):
            decode_in_c(task, kind, clock, [program, "--size", str(QUANT_SIDE), "--only", "decode", "--json", *option])


def decode_in_c(task, kind, clock, command):
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for row in json.loads(found):
        if row["name"] == f"decode {kind}":
            say(task=task, who="C", version=None, unit="ms", per=1, **{clock: [QUANT_SIDE**2 * 4 / 1e9 / row["best"]]})


main(opening, loading, dequantizing)
