"""Remote files over a line of 1 Gbit/s with 20 ms, next to curl and other loaders: remote.py BUILD DATA [--megabytes N] [--json FILE]

nginx serves the files; link.py is the line between it and the programs. Every figure is the best of some runs, as a share of what
the line carries.
"""
import argparse
import importlib.util
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import link

RATE, TRIP = 125e6, 0.020  # bytes and seconds
SAMPLE, BATCH, BATCHES = 100_000, 256, 8
NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access.log; sendfile on; tcp_nodelay on;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""
LOAD = """
import sys, time, coffer
began = time.monotonic()
found = coffer.mcf.load_file(sys.argv[1])
print(time.monotonic() - began, sum(value.nbytes for value in found.values()))
"""
FSSPEC = """
import sys, time, fsspec, safetensors.numpy
began = time.monotonic()
with fsspec.open(sys.argv[1], "rb") as file:
    found = safetensors.numpy.load(file.read())
print(time.monotonic() - began, sum(value.nbytes for value in found.values()))
"""
STREAMER = """
import sys, time
from runai_model_streamer import SafetensorsStreamer
began, total = time.monotonic(), 0
with SafetensorsStreamer() as streamer:
    streamer.stream_file(sys.argv[1])
    for name, tensor in streamer.get_tensors():
        total += tensor.numel() * tensor.element_size()
print(time.monotonic() - began, total)
"""
RANDOM = """
import random, sys, time, coffer
source = coffer.open(sys.argv[1])
batch, batches, order = int(sys.argv[2]), int(sys.argv[3]), random.Random(1)
began, total = time.monotonic(), 0
for _ in range(batches):
    values = source.batch(order.sample(range(len(source)), batch), ["bin"])["bin"]
    total += sum(len(value) for value in values)
print(time.monotonic() - began, total)
"""


