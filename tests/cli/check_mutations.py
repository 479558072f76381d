"""Arrays and models of other programs with one thing wrong each. `check`, with and without --full, must report every one
of them: bytes that belong to nothing, members that are not read, duplicate names, overlapping ranges, wrong sizes.

Prints a line per file: its name and the codes that `check` found, and those of `check --full` when they differ."""

import copy
import io
import json
import struct
import subprocess
import warnings
import zipfile

files = {}

# ---- NumPy ----


def npy(payload, descr="'<f4'", shape="(4,)", extra=""):
    header = "{'descr': %s, 'fortran_order': False, 'shape': %s, %s}" % (descr, shape, extra)
    header = header.ljust((len(header) + 11 + 63) // 64 * 64 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + payload


FOUR = struct.pack("<4f", 1, 2, 3, 4)
ARRAY = npy(FOUR)
files["good.npy"] = ARRAY
files["trailing-byte.npy"] = ARRAY + b"x"
files["second-array.npy"] = ARRAY + ARRAY
files["short.npy"] = ARRAY[:-1]
files["no-elements.npy"] = ARRAY[:-16]
files["shape-large.npy"] = npy(FOUR, shape="(5,)")
files["shape-small.npy"] = npy(FOUR, shape="(3,)")
files["shape-huge.npy"] = npy(FOUR, shape="(4611686018427387904, 4)")
files["shape-negative.npy"] = npy(FOUR, shape="(-4,)")
files["key-twice.npy"] = npy(FOUR, extra="'shape': (2,), ")
files["key-unknown.npy"] = npy(FOUR, extra="'other': 1, ")
files["objects.npy"] = npy(FOUR, descr="'|O'")
files["type-of-3-bytes.npy"] = npy(FOUR[:12], descr="'<f3'")
files["version-9.npy"] = ARRAY[:6] + b"\x09" + ARRAY[7:]
files["text-after-header.npy"] = ARRAY.replace(b"}  ", b"} x")

# ---- NumPy archives ----


def npz(*members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, data)
    return out.getvalue()


def patch(data, at, value):
    out = bytearray(data)
    out[at : at + len(value)] = value
    return bytes(out)


warnings.simplefilter("ignore")
ARCHIVE = npz(("a.npy", ARRAY), ("b.npy", ARRAY))
END = ARCHIVE.rindex(b"PK\5\6")
(DIRECTORY,) = struct.unpack("<I", ARCHIVE[END + 16 : END + 20])
SECOND = ARCHIVE.index(b"PK\1\2", DIRECTORY + 4)
files["good.npz"] = ARCHIVE
files["good-deflated.npz"] = npz(("a.npy", ARRAY), method=zipfile.ZIP_DEFLATED)
files["bit.npz"] = patch(ARCHIVE, ARCHIVE.index(FOUR), b"\1")
files["trailing.npz"] = ARCHIVE + b"junk"
files["truncated.npz"] = ARCHIVE[:-30]
files["name-twice.npz"] = npz(("a.npy", ARRAY), ("a.npy", npy(FOUR[::-1])))
files["other-member.npz"] = npz(("a.npy", ARRAY), ("notes.txt", b"hello"))
files["member-trailing.npz"] = npz(("a.npy", ARRAY), ("b.npy", ARRAY + b"x"))
files["member-short.npz"] = npz(("a.npy", ARRAY), ("b.npy", ARRAY[:-1]))
files["other-local-name.npz"] = patch(ARCHIVE, ARCHIVE.index(b"a.npy"), b"c")
files["same-bytes.npz"] = patch(ARCHIVE, SECOND + 42, bytes(4))
files["fewer-listed.npz"] = patch(ARCHIVE, END + 8, struct.pack("<HH", 1, 1))
files["unlisted-member.npz"] = (
    ARCHIVE[:DIRECTORY]
    + ARCHIVE[SECOND:END]
    + patch(patch(ARCHIVE[END:], 8, struct.pack("<HH", 1, 1)), 12, struct.pack("<II", END - SECOND, DIRECTORY))
)
files["gap.npz"] = (
    ARCHIVE[:DIRECTORY] + b"garbage" + ARCHIVE[DIRECTORY:END] + patch(ARCHIVE[END:], 16, struct.pack("<I", DIRECTORY + 7))
)

# ---- Matrix Market ----

MATRIX = "%%MatrixMarket matrix coordinate real general\n% comment\n3 3 2\n1 1 1.5\n2 3 2.5\n"
DENSE = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"
files["good.mtx"] = MATRIX.encode()
files["good-array.mtx"] = DENSE.encode()
for name, text in {
    "entry-more": MATRIX + "3 3 1\n",
    "entry-less": MATRIX.replace("2 3 2.5\n", ""),
    "entry-twice": MATRIX.replace("2 3 2.5", "1 1 2.5"),
    "index-large": MATRIX.replace("2 3 2.5", "4 3 2.5"),
    "index-zero": MATRIX.replace("2 3 2.5", "0 3 2.5"),
    "number-more": MATRIX.replace("2 3 2.5", "2 3 2.5 7"),
    "value-missing": MATRIX.replace("2 3 2.5", "2 3"),
    "value-text": MATRIX.replace("2.5", "abc"),
    "value-too-large": MATRIX.replace("2.5", "1e999"),
    "value-not-integer": MATRIX.replace("real", "integer"),
    "trailing-text": MATRIX + "hello\n",
    "trailing-nul": MATRIX + "\0",
    "symmetry-unknown": MATRIX.replace("general", "generel"),
    "above-diagonal": MATRIX.replace("general", "symmetric"),
    "on-diagonal": MATRIX.replace("general", "skew-symmetric").replace("2 3 2.5", "3 2 2.5"),
    "rows-negative": MATRIX.replace("3 3 2", "-3 3 2"),
    "rows-huge": MATRIX.replace("3 3 2", "99999999999999999999 3 2"),
    "array-value-more": DENSE + "5\n",
    "array-value-less": DENSE[:-2],
    "array-two-on-a-line": DENSE.replace("1\n2\n", "1 2\n"),
}.items():
    files[name + ".mtx"] = text.encode()

# ---- safetensors ----

SIX = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
HEADER = {
    "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
    "b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
}


def safetensors(header=HEADER, payload=SIX, **b):
    if isinstance(header, dict):
        header = copy.deepcopy(header)
        header["b"].update(b)
        header = json.dumps(header)
    header = header.ljust((len(header) + 7) // 8 * 8)
    return struct.pack("<Q", len(header)) + header.encode("latin-1") + payload


TEXT = json.dumps(HEADER)
for name, data in {
    "good": safetensors(),
    "trailing": safetensors(payload=SIX + b"x"),
    "short": safetensors(payload=SIX[:-1]),
    "gap": safetensors(payload=SIX + bytes(4), data_offsets=[20, 28]),
    "overlap": safetensors(payload=SIX[:20], data_offsets=[12, 20]),
    "same-bytes": safetensors(payload=SIX[:16], data_offsets=[0, 16], shape=[4]),
    "size": safetensors(shape=[3]),
    "name-twice": safetensors(TEXT[:-1] + ', "a": ' + json.dumps(HEADER["b"]) + "}"),
    "key-twice": safetensors(TEXT.replace('"shape": [4]', '"shape": [4], "shape": [4]')),
    "key-unknown": safetensors(other=1),
    "type-unknown": safetensors(dtype="F99"),
    "range-reversed": safetensors(data_offsets=[24, 16]),
    "range-outside": safetensors(data_offsets=[16, 2000]),
    "shape-negative": safetensors(shape=[-2]),
    "shape-huge": safetensors(shape=[1 << 32, 1 << 32, 1 << 32]),
    "metadata-number": safetensors('{"__metadata__": {"x": 1}, ' + TEXT[1:]),
    "metadata-twice": safetensors('{"__metadata__": {}, "__metadata__": {}, ' + TEXT[1:]),
    "text-after-header": safetensors(TEXT + "x"),
    "not-utf8": safetensors(TEXT.replace('"b"', '"\xff"')),
}.items():
    files[name + ".safetensors"] = data

# ---- GGUF ----


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


KEYS = [("general.architecture", 8, text("llama"))]
TENSORS = [("a", [4], 0, 0), ("b", [2], 0, 32)]
PAYLOADS = FOUR + bytes(16) + struct.pack("<2f", 5, 6) + bytes(24)


def gguf(keys=(), tensors=TENSORS, payloads=PAYLOADS, tensor_count=None, version=3):
    keys = KEYS + list(keys)
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if tensor_count is None else tensor_count, len(keys))
    for name, kind, value in keys:
        out += text(name) + struct.pack("<I", kind) + value
    for name, dims, kind, offset in tensors:
        out += text(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, kind, offset)
    return out + bytes(-len(out) % 32) + payloads


for name, data in {
    "good": gguf(),
    "good-without-padding": gguf(payloads=PAYLOADS[:40]),
    "trailing": gguf() + b"x" * 40,
    "short": gguf(payloads=PAYLOADS[:39]),
    "name-twice": gguf(tensors=[TENSORS[0], ("a", [2], 0, 32)]),
    "key-twice": gguf([("general.architecture", 8, text("gpt2"))]),
    "key-empty": gguf([("", 0, b"\1")]),
    "key-not-utf8": gguf([("x", 8, text(b"\xff\xfe"))]),
    "key-of-unknown-type": gguf([("x", 77, b"\0")]),
    "bool-of-2": gguf([("x", 7, b"\2")]),
    "overlap": gguf(tensors=[("a", [16], 0, 0), ("b", [2], 0, 32)], payloads=PAYLOADS + bytes(32)),
    "same-bytes": gguf(tensors=[("a", [4], 0, 0), ("b", [4], 0, 0)], payloads=PAYLOADS[:32]),
    "gap": gguf(tensors=[TENSORS[0], ("b", [2], 0, 64)], payloads=PAYLOADS[:32] + b"x" * 32 + PAYLOADS[32:]),
    "gap-in-front": gguf(tensors=[("a", [4], 0, 32), ("b", [2], 0, 64)], payloads=b"x" * 32 + PAYLOADS),
    "misaligned": gguf(tensors=[TENSORS[0], ("b", [2], 0, 17)]),
    "padding": gguf(payloads=FOUR + b"x" * 16 + PAYLOADS[32:]),
    "padding-in-front": gguf().replace(bytes(4) + FOUR, b"xxxx" + FOUR),
    "range-outside": gguf(tensors=[TENSORS[0], ("b", [2], 0, 3200)]),
    "type-unknown": gguf(tensors=[TENSORS[0], ("b", [2], 99, 32)]),
    "tensors-more": gguf(tensor_count=3),
    "tensors-less": gguf(tensor_count=1),
    "part-of-a-block": gguf(tensors=[("a", [31], 8, 0)]),
    "shape-huge": gguf(tensors=[("a", [1 << 40, 1 << 40], 0, 0)]),
    "version-9": gguf(version=9),
}.items():
    files[name + ".gguf"] = data


def check(*options):
    command = ["coffer", "check", "--json", *options, *files]
    lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.splitlines()
    found = {}
    for line in map(json.loads, lines):
        found[line["file"]] = " ".join(f["severity"] + ":" + f["code"] for f in line["findings"])
    return found


for name, data in files.items():
    with open(name, "wb") as file:
        file.write(data)
quick, full = check(), check("--full")
for name in files:
    print("%-30s %s%s" % (name, quick[name] or "-", "" if full[name] == quick[name] else "; --full: " + (full[name] or "-")))
    if not name.startswith("good") and not (quick[name] and full[name]):
        print("  NOT REPORTED")
