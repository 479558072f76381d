#!/usr/bin/env python3
"""Asks servers of `coffer view` as a browser would, and as a stranger would: view.py COFFER TESTS_FOLDER.

  - pages without the token, of other hosts or origins, other methods and unknown paths are refused
  - garbage, aborted requests and several clients at once do not disturb a server
  - the numbers are those that the command prints as JSON
  - Ctrl-C ends it with status 0, and so does closing the last page
"""
import contextlib
import http.client
import http.server
import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FORMATS = {"f64": "d", "f32": "f", "u32": "I", "u8": "B"}
WAIT = 100  # seconds: only a server that hangs takes this long


class Bundle:
    """The chunks of an answer."""

    def __init__(self, data):
        length = struct.unpack_from("<I", data)[0]
        first = (4 + length + 7) // 8 * 8
        self.chunks = {}
        for chunk in json.loads(data[4:4 + length])["chunks"]:
            begin = first + chunk["offset"]
            assert begin % 8 == 0 and begin + chunk["size"] <= len(data), chunk
            self.chunks[chunk["name"]] = (chunk["type"], chunk["count"], data[begin:begin + chunk["size"]])

    def json(self, name):
        return json.loads(self.chunks[name][2])

    def numbers(self, name):
        kind, count, data = self.chunks[name]
        return list(struct.unpack(f"<{count}{FORMATS[kind]}", data))


class Server:
    def __init__(self, coffer, *words):
        self.process = subprocess.Popen([coffer, "view", *map(str, words), "--no-browser", "--json"], stdout=subprocess.PIPE)
        line = json.loads(self.process.stdout.readline())
        self.port, self.url = line["port"], line["url"]
        self.token = self.url.split("#token=")[1]

    def get(self, path, token=None, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        with contextlib.closing(connection):
            given = {"X-Coffer-Token": self.token if token is None else token}
            given.update({name.replace("_", "-"): value for name, value in headers.items()})
            connection.request(method, path, headers=given)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())

    def ask(self, question):
        status, body, _ = self.get(f"/ask/{question}")
        assert status == 200, f"{question}: {status} {body}"
        return Bundle(body)

    def wait_until_done(self):
        state = json.loads(self.get("/state")[1])
        while state["stage"] != "done":
            state = json.loads(self.get(f"/state?stage={state['stage']}&permille={state['permille']}")[1])

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WAIT)


@contextlib.contextmanager
def serving(coffer, *words):
    server = Server(coffer, *words)
    try:
        yield server
        assert server.interrupt() == 0, "Ctrl-C is not an error"
    finally:
        server.process.kill()
        server.process.wait()


def check_doors(server):
    """Who gets an answer, and who does not."""
    own = f"127.0.0.1:{server.port}"
    refused = [
        ({"token": ""}, 403), ({"token": "x" * len(server.token)}, 403), ({"token": server.token[:-1]}, 403),
        ({"Host": "evil.example"}, 421), ({"Host": f"evil.example:{server.port}"}, 421), ({"Host": "127.0.0.1"}, 421),
        ({"Host": f"127.0.0.1:{server.port}.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": f"https://{own}"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403), ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"method": "POST"}, 405), ({"method": "HEAD"}, 405), ({"method": "OPTIONS"}, 405), ({"method": "DELETE"}, 405),
    ]
    for how, wanted in refused:
        status, body, headers = server.get("/ask/first", **how)
        assert status == wanted, f"{how}: {status} {body}"
        assert "Access-Control-Allow-Origin" not in headers
    for how in ({}, {"Host": f"localhost:{server.port}"}, {"Origin": f"http://{own}"}, {"Sec_Fetch_Site": "same-origin"}):
        assert server.get("/ask/first", **how)[0] == 200, how
    for path, wanted in (("/ask/", 404), ("/ask/nothing", 404), ("/ask/../../etc/passwd", 404), ("/etc/passwd", 404), ("/../etc/passwd", 404),
                         ("/ask/first%00", 200), ("/token", 403), ("/state?permille=x", 400), ("/ask/first?" + "a=b&" * 40, 400), ("//", 404)):
        assert server.get(path)[0] == wanted, (path, server.get(path)[:2])
    assert server.get("/token", X_Coffer_Once=server.token)[0] == 403


