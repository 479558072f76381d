#!/usr/bin/env python3
"""Writes reports with the command and reads them as a browser would, without one: smoke.py COFFER TESTS_FOLDER.

  - the HTML is well-formed, and has no element that loads something or handles an event
  - the Content-Security-Policy allows the script and the style by their hashes, and nothing else
  - names from a file are nowhere in the page but inside chunks
  - the chunks decode, and their numbers are those that the command prints as JSON
"""
import base64
import hashlib
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "br", "img", "input"}
LOADING = {"img", "iframe", "object", "embed", "audio", "video", "source", "base", "form", "svg"}
SIZES = {"json": 1, "texts": 1, "u8": 1, "u32": 4, "f32": 4, "f64": 8}


class Page(HTMLParser):
    """The elements of a report; fails on what a report must not contain."""

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.styles, self.chunks, self.policy, self.current = [], [], [], {}, "", None
        self.feed(text)
        self.close()
        assert not self.open, f"elements are not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert tag not in LOADING, f"the page has a <{tag}>"
        assert not any(name.startswith("on") for name in attributes), f"<{tag}> handles an event: {attributes}"
        assert not attributes.get("src"), f"<{tag}> loads {attributes.get('src')}"
        assert attributes.get("href") in (None, "data:,"), f"<{tag}> links to {attributes.get('href')}"
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag not in VOID:
            self.open.append(tag)
        self.current = (tag, attributes)
        self.text = ""

    def handle_data(self, data):
        self.text = data if not getattr(self, "text", "") else self.text + data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"
        if not self.current or self.current[0] != tag:
            return
        attributes = self.current[1]
        if tag == "style":
            self.styles.append(self.text)
        elif tag == "script" and attributes.get("type") == "application/octet-stream":
            self.chunks[attributes["data-name"]] = (attributes, self.text)
        elif tag == "script":
            assert not attributes, f"a script has attributes: {attributes}"
            self.scripts.append(self.text)
        self.current = None

    def bytes_of(self, name):
        attributes, text = self.chunks[name]
        data = base64.b64decode(text, validate=True)
        if attributes["data-codec"] == "deflate-raw":
            data = zlib.decompress(data, -15)
        assert len(data) == int(attributes["data-count"]) * SIZES[attributes["data-type"]], f"{name} has another length"
        return data

    def json_of(self, name):
        return json.loads(self.bytes_of(name))

    def numbers_of(self, name):
        data = self.bytes_of(name)
        letter = {"u8": "B", "u32": "I", "f32": "f", "f64": "d"}[self.chunks[name][0]["data-type"]]
        return list(struct.unpack(f"<{len(data) // SIZES[self.chunks[name][0]['data-type']]}{letter}", data))

    def texts(self):
        data = self.bytes_of("texts")
        (count,) = struct.unpack_from("<I", data)
        ends = struct.unpack_from(f"<{count}I", data, 4)
        body = data[4 + 4 * count :]
        return [body[begin:end].decode() for begin, end in zip((0, *ends), ends)]


