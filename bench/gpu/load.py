#!/usr/bin/env python3
"""Loads a model to a GPU with Coffer and with safetensors, from the page cache: load.py [FOLDER]

Coffer compares every byte with its checksum on the way; safetensors files have none.
"""
import os
import sys
import tempfile
import time

import torch

import coffer.torch
from coffer import _torch_cuda

try:
    import safetensors.torch as peer
except ImportError:
    peer = None

TENSORS, BYTES = 16, 256 << 20


def seconds(load, path):
    best = float("inf")
    for _ in range(4):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        tensors = load(path, device="cuda")
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
        del tensors
    return best


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        weights = {f"w{i}": torch.randn(BYTES // 2 // 4096, 4096).half() for i in range(TENSORS)}
        total = TENSORS * BYTES
        coffer.torch.save_file(weights, os.path.join(folder, "model.mcf"))
        pinned, device = torch.empty(1 << 30, dtype=torch.uint8).pin_memory(), torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        device.copy_(pinned)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        device.copy_(pinned, non_blocking=True)
        torch.cuda.synchronize()
        print(f"copy of pinned memory: {(1 << 30) / (time.perf_counter() - begin) / 1e9:.1f} GB/s")
        module = "with coffer-cuda" if _torch_cuda.is_usable() else "without coffer-cuda"
        print(f"Coffer, verified, {module}: {total / seconds(coffer.torch.load_file, os.path.join(folder, 'model.mcf')) / 1e9:.1f} GB/s")
        _torch_cuda._usable = False
        print(f"Coffer, verified, through PyTorch: {total / seconds(coffer.torch.load_file, os.path.join(folder, 'model.mcf')) / 1e9:.1f} GB/s")
        if peer:
            path = os.path.join(folder, "model.safetensors")
            peer.save_file(weights, path)
            print(f"safetensors: {total / seconds(peer.load_file, path) / 1e9:.1f} GB/s")


main()
