"""Batches that workers send in memory which is used again."""
import os
import pickle

import numpy as np
import pytest

import coffer

torch = pytest.importorskip("torch")
import coffer.torch  # noqa: E402
from coffer import _torch_memory  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

SAMPLES, WIDTH, BATCH = 96, 4096, 8


@pytest.fixture
def rows(folder):
    schema = [{"name": "data", "type": "ndarray", "dtype": "u8", "shape": [WIDTH]}, {"name": "label", "type": "int"},
              {"name": "text", "type": "text"}]
    with coffer.mldf.create("rows.mldf", schema) as writer:
        for i in range(SAMPLES):
            writer.add({"data": np.full(WIDTH, i, "u1"), "label": i, "text": str(i)})
    return "rows.mldf"


def loader_of(path, workers=2, **options):
    dataset = coffer.torch.IterableDataset(path, BATCH, shuffle=False)
    return DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context="fork", **options)


def is_right(batch):
    labels = batch["label"]
    return bool((batch["data"] == labels.to(torch.uint8)[:, None]).all()) and batch["text"] == [str(int(i)) for i in labels]


def test_batches_of_workers_are_plain_dicts_in_memory_that_is_used_again(rows):
    _torch_memory._received.clear()
    loader = loader_of(rows, persistent_workers=True)
    for _ in range(3):
        seen = []
        for batch in loader:
            assert type(batch) is dict and list(batch) == ["data", "label", "text"] and is_right(batch)
            seen += batch["label"].tolist()
        assert seen == list(range(SAMPLES))
    assert 0 < len(_torch_memory._received) <= 16  # of 36 batches


def test_batches_that_are_kept_are_not_overwritten(rows):
    kept = list(loader_of(rows))
    assert all(is_right(batch) for batch in kept) and [int(batch["label"][0]) for batch in kept] == list(range(0, SAMPLES, BATCH))
    part = kept[0]["data"][3]  # a view keeps its batch
    del kept
    for batch in loader_of(rows):
        assert is_right(batch)
    assert int(part[0]) == 3 and int(part[-1]) == 3


def test_a_child_that_inherits_a_batch_does_not_give_it_back(rows):
    loader = loader_of(rows, persistent_workers=True)
    batches = iter(loader)
    first = next(batches)
    child = os.fork()
    if child == 0:
        del first
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for batch in batches:
        assert is_right(batch)
    assert is_right(first) and first["label"].tolist() == list(range(BATCH))


def test_an_iteration_that_is_left_early_gives_its_memory_back(rows):
    _torch_memory._received.clear()
    loader = loader_of(rows, persistent_workers=True)
    for _ in range(8):
        for batch in loader:
            assert is_right(batch)
            break
    assert len(_torch_memory._received) <= 16


def halved(batch):
    return {"data": batch["data"][:, ::2], "label": batch["label"].clone(), "text": batch["text"]}


def test_what_a_collate_function_of_the_caller_makes_is_sent_as_it_is(rows):
    for batch in loader_of(rows, collate_fn=halved):
        assert batch["data"].shape == (BATCH, WIDTH // 2) and is_right(batch)


def test_other_picklers_see_a_dict(rows):
    batch = _torch_memory.Batch(label=torch.arange(3))
    again = pickle.loads(pickle.dumps(batch))
    assert again["label"].tolist() == [0, 1, 2] and again["label"].data_ptr() != batch["label"].data_ptr()


def test_memory_of_ended_workers_is_let_go(rows):
    _torch_memory._received.clear()
    for _ in range(4):
        for batch in loader_of(rows):
            assert is_right(batch)
    processes = {process for process, _, _ in _torch_memory._received}
    assert len(processes) <= 4


# ---- Map style ----

def map_loader(path, workers, **options):
    dataset = coffer.torch.Dataset(path)
    sampler = coffer.torch.BatchSampler(dataset, BATCH, shuffle=False)
    more = {"multiprocessing_context": "fork"} if workers else {}
    return DataLoader(dataset, batch_sampler=sampler, num_workers=workers, **more, **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_map_style_batches_are_what_default_collate_gives(rows, workers):
    _torch_memory._received.clear()
    plain = coffer.torch.Dataset(rows, transform=dict)
    for i, batch in enumerate(map_loader(rows, workers)):
        expected = torch.utils.data.default_collate(plain.__getitems__(range(i * BATCH, (i + 1) * BATCH)))
        assert type(batch) is dict and list(batch) == list(expected) and batch["text"] == expected["text"]
        for name in ("data", "label"):
            assert batch[name].dtype == expected[name].dtype and torch.equal(batch[name], expected[name])
    assert bool(_torch_memory._received) == bool(workers)  # no copies by torch


def test_samples_that_a_collate_function_changes_are_joined_as_changed(rows):
    def changed(samples):
        samples[1]["label"] = 1000
        return torch.utils.data.default_collate(samples)

    def shorter(samples):
        del samples[2:]
        return torch.utils.data.default_collate(samples)

    for workers in (0, 1):
        assert next(iter(map_loader(rows, workers, collate_fn=changed)))["label"][:3].tolist() == [0, 1000, 2]
        assert next(iter(map_loader(rows, workers, collate_fn=shorter)))["label"].tolist() == [0, 1]
    samples = coffer.torch.Dataset(rows).__getitems__([5, 6])
    assert samples[0]["label"] == 5 and isinstance(samples[0], dict)
    assert torch.utils.data.default_collate(samples[1:])["label"].tolist() == [6]
    samples[0]["more"] = 1
    samples[1]["more"] = 2
    assert torch.utils.data.default_collate(samples)["more"].tolist() == [1, 2]
