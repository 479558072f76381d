"""DataLoaders with 2 workers: samples of 100 KB, and JPEG pictures scaled to 224 x 224, next to other formats.

Every contestant hands the same batches to the training process: a tensor of uint8 and a tensor of labels. Those that can
shuffle read in random order; WebDataset reads tar files in order. Files are in the page cache.
"""
import io
import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

import coffer
import coffer.torch
from harness import OURS, Contest, cached, main

WORKERS, BATCH = 2, 32
SAMPLES, SIZE = 4000, 100_000
PICTURES, DIFFERENT, SIDE = 1024, 64, 224
SHARDS = 4
torch.set_num_threads(1)


def drain(loader, samples):
    seen = 0
    for images, labels in loader:
        seen += len(labels)
        assert images.shape[0] == len(labels) and images.dtype == torch.uint8
    assert seen == samples, f"{seen} of {samples} samples"


def loader_of(dataset, **options):
    """Workers stay for the next epoch, as in a training run: their start is not measured."""
    return DataLoader(dataset, num_workers=WORKERS, multiprocessing_context="fork", persistent_workers=True, **options)


# ---- Samples of 100 KB ----

def payload(i):
    """Bytes that differ from sample to sample and do not compress."""
    start = random.Random(i).randrange(SIZE)
    return NOISE[start:start + SIZE]


NOISE = random.Random(1).randbytes(2 * SIZE)


def bytes_mldf(path):
    schema = [{"name": "data", "type": "ndarray", "dtype": "u8", "shape": [SIZE]}, {"name": "label", "type": "int"}]
    with coffer.mldf.create(path, schema) as writer:
        for i in range(SAMPLES):
            writer.add({"data": np.frombuffer(payload(i), np.uint8), "label": i})


def folder_of(write, count):
    """The layout of ImageFolder: a folder for each of ten classes."""
    def make(path):
        for i in range(count):
            place = path / f"class{i % 10}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i:06}.{'jpg' if write is picture else 'bin'}").write_bytes(write(i))

    return make


def shards_of(write, count, name):
    def make(path):
        import webdataset

        path.mkdir()
        for shard in range(SHARDS):
            with webdataset.TarWriter(str(path / f"{shard}.tar")) as writer:
                for i in range(shard, count, SHARDS):
                    writer.write({"__key__": f"{i:06}", name: write(i), "cls": i})

    return make


def with_coffer(path, name, **options):
    def prepare():
        dataset = coffer.torch.IterableDataset(path, BATCH, seed=1, **options)
        loader = loader_of(dataset, batch_size=None)
        return lambda: drain(((batch[name], batch["label"]) for batch in loader), len(dataset.data))

    return prepare


def with_map_style(path, name, **options):
    def prepare():
        dataset = coffer.torch.Dataset(path, **options)
        loader = loader_of(dataset, batch_sampler=coffer.torch.BatchSampler(dataset, BATCH, seed=1))
        return lambda: drain(((batch[name], batch["label"]) for batch in loader), len(dataset))

    return prepare


def webdataset_loader(path, name, decode, count):
    def prepare():
        import webdataset

        shards = [str(path / f"{shard}.tar") for shard in range(SHARDS)]
        dataset = (webdataset.WebDataset(shards, shardshuffle=False).to_tuple(name, "cls")
                   .map_tuple(decode, lambda text: int(text)).batched(BATCH, collation_fn=torch.utils.data.default_collate))
        loader = loader_of(dataset, batch_size=None)
        return lambda: drain(loader, count)

    return prepare


def folder_loader(path, load, extension):
    def prepare():
        from torchvision.datasets import DatasetFolder

        loader = loader_of(DatasetFolder(str(path), load, (extension,)), batch_size=BATCH, shuffle=True)
        return lambda: drain(loader, len(loader.dataset))

    return prepare


def mds_loader(path, write, decode, count):
    def prepare():
        import streaming

        def make(folder):
            with streaming.MDSWriter(out=str(folder), columns={"data": "bytes", "label": "int"}) as writer:
                for i in range(count):
                    writer.write({"data": write(i), "label": i})

        class Decoded(streaming.StreamingDataset):
            def __getitem__(self, index):
                found = super().__getitem__(index)
                return decode(found["data"]), found["label"]

        streaming.base.util.clean_stale_shared_memory()
        dataset = Decoded(local=str(cached(path, make)), shuffle=True, batch_size=BATCH)
        loader = loader_of(dataset, batch_size=BATCH)
        return lambda: drain(loader, count)

    return prepare


def array_record_loader(path, write, decode, count):
    def prepare():
        from array_record.python import array_record_data_source, array_record_module

        def make(file):
            writer = array_record_module.ArrayRecordWriter(str(file), "group_size:1,uncompressed")
            for i in range(count):
                writer.write(i.to_bytes(8, "little") + write(i))
            writer.close()

        class Records(torch.utils.data.Dataset):
            def __init__(self, file):
                self.source = array_record_data_source.ArrayRecordDataSource(str(file))

            def __len__(self):
                return len(self.source)

            def __getitems__(self, indices):
                return [(decode(record[8:]), int.from_bytes(record[:8], "little"))
                        for record in self.source.__getitems__(indices)]

        loader = loader_of(Records(cached(path, make)), batch_size=BATCH, shuffle=True)
        return lambda: drain(loader, count)

    return prepare


