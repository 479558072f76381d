"""How time and memory of verbs that read a whole file grow with its size: two plots with logarithmic axes, as one SVG.

usage: scaling.py COFFER FOLDER OUT.svg [LARGEST]

Matrices from 100 KB to LARGEST bytes (1 GB), in steps of ten, as .pycauset, .mcf and .mldf. Processor time is the least of three runs.
A verb that reads everything once is a straight line that rises by ten with ten times the bytes, once that takes longer than
starting a program. Memory below that of this interpreter cannot be seen, because a new process begins as a copy of it.
"""
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

coffer, folder, out = sys.argv[1:4]
largest = int(float(sys.argv[4])) if len(sys.argv) > 4 else 10**9
COLORS = ["#0b6e99", "#b0413e", "#4b7f3a", "#8a5ca0", "#c07a00", "#3d3d3d", "#00838f"]


def cost(words):
    """Processor seconds and KiB of memory of a command."""
    best = (math.inf, 0)
    for _ in range(3):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(child.pid, 0)
        best = min(best, (max(used.ru_utime + used.ru_stime, 5e-4), used.ru_maxrss))
    return best


def make(place, size):
    rows = max(1, size // 8000)
    header = str({"descr": "<f8", "fortran_order": False, "shape": (rows, 1000)}).encode()
    header += b" " * (117 - len(header)) + b"\n"
    path = os.path.join(place, "m")
    with open(path + ".npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        block = struct.pack("<100000d", *(k * 0.37 for k in range(100000)))
        for row in range(0, rows, 100):
            file.write(block[: (rows - row) * 8000])
    for kind in ("pycauset", "mcf", "mldf"):
        subprocess.run([coffer, "convert", path + ".npy", path + "." + kind, "--force", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def verbs(path):
    return {
        "check --full, matrix": ["check", "--full", path + ".pycauset"],
        "check --full, model": ["check", "--full", path + ".mcf"],
        "check --full, set": ["check", "--full", path + ".mldf"],
        "info --hash, model": ["info", "--hash", path + ".mcf"],
        "stats, matrix": ["stats", path + ".pycauset"],
        "diff, matrix and itself": ["diff", path + ".pycauset", path + ".pycauset"],
        "convert, matrix to CSV": ["convert", path + ".pycauset", path + ".csv", "--force", "--quiet"],
    }


def plot(title, points, left, unit):
    """points : for each verb a list of (bytes, value)."""
    width, height = 330, 260
    values = [value for line in points.values() for _, value in line]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = 5, math.log10(largest)

    def place(size, value):
        x = left + (math.log10(size) - first) / (last - first) * width
        y = 40 + height - (math.log10(value) - low) / max(1, high - low) * height
        return f"{x:.1f},{y:.1f}"

    parts = [f'<text x="{left}" y="24" font-weight="bold">{title}</text>']
    for power in range(low, high + 1):
        y = 40 + height - (power - low) / max(1, high - low) * height
        parts.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} {unit}</text>')
    for power in range(first, round(last) + 1):
        x = left + (power - first) / (last - first) * width
        parts.append(f'<text x="{x:.1f}" y="{height + 58}" text-anchor="middle">1e{power} bytes</text>')
    for color, line in zip(COLORS, points.values()):
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{" ".join(place(*each) for each in line)}"/>')
    return parts


def main():
    times, memory = {}, {}
    place = tempfile.mkdtemp(prefix="scaling-", dir=folder)
    try:
        size = 10**5
        while size <= largest:
            for name, words in verbs(make(place, size)).items():
                seconds, kib = cost([coffer] + words)
                times.setdefault(name, []).append((size, seconds))
                memory.setdefault(name, []).append((size, kib / 1024))
                print(f"{size:>12} bytes  {name:28} {seconds * 1000:10.1f} ms {kib / 1024:8.1f} MiB", flush=True)
            size *= 10
    finally:
        shutil.rmtree(place)
    parts = plot("processor time", times, 70, "s") + plot("peak memory", memory, 500, "MiB")
    for i, (color, name) in enumerate(zip(COLORS, times)):
        x, y = 70 + i % 4 * 200, 350 + i // 4 * 20
        parts.append(f'<path d="M{x} {y - 4}h18" stroke="{color}" stroke-width="3"/><text x="{x + 24}" y="{y}">{name}</text>')
    with open(out, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 385" font-family="sans-serif" font-size="11">\n'
                   '<rect width="880" height="385" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


main()