def sha(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def check_policy(page):
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules["default-src"] == "'none'", rules
    assert len(page.scripts) == 1 and rules["script-src"] == sha(page.scripts[0]), "the script's hash differs"
    assert len(page.styles) == 1 and rules["style-src"] == sha(page.styles[0]), "the style's hash differs"
    assert rules["img-src"] == "data: blob:" and rules["media-src"] == "blob:" and rules["base-uri"] == "'none'" and rules["form-action"] == "'none'", rules
    assert "unsafe" not in page.policy and "http" not in page.policy, page.policy
    for word in ("eval(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "new Function"):
        assert word not in page.scripts[0].replace("querySelectorAll", ""), f"the script uses {word}"


class Reports:
    def __init__(self, coffer, folder):
        self.coffer, self.folder, self.count = coffer, Path(folder), 0

    def run(self, *words, status=(0,)):
        done = subprocess.run([self.coffer, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd=self.folder)
        assert done.returncode in status, f"{words}: {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout

    def json(self, *words):
        return json.loads(self.run(*words, "--json", status=(0, 1)))

    def rows(self, *words):
        return [json.loads(line) for line in self.run(*words, "--json").splitlines()]

    def page(self, *words, status=(0,)):
        self.count += 1
        output = self.folder / f"page{self.count}.html"
        self.said = json.loads(self.run("report", *words, "-o", str(output), "--json", status=status))
        text = output.read_bytes()
        assert len(text) == self.said["size"]
        page = Page(text.decode())
        check_policy(page)
        for name in page.chunks:
            page.bytes_of(name)
            assert re.fullmatch(r"[a-z0-9_.]+", name), name
        page.summary = page.json_of("summary")
        page.size = len(text)
        return page


def check_facts(reports, page, path):
    info = reports.json("info", path)
    assert page.summary["files"][0]["info"] == info, f"{path}: the facts differ from info --json"
    checked = reports.json("check", path)
    assert page.summary["files"][0]["findings"] == checked["findings"], f"{path}: the findings differ from check --json"


def check_trace(reports, path):
    page = reports.page(path, status=(0, 1))
    check_facts(reports, page, path)
    view = page.summary["view"]["traces"][0]
    for what in ("peak", "leaks", "total", "temporaries"):
        tree = reports.json("flame", path, "--what", what)
        assert view["measures"][what]["bytes"] == tree["value"], f"{path}: {what} has other bytes"
        bytes_, parents = page.numbers_of(f"flame.{what}.bytes"), page.numbers_of(f"flame.{what}.parent")
        names = [page.texts()[at] for at in page.numbers_of(f"flame.{what}.name")]
        assert bytes_[0] == tree["value"] and parents[0] == 0xFFFFFFFF
        assert all(parent < index for index, parent in enumerate(parents[1:], 1)), "a frame comes before its caller"
        tops = [(names[i], bytes_[i]) for i, parent in enumerate(parents) if parent == 0]
        assert tops == [(child["name"], child["value"]) for child in tree.get("children", [])], f"{path}: {what} has other frames"
    threads = reports.json("stats", path)["threads"]
    listed = page.summary["view"]["threads"]
    assert len(threads) < 2 or [(row["thread"], row["peak"], row["leaks"], row["blocks"]) for row in listed] == [
        (row["thread"], row["peak_bytes"], row["live_bytes"], row["allocs"]) for row in threads
    ], f"{path}: other threads"
    assert max(page.numbers_of("timeline.high_bytes")) == view["measures"]["peak"]["bytes"]
    check_windows(reports, page, path)


def check_windows(reports, page, path):
    """The parts of a run have the bytes that the command finds in the same window and at its end."""
    parts, allocated, freed = page.summary["view"]["windows"], page.numbers_of("windows.allocated"), page.numbers_of("windows.freed")
    count, step = parts["count"], parts["step_us"]
    by_part = [sum(allocated[at::count]) for at in range(count)]
    live = [sum(freed[at::count]) for at in range(count)]
    first, last = count // 3, 2 * count // 3
    total = reports.json("flame", path, "--what", "total", "--window", f"{first * step}us..{last * step}us")
    assert sum(by_part[first:last]) == total["value"], f"{path}: another number of bytes in a window"
    at_end = reports.json("flame", path, "--at", f"{last * step}us")
    assert sum(by_part[:last]) - sum(live[:last]) == at_end["value"], f"{path}: another number of bytes is live"


def heaps(reports, tests):
    """The heap of a trace has the types and the paths that the command prints."""
    subprocess.run([sys.executable, str(tests / "support/heap.py"), "heap.mlyze"], cwd=reports.folder, check=True)
    page = reports.page("heap.mlyze", status=(0, 1))
    heap = reports.json("heap", "heap.mlyze", "--since", "1")
    texts = page.texts()
    types = [texts[at] for at in page.numbers_of("heap.type")]
    columns = (page.numbers_of(f"heap.{part}") for part in ("objects", "bytes", "retained", "before"))
    assert list(zip(types, *columns)) == [
        (row["type"], row["objects"], row["bytes"], row["retained_bytes"], row["bytes_before"]) for row in heap["types"]
    ]
    first, path = page.numbers_of("heap.path.first"), [texts[at] for at in page.numbers_of("heap.path.type")]
    for index, name in enumerate(types):
        steps = reports.json("heap", "heap.mlyze", "--path", name)["path"]
        assert path[first[index] : first[index + 1]] == [step["type"] for step in steps], name
    largest = reports.json("heap", "heap.mlyze", "--objects")["largest"]
    assert page.numbers_of("heap.largest.retained") == [row["retained_bytes"] for row in largest]


def traces(reports, tests):
    for name in ("vectors/mlyze/mixed.mlyze", "compat/mlyze/memlyze-0.1.mlyze", "compat/mlyze-tools/grow.heaptrack.zst"):
        check_trace(reports, str(tests / name))


def comparisons(reports, tests):
    a, b = str(tests / "vectors/mlyze/mixed.mlyze"), str(tests / "compat/mlyze-tools/grow.heaptrack.zst")
    page = reports.page(a, b)
    before, after = page.numbers_of("flame.peak.before"), page.numbers_of("flame.peak.after")
    totals = [view["measures"]["peak"]["bytes"] for view in page.summary["view"]["traces"]]
    assert [before[0], after[0]] == totals and page.summary["diff"]["equal"] is False
    assert reports.page(a, a).summary["diff"]["equal"] is True
    for name in ("compat/pycauset/float64.pycauset", "compat/mscan/scanner-io-two-appends.mscan", "compat/mldf/tutorial-writer.mldf"):
        page = reports.page(str(tests / name), str(tests / name))
        assert page.summary["diff"]["equal"] is True, name
        for first, second in (("grid.values", "grid.other"), ("grid.activation", "grid_b.activation")):
            if first in page.chunks:
                assert page.bytes_of(first) == page.bytes_of(second), name


def check_maps(page, names):
    """The pictures of tensors consist of means: those of a picture average to the mean of its tensor, where the cells are equal."""
    place = 0
    cells = page.numbers_of("maps.cells")
    rows = {tensor: row for row, tensor in enumerate(page.numbers_of("values.tensor"))}
    for tensor, width, height in zip(*(page.numbers_of(f"maps.{part}") for part in ("tensor", "width", "height"))):
        picture = cells[place : place + width * height]
        place += width * height
        mean, std = (page.numbers_of(f"values.{part}")[rows[tensor]] for part in ("mean", "std"))
        if width * height == page.numbers_of("tensors.elements")[tensor]:
            assert abs(sum(picture) / len(picture) - mean) <= 1e-6 * max(std, 1), names[tensor]
    assert place == len(cells) > 0


def models(reports, tests):
    for name in ("compat/gguf/plain.gguf", "compat/mcf/mantle-q4.mcf"):
        path = str(tests / name)
        page = reports.page(path)
        assert page.summary["page"] == "model"
        check_facts(reports, page, path)
        texts = page.texts()
        listed = {row["name"]: row for row in reports.rows("ls", path)}
        names = [texts[at] for at in page.numbers_of("tensors.name")]
        assert dict(zip(names, page.numbers_of("tensors.size"))) == {name: listed[name]["size"] for name in names}
        measured = {row["name"]: row for row in reports.rows("stats", path)}
        for row, tensor in enumerate(page.numbers_of("values.tensor")):
            expected = measured[names[tensor]]
            for column in ("min", "max", "mean", "std", "zeros"):
                assert page.numbers_of(f"values.{column}")[row] == expected[column], f"{path}: {names[tensor]}: {column}"
            assert page.numbers_of("values.histogram")[64 * row : 64 * row + 64] == expected["histogram"]


    check_maps(page, names)
    page = reports.page(path, "--max-read", "1")
    assert "values.tensor" not in page.chunks and any("--max-read" in note for note in page.summary["notes"])


def safetensors(path, tensors, metadata=None):
    """A file of float tensors, given as lists of rows."""
    header, payload = ({"__metadata__": metadata} if metadata else {}), b""
    for name, rows in tensors.items():
        data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
        header[name] = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [len(payload), len(payload) + len(data)]}
        payload += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + payload)


def quantized_models(reports, _):
    """The error of a quantized model, in all and by rows; its texts, and the quality that it stores."""
    folder = reports.folder / "model"
    folder.mkdir()
    rows = [[((x * 37 + y * 11) % 101 - 50) / (1000 if y < 64 else 10) for x in range(64)] for y in range(128)]
    safetensors(folder / "model.safetensors", {"a.weight": rows, "b.weight": [[1.5] * 32] * 4})
    config = json.dumps({"name": "</script><script>window.harmed=1</script>", "layers": 2})
    (folder / "config.json").write_text(config)
    (folder / "README.md").write_text("Text of the model\n")
    reports.run("pack", "model", "model.mcf")
    reports.run("quantize", "model.mcf", "small.mcf", "--type", "*=q4")
    page = reports.page("model.mcf", "small.mcf")
    texts = page.texts()
    found = dict(zip((texts[at] for at in page.numbers_of("quality.name")), page.numbers_of("quality.relative")))
    for row in reports.json("diff", "model.mcf", "small.mcf")["values"]:
        assert abs(-20 * math.log10(found[row["name"]]) - row["snr_db"]) < 1e-3, row
    groups = page.numbers_of("quality.rows")[: page.numbers_of("quality.groups")[0]]
    assert len(groups) == 64 and max(groups) < 10 * min(groups), "the error of rows is relative to their values"
    page = reports.page("small.mcf")
    texts = page.texts()
    documents = {texts[name]: texts[text] for name, text in zip(page.numbers_of("documents.name"), page.numbers_of("documents.text"))}
    assert documents["config.json"] == config and documents["README.md"] == "Text of the model\n"
    listed = [row["snr_db"] for row in reports.rows("ls", "small.mcf")]
    assert [value if math.isfinite(value) else None for value in page.numbers_of("tensors.snr_db")] == listed
    page = reports.page("model.mcf", "small.mcf", "--max-read", "1")
    assert page.numbers_of("quality.name") == [] and any("--max-read" in note for note in page.summary["notes"])


def scans(reports, tests):
    path = str(tests / "compat/mscan/scanner-io-two-appends.mscan")
    page = reports.page(path)
    check_facts(reports, page, path)
    groups = reports.json("stats", path, "--by", "param")["groups"]
    assert page.numbers_of("param_stats.key") == [group["param_id"] for group in groups]
    assert page.numbers_of("param_stats.records") == [group["count"] for group in groups]
    grid = page.summary["view"]["grid"]["activation"]
    assert len(page.numbers_of("grid.activation")) == grid["width"] * grid["height"]
    scored = {group["param_id"]: group["dsc"] for group in reports.json("stats", path, "--by", "param", "--metric", "dsc")["groups"]}
    for key, score in zip(page.numbers_of("param_stats.key"), page.numbers_of("param_stats.score")):
        assert math.isnan(score) if key not in scored else abs(score - scored[key]) < 1e-9, key
    blocks, tokens = page.summary["view"]["block_grid"]["activation"], page.summary["view"]["scans"][0]["tokens"]
    assert blocks["token_end"] >= tokens and len(page.numbers_of("block_grid.activation")) == blocks["width"] * blocks["height"]


def matrices(reports, tests):
    path = str(tests / "compat/pycauset/float64.pycauset")
    page = reports.page(path)
    check_facts(reports, page, path)
    measured = reports.json("stats", path)
    view = page.summary["view"]["matrices"][0]
    for key in ("rows", "cols", "nonzero", "density", "min", "max", "mean", "std", "frobenius"):
        assert view[key] == measured[key], f"{path}: {key}"
    rows = [[float(cell) for cell in line.split(",")] for line in reports.run("convert", path, "-", "--to", "csv").split()]
    values = page.numbers_of("grid.values")
    for row, line in enumerate(rows):
        for column, value in enumerate(line):
            assert abs(values[row * len(line) + column] - value) <= 1e-6 * abs(value), (row, column)


def sets(reports, tests):
    path = str(tests / "compat/mldf/tutorial-writer.mldf")
    page = reports.page(path)
    check_facts(reports, page, path)
    measured = reports.json("stats", path)
    fields = page.summary["view"]["fields"]
    assert page.summary["view"]["sets"][0]["samples"] == measured["samples"] == len(page.numbers_of("samples.number"))
    assert [(field["name"], field["present"], field["absent"]) for field in fields] == [
        (field["name"], field["present"], field["absent"]) for field in measured["fields"]
    ]
    assert sum(page.numbers_of("sizes.0")) == fields[0]["present"]
    labels = [page.texts()[at] for at in page.numbers_of("samples.value.1")]
    assert sorted(map(int, labels)) == sorted(item["value"] for item in measured["fields"][1]["counts"])
    data, ends = page.bytes_of("pictures.data"), page.numbers_of("pictures.ends")
    assert ends[-1] == len(data) and data[:2] == b"\xff\xd8", "the pictures are not JPEG files"


def whole_sets(reports, tests):
    """Of all samples: numbers to filter by, the order of a training run, and damage."""
    path = str(tests / "vectors/mldf/all-types-208.mldf")
    page = reports.page(path)
    samples = reports.rows("head", path, "-n", "100")
    names = [field["name"] for field in page.summary["view"]["fields"]]
    for name in ("label", "score"):
        assert page.numbers_of(f"columns.{names.index(name)}") == [float(sample[name]) for sample in samples], name
    order = [int(line) for line in reports.run("order", path).split()]
    assert page.numbers_of("order.sample") == order
    rank = [int(line) for line in reports.run("order", path, "--rank", "1", "--world", "3", "--worker", "1", "--workers", "2").split()]
    assert order[1 * 3 + 1 :: 2 * 3] == rank, "the page deals samples to ranks and workers like this"
    widths, heights = page.numbers_of("arrays.width"), page.numbers_of("arrays.height")
    assert sum(width * height for width, height in zip(widths, heights)) == len(page.numbers_of("arrays.cells")) > 0
    assert page.summary["view"]["damaged"] == 0 and page.summary["view"]["verified"] is True
    page = reports.page(str(tests / "vectors/mldf/payload-bit-flip.mldf"), status=(1,))
    assert page.numbers_of("damaged.sample") == [0] and "checksum" in page.texts()[page.numbers_of("damaged.reason")[0]]
    page = reports.page(path, "--max-read", "1")
    assert page.summary["view"]["verified"] is False and any("not marked" in note for note in page.summary["notes"])


def wav(frames, rate, channels=1):
    """Sound of 16 bits that rises from silence to the highest value."""
    data = struct.pack(f"<{frames * channels}h", *(32767 * i // (frames * channels - 1) for i in range(frames * channels)))
    head = struct.pack("<HHIIHH", 1, channels, rate, 2 * channels * rate, 2 * channels, 16)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(data)) + data


def sounds(reports, _):
    """A sound is a file that a browser plays, and a wave; a long one is cut, in one channel."""
    folder = reports.folder / "sounds"
    folder.mkdir()
    (folder / "a.wav").write_bytes(wav(1280, 8000))
    (folder / "b.wav").write_bytes(wav(200000, 44100, 2))
    reports.run("pack", "sounds", "sounds.mldf")
    page = reports.page("sounds.mldf")
    data, ends = page.bytes_of("sounds.data"), page.numbers_of("sounds.ends")
    assert data[: ends[0]] == wav(1280, 8000), "the sound is not the one that was packed"
    assert data[ends[0] : ends[0] + 4] == b"RIFF" and ends[1] - ends[0] == 44 + 256 * 1024
    assert struct.unpack_from("<HI", data, ends[0] + 22) == (1, 44100)
    assert page.numbers_of("sounds.kind") == [1, 1] and page.numbers_of("sounds.seconds") == [0.16, 200000 / 44100]
    wave = page.numbers_of("sounds.waves")[:256]
    assert wave[0] in (127, 128) and wave[-1] == 255 and wave == sorted(wave), "the wave does not rise"
    assert any("beginning" in note for note in page.summary["notes"])


def png(width, height):
    """A picture of 8 bits with transparency."""
    rows = b"".join(b"\0" + bytes((x * 7 + y) & 255 for x in range(4 * width)) for y in range(height))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )


def jpeg_size(data):
    """Width and height, from the first start-of-frame segment."""
    place = 2
    while data[place + 1] not in (0xC0, 0xC2):
        place += 2 + struct.unpack_from(">H", data, place + 2)[0]
    height, width = struct.unpack_from(">HH", data, place + 5)
    return width, height


def thumbnails(reports, _):
    """Pictures are made smaller in their proportions; a damaged one is counted, and the others are shown."""
    for name, size in (("a/wide.png", (300, 150)), ("b/small.png", (20, 10)), ("b/tall.png", (100, 400))):
        path = reports.folder / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(*size))
    (reports.folder / "pictures/b/damaged.png").write_bytes(png(40, 40)[:-40])
    reports.run("pack", "pictures", "pictures.mldf", "--keep-going", "--force", status=(0, 1))
    page = reports.page("pictures.mldf", status=(0, 1))
    texts = page.texts()
    names = [field["name"] for field in page.summary["view"]["fields"]]
    paths = [texts[at] for at in page.numbers_of(f"samples.value.{names.index('path')}")]
    data, ends = page.bytes_of("pictures.data"), page.numbers_of("pictures.ends")
    sizes = {path: jpeg_size(data[begin:end]) for path, begin, end in zip(paths, (0, *ends), ends) if end > begin}
    assert (sizes["a/wide.png"], sizes["b/small.png"], sizes["b/tall.png"]) == ((112, 56), (20, 10), (28, 112)), sizes
    missing = sum(1 for path in paths if path not in sizes)
    assert missing == 0 or any("cannot be shown" in note for note in page.summary["notes"])


