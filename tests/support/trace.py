"""Writes a small plain trace for the tests of the command: trace.py OUT.mlyze [more]. With "more" its cache grows faster."""
import json
import struct
import sys


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def alloc(delta, address, size, stack, thread=1):
    return b"\0" + varint(delta) + struct.pack("<Q", address) + varint(size) + varint(stack) + struct.pack("<H", thread)


def free(delta, address):
    return b"\1" + varint(delta) + struct.pack("<Q", address)


def gc(delta, objects, size):
    return b"\2" + varint(delta) + varint(objects) + varint(size)


def marker(delta, name):
    return b"\3" + varint(delta) + varint(name)


more = "more" in sys.argv[2:]
functions = ["main", "load", "train", "remember", "scratch", "begin", "end"]
files = ["train.py", "model.py"]
frame = {"main": (0, 10), "load": (1, 20), "train": (0, 30), "remember": (0, 40), "scratch": (1, 50)}


def stack(*names):
    return [{"file_id": frame[n][0], "line": frame[n][1], "func_id": functions.index(n)} for n in names]


stacks = {"0": stack("main", "load"), "1": stack("main", "train", "remember"), "2": stack("main", "train", "scratch")}
events = [marker(0, 5), alloc(1000, 0x1000, 1 << 20, 0), alloc(500, 0x200000, 3 << 20, 0)]
for i in range(20):
    events += [alloc(2000, 0x900000 + i * 4096, 2048 if more else 1024, 1), alloc(10, 0x800000, 64 << 10, 2, 2), free(5, 0x800000)]
    if i % 8 == 7:
        events.append(gc(1, 12, 3400))
events += [marker(100, 6), free(10, 0x1000), free(10, 0x200000)]
metadata = json.dumps({"stack_traces": stacks, "files": dict(map(lambda p: (str(p[0]), p[1]), enumerate(files))),
                       "functions": dict(map(lambda p: (str(p[0]), p[1]), enumerate(functions)))}).encode()
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<4sIQI", b"MTRC", 1, 1700000000000000, len(metadata)).ljust(256, b"\0") + metadata + b"".join(events))
