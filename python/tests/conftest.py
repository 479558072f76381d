"""Fixtures: an empty current folder for each test, and small files of every format."""

import http.server
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import coffer

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    coffer.mcf.save_file({"embed": np.arange(6, dtype="f4").reshape(2, 3), "scale": np.float64(2)}, "model.mcf",
                         {"license": "MIT"})
    return "model.mcf"


@pytest.fixture
def dataset(folder):
    with coffer.mldf.create("train.mldf") as writer:
        for i in range(25):
            writer.add({"text": f"caption {i}", "label": i, "score": i / 4, "vector": np.full(3, i, "f4"),
                        "extra": {"list": [i]}, "raw": bytes([i])})
    return "train.mldf"


@pytest.fixture
def scan(folder):
    records = np.zeros(12, coffer.mscan.RECORD)
    records["token_idx"] = np.repeat(np.arange(6), 2)
    records["block_idx"] = np.tile([0, 1], 6)
    records["activation"] = np.arange(12) * 10
    records["grad_norm"] = np.arange(12)
    with coffer.mscan.create("run.mscan", model_name="tiny", block_size=64, activation=(0.5, 1.0)) as writer:
        assert writer.param("model.layers.0.mlp.up_proj.weight") == 0
        writer.sequence(records, 6, "six tokens")
    return "run.mscan"


@pytest.fixture
def matrix(folder):
    coffer.pycauset.write("links.pycauset", np.arange(12.0).reshape(3, 4), metadata={"properties": {"label": "first"}})
    return "links.pycauset"


class _Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves the current folder, with ranges."""

    def do_GET(self):
        try:
            with open(self.path.lstrip("/"), "rb") as file:
                data = file.read()
        except OSError:
            self.send_error(404)
            return
        found = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin, end = (int(found[1]), int(found[2] or len(data) - 1) + 1) if found else (0, len(data))
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(min(end, len(data)) - begin))
        self.send_header("ETag", f'"{len(data)}"')
        if found:
            self.send_header("Content-Range", f"bytes {begin}-{min(end, len(data)) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[begin:end])

    do_HEAD = do_GET

    def log_message(self, *rest):
        pass


@pytest.fixture
def server(folder):
    """The address of a server for the current folder."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ranges) as local:
        thread = threading.Thread(target=local.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{local.server_port}"
        local.shutdown()
        thread.join()


# Tests that take minutes, or need packages that Debian does not have: make check-python-latest runs them.
latest = pytest.mark.skipif(not os.environ.get("COFFER_LATEST"), reason="run by make check-python-latest")