def check_shell(server):
    """The page has no data and no token, and may ask its own server only."""
    status, body, headers = server.get("/", token="")
    text = body.decode()
    assert status == 200 and "octet-stream" not in text.split("<script>")[0] and server.token not in text
    assert "default-src 'none'" in text and "connect-src 'self'" in text
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    wanted = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
              "Cross-Origin-Resource-Policy": "same-origin"}
    assert all(headers[name] == value for name, value in wanted.items()), headers
    assert server.get("/", token="", Host="evil.example")[0] == 421


def check_garbage(server):
    """1000 connections with bytes that are not HTTP, or almost; every tenth is aborted in the middle of a request."""
    chance = random.Random(17)
    starts = [b"GET / HTTP/1.1\r\n", b"GET /ask/first HTTP/1.1\r\nHost: ", b"\x16\x03\x01\x02\x00", b"GET " + b"/" * 40000, b"\r\n" * 50, b""]
    for number in range(1000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection, contextlib.suppress(OSError):
            connection.sendall(chance.choice(starts) + chance.randbytes(chance.randrange(200)))
            if number % 10 == 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Until it has noticed that they are gone, the server may close a new connection at once.
    request = f"GET /ask/full HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Coffer-Token: {server.token}\r\n\r\n".encode()
    answer, deadline = b"", time.monotonic() + WAIT
    while not answer and time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(request)
            answer = connection.recv(1)
    assert answer == b"H", "the server does not answer after the garbage"
    assert server.get("/ask/first")[0] == 200


def check_clients(server, *questions):
    """Several clients at once get what one gets."""
    wanted = [server.get(f"/ask/{question}")[1] for question in questions]
    problems = []

    def ask():
        for question, answer in zip(questions, wanted):
            if server.get(f"/ask/{question}")[1] != answer:
                problems.append(question)

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(WAIT)
    assert not problems, problems


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-6)


def check_trace(coffer, tests):
    path = tests / "vectors/mlyze/mixed.mlyze"
    stats = run_json(coffer, "flame", path, "--what", "total", "--window", "100us..2000us")
    with serving(coffer, path) as server:
        server.wait_until_done()
        summary = server.ask("full").json("summary")
        assert summary["view"]["traces"][0]["events"] == run_json(coffer, "info", path)["events"]
        assert "findings" not in summary["files"][0], "the check comes later"
        found = server.ask("findings").json("findings")["files"][0]
        assert found["findings"] == run_json(coffer, "check", path)["findings"]
        assert server.ask("window?from=100&to=2000").numbers("flame.total.bytes")[0] == stats["value"]
        part = server.ask("timeline?from=100&to=2000&width=40")
        whole = server.ask("full")
        assert len(part.numbers("timeline.time")) == 40
        assert max(part.numbers("timeline.high_bytes")) <= max(whole.numbers("timeline.high_bytes"))
        check_doors(server)
        check_shell(server)
        check_garbage(server)
        check_clients(server, "first", "full", "window?from=0&to=900", "timeline?from=0&to=100")


