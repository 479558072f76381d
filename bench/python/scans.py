"""Statistics of a scan from Python, next to the command on the same file."""
import subprocess

import numpy as np

import coffer
from harness import OURS, Contest, cached, main

RECORDS, PARAMS, BLOCKS = 40_000_000, 64, 64  # 480 MB


def scan_file(path):
    tokens = 1000
    per_sequence = tokens * PARAMS * BLOCKS
    records = np.zeros(per_sequence, coffer.mscan.RECORD)
    records["token_idx"] = np.repeat(np.arange(tokens, dtype="u4"), PARAMS * BLOCKS)
    records["param_id"] = np.tile(np.repeat(np.arange(PARAMS, dtype="u2"), BLOCKS), tokens)
    records["block_idx"] = np.tile(np.arange(BLOCKS, dtype="u2"), tokens * PARAMS)
    draw = np.random.default_rng(1)
    with coffer.mscan.create(path, model_name="bench") as writer:
        for i in range(PARAMS):
            writer.param(f"model.layers.{i // 8}.part{i % 8}.weight")
        for _ in range(RECORDS // per_sequence):
            for metric in ("activation", "grad_norm"):
                records[metric] = draw.integers(0, 65536, per_sequence, np.uint16)
            writer.sequence(records, num_tokens=tokens)


def stats():
    """Open a scan of 480 MB and compute mean, deviation and extremes of each parameter."""
    path = cached("bench.mscan", scan_file)

    def with_coffer():
        with coffer.open(path) as scan:
            assert len(scan.stats(by="param")["param"]) == PARAMS

    def with_numpy():
        with coffer.open(path) as scan:
            records = scan[:]
            keys = records["param_id"]
            count = np.bincount(keys)
            for metric in ("activation", "grad_norm"):
                values = records[metric]
                np.bincount(keys, values) / count

    def command(*arguments):
        return lambda: subprocess.run(["coffer", *arguments], check=True, stdout=subprocess.DEVNULL)

    contest = Contest("scan.stats, 39 million records", unit="ms", runs=5)
    contest.enter(OURS, lambda: with_coffer)
    contest.enter("coffer stats, the command", lambda: command("stats", "--json", str(path)))
    contest.enter("NumPy, means only", lambda: with_numpy, "numpy")
    contest.run()


main(stats)
