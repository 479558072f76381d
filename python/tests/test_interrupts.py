"""Ctrl-C stops long work within 100 ms and leaves nothing behind.

Signals come after an amount of CPU time, and delays are CPU time: other programs on the machine do not matter.
"""

import json
import os
import signal
import struct
import time

import numpy as np
import pytest

import coffer

_ROWS = 1 << 21
_arrays = {}  # made before a signal is due: NumPy cannot be stopped


def _sparse_model():
    """512 MiB of zeros that do not need the disk."""
    header = json.dumps({f"w{i}": {"dtype": "F32", "shape": [8192, 4096], "data_offsets": [i << 27, (i + 1) << 27]}
                         for i in range(4)}).encode()
    with open("big.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + (4 << 27))


@pytest.fixture(scope="module")
def big_files(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("big"), os.getcwd()
    os.chdir(folder)
    _sparse_model()
    records = np.zeros(_ROWS, coffer.mscan.RECORD)
    records["token_idx"] = np.arange(_ROWS) // 4
    with coffer.mscan.create("big.mscan") as writer:
        writer.param("p")
        writer.sequence(records, _ROWS // 4)
    np.lib.format.open_memmap("big.npy", "w+", "f4", (1 << 20, 128))  # zeros without blocks on the disk
    with coffer.mldf.create("big.mldf", {"label": "int"}) as writer:
        for i in range(5000):
            writer.add({"label": i})
    os.chdir(before)
    _arrays["samples"] = np.arange(8 * _ROWS)
    _arrays["samples"] *= 7919
    _arrays["samples"] %= 5000
    _arrays["matrix"] = np.zeros((1 << 14, 4096), "f4")
    yield folder
    _arrays.clear()


def _batch():
    with coffer.open("big.mldf") as data:
        data.batch(_arrays["samples"], ["label"])


LONG = {
    "quantize": lambda: coffer.mcf.quantize("big.safetensors", "out.mcf", "k2", threads=1),
    "pack": lambda: coffer.mcf.pack("big.safetensors", "out.mcf", threads=1),
    "pack a set": lambda: coffer.mldf.pack("big.npy", "out.mldf", threads=1),
    "convert": lambda: coffer.convert("big.safetensors", "out.mcf"),
    "check": lambda: coffer.check("big.safetensors", full=True, threads=1),
    "diff": lambda: coffer.diff("big.safetensors", "big.safetensors", threads=1),
    "stats": lambda: coffer.open("big.mscan").stats(by="token", threads=1),
    "heatmap": lambda: coffer.open("big.mscan").heatmap(rows="block"),
    "statistics of tensors": lambda: coffer.open("big.safetensors").stats(threads=1),
    "batch": _batch,
    "write": lambda: coffer.pycauset.write("out.pycauset", _arrays["matrix"]),
}


def _interrupt(call, after=0.02):
    """Runs a function until a signal stops it. Returns the CPU time from the signal to the exception."""
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, after)
    try:
        while True:
            call()
    except KeyboardInterrupt:
        return time.process_time() - begin - after
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.mark.parametrize("name", list(LONG))
def test_long_work_stops_and_leaves_nothing(big_files, monkeypatch, name):
    monkeypatch.chdir(big_files)
    before = set(os.listdir("."))
    delays = []
    for _ in range(3):
        delays.append(_interrupt(LONG[name]))
        assert set(os.listdir(".")) == before
    assert min(delays) < 0.1, delays


def test_a_scan_of_a_model_stops_and_leaves_nothing(folder):
    torch = pytest.importorskip("torch")
    import coffer.torch

    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    batch = torch.ones(4, 64, 64)

    def batches():
        while True:
            yield batch

    assert min(_interrupt(lambda: coffer.torch.scan(net, batches(), "net.mscan")) for _ in range(3)) < 0.1
    assert os.listdir(".") == []
