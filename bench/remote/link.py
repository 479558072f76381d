"""A link with delay and limited bandwidth in front of a server on loopback, for machines without `tc netem`.

Bytes of all connections share the bandwidth of a direction and arrive after half of the round trip; a new connection costs one
round trip more, as its handshake would. Slow start of TCP is not imitated: transfers of some megabytes look a little better than
on a real line, for every program alike.
"""
import collections
import multiprocessing
import selectors
import socket
import time

CHUNK = 128 * 1024
WINDOW = 4 << 20  # bytes of a connection on their way


class _Direction:
    """One direction of a connection."""

    def __init__(self, source, target, wire):
        self.source, self.target, self.wire = source, target, wire
        self.queue = collections.deque()
        self.held, self.sent, self.ended, self.listens = 0, 0, False, True


class _Wire:
    def __init__(self, rate, delay):
        self.rate, self.delay, self.free = rate, delay, 0.0

    def arrival(self, now, length):
        self.free = max(now, self.free) + length / self.rate
        return self.free + self.delay


def _receive(way, now, extra):
    try:
        data = way.source.recv(CHUNK)
    except BlockingIOError:
        return
    except OSError:
        data = b""
    if not data:
        way.ended = True
    else:
        way.held += len(data)
    way.queue.append((way.wire.arrival(now, len(data)) + extra, data))


def _deliver(way, now):
    """Sends what has arrived; returns when the next bytes arrive, or None."""
    while way.queue and way.queue[0][0] <= now:
        data = way.queue[0][1]
        if not data:
            try:
                way.target.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            way.queue.popleft()
            continue
        try:
            way.sent += way.target.send(memoryview(data)[way.sent:])
        except BlockingIOError:
            return now + 0.001
        except OSError:
            way.queue.clear()
            way.ended = True
            return None
        if way.sent == len(data):
            way.held -= len(data)
            way.queue.popleft()
            way.sent = 0
    return way.queue[0][0] if way.queue else None


def _serve(listener, port, rate, trip):
    up, down = _Wire(rate, trip / 2), _Wire(rate, trip / 2)
    ways, fresh = [], set()
    select = selectors.DefaultSelector()
    select.register(listener, selectors.EVENT_READ, None)
    wake = None
    while True:
        timeout = None if wake is None else max(0.0, wake - time.monotonic())
        ready = {key.data for key, _ in select.select(timeout)}
        now, wake = time.monotonic(), None
        if None in ready:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for end in (client, server):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = _Direction(client, server, up), _Direction(server, client, down)
            fresh.add(pair[0])
            ways += pair
            for way in pair:
                select.register(way.source, selectors.EVENT_READ, way)
        for way in list(ways):
            if way in ready:
                _receive(way, now, trip if way in fresh else 0)
                fresh.discard(way)
            due = _deliver(way, now)
            if due is not None and (wake is None or due < wake):
                wake = due
            wants = not way.ended and way.held < WINDOW
            if wants != way.listens:
                way.listens = wants
                if wants:
                    select.register(way.source, selectors.EVENT_READ, way)
                else:
                    select.unregister(way.source)
            if way.ended and not way.queue:
                ways.remove(way)


class Link:
    """port : where clients connect. server : the port of the server."""

    def __init__(self, server, rate, trip):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = listener.getsockname()[1]
        self._process = multiprocessing.get_context("fork").Process(target=_serve, args=(listener, server, rate, trip), daemon=True)
        self._process.start()
        listener.close()

    def close(self):
        self._process.terminate()
        self._process.join()
