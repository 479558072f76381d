"""Writes a trace with two heap snapshots, by hand from the description of the format: heap.py FILE

Snapshot 2 has, with sizes: Module 100 -> Dict 200 -> Session 50 <-> Cache 300; Module -> Left 10 and Right 20, which both refer to
Leaf 1000; Island 7 <-> Island 9, which nothing else refers to; and a reference to an address without an object.
"""
import json
import struct
import sys

NAMES = ["Module", "Dict", "Session", "Cache", "Left", "Right", "Leaf", "Island", "next", "cache", "owner"]
SIZES = {"Module": 100, "Dict": 200, "Session": 50, "Cache": 300, "Left": 10, "Right": 20, "Leaf": 1000}
ADDRESS = {name: 0x1000 * (i + 1) for i, name in enumerate(SIZES)}
ISLANDS = {0x20000: 7, 0x30000: 9}
REFERENCES = [("Module", "Dict", "next"), ("Dict", "Session", "next"), ("Session", "Cache", "cache"), ("Cache", "Session", "owner"),
              ("Module", "Left", "next"), ("Module", "Right", "next"), ("Left", "Leaf", "next"), ("Right", "Leaf", "next")]


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def extension(kind, body):
    return bytes([kind]) + varint(10) + varint(len(body)) + body


def alloc(address, size):
    return b"\0" + varint(10) + struct.pack("<Q", address) + varint(size) + varint(1) + struct.pack("<H", 0)


def name(text):
    return varint(NAMES.index(text) + 1)


def snapshot(number, names, islands, references):
    out = extension(6, b"\0" + varint(number))
    for text in names:
        out += extension(4, struct.pack("<Q", ADDRESS[text]) + name(text))
    for address in islands:
        out += extension(4, struct.pack("<Q", address + 16) + name("Island"))  # after the collector's head
    for start, end, edge in references:
        out += extension(5, struct.pack("<QQ", ADDRESS[start], ADDRESS[end]) + name(edge))
    if islands:
        a, b = (address + 16 for address in islands)
        out += extension(5, struct.pack("<QQ", a, b) + name("next")) + extension(5, struct.pack("<QQ", b, a) + name("next"))
        out += extension(5, struct.pack("<QQ", a, 0x99999) + name("next"))
    return out + extension(6, b"\1" + varint(number))


events = b"".join(alloc(ADDRESS[text], SIZES[text]) for text in SIZES)
events += b"".join(alloc(address, size) for address, size in ISLANDS.items())
events += snapshot(1, ["Module", "Dict"], [], [("Module", "Dict", "next")])
events += snapshot(2, list(SIZES), ISLANDS, REFERENCES)
metadata = json.dumps({"stack_order": "outermost-first", "stack_traces": {"1": [{"file_id": 1, "line": 1, "func_id": 100}]}, "files": {"1": "app.py"},
                       "functions": {**{str(i + 1): text for i, text in enumerate(NAMES)}, "100": "main"}}).encode()
header = b"MTRC" + struct.pack("<IQII", 1, 1_700_000_000_000_000, len(metadata), 4 | 8)
with open(sys.argv[1], "wb") as file:
    file.write(header.ljust(256, b"\0") + metadata + events)