def make_model(path, size):
    """A .safetensors file of 40 tensors."""
    each = size // 40 // 4096 * 4096
    header = {f"layer.{i}.weight": {"dtype": "BF16", "shape": [each // 4096, 2048], "data_offsets": [i * each, (i + 1) * each]}
              for i in range(40)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = os.urandom(1 << 20).replace(b"\x7f", b"\x3f").replace(b"\xff", b"\x3f")  # no NaN
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(40 * each // len(block) + 1):
            file.write(block)
        file.truncate(8 + len(text) + 40 * each)


def make_small_tensors(path):
    header = {f"layer.{i}.weight": {"dtype": "F32", "shape": [1024], "data_offsets": [i * 4096, (i + 1) * 4096]} for i in range(1000)}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(4096 * 1000))


def make_samples(path, count):
    import io
    import tarfile

    with tarfile.open(path, "w") as tar:
        for i in range(count):
            member = tarfile.TarInfo(f"{i:06}.bin")
            member.size = SAMPLE
            tar.addfile(member, io.BytesIO(os.urandom(SAMPLE)))


def prepare(coffer, data, size):
    os.makedirs(data, exist_ok=True)
    model, small, samples = (os.path.join(data, name) for name in (f"model-{size}", "thousand", f"samples-{size}"))
    if not os.path.exists(model + ".mcf"):
        make_model(model + ".safetensors", size)
        subprocess.run([coffer, "convert", "-f", model + ".safetensors", model + ".mcf"], check=True)
    if not os.path.exists(small + ".mcf"):
        make_small_tensors(small + ".safetensors")
        subprocess.run([coffer, "convert", "-f", small + ".safetensors", small + ".mcf"], check=True)
    if not os.path.exists(samples + ".mldf"):
        make_samples(samples + ".tar", max(BATCH * 2, size // SAMPLE))
        subprocess.run([coffer, "pack", "-f", samples + ".tar", samples + ".mldf"], check=True)
    return model, small, samples


def python(code, *arguments, env=None):
    """(seconds, bytes) that a program printed."""
    result = subprocess.run([sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, env={**os.environ, **(env or {})})
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1] if result.stderr else "failed")
    seconds, count = result.stdout.split()
    return float(seconds), int(count)


def curl(url, size, parallel):
    """The file in ranges, each by a process."""
    step = -(-size // parallel)
    began = time.monotonic()
    running = [subprocess.Popen(["curl", "-sf", "-o", os.devnull, "-r", f"{first}-{min(first + step, size) - 1}", url])
               for first in range(0, size, step)]
    if any(process.wait() for process in running):
        raise RuntimeError("curl failed")
    return time.monotonic() - began, size


def timed(*command):
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


class Bench:
    def __init__(self, rate):
        self.rate, self.rows = rate, []

    def row(self, task, program, seconds, count, note=""):
        share = count / seconds / self.rate if count else None
        self.rows.append({"task": task, "program": program, "seconds": round(seconds, 3), "bytes": count,
                          "share_of_link": share and round(share, 3), "note": note})
        shown = f"{count / seconds / 1e6:7.1f} MB/s {100 * share:5.0f} % of the line" if count else ""
        print(f"{task:24} {program:26} {seconds:8.3f} s {shown} {note}", flush=True)

    def absent(self, task, program, why):
        self.rows.append({"task": task, "program": program, "note": why})
        print(f"{task:24} {program:26} {why}", flush=True)

    def best(self, task, program, run, times=2, note=""):
        try:
            seconds, count = min(run() for _ in range(times))
        except (RuntimeError, OSError, subprocess.SubprocessError) as problem:
            return self.absent(task, program, f"not measured: {problem}")
        self.row(task, program, seconds, count, note)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(bench, coffer, build, folder, url, model, small, samples):
    log = os.path.join(folder, "access.log")
    environment = {"PYTHONPATH": os.path.join(build, "python")}
    for name in (".mcf", ".safetensors"):
        open(log, "w").close()
        seconds = min(timed(coffer, "info", url + os.path.basename(small) + name) for _ in range(3))
        with open(log) as lines:
            requests = sum(1 for _ in lines) // 3
        bench.row("info, 1000 tensors", "coffer" + name, seconds, 0, f"{requests} requests, {seconds / TRIP:.1f} round trips")
    size = os.path.getsize(model + ".safetensors")
    target = url + os.path.basename(model)
    for parallel in (1, 4, 8, 16):
        bench.best("load a model", f"curl, {parallel} ranges", lambda n=parallel: curl(target + ".safetensors", size, n))
    for name in (".mcf", ".safetensors"):
        bench.best("load a model", "coffer" + name, lambda end=name: python(LOAD, target + end, env=environment))
    if importlib.util.find_spec("safetensors") and importlib.util.find_spec("fsspec") and importlib.util.find_spec("aiohttp"):
        bench.best("load a model", "fsspec + safetensors", lambda: python(FSSPEC, target + ".safetensors"), 1)
    else:
        bench.absent("load a model", "fsspec + safetensors", "not installed")
    if importlib.util.find_spec("runai_model_streamer"):
        bench.best("load a model", "Run:ai model streamer", lambda: python(STREAMER, target + ".safetensors"), 1)
    else:
        bench.absent("load a model", "Run:ai model streamer", "not installed")
    bench.best("check --full", "coffer.mcf", lambda: (timed(coffer, "check", "--full", target + ".mcf"), os.path.getsize(model + ".mcf")))
    bench.best("random batches of 256", "coffer", lambda: python(RANDOM, url + os.path.basename(samples) + ".mldf", str(BATCH), str(BATCHES),
                                                                 env=environment))
    for name in ("streaming", "webdataset"):
        if not importlib.util.find_spec(name):
            bench.absent("random batches of 256", name, "not installed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("data")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--json")
    parser.add_argument("--unshaped", action="store_true", help="without the line in between")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    coffer = os.path.join(build, "coffer")
    names = prepare(coffer, os.path.abspath(options.data), options.megabytes * 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        with open(f"{folder}/nginx.conf", "w") as conf:
            conf.write(NGINX.format(folder=folder, port=port, root=os.path.abspath(options.data)))
        user = ["-g", "user root;"] if os.getuid() == 0 else []
        nginx = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", f"{folder}/nginx.conf", *user])
        line = None if options.unshaped else link.Link(port, RATE, TRIP)
        try:
            time.sleep(0.3)
            bench = Bench(RATE)
            load = os.getloadavg()[0]
            print(f"1 Gbit/s, 20 ms by link.py; load of this machine {load:.1f}" if line else f"unshaped; load {load:.1f}")
            measure(bench, coffer, build, folder, f"http://127.0.0.1:{line.port if line else port}/", *names)
        finally:
            nginx.terminate()
            nginx.wait()
            if line:
                line.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rate": RATE, "round_trip": TRIP, "load": load, "rows": bench.rows}, file, indent=1)


if __name__ == "__main__":
    main()
