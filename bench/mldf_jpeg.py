"""Decoding JPEG pictures and scaling them to 224 x 224 with Pillow and FFCV, one process.

usage: mldf_jpeg.py FOLDER IMAGES RUNS

Prints one line of JSON for each peer: {"peer", "version", "task", "seconds": [...]}, or {"peer", "task", "missing"}.
"draft" lets libjpeg scale while it decodes. Files are made in FOLDER and removed.
"""
import importlib.metadata
import io
import json
import os
import sys
import tempfile
import time

folder, images, runs = sys.argv[1], *map(int, sys.argv[2:4])
SIDE = 224
DIFFERENT = 50  # pictures are made once and used again


def say(**values):
    print(json.dumps(values), flush=True)


def measure(peer, version, work):
    work()
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    say(peer=peer, version=version, task="jpeg", seconds=seconds)


def paint(numpy, number):
    random = numpy.random.default_rng(number)
    y, x = numpy.mgrid[0:375, 0:500]
    planes = []
    for channel in range(3):
        wave = (x * (3 + number % 5) + y * (2 + channel)) // 7 % 256
        planes.append(numpy.where(wave < 128, wave, 255 - wave) + random.integers(0, 24, wave.shape) + 40)
    return numpy.stack(planes, -1).astype("u1")


def with_pillow():
    import numpy
    from PIL import Image

    files = []
    for number in range(min(images, DIFFERENT)):
        out = io.BytesIO()
        Image.fromarray(paint(numpy, number)).save(out, "JPEG", quality=90)
        files.append(out.getvalue())

    def decode(draft):
        for i in range(images):
            picture = Image.open(io.BytesIO(files[i % len(files)]))
            if draft:
                picture.draft("RGB", (SIDE, SIDE))
            picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX if draft else Image.Resampling.BILINEAR)

    version = importlib.metadata.version("pillow")
    measure("Pillow, draft and resize", version, lambda: decode(True))
    measure("Pillow, full and resize", version, lambda: decode(False))


def with_ffcv():
    import numpy
    from ffcv.fields import RGBImageField
    from ffcv.fields.rgb_image import SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.writer import DatasetWriter

    class Pictures:
        def __len__(self):
            return images

        def __getitem__(self, i):
            return (paint(numpy, i % DIFFERENT),)

    handle, path = tempfile.mkstemp(suffix=".beton", dir=folder)
    os.close(handle)
    try:
        DatasetWriter(path, {"image": RGBImageField(write_mode="jpg", jpeg_quality=90)}, num_workers=1).from_indexed_dataset(Pictures())
        loader = Loader(path, batch_size=32, num_workers=1, order=OrderOption.RANDOM, pipelines={"image": [SimpleRGBImageDecoder()]})
        measure("FFCV", importlib.metadata.version("ffcv"), lambda: [None for _ in loader])
    finally:
        os.unlink(path)


for name, run in ("Pillow", with_pillow), ("FFCV", with_ffcv):
    try:
        run()
    except ImportError as error:
        say(peer=name, task="jpeg", missing=f"not installed (make bench-peers): {error}"[:70])
    except Exception as error:  # a peer that fails has a row that says so
        say(peer=name, task="jpeg", missing=f"failed: {type(error).__name__}: {error}"[:70])