class InMemory(torch.utils.data.Dataset):
    """What a DataLoader costs without reading: the same sample again and again."""

    def __init__(self, count, shape):
        self.count, self.data = count, torch.zeros((BATCH, *shape), dtype=torch.uint8)

    def __len__(self):
        return self.count // BATCH

    def __getitem__(self, index):
        return self.data.clone(), torch.arange(BATCH)


def in_memory(count, shape):
    def prepare():
        loader = loader_of(InMemory(count, shape), batch_size=None)
        return lambda: drain(loader, count)

    return prepare


def copies():
    """What reading cannot be faster than: each sample is copied once."""
    source, target = np.frombuffer(NOISE, np.uint8), np.empty((BATCH, SIZE), np.uint8)
    for i in range(SAMPLES):
        target[i % BATCH] = source[i:i + SIZE]


def to_tensor(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def samples():
    """Samples of 100 KB: an epoch of 4000."""
    contest = Contest("DataLoader, 2 workers, 100 KB samples", per=SAMPLES, runs=3)
    contest.enter(OURS, with_coffer(cached("bytes.mldf", bytes_mldf), "data"))
    contest.enter("coffer, map style and default_collate", with_map_style(cached("bytes.mldf", bytes_mldf), "data"))
    contest.enter("MDS (mosaicml-streaming)", mds_loader("bytes.mds", payload, to_tensor, SAMPLES), "mosaicml-streaming")
    contest.enter("ArrayRecord", array_record_loader("bytes.array_record", payload, to_tensor, SAMPLES), "array_record")
    contest.enter("WebDataset", lambda: webdataset_loader(cached("bytes.shards", shards_of(payload, SAMPLES, "bin")), "bin",
                                                          to_tensor, SAMPLES)(), "webdataset")
    contest.enter("image folder (torchvision)", lambda: folder_loader(
        cached("bytes.folder", folder_of(payload, SAMPLES)), lambda path: to_tensor(read_file(path)), ".bin")(), "torchvision")
    contest.enter("a tensor in memory, sent by torch", in_memory(SAMPLES, (SIZE,)))
    contest.enter("limit: a copy in memory, no workers", lambda: copies)
    contest.run()


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


# ---- Pictures ----

def picture(i):
    """A JPEG of 500 x 375, as ImageNet has them: smooth shapes and some noise, 64 different ones."""
    from PIL import Image

    number = i % DIFFERENT
    if number not in DRAWN:
        draw = np.random.default_rng(number)
        y, x = np.mgrid[0:375, 0:500]
        planes = [(x * (3 + number % 5) + y * (2 + channel)) // 7 % 256 for channel in range(3)]
        pixels = np.clip(np.stack(planes, -1) + draw.normal(0, 12, (375, 500, 3)), 0, 255).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=90)
        DRAWN[number] = out.getvalue()
    return DRAWN[number]


DRAWN = {}


def pictures_mldf(path):
    with coffer.mldf.create(path, {"image": "image-jpeg", "label": "int"}) as writer:
        for i in range(PICTURES):
            writer.add({"image": picture(i), "label": i})


def with_pillow(source):
    from PIL import Image
    from torchvision.transforms import functional

    image = Image.open(source if isinstance(source, str) else io.BytesIO(source)).convert("RGB")
    return functional.pil_to_tensor(functional.resize(image, [SIDE, SIDE], antialias=True))


def with_torchvision(source):
    from torchvision import io as images
    from torchvision.transforms import functional

    data = images.read_file(source) if isinstance(source, str) else to_tensor(source)
    image = images.decode_jpeg(data, mode=images.ImageReadMode.RGB)
    return functional.resize(image, [SIDE, SIDE], antialias=True)


def pictures():
    """JPEG pictures to 224 x 224: an epoch of 1024."""
    contest = Contest("DataLoader, 2 workers, JPEG to 224 x 224", per=PICTURES, runs=3)
    folder = cached("pictures.folder", folder_of(picture, PICTURES))
    contest.enter(OURS, with_coffer(cached("pictures.mldf", pictures_mldf), "image", image_size=(SIDE, SIDE)))
    contest.enter("torchvision + Pillow, image folder", folder_loader(folder, with_pillow, ".jpg"), "torchvision")
    contest.enter("torchvision.io, image folder", folder_loader(folder, with_torchvision, ".jpg"), "torchvision")
    contest.enter("WebDataset + Pillow", lambda: webdataset_loader(
        cached("pictures.shards", shards_of(picture, PICTURES, "jpg")), "jpg", with_pillow, PICTURES)(), "webdataset")
    contest.enter("MDS + Pillow", mds_loader("pictures.mds", picture, with_pillow, PICTURES), "mosaicml-streaming")
    contest.run()


main(samples, pictures)
