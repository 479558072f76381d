"""Writes captures of memray with known events, from the description of the format: memray_capture.py FOLDER

main (app.py) calls load, which allocates 100 and 200 bytes at lines 11 and 13 and frees the first; a second thread named worker
maps 3 pages and unmaps the middle one. Peak: 200 + 3 * 4096 bytes in 2 blocks; at the end 200 + 2 * 4096 in 3."""
import os
import struct
import sys

PAGE = 4096


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def signed(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


class Capture:
    def __init__(self, python, form=0, version=13):
        self.bytes = b"memray\0" + struct.pack("<iiBBQQqq", version, python, 0, form, 0, 0, 1700000000000, 1700000001000)
        self.bytes += b"app.py\0" + struct.pack("<iQQBBB", 1, 7, 1, 1, 0, 0) + b"/lib\0" + b"/site\0\0" + b"\0"
        self.address = self.line = 0

    def put(self, *parts):
        self.bytes += b"".join(part if isinstance(part, bytes) else bytes([part]) for part in parts)

    def code(self, number, name, file, line, table):
        self.put(14, varint(number), name, b"\0", file, b"\0", signed(line - self.line), varint(len(table)), table)
        self.line = line

    def event(self, allocator, address, size=None):
        delta, self.address = (address >> 3) - self.address, address >> 3
        self.put(0x80 | 15 << 3 | (allocator if allocator < 8 else 0), signed(delta), b"" if allocator < 8 else bytes([allocator]))
        self.put(b"" if size is None else varint(size))


def build(python, table, steps, **options):
    """steps : instructions of lines 11 and 13 of load."""
    out = Capture(python, **options)
    out.put(12, struct.pack("<Q", 7))
    out.code(1, b"run", b"memray/run.py", 5, b"")
    out.code(2, b"main", b"app.py", 3, b"")
    out.code(3, b"load", b"app.py", 10, table)
    out.put(0x41, varint(1), signed(0), 0x40, varint(2), signed(0))
    out.put(0x40, varint(3), signed(steps[0]))
    out.event(6, 0x10000, 100)
    out.put(0x10, 0x40, varint(3), signed(steps[1]))
    out.event(6, 0x20000, 200)
    out.put(0x80 | 1 << 3 | 5)  # frees what is second in the cache: 0x10000
    out.put(2, varint(1 << 20), varint(250))
    out.put(12, struct.pack("<Q", 8), 10, b"worker\0", 0x40, varint(3), signed(steps[0]))
    out.event(14, 0x100000, 3 * PAGE)
    out.event(15, 0x100000 + PAGE, PAGE)
    out.put(12, struct.pack("<Q", 7), 0x11, 1, bytes(40))
    return out.bytes


def entry(kind, length, *rest):
    return bytes([0x80 | kind << 3 | length - 1, *rest])


def write(name, data):
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(data)


# Line 10 for one instruction, 11 for two, then 13; kinds: no location, one line, without columns, long.
NEW = entry(15, 1) + entry(11, 2, 0, 5) + entry(13, 1, 4) + entry(14, 2, 0, 0, 1, 2)
capture = build(0x030B0000, NEW, (2, 6))
write("new.memray", capture)
write("python310.memray", build(0x030A0000, bytes([2, 0, 4, 1, 8, 2]), (1, 3)))
write("python39.memray", build(0x03090000, bytes([2, 1, 4, 2]), (2, 6)))
write("lz4.memray", bytes.fromhex("04224d184040c0") + struct.pack("<I", 0x80000000 | len(capture)) + capture + bytes(4))
write("old.memray", build(0x030B0000, NEW, (2, 6), version=12))
write("aggregated.memray", build(0x030B0000, NEW, (2, 6), form=1))
write("cut.memray", capture[:-60])
write("killed.memray", capture[:-41])