def other_files(reports, tests):
    """What other programs wrote has a page as well; a file that is not recognized has one that says so."""
    matrix = reports.folder / "matrix.mtx"
    matrix.write_text("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
    page = reports.page(str(matrix))
    check_facts(reports, page, str(matrix))
    unknown = reports.folder / "notes.txt"
    unknown.write_text("hello")
    page = reports.page(str(unknown), status=(1,))
    assert page.summary["page"] == "file" and page.summary["files"][0]["findings"][0]["code"] == "not-recognised"
    reports.run("report", str(matrix), str(tests / "vectors/mlyze/mixed.mlyze"), "-o", "never.html", status=(2,))


def damaged_files(reports, tests):
    """A file with errors has a page that shows them, and the exit status is 1."""
    for name in ("mlyze/truncated-event.mlyze", "mlyze/bad-json.mlyze", "mlyze/bad-magic.mlyze"):
        path = str(tests / "vectors" / name)
        page = reports.page(path, status=(1,))
        assert page.summary["files"][0]["findings"] == reports.json("check", path)["findings"]


def limits(reports, _):
    """A small limit gives a smaller page, and says what is missing; an impossible one is an error."""
    stacks = reports.folder / "many.collapsed"
    stacks.write_text("".join(f"main;outer_{i % 97};inner_{i % 1013};leaf_{i} {i + 1}\n" for i in range(6000)))
    whole = reports.page(str(stacks))
    limit = whole.size - 60000
    small = reports.page(str(stacks), "--max-size", str(limit))
    assert small.size <= limit and small.summary["notes"] == reports.said["notes"]
    assert any("largest of" in note for note in reports.said["notes"]), reports.said
    reports.run("report", str(stacks), "-o", "never.html", "--max-size", "1000", status=(3,))
    assert not (reports.folder / "never.html").exists()


def hostile_names(reports, _):
    """Names are nowhere in the page but inside chunks, as base64."""
    names = ["</script><script>alert(1)</script>", "javascript:alert(1)", "<svg onload=alert(1)>", "a\u202egpj.exe", "}</style>*{display:none}"]
    stacks = reports.folder / "<img src=x onerror=alert(1)>.collapsed"
    stacks.write_text("".join(f"main;{name} 100\n" for name in names))
    page = reports.page(str(stacks))
    assert set(names) <= set(page.texts())
    html = (reports.folder / f"page{reports.count}.html").read_text()
    for name in [*names, "onerror"]:
        assert name not in html, name


CHECKS = [
    ("traces", traces),
    ("heaps", heaps),
    ("comparisons", comparisons),
    ("models", models),
    ("quantized models", quantized_models),
    ("scans", scans),
    ("matrices", matrices),
    ("sets", sets),
    ("whole sets", whole_sets),
    ("sounds", sounds),
    ("thumbnails", thumbnails),
    ("other files", other_files),
    ("damaged files", damaged_files),
    ("limits", limits),
    ("hostile names", hostile_names),
]


def main():
    coffer, tests = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        reports = Reports(coffer, folder)
        trace = str(tests / "vectors/mlyze/mixed.mlyze")
        probe = subprocess.run([coffer, "report", trace, "-o", folder + "/probe.html"], stderr=subprocess.PIPE, text=True, check=False, stdout=subprocess.DEVNULL)
        if "built without" in probe.stderr:
            assert probe.returncode == 3 and "npm ci" in probe.stderr, probe.stderr
            print("the command was built without the script of its pages, and says so")
            return
        for name, check in CHECKS:
            check(reports, tests)
            print(f"ok: {name}")


if __name__ == "__main__":
    main()
