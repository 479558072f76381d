"""Decoding blocks of 8 and 4 bits with numpy, and with the gguf package: what Python programs do without kernels."""
import time

ROWS, COLUMNS, RUNS = 1024, 4096, 5


def rate(work):
    """GB/s of float32, the median of several runs after one to warm up."""
    work()
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return ROWS * COLUMNS * 4 / 1e9 / sorted(seconds)[RUNS // 2]


def show(name, value):
    print(f"{name:<60} {value:12.4g} {'':12}  GB/s")


def run_numpy():
    import numpy as np
    blocks = ROWS * COLUMNS // 32
    scales = np.linspace(0.001, 0.01, blocks, dtype=np.float16)
    codes = np.arange(blocks * 32, dtype=np.int64).astype(np.int8).reshape(blocks, 32)
    packed = codes.view(np.uint8)[:, :16].copy()

    def four_bits():
        both = np.stack([packed << 4, packed & 0xF0], axis=-1).view(np.int8) >> 4
        return scales.astype(np.float32)[:, None] * both.reshape(blocks, 32).astype(np.float32)

    show(f"numpy {np.__version__}, decode q8", rate(lambda: scales.astype(np.float32)[:, None] * codes))
    show(f"numpy {np.__version__}, decode q4", rate(four_bits))


def run_gguf():
    import importlib.metadata
    import numpy as np
    from gguf import GGMLQuantizationType as types
    from gguf.quants import dequantize, quantize
    version = importlib.metadata.version("gguf")
    values = np.random.default_rng(1).normal(0, 0.02, (ROWS, COLUMNS)).astype(np.float32)
    for name in ("Q8_0", "Q4_0"):
        stored = quantize(values, types[name])
        show(f"gguf {version}, decode {name}", rate(lambda: dequantize(stored, types[name])))


for peer, run in (("numpy", run_numpy), ("gguf", run_gguf)):
    try:
        run()
    except ImportError as missing:
        print(f"{peer:<60} {missing} (make bench-peers)")