def check_model(coffer, tests):
    path = tests / "compat/mcf/mantle-q4.mcf"
    lines = subprocess.run([coffer, "stats", str(path), "--json"], capture_output=True, check=True, timeout=WAIT).stdout.splitlines()
    stats = {tensor["name"]: tensor for tensor in map(json.loads, lines)}
    with serving(coffer, path) as server:
        first = server.ask("first")
        assert "values.min" not in first.chunks, "the first picture reads no values"
        texts = first.chunks["texts"][2]
        count = struct.unpack_from("<I", texts)[0]
        ends = [0, *struct.unpack_from(f"<{count}I", texts, 4)]
        words = [texts[4 + 4 * count + begin:4 + 4 * count + end].decode() for begin, end in zip(ends, ends[1:])]
        for tensor, name in enumerate(words[at] for at in first.numbers("tensors.name")):
            answer = server.ask(f"tensor?tensor={tensor}")
            assert near(answer.numbers("values.min")[0], stats[name]["min"]), name
            tile = server.ask(f"tile?tensor={tensor}&width=1&height=1")
            assert abs(tile.numbers("tile.cells")[0] - stats[name]["mean"]) < 1e-6 * max(1, abs(stats[name]["max"])), name
        for bad in ("tile?tensor=6", "tile?row_begin=5&row_end=5", "tile?width=0", "tile?width=1025", "tile?row_end=18446744073709551616", "tensor?tensor=-1"):
            assert server.get(f"/ask/{bad}")[0] == 400, bad


def check_matrix(coffer, tests):
    path = tests / "compat/pycauset/float64.pycauset"
    with serving(coffer, path) as server:
        tile = server.ask("tile")
        where = tile.json("answer")["view"]["tile"]
        stats = run_json(coffer, "stats", path)
        cells = tile.numbers("tile.cells")
        assert (where["height"], where["width"]) == (stats["rows"], stats["cols"]) and not where["sampled"]
        assert min(cells) == stats["min"] and max(cells) == stats["max"]
        assert server.ask("tile?row_begin=1&row_end=2&column_begin=2&column_end=3").numbers("tile.cells") == [cells[where["width"] + 2]]


def check_scan(coffer, tests):
    path = tests / "compat/mscan/scanner-io-two-appends.mscan"
    with serving(coffer, path) as server:
        server.wait_until_done()
        full, first = server.ask("full"), server.ask("first")
        assert first.numbers("grid.activation") == full.numbers("grid.activation"), "a small scan is read whole at once"
        tile = server.ask("tile?column_begin=0&column_end=8&row_begin=0&row_end=8").numbers("tile.cells")
        assert tile == full.numbers("grid.activation")
        blocks = server.ask("tile?param=0").numbers("tile.cells")
        assert near(sum(blocks[0::8]) / 4, tile[0]), "the mean of a parameter is that of its blocks"
        layers = server.ask("tile?rows=layer&metric=grad_norm").json("answer")["view"]["tile"]
        assert layers["height"] == full.json("summary")["view"]["layer_grid"]["grad_norm"]["height"] and server.get("/ask/tile?rows=none")[0] == 400
        assert server.get("/ask/tile?metric=none")[0] == 400 and server.get("/ask/tile?param=60000")[0] == 400


def check_set(coffer, tests):
    path = tests / "compat/mldf/tutorial-writer.mldf"
    with serving(coffer, path) as server:
        some = server.ask("samples?first=2&count=3")
        assert some.numbers("samples.number") == [2, 3, 4] and some.json("answer")["view"]["total"] == 9
        found = server.ask("samples?where=label%3E%3D32%20and%20caption")
        assert found.numbers("samples.number") == [5, 6, 7, 8] and found.json("answer")["view"]["total"] == 4
        assert server.ask("samples?first=100").numbers("samples.number") == []
        assert server.ask("sample?sample=8").chunks["pictures.data"][2][:2] == b"\xff\xd8"
        assert server.get("/ask/sample?sample=9")[0] == 400 and server.get("/ask/samples?where=nothing%3D1")[0] == 400


def check_others(coffer, tests):
    """Files of other programs, two files, a file that nobody knows, and names that would harm a page."""
    heaptrack = tests / "compat/mlyze-tools/grow.heaptrack.zst"
    with serving(coffer, heaptrack) as server:
        server.wait_until_done()
        assert server.ask("full").json("summary")["view"]["traces"][0]["profile"] == "heaptrack"
        assert server.ask("timeline?width=10").numbers("timeline.time")
    with serving(coffer, tests / "vectors/mlyze/mixed.mlyze", heaptrack) as server:
        server.wait_until_done()
        assert "diff" in server.ask("full").json("summary") and server.ask("timeline?file=1&width=10")
    with tempfile.TemporaryDirectory() as folder:
        hostile = Path(folder) / "<script>alert(1)<\u202e.bin"
        hostile.write_bytes(b"not a file of any kind")
        with serving(coffer, hostile) as server:
            server.wait_until_done()
            assert server.ask("full").json("summary")["files"][0]["name"] == str(hostile)
            assert server.get("/ask/tile")[0] == 404 and "alert(1)" not in server.get("/")[1].decode()


