#!/usr/bin/env python3
"""Decoding and products with one vector in PyTorch and Triton, next to Coffer in the same run: peer_triton.py

Needs a GPU, torch, triton, numpy and the package coffer with its module coffer-cuda. Rates are bytes read and written
per second as a share of a copy; products count the bytes of the weights. Both work on the same random payloads, and
the results are compared.
"""
import torch
import triton
import triton.language as tl

from coffer import _core

BITS = {"q8": 8, "q4": 4, "k4": 4}


@triton.jit
def decode_kernel(out, codes, scales, subs, count, FOUR: tl.constexpr, SUPERS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    byte = tl.load(codes + at, mask=mask, other=0).to(tl.int32)
    per_byte: tl.constexpr = 2 if FOUR else 1
    block = at * per_byte // 32
    if SUPERS:
        scale = tl.load(scales + block // 8, mask=mask, other=0).to(tl.float32) * (
            tl.load(subs + block, mask=mask, other=0).to(tl.float32) * 0.03125)
    else:
        scale = tl.load(scales + block, mask=mask, other=0).to(tl.float32)
    if FOUR:
        low = ((byte << 28) >> 28).to(tl.float32) * scale
        high = ((byte << 24) >> 28).to(tl.float32) * scale
        both = tl.program_id(0).to(tl.int64) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
        tl.store(out + both, tl.interleave(low, high).to(tl.float16), mask=both < 2 * count)
    else:
        tl.store(out + at, (byte.to(tl.float32) * scale).to(tl.float16), mask=mask)


@triton.autotune([triton.Config({"ROWS": rows, "STEP": step}, num_warps=warps)
                  for rows, step, warps in ((1, 2048, 4), (2, 1024, 4), (4, 1024, 8), (4, 512, 4), (8, 512, 8), (1, 4096, 8))],
                 key=["cols", "FOUR", "SUPERS"])
@triton.jit
def matvec_kernel(y, codes, scales, subs, x, rows, cols, FOUR: tl.constexpr, SUPERS: tl.constexpr, ROWS: tl.constexpr,
                  STEP: tl.constexpr):
    """STEP : bytes of codes of a row at a time."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    per_byte: tl.constexpr = 2 if FOUR else 1
    width = cols // per_byte
    total = tl.zeros((ROWS, STEP), tl.float32)
    for begin in range(0, width, STEP):
        at = begin + tl.arange(0, STEP)
        mask = (row[:, None] < rows) & (at[None, :] < width)
        byte = tl.load(codes + row[:, None] * width + at[None, :], mask=mask, other=0).to(tl.int32)
        block = at * per_byte // 32
        if SUPERS:
            scale = tl.load(scales + row[:, None] * (cols // 256) + block[None, :] // 8, mask=mask, other=0).to(tl.float32) * (
                tl.load(subs + row[:, None] * (cols // 32) + block[None, :], mask=mask, other=0).to(tl.float32) * 0.03125)
        else:
            scale = tl.load(scales + row[:, None] * (cols // 32) + block[None, :], mask=mask, other=0).to(tl.float32)
        if FOUR:
            even = tl.load(x + 2 * at, mask=at < width, other=0)
            odd = tl.load(x + 2 * at + 1, mask=at < width, other=0)
            part = ((byte << 28) >> 28).to(tl.float32) * even[None, :] + ((byte << 24) >> 28).to(tl.float32) * odd[None, :]
        else:
            part = byte.to(tl.float32) * tl.load(x + at, mask=at < width, other=0)[None, :]
        total += part * scale
    tl.store(y + row, tl.sum(total, 1), mask=row < rows)


class Payload:
    """Random weights of a type, whole and in parts."""

    def __init__(self, kind, rows, cols):
        self.kind, self.rows, self.cols = kind, rows, cols
        blocks = rows * cols // 32
        self.bytes = torch.randint(0, 256, (_core.quant_size(kind, rows, cols),), dtype=torch.uint8, device="cuda")
        sizes = [2 * (blocks // 8), blocks] if kind == "k4" else [2 * blocks, 0]
        starts = [0, (sizes[0] + 63) // 64 * 64]
        self.scales = self.bytes[:sizes[0]].view(torch.float16)
        self.scales.copy_(torch.rand(self.scales.shape, device="cuda") * 0.02)
        self.subs = self.bytes[starts[1]:starts[1] + sizes[1]] if sizes[1] else self.bytes
        self.codes = self.bytes[-(blocks * 4 * BITS[kind]):].view(torch.int8)

    def tensor(self):
        return self.kind, self.rows, self.cols, False, self.bytes.data_ptr(), self.bytes.numel()

    def flags(self):
        return {"FOUR": BITS[self.kind] == 4, "SUPERS": self.kind == "k4"}


def stream():
    return torch.cuda.current_stream().cuda_stream


def milliseconds(call):
    return triton.testing.do_bench(call, warmup=20, rep=100, return_mode="median")


def copy_rate():
    source = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / milliseconds(lambda: target.copy_(source)) * 1e3


def compare_decode(kind, copy):
    payload = Payload(kind, 32768, 16384)
    ours = torch.empty(payload.rows, payload.cols, dtype=torch.float16, device="cuda")
    theirs = torch.empty_like(ours)
    count, block = payload.codes.numel(), 1024

    def peer():
        decode_kernel[(triton.cdiv(count, block),)](theirs, payload.codes, payload.scales, payload.subs, count, BLOCK=block,
                                                    **payload.flags())

    def mine():
        _core.cuda_decode(payload.tensor(), ours.data_ptr(), "f16", stream())

    moved = payload.bytes.numel() + 2 * ours.numel()
    rates = [moved / milliseconds(call) * 1e3 for call in (mine, peer)]
    assert torch.equal(ours, theirs), kind
    print(f"decode {kind} to f16: Coffer {rates[0] / 1e9:.0f} GB/s ({100 * rates[0] / copy:.1f} % of the copy), "
          f"Triton {rates[1] / 1e9:.0f} GB/s ({100 * rates[1] / copy:.1f} %)")


def compare_matvec(kind, rows, cols, copy):
    payload = Payload(kind, rows, cols)
    x = torch.randn(cols, device="cuda")
    ours, theirs = torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda")

    def peer():
        matvec_kernel[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](theirs, payload.codes, payload.scales, payload.subs, x, rows,
                                                                      cols, **payload.flags())

    def mine():
        _core.cuda_matmul(payload.tensor(), x.data_ptr(), ours.data_ptr(), 1, stream())

    times = [milliseconds(call) for call in (mine, peer)]
    rates = [payload.bytes.numel() / time * 1e3 for time in times]
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
    print(f"matvec {kind} {rows} x {cols}: Coffer {1e3 * times[0]:.1f} us ({100 * rates[0] / copy:.1f} % of the copy), "
          f"Triton {1e3 * times[1]:.1f} us ({100 * rates[1] / copy:.1f} %)")


def compare_float(rows, cols, copy):
    """PyTorch's own product with weights in half precision, which are two to four times as large."""
    weights, x = torch.randn(rows, cols, device="cuda", dtype=torch.float16), torch.randn(cols, device="cuda", dtype=torch.float16)
    time = milliseconds(lambda: torch.mv(weights, x))
    rate = 2 * weights.numel() / time * 1e3
    print(f"matvec f16 {rows} x {cols}: PyTorch {1e3 * time:.1f} us ({100 * rate / copy:.1f} % of the copy)")


def main():
    copy = copy_rate()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}: copy {copy / 1e9:.0f} GB/s")
    for kind in BITS:
        compare_decode(kind, copy)
    for rows, cols in ((4096, 4096), (16384, 16384), (65536, 8192)):
        for kind in BITS:
            compare_matvec(kind, rows, cols, copy)
        compare_float(rows, cols, copy)


main()
