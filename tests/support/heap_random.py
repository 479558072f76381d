"""Compares the retained sizes of random heaps with cycles with those of removing each object: heap_random.py COFFER FILE"""
import json
import random
import struct
import subprocess
import sys

OBJECTS, HEAPS = 40, 12
random.seed(5)


def extension(kind, body):
    return bytes([kind, 0, len(body)]) + body


def reachable(starts, edges, removed):
    seen, left = set(), [start for start in starts if start != removed]
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += [to for to in edges[one] if to != removed and to not in seen]
    return seen


def roots_of(edges):
    """What nothing else refers to, then the first object of each cycle that none of them reaches."""
    roots = [i for i in range(OBJECTS) if not any(i in edges[k] for k in range(OBJECTS) if k != i)]
    for i in range(OBJECTS):
        if i not in reachable(roots, edges, None):
            roots.append(i)
    return roots


def write(path, sizes, edges):
    tables = json.dumps({"stack_traces": {"0": [{"file_id": 0, "line": 1, "func_id": 0}]}, "files": {"0": "a.c"},
                         "functions": {str(i): f"T{i}" for i in range(OBJECTS)}}).encode()
    events = b"".join(b"\0\0" + struct.pack("<Q", 64 * (i + 1)) + bytes([size, 0, 0, 0]) for i, size in enumerate(sizes))
    events += extension(6, b"\0\1")
    events += b"".join(extension(4, struct.pack("<Q", 64 * (i + 1)) + bytes([i])) for i in range(OBJECTS))
    events += b"".join(extension(5, struct.pack("<QQ", 64 * (i + 1), 64 * (to + 1)) + b"\0") for i in range(OBJECTS) for to in edges[i])
    with open(path, "wb") as file:
        file.write((b"MTRC" + struct.pack("<IQII", 1, 0, len(tables), 4)).ljust(256, b"\0") + tables + events + extension(6, b"\1\1"))


for heap in range(HEAPS):
    density = random.choice([0.6, 1.0, 1.6, 3.0])
    sizes = [random.randint(1, 100) for _ in range(OBJECTS)]
    edges = [[random.randrange(OBJECTS) for _ in range(int(random.expovariate(1 / density)))] for _ in range(OBJECTS)]
    write(sys.argv[2], sizes, edges)
    answer = json.loads(subprocess.check_output([sys.argv[1], "heap", sys.argv[2], "--json", "--objects", "--top", "0"]))
    roots = roots_of(edges)
    expected = {f"T{i}": sum(sizes) - sum(sizes[k] for k in reachable(roots, edges, i)) for i in range(OBJECTS)}
    assert expected == {one["type"]: one["retained_bytes"] for one in answer["largest"]}, heap
    assert [one["retained_bytes"] for one in answer["largest"]] == sorted(expected.values(), reverse=True)
print(HEAPS, "heaps, every retained size is right")