def check_large(coffer):
    """Of many values some are read, and the answer says so; the first picture of a large matrix is of single values."""
    with tempfile.TemporaryDirectory() as folder:
        model, array, matrix = (Path(folder) / name for name in ("large.safetensors", "large.npy", "large.pycauset"))
        rows, columns = 1200, 20000
        header = json.dumps({"w": {"dtype": "F16", "shape": [rows, columns], "data_offsets": [0, 2 * rows * columns]}}).encode()
        with open(model, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + 2 * rows * columns)
            file.seek(8 + len(header) + 2 * (columns * 7 + 9))
            file.write(struct.pack("<e", 1.5))
        with serving(coffer, model) as server:
            whole = server.ask("tile?width=100&height=100").json("answer")["view"]["tile"]
            assert whole["sampled"] and (whole["row_end"], whole["column_end"]) == (rows, columns)
            fine = server.ask("tile?width=1024&height=1024")
            assert fine.json("answer")["view"]["tile"]["sampled"] and max(fine.numbers("tile.cells")) > 0
            part = server.ask("tile?row_begin=7&row_end=8&column_begin=8&column_end=11")
            assert part.numbers("tile.cells") == [0, 1.5, 0] and not part.json("answer")["view"]["tile"]["sampled"]
        text = "{'descr': '<i2', 'fortran_order': False, 'shape': (1100, 1200), }".ljust(117) + "\n"
        with open(array, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
            file.truncate(file.tell() + 2 * 1100 * 1200)
        subprocess.run([coffer, "convert", str(array), str(matrix)], check=True, capture_output=True, timeout=WAIT)
        with serving(coffer, matrix) as server:
            first = server.ask("first")
            assert first.json("summary")["view"]["grid"] == {"width": 256, "height": 256}
            assert any("single values" in note for note in first.json("summary")["notes"])


def check_first_trace(coffer):
    """The first picture of a trace is its stored index, or the number of events over time: no event is decoded."""
    with tempfile.TemporaryDirectory() as folder:
        profile, trace = Path(folder) / "run.heaptrack", Path(folder) / "run.mlyze"
        lines = ["v 10400 3", "X ./prog", "I 1000 1000", "s 5 /prog", "s 4 main", "i 1000 1 2", "t 1 0", "a 10 1", "a 200 1"]
        for number in range(300000):
            lines.append(f"+ {number % 2}")
            if number % 1000 == 0:
                lines.append(f"c {number // 10:x}")
        profile.write_text("\n".join(lines) + "\n")
        subprocess.run([coffer, "convert", str(profile), str(trace)], check=True, capture_output=True, timeout=WAIT)
        with serving(coffer, trace) as server:
            first = server.ask("first")
            assert first.numbers("timeline.high_bytes")[-1] > 0 and "activity.events" not in first.chunks
        trace.with_suffix(".mlyze.idx").unlink()
        with serving(coffer, trace) as server:
            assert sum(server.ask("first").numbers("activity.events")) == 300000


def check_browser(coffer, tests):
    """The browser gets an address that works once."""
    with tempfile.TemporaryDirectory() as folder:
        program, pipe = Path(folder) / "xdg-open", Path(folder) / "address"
        os.mkfifo(pipe)
        program.write_text(f'#!/bin/sh\necho "$1" >"{pipe}"\n')
        program.chmod(0o755)
        around = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":77"}
        path = str(tests / "compat/pycauset/complex64-conj-scalar.pycauset")
        process = subprocess.Popen([coffer, "view", path], stdout=subprocess.PIPE, text=True, env=around)
        try:
            printed = process.stdout.readline()
            assert "#token=" in printed, printed
            address = pipe.read_text().strip()
            server = Server.__new__(Server)
            server.process, server.port, server.token = process, int(address.split(":")[2].split("/")[0]), printed.strip().split("#token=")[1]
            code = address.split("#once=")[1]
            assert server.token not in address and printed.startswith(path)
            assert server.get("/token", X_Coffer_Once=code)[:2] == (200, server.token.encode())
            assert server.get("/token", X_Coffer_Once=code)[0] == 403
            assert all(cell >= 0 for cell in server.ask("tile").numbers("tile.cells")), "complex values are shown by magnitude"
            assert server.interrupt() == 0
        finally:
            process.kill()


