"""An HTTP server on loopback that answers ranges and misbehaves on request.

The first part of a path names the fault, the rest the file: /cut/m.mcf. Each fault counts its requests by
itself, so that a reader that tries again sees the server recover.
"""
import http.server
import re
import socket
import threading
import time


class Faults(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, fault, name = self.path.split("?")[0].split("/", 2)
        with self.server.lock:
            count = self.server.counts[fault] = self.server.counts.get(fault, 0) + 1
            self.server.requests.append((fault, self.headers.get("Range"), dict(self.headers)))
        data = self.server.files.get(name)
        if data is None:
            return self.plain(404, b"")
        getattr(self, "fault_" + fault.replace("-", "_"))(data, count)

    def log_message(self, *unused):
        pass

    def plain(self, status, body, **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def range_of(self, data):
        first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups()
        return int(first), min(int(last), len(data) - 1)

    def partial(self, data, etag='"v1"', shown=None, body=None, total=None, **headers):
        first, last = self.range_of(data)
        body = data[first:last + 1] if body is None else body
        self.send_response(206)
        self.send_header("Content-Range", shown or f"bytes {first}-{last}/{len(data) if total is None else total}")
        if etag:
            self.send_header("ETag", etag)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def fault_none(self, data, count):
        self.partial(data)

    def fault_cut(self, data, count):
        """Every answer but each third ends in the middle."""
        first, last = self.range_of(data)
        if count % 3:
            self.partial(data, body=data[first:first + (last + 1 - first) // 2])
            self.hang_up()
        else:
            self.partial(data)

    def fault_storm(self, data, count):
        if count % 4:
            return self.plain(503, b"busy")
        self.partial(data)

    def fault_wait(self, data, count):
        if count == 1:
            return self.plain(429, b"", Retry_After="1")
        self.partial(data)

    def fault_always503(self, data, count):
        self.plain(503, b"busy", Retry_After="100000")

    def fault_no_answer(self, data, count):
        self.hang_up()

    def fault_shifted(self, data, count):
        first, last = self.range_of(data)
        if first == 0:
            return self.partial(data)
        self.partial(data, shown=f"bytes {first + 1}-{last}/{len(data)}")

    def fault_whole(self, data, count):
        """Ignores ranges after the first answer."""
        if count == 1:
            return self.partial(data)
        self.plain(200, data, ETag='"v1"')

    def fault_no_ranges(self, data, count):
        self.plain(200, data)

    def fault_changed(self, data, count):
        self.partial(data, etag=f'"v{min(count, 2)}"')

    def fault_lost_etag(self, data, count):
        self.partial(data, etag='"v1"' if count == 1 else None)

    def fault_grown(self, data, count):
        self.partial(data, total=len(data) + (count > 1))

    def fault_weak(self, data, count):
        self.partial(data, etag=None, Last_Modified=f"Fri, 24 May 2013 00:00:0{min(count, 2)} GMT")

    def fault_gzip(self, data, count):
        self.partial(data, Content_Encoding="gzip")

    def fault_huge(self, data, count):
        """Claims to have ten thousand petabytes."""
        self.partial(data, total=10 ** 19)

    def fault_nonsense(self, data, count):
        self.partial(data, shown="bytes 5-4/3")

    def fault_header(self, data, count):
        self.send_response(206)
        for i in range(200):
            self.send_header(f"X-{i}", "y" * 1000)
        self.end_headers()
        self.hang_up()

    def fault_loop(self, data, count):
        self.plain(302, b"", Location=self.path)

    def fault_to_file(self, data, count):
        self.plain(302, b"", Location="file:///etc/passwd")

    def fault_elsewhere(self, data, count):
        self.plain(302, b"", Location=f"http://localhost:{self.server.server_port}/none/" + self.path.split("/", 2)[2])

    def fault_drip(self, data, count):
        """A byte now and then: slow, but alive."""
        first, last = self.range_of(data)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        step = max(1, (last + 1 - first) // 5)
        for at in range(first, last + 1, step):
            self.wfile.write(data[at:min(at + step, last + 1)])
            self.wfile.flush()
            time.sleep(0.05)

    def fault_empty(self, data, count):
        self.plain(416, b"", Content_Range="bytes */0")

    def fault_locked(self, data, count):
        if self.headers.get("Authorization") != "Basic bWU6cHdk":
            return self.plain(401, b"")
        self.partial(data)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Faults)
        self.files = files
        self.lock = threading.Lock()
        self.counts = {}
        self.requests = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *unused):
        pass

    def url(self, fault, name):
        return f"http://127.0.0.1:{self.server_port}/{fault}/{name}"
