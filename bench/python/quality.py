"""The error of each quantized type on given weights, beside ggml's.

  quality.py WEIGHTS MOMENTS [HELD_OUT]

WEIGHTS is a file of tensors, MOMENTS one of coffer.torch.calibrate, HELD_OUT the same from other inputs: errors are
measured on these where given. Prints for each type the bits per weight, the relative error of the weights and that of the
outputs (root of the sum of squares over all layers whose number of columns is a multiple of 256), for the methods fit and
calibrated and for ggml with an importance matrix, if COFFER_BENCH_GGML names the folder of its libraries.
"""
import ctypes
import os
import sys
import tempfile

import numpy as np

import coffer

TYPES = {"q8": ("q8_0", 8), "k6": ("q6_K", 14), "q4": ("q4_0", 2), "k4": ("q4_K", 12), "k3": ("q3_K", 11),
         "k2": ("q2_K", 10), "int8": None, "int4": None}
SUPER = 256


class Ggml:
    """The peer; rows of its types and back."""

    def __init__(self, folder):
        self.library = ctypes.CDLL(os.path.join(folder, "libggml-base.so"))
        self.library.ggml_quantize_chunk.restype = self.library.ggml_row_size.restype = ctypes.c_size_t

    def encode(self, weights, importance, name, number):
        rows, cols = weights.shape
        size = self.library.ggml_row_size(number, ctypes.c_int64(cols))
        payload, decoded = np.zeros(size * rows, np.uint8), np.empty_like(weights)
        counts = [ctypes.c_int64(count) for count in (0, rows, cols)]
        self.library.ggml_quantize_chunk(number, pointer(weights), pointer(payload), *counts, pointer(importance))
        getattr(self.library, f"dequantize_row_{name}")(pointer(payload), pointer(decoded), ctypes.c_int64(rows * cols))
        return decoded, 8 * size / cols


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def energy(rows, moments):
    return float(np.einsum("ij,ij->", rows @ moments, rows))


class Sums:
    """Squared errors and signals of all layers."""

    def __init__(self):
        self.values = np.zeros(4)
        self.bits = 0.0

    def add(self, weights, decoded, moments):
        error, weights = (weights - decoded).astype("f8"), weights.astype("f8")
        scale = np.trace(moments)  # every layer counts the same
        self.values += [np.sum(error**2), np.sum(weights**2), energy(error, moments) / scale, energy(weights, moments) / scale]

    def text(self):
        weights, outputs = np.sqrt(self.values[0] / self.values[1]), np.sqrt(self.values[2] / self.values[3])
        return f"{self.bits:6.3f} {100 * weights:9.3f} % {100 * outputs:9.3f} %"


def ours(path, layers, measured, quant_type, moments):
    sums = Sums()
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.mcf")
        report = coffer.mcf.quantize(path, out, {name: quant_type for name in layers}, hessian=moments)
        with coffer.open(out) as model:
            for name, weights in layers.items():
                sums.add(weights, model[name].dequantize(), measured[name])
    rows = [row for row in report["tensors"] if row["name"] in layers]
    sums.bits = sum(8 * row["size"] for row in rows) / sum(weights.size for weights in layers.values())
    return sums


def theirs(ggml, layers, measured, given, quant_type):
    sums = Sums()
    for name, weights in layers.items():
        importance = np.ascontiguousarray(np.diag(given[name]), np.float32)
        decoded, sums.bits = ggml.encode(weights, importance, *TYPES[quant_type])
        sums.add(weights, decoded, measured[name])
    return sums


def read_moments(path, names):
    found = coffer.mcf.load_file(path)
    keys = {name: next((key for key in (name, name.removesuffix(".weight")) if key + ".moments" in found), None)
            for name in names}
    return {name: np.asarray(found[key + ".moments"], "f8") for name, key in keys.items() if key is not None}


def main(path, moments, held_out=None):
    tensors = coffer.mcf.load_file(path)
    given = read_moments(moments, tensors)
    measured = read_moments(held_out, tensors) if held_out else given
    layers = {name: np.ascontiguousarray(tensors[name], np.float32) for name in given
              if tensors[name].ndim == 2 and tensors[name].shape[1] % SUPER == 0}
    ggml = Ggml(os.environ["COFFER_BENCH_GGML"]) if os.environ.get("COFFER_BENCH_GGML") else None
    print(f"{path}: {len(layers)} layers, {sum(weights.size for weights in layers.values())} weights")
    print("type  method            bits     weights     outputs")
    for quant_type, peer in TYPES.items():
        results = {"fit" if peer else "absmax": ours(path, layers, measured, quant_type, None),
                   "calibrated": ours(path, layers, measured, quant_type, moments)}
        if ggml and peer:
            results[f"ggml {peer[0]}"] = theirs(ggml, layers, measured, given, quant_type)
        for method, sums in results.items():
            print(f"{quant_type:5} {method:14} {sums.text()}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
