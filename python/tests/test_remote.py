"""Files on a server: training sets for several workers, parts of models, file objects of fsspec."""
import os
import sys
import tempfile

import numpy as np
import pytest

import coffer

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tests", "remote"))
from fault_server import Server  # noqa: E402

CACHE = tempfile.TemporaryDirectory()
os.environ["COFFER_CACHE_DIR"] = CACHE.name  # read when the first remote file is opened
SAMPLES, SIZE = 96, 20_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote")
    values = np.random.default_rng(1).integers(0, 255, (SAMPLES, SIZE), np.uint8)
    with coffer.mldf.create(folder / "set.mldf") as writer:
        for i in range(SAMPLES):
            writer.add({"image": values[i], "label": i})
    tensors = {f"t.{i}": np.full(1 << 18, i, np.float32) for i in range(12)}
    coffer.mcf.save_file(tensors, folder / "model.mcf")
    coffer.mcf.save_file(tensors, folder / "model.safetensors")
    found = Server({name: (folder / name).read_bytes() for name in ("set.mldf", "model.mcf", "model.safetensors")})
    found.values = values
    yield found
    found.shutdown()
    found.server_close()


def transferred(server):
    """Bytes that the server was asked for."""
    ranges = [request[1][len("bytes="):].split("-") for request in server.requests]
    return sum(int(last) - int(first) + 1 for first, last in ranges)


def test_workers_share_one_cache_directory(server):
    torch = pytest.importorskip("torch")
    url = server.url("none", "set.mldf")
    server.requests.clear()
    data = coffer.torch.IterableDataset(url, 8, seed=3)
    seen = []
    for epoch in range(2):
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)
        labels = []
        for batch in loader:
            labels += batch["label"].tolist()
            for image, label in zip(batch["image"], batch["label"].tolist()):
                assert (image.numpy() == server.values[label]).all()
        assert sorted(labels) == list(range(SAMPLES))
        seen.append((len(server.requests), transferred(server)))
    # Both workers read all pages of the first epoch at about the same time; the second one costs the opening only.
    size = len(server.files["set.mldf"])
    assert seen[0][1] <= 2 * size + 6 * 65536
    assert seen[1][1] - seen[0][1] <= 4 * 65536


def test_some_tensors_cost_only_their_bytes(server):
    for name in ("model.mcf", "model.safetensors"):
        server.requests.clear()
        with coffer.open(server.url("none", name)) as model:
            wanted = ["t.2", "t.3", "t.9"]
            model.prefetch(wanted)
            for key in wanted:
                assert (model[key] == int(key[2:])).all()
        assert transferred(server) <= 3 * (1 << 20) + 5 * 65536


def test_all_tensors_cost_the_file_once(server):
    for name in ("model.mcf", "model.safetensors"):
        server.requests.clear()
        found = coffer.mcf.load_file(server.url("none", name))
        assert all((value == int(key[2:])).all() for key, value in found.items())
        assert transferred(server) <= len(server.files[name]) + 2 * 65536


def test_file_objects_of_fsspec():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://set/model.safetensors", "wb") as file:
        file.write((8).to_bytes(8, "little") + b"{}      ")
    assert len(coffer.open("memory://set/model.safetensors")) == 0
    with fsspec.open("memory://set/model.safetensors", "rb") as file:
        assert len(coffer.open(file)) == 0
