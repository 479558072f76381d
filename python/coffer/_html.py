"""Pictures for notebooks, as HTML without files or scripts."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import TYPE_CHECKING, Any, Dict

from ._errors import CofferError

if TYPE_CHECKING:
    import numpy as np

    from .mcf import Model
    from .mldf import Dataset

_MOST_ROWS = 40
_MOST_SAMPLES = 12
_MOST_LETTERS = 120
_THUMBNAIL = 96
# A notebook keeps what a cell shows: all of it together stays below 200 KB.
_ROOM = 150_000


def _short(text: str, most: int = _MOST_LETTERS) -> str:
    """Text of a file for HTML, without characters that reorder what follows them."""
    plain = "".join(f"‹U+{ord(char):04X}›" if ord(char) in _UNSAFE or (ord(char) < 32 and char not in "\n\t") else char
                    for char in text[:most])
    return html.escape(plain + ("…" if len(text) > most else ""))


_UNSAFE = {0x7F, 0xFEFF, *range(0x80, 0xA0), *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070)}


def _png(pixels: "np.ndarray[Any, Any]") -> str:
    """A PNG of height x width x 3 bytes, as a data URL."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _colors(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Values as colors from dark blue through green to yellow; gray where a value is missing."""
    import numpy as np

    stops = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], float)
    finite = np.isfinite(values)
    low, high = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 1.0)
    share = np.where(finite, (values - low) / (high - low or 1.0), 0.0) * (len(stops) - 1)
    at = np.clip(share.astype(int), 0, len(stops) - 2)
    part = (share - at)[..., None]
    color = stops[at] * (1 - part) + stops[at + 1] * part
    color[~finite] = 128
    return color.astype(np.uint8)


def heat_picture(title: str, values: "np.ndarray[Any, Any]") -> str:
    if values.size == 0:
        return f"<p>{_short(title)}</p>"
    import numpy as np

    times = max(1, 96 // values.shape[0]), max(1, 384 // values.shape[1])
    grid = np.repeat(np.repeat(values, times[0], 0), times[1], 1)
    return (f"<figure><img src='{_png(_colors(grid))}' style='image-rendering:pixelated'>"
            f"<figcaption>{_short(title)}</figcaption></figure>")


def timeline_picture(title: str, columns: "Dict[str, Any]") -> str:
    """Live bytes over time as an SVG."""
    times, values = columns["time_us"], columns["high_bytes"]
    width, height = 480, 96
    if len(times) == 0:
        return f"<p>{_short(title)}</p>"
    most = max(int(values.max()), 1)
    step = width / len(times)
    points = " ".join(f"{i * step:.1f},{height - height * int(value) / most:.1f}" for i, value in enumerate(values))
    return (f"<figure><svg width='{width}' height='{height}' style='background:#f4f4f4'>"
            f"<polygon points='0,{height} {points} {width},{height}' fill='#3b7dd8'/></svg>"
            f"<figcaption>{_short(title)}</figcaption></figure>")


def model_table(model: "Model") -> str:
    names = list(model)
    rows = []
    for name in names[:_MOST_ROWS]:
        info = model.tensor_info(name)
        shape = " x ".join(map(str, info["shape"])) or "scalar"
        rows.append(f"<tr><td>{_short(name)}</td><td>{_short(info['dtype'])}</td><td>{shape}</td>"
                    f"<td style='text-align:right'>{info['bytes']:,}</td></tr>")
    more = f"<p>{len(names) - _MOST_ROWS} more</p>" if len(names) > _MOST_ROWS else ""
    return (f"<p>{_short(repr(model))}</p><table><tr><th>tensor</th><th>type</th><th>shape</th><th>bytes</th></tr>"
            f"{''.join(rows)}</table>{more}")


def _thumbnail(dataset: "Dataset", sample: int, field: str) -> str:
    """A small picture in its own proportions; a damaged one must not hide the others."""
    try:
        picture = dataset.image(sample, field)
    except CofferError as error:
        return _short(str(error))
    if picture is None:
        return "no picture"
    import numpy as np

    height, width = picture.shape[:2]
    scale = _THUMBNAIL / max(height, width)
    rows, cols = (np.arange(max(round(side * scale), 1)) * side // max(round(side * scale), 1) for side in (height, width))
    return f"<img src='{_png(np.ascontiguousarray(picture[rows][:, cols]))}'>"


def _wave(dataset: "Dataset", sample: int, field: str) -> str:
    """The lowest and the highest value of a sound in each of 96 columns."""
    import numpy as np

    try:
        sound = dataset[sample, field]
    except CofferError as error:
        return _short(str(error))
    if sound is None or not isinstance(sound, np.ndarray) or sound.size == 0:
        return "no sound"
    values = sound.reshape(len(sound), -1).astype(np.float32)
    if sound.dtype.kind in "iu":
        values = values / float(np.iinfo(sound.dtype).max) - (1.0 if sound.dtype.kind == "u" else 0.0)
    borders = np.linspace(0, len(values), _THUMBNAIL + 1).astype(int)
    lines = []
    for x, (begin, end) in enumerate(zip(borders, borders[1:])):
        part = np.clip(values[begin:max(end, begin + 1)], -1, 1)
        if part.size:
            lines.append(f"M{x},{24 - 23 * float(part.max()):.1f}V{24.6 - 23 * float(part.min()):.1f}")
    return f"<svg width='{_THUMBNAIL}' height='48' style='background:#f4f4f4'><path d='{''.join(lines)}' stroke='#3b7dd8'/></svg>"


def _cell(dataset: "Dataset", sample: int) -> str:
    """The first picture, the first sound and what can be read of a sample."""
    parts = []
    for kind, draw in (("image", _thumbnail), ("audio", _wave)):
        names = [field["name"] for field in dataset._fields if (field["type"] or "").startswith(kind)]
        if names:
            parts.append(draw(dataset, sample, names[0]))
    for field in dataset._fields:
        if field["type"] in ("int", "float", "text"):
            parts.append(f"{_short(field['name'], 40)}: {_short(str(dataset[sample, field['name']]), 40)}")
    return f"<td style='vertical-align:top'>{'<br>'.join(parts)}</td>"


def gallery(dataset: "Dataset") -> str:
    cells = []
    used = 0
    for sample in range(min(len(dataset), _MOST_SAMPLES)):
        cell = _cell(dataset, sample)
        if used + len(cell) > _ROOM:
            break
        used += len(cell)
        cells.append(cell)
    more = f"<p>{len(dataset) - len(cells)} more samples</p>" if len(cells) < len(dataset) else ""
    return f"<p>{_short(repr(dataset))}</p><table><tr>{''.join(cells)}</tr></table>{more}"
