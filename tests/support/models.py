"""Writes small safetensors and GGUF files for the tests of the command."""

import json
import struct

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "U8": 1, "BOOL": 1}


def count(shape):
    elements = 1
    for dim in shape:
        elements *= dim
    return elements


def floats(shape, scale=1.0):
    """Values that differ from each other and are exact in every float type."""
    return struct.pack("<%df" % count(shape), *(scale * ((i * 37) % 31 - 15) for i in range(count(shape))))


def payload(dtype, shape):
    if dtype == "F32":
        return floats(shape)
    return bytes((i * 7 + 1) % 120 for i in range(count(shape) * SIZES[dtype]))


def safetensors(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape) or (dtype, shape, bytes)."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, *given) in tensors.items():
        part = given[0] if given else payload(dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


TYPES = {"u8": 0, "i8": 1, "u16": 2, "i16": 3, "u32": 4, "i32": 5, "f32": 6, "bool": 7, "string": 8, "u64": 10,
         "i64": 11, "f64": 12}
FORMATS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f32": "f", "bool": "?", "u64": "Q",
           "i64": "q", "f64": "d"}
# id, elements and bytes of a block
BLOCKS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144)}


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind, what):
    return string(what) if kind == "string" else struct.pack("<" + FORMATS[kind], what)


def q8_0(blocks):
    """Blocks with the scale 0.5 and small codes."""
    return b"".join(struct.pack("<H", 0x3800) + bytes((7 * i + b) % 100 for i in range(32)) for b in range(blocks))


def q4_0(blocks, smallest=1):
    """Blocks with the scale 0.5; smallest 0 is the code -8, which q4 of MCF does not have."""
    return b"".join(struct.pack("<H", 0x3800) + bytes(smallest | (i % 7 + 8) << 4 for i in range(16))
                    for b in range(blocks))


def gguf(path, keys, tensors, version=3):
    """keys: name -> (type, value); a type "[u32]" is an array. tensors: name -> (type, shape, bytes or None)."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, (kind, what) in keys.items():
        out += string(name)
        if kind.startswith("["):
            out += struct.pack("<IIQ", 9, TYPES[kind[1:-1]], len(what)) + b"".join(value(kind[1:-1], v) for v in what)
        else:
            out += struct.pack("<I", TYPES[kind]) + value(kind, what)
    data = b""
    for name, (kind, shape, given) in tensors.items():
        number, elements, size = BLOCKS[kind]
        part = given if given is not None else payload(kind, shape)
        assert len(part) == count(shape) // elements * size, name
        out += string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        out += struct.pack("<IQ", number, len(data))
        data += part + b"\0" * (-len(part) % 32)
    out += b"\0" * (-len(out) % 32)
    with open(path, "wb") as file:
        file.write(out + data)
