"""A heap with cycles, a snapshot of it, and what the interpreter itself says about its objects. With an argument: memory
that grows until the file of that name exists, or a number of times."""
import ctypes
import gc
import json
import os
import sys


class Node:
    def __init__(self, name):
        self.name, self.others = name, []


class Slotted:
    __slots__ = ("left", "right")


class Sized(list):
    def __sizeof__(self):
        raise RuntimeError("a snapshot calls no Python code")


def build():
    nodes = [Node(f"node {i}" * 3) for i in range(50)]
    for i, node in enumerate(nodes):
        node.others += [nodes[(i + 1) % 50], nodes[i * 7 % 50], node]
    pair = Slotted()
    pair.left, pair.right = pair, nodes[3]
    return {"nodes": nodes, "pair": pair, 17: ("tuple", 10 ** 30, b"x" * 1000), "odd": {1, "two", frozenset([3.5])},
            "sized": Sized([nodes[0]]), "made": (node for node in nodes), "bound": nodes[0].others.append}


def reachable(first):
    """Every object that the collector reaches from one, without modules and types, which lead everywhere."""
    found, waiting = {}, [first]
    while waiting:
        item = waiting.pop()
        if id(item) in found:
            continue
        referents = gc.get_referents(item)
        size = type(item).__basicsize__ + 16 if isinstance(item, Sized) else sys.getsizeof(item)
        leads_everywhere = isinstance(item, type) or type(item).__name__ in ("module", "frame", "function", "code")
        found[id(item)] = [type(item).__name__] + ([] if leads_everywhere else [size, sorted(map(id, referents))])
        if not leads_everywhere:
            waiting += referents
    return found


if len(sys.argv) > 1:
    blocks = []
    while not os.path.exists(sys.argv[1]) and len(blocks) != int(sys.argv[2]):
        blocks.append(bytearray(1000))
        if sys.argv[2] == "-1" and len(blocks) > 100:
            del blocks[:]
    sys.exit()
kept = build()
next(kept["made"])
gc.collect()
gc.disable()
taken = ctypes.PyDLL(None).coffer_record_snapshot()
json.dump({"taken": taken, "root": id(kept), "objects": reachable(kept)}, sys.stdout)