class Ranges(http.server.BaseHTTPRequestHandler):
    """A server of one file that answers requests for parts of it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        data = self.server.data
        begin, end = (int(number) for number in self.headers["Range"].removeprefix("bytes=").split("-"))
        body = data[begin:end + 1]
        self.send_response(206)
        self.send_header("ETag", '"one"')
        self.send_header("Content-Range", f"bytes {begin}-{begin + len(body) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def check_url(coffer, tests):
    """A file at a URL is viewed like a file of this machine."""
    path = tests / "compat/mcf/mantle-q4.mcf"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as remote, serving(coffer, path) as local:
        remote.data = path.read_bytes()
        threading.Thread(target=remote.serve_forever, daemon=True).start()
        with serving(coffer, f"http://127.0.0.1:{remote.server_port}/model.mcf") as server:
            for question in ("tensor?tensor=3", "tile?tensor=3"):
                assert server.get(f"/ask/{question}")[1] == local.get(f"/ask/{question}")[1], question
        remote.shutdown()


def check_ends(coffer, tests):
    """The server ends after the last page; a wrong port and a taken one are errors."""
    path = str(tests / "compat/pycauset/float64.pycauset")
    server = Server(coffer, path, "--idle", "1")
    try:
        server.wait_until_done()
        assert server.process.wait(WAIT) == 0, "it ends by itself when the page is gone"
    finally:
        server.process.kill()
    with serving(coffer, path) as first:
        taken = subprocess.run([coffer, "view", path, "--no-browser", "--port", str(first.port)], capture_output=True, text=True, timeout=WAIT)
        assert taken.returncode == 3 and str(first.port) in taken.stderr and "--port" in taken.stderr, taken.stderr
    assert subprocess.run([coffer, "view", path, "--port", "0"], capture_output=True, timeout=WAIT).returncode == 2
    assert subprocess.run([coffer, "view", "missing.mscan"], capture_output=True, timeout=WAIT).returncode == 3


def run_json(coffer, *words):
    done = subprocess.run([coffer, *map(str, words), "--json"], capture_output=True, check=False, timeout=WAIT)
    return json.loads(done.stdout)


def what_is_missing(coffer, tests):
    """A build without Node or libmicrohttpd says so."""
    path = tests / "compat/pycauset/float64.pycauset"
    done = subprocess.run([coffer, "view", str(path), "--port", "0"], capture_output=True, text=True, timeout=WAIT)
    if "script of its pages" in done.stderr:
        return done.stderr
    version = run_json(coffer, "version")
    return None if version["modules"]["serve"]["found"] else version["modules"]["serve"]["problem"]


def main():
    coffer, tests = sys.argv[1], Path(sys.argv[2])
    missing = what_is_missing(coffer, tests)
    if missing:
        print(f"skipped: {missing}")
        return 77
    for check in (check_trace, check_model, check_matrix, check_scan, check_set, check_others, check_browser, check_ends):
        check(coffer, tests)
    check_large(coffer)
    check_first_trace(coffer)
    if run_json(coffer, "version")["modules"]["http"]["found"]:
        check_url(coffer, tests)
    print("views answer their own page, and nobody else")
    return 0


sys.exit(main())
