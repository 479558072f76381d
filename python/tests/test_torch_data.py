"""The order of samples under DataLoader: the same for any number of workers, ranks and start methods."""

import itertools

import numpy as np
import pytest

import coffer
from conftest import latest

torch = pytest.importorskip("torch")
import coffer.torch  # noqa: E402

SAMPLES = 61
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture
def pages(folder):
    """A set of several pages, so that windowed order differs from the order of the whole set."""
    with coffer.mldf.create("pages.mldf", {"label": "int", "text": "text"}, page_size=4096) as writer:
        for i in range(SAMPLES):
            writer.add({"label": i, "text": f"{i:03d}" * 150})
    assert coffer.open("pages.mldf")._page_samples < SAMPLES // 4
    return "pages.mldf"


def _read(loader):
    return [batch["label"].tolist() for batch in loader]


def _flat(batches):
    return [label for batch in batches for label in batch]


def _order(path, **options):
    return [int(i) for i in coffer.open(path).order(**options)]


def _loader(data, workers, method, persistent, **more):
    if workers:
        more.update(multiprocessing_context=method, persistent_workers=persistent)
    return torch.utils.data.DataLoader(data, num_workers=workers, **more)


def _combinations():
    """(workers, start method, persistent, ranks). Spawned workers import torch again: those that do not persist are
    tested with two ranks only."""
    for world in (1, 2, 4):
        yield 0, "fork", False, world
        for workers, method, persistent in itertools.product(range(1, 5), ("fork", "spawn"), (False, True)):
            if method == "fork" or persistent or world == 2:
                yield workers, method, persistent, world


def _check_order(path, workers, method, persistent, shares):
    """shares : (rank, world, window_pages). Workers that are started again for each epoch read only one: they start slowly."""
    epochs = range(1 if method == "spawn" and not persistent else 2)
    for rank, world, window_pages in shares:
        expected = [_order(path, seed=3, epoch=epoch, window_pages=window_pages)[rank::world] for epoch in epochs]
        options = {"seed": 3, "window_pages": window_pages, "rank": rank, "world": world}
        data = coffer.torch.IterableDataset(path, 4, fields=["label"], **options)
        loader = _loader(data, workers, method, persistent, batch_size=None)
        found = [_read(loader) for _ in epochs]
        assert [_flat(batches) for batches in found] == expected, (rank, world)
        assert all(len(batch) == 4 for batches in found for batch in batches[:-1])
        whole = coffer.torch.Dataset(path, fields=["label"])
        sampler = coffer.torch.BatchSampler(whole, 4, **options)
        loader = _loader(whole, workers, method, persistent, batch_sampler=sampler)
        assert [_flat(_read(loader)) for _ in epochs] == expected, (rank, world)


def _shares(*worlds):
    return [(rank, world, window_pages) for world, window_pages in worlds for rank in range(world)]


@pytest.mark.parametrize("workers, method, persistent", [(0, "fork", False), (1, "fork", True), (3, "fork", False),
                                                         (2, "fork", True)])
def test_the_order_does_not_depend_on_workers(pages, workers, method, persistent):
    _check_order(pages, workers, method, persistent, _shares((1, 0), (2, 2)))


def test_the_order_is_the_same_in_spawned_workers(pages):
    data = coffer.torch.IterableDataset(pages, 8, fields=["label"], seed=3)
    loader = _loader(data, 1, "spawn", True, batch_size=None)
    assert [_flat(_read(loader)) for _ in range(2)] == [_order(pages, seed=3, epoch=epoch) for epoch in range(2)]


@pytest.mark.parametrize("window_pages", [0, 2])
def test_every_sample_is_seen_once_by_all_ranks_together(pages, window_pages):
    for world in (1, 2, 4):
        sets = [coffer.torch.IterableDataset(pages, 4, fields=["label"], seed=3, rank=rank, world=world,
                                             window_pages=window_pages) for rank in range(world)]
        for epoch in range(2):
            parts = [_flat(_read(data)) for data in sets]
            assert sorted(_flat(parts)) == list(range(SAMPLES))
            assert parts == [_order(pages, seed=3, epoch=epoch, window_pages=window_pages)[rank::world]
                             for rank in range(world)]


@latest
@pytest.mark.parametrize("workers, method, persistent, world", list(_combinations()))
def test_the_order_is_the_same_for_every_combination(pages, workers, method, persistent, world):
    _check_order(pages, workers, method, persistent, _shares((world, 2 if workers % 2 else 0)))


def test_every_rank_gets_the_same_number_where_asked(pages):
    data = coffer.torch.Dataset(pages)
    for tail, total in (("drop", 56), ("pad", 64)):
        parts = [coffer.torch.BatchSampler(data, 3, rank=rank, world=8, tail=tail) for rank in range(8)]
        lengths = [sum(map(len, part)) for part in parts]
        assert lengths == [total // 8] * 8 and len({len(part) for part in parts}) == 1
    with pytest.raises(ValueError, match="tail"):
        coffer.torch.BatchSampler(data, 3, tail="other")


def test_set_epoch_reaches_persistent_workers_and_an_unfinished_epoch_is_repeated(pages):
    data = coffer.torch.IterableDataset(pages, 4, fields=["label"], seed=3)
    loader = _loader(data, 2, "fork", True, batch_size=None)
    next(iter(loader))
    assert _flat(_read(loader)) == _order(pages, seed=3)
    data.set_epoch(7)
    assert _flat(_read(loader)) == _order(pages, seed=3, epoch=7) and data.epoch == 8


# ---- Stopping and resuming ----

@pytest.mark.parametrize("batches", [0, 1, 5, 15, 16])
def test_iterable_batches_resume(pages, batches):
    data = coffer.torch.IterableDataset(pages, 4, fields=["label"], seed=3)
    running = iter(data)
    first = [next(running)["label"].tolist() for _ in range(batches)]
    again = coffer.torch.IterableDataset(pages, 4, fields=["label"], seed=3)
    again.load_state_dict(data.state_dict())
    again.set_epoch(0)  # as trainers do at the start of the epoch that they resume
    assert _flat(first + _read(again)) == _order(pages, seed=3) and again.epoch == 1
    assert _flat(_read(again)) == _order(pages, seed=3, epoch=1)


@pytest.mark.parametrize("workers", [0, 3])
def test_a_state_is_resumed_by_any_number_of_workers(pages, workers):
    data = coffer.torch.IterableDataset(pages, 4, fields=["label"], seed=3)
    running = iter(data)
    first = [next(running)["label"].tolist() for _ in range(7)]
    again = coffer.torch.IterableDataset(pages, 5, fields=["label"], seed=3)
    again.load_state_dict(data.state_dict())
    loader = _loader(again, workers, "fork", False, batch_size=None)
    assert _flat(first) + _flat(_read(loader)) == _order(pages, seed=3)
    assert _flat(_read(loader)) == _order(pages, seed=3, epoch=1)


@pytest.mark.parametrize("window_pages", [0, 2])
@pytest.mark.parametrize("world, later", [(1, 1), (8, 4), (2, 3), (3, 8)])
def test_a_stopped_run_resumes_with_another_number_of_ranks(pages, world, later, window_pages):
    options = {"seed": 9, "window_pages": window_pages}
    data = coffer.torch.Dataset(pages)
    samplers = [coffer.torch.BatchSampler(data, 2, rank=rank, world=world, **options) for rank in range(world)]
    running = [iter(sampler) for sampler in samplers]
    seen = [sample for _ in range(2) for batches in running for sample in next(batches)]
    state = samplers[0].state_dict()
    for rank in range(later):
        sampler = coffer.torch.BatchSampler(data, 3, rank=rank, world=later, **options)
        sampler.load_state_dict(state)
        seen += [sample for batch in sampler for sample in batch]
        assert sampler.epoch == 1
    assert sorted(seen) == list(range(SAMPLES))


@pytest.mark.parametrize("window_pages", [0, 2])
@pytest.mark.parametrize("world, later, workers", [(8, 4, 0), (8, 4, 2), (2, 3, 0)])
def test_iterable_batches_resume_with_another_number_of_ranks(pages, world, later, workers, window_pages):
    options = {"fields": ["label"], "seed": 9, "window_pages": window_pages}
    sets = [coffer.torch.IterableDataset(pages, 2, rank=rank, world=world, **options) for rank in range(world)]
    running = [iter(data) for data in sets]
    seen = [label for _ in range(3) for batches in running for label in next(batches)["label"].tolist()]
    for rank in range(later):
        data = coffer.torch.IterableDataset(pages, 2, rank=rank, world=later, **options)
        data.load_state_dict(sets[rank % world].state_dict())
        seen += _flat(_read(_loader(data, workers, "fork", False, batch_size=None)))
    assert sorted(seen) == list(range(SAMPLES))


def test_a_sampler_counts_what_the_loop_has_finished(pages):
    data = coffer.torch.Dataset(pages, fields=["label"])
    sampler = coffer.torch.BatchSampler(data, 4, seed=3)
    loader = iter(_loader(data, 2, "fork", False, batch_sampler=sampler))
    seen = [next(loader)["label"].tolist() for _ in range(3)]
    again = coffer.torch.BatchSampler(data, 4, seed=3)
    again.load_state_dict(sampler.state_dict(batches=3))
    assert _flat(seen) + [i for batch in again for i in batch] == _order(pages, seed=3)


def test_a_state_of_another_order_is_refused_by_name(pages):
    data = coffer.torch.Dataset(pages)
    state = coffer.torch.BatchSampler(data, 2, seed=1).state_dict()
    with pytest.raises(ValueError, match="seed"):
        coffer.torch.BatchSampler(data, 2, seed=2).load_state_dict(state)
    state = coffer.torch.IterableDataset(pages, 2, window_pages=1).state_dict()
    with pytest.raises(ValueError, match="window_pages"):
        coffer.torch.IterableDataset(pages, 2).load_state_dict(state)
    with pytest.raises(ValueError, match="not the state"):
        coffer.torch.IterableDataset(pages, 2).load_state_dict({"other": 1})


def _stateful(path, iterable, workers, persistent, **options):
    loaders = pytest.importorskip("torchdata.stateful_dataloader")
    more = {"num_workers": workers, "persistent_workers": persistent} if workers else {}
    if iterable:
        data = coffer.torch.IterableDataset(path, 4, fields=["label"], seed=3, **options)
        return data, loaders.StatefulDataLoader(data, batch_size=None, **more)
    data = coffer.torch.Dataset(path, fields=["label"])
    sampler = coffer.torch.BatchSampler(data, 4, seed=3, **options)
    return sampler, loaders.StatefulDataLoader(data, batch_sampler=sampler, **more)


@latest
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("iterable", [True, False])
def test_the_stateful_loader_resumes_within_an_epoch(pages, iterable, workers, persistent, every):
    whole = [_order(pages, seed=3, epoch=epoch) for epoch in range(2)]
    for stop in (1, 6, 15):
        _, loader = _stateful(pages, iterable, workers, persistent)
        loader.snapshot_every_n_steps = every
        running = iter(loader)
        first = [next(running)["label"].tolist() for _ in range(stop)]
        state = loader.state_dict()
        _, again = _stateful(pages, iterable, workers, persistent)
        again.load_state_dict(state)
        assert _flat(first + _read(again)) == whole[0], stop
        assert _flat(_read(again)) == whole[1], stop


@latest
@pytest.mark.parametrize("window_pages", [0, 2])
@pytest.mark.parametrize("workers", [0, 3])
def test_the_state_of_a_stateful_loader_is_elastic(pages, workers, window_pages):
    options, seen, states = {"window_pages": window_pages}, [], []
    for rank in range(8):
        _, loader = _stateful(pages, True, workers, False, rank=rank, world=8, **options)
        running = iter(loader)
        seen += next(running)["label"].tolist()
        states.append(loader.state_dict())
    for rank in range(4):
        data = coffer.torch.IterableDataset(pages, 3, fields=["label"], seed=3, rank=rank, world=4, **options)
        data.load_state_dict(states[rank])
        seen += _flat(_read(_loader(data, 2, "fork", False, batch_size=None)))
    assert sorted(seen) == list(range(SAMPLES))


# ---- Memory ----

def test_batches_are_read_into_preallocated_tensors(folder):
    schema = [{"name": "image", "type": "ndarray", "dtype": "f32", "shape": [2, 3]}, {"name": "label", "type": "int"},
              {"name": "half", "type": "ndarray", "dtype": "bf16", "shape": [2]}, {"name": "text", "type": "text"}]
    with coffer.mldf.create("a.mldf", schema) as writer:
        for i in range(10):
            half = torch.full((2,), float(i)).bfloat16()
            bits = half.view(torch.int16).numpy().view("u2")
            writer.add({"image": np.full((2, 3), i, "f4"), "label": i, "half": bits if i % 2 else half, "text": str(i)})
    data = coffer.torch.Dataset("a.mldf")
    out = coffer.torch.allocate(data, 4)
    assert set(out) == {"image", "label", "half"} and out["half"].dtype == torch.bfloat16
    places = {name: tensor.data_ptr() for name, tensor in out.items()}
    batch = data.batch([7, 2, 9], out)
    assert {name: batch[name].data_ptr() for name in out} == places and batch["text"] == ["7", "2", "9"]
    assert batch["image"][:, 1, 2].tolist() == batch["label"].tolist() == batch["half"][:, 0].tolist() == [7, 2, 9]
    loader = coffer.torch.IterableDataset("a.mldf", 4, out=out, shuffle=False)
    seen = []
    for batch in torch.utils.data.DataLoader(loader, batch_size=None):
        assert batch["label"].data_ptr() == places["label"]
        seen += batch["label"].tolist()
    assert seen == list(range(10))
    with pytest.raises(ValueError, match="is for 2 samples"):
        data.batch([1, 2, 3], coffer.torch.allocate(data, 2))
    with pytest.raises(ValueError, match="without workers"):
        list(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=1))


def test_collate_fills_tensors_and_names_what_does_not_fit(pages):
    data = coffer.torch.Dataset(pages)
    out = {"label": torch.empty(4, dtype=torch.int64)}
    batch = coffer.torch.collate([data[5], data[6]], out)
    assert batch["label"].data_ptr() == out["label"].data_ptr() and batch["label"].tolist() == [5, 6]
    assert batch["text"][0].startswith("005")
    assert coffer.torch.collate([{"x": np.ones(3)}, {"x": np.zeros(3)}])["x"].shape == (2, 3)
    assert isinstance(coffer.torch.collate([{"x": np.ones(3)}, {"x": np.zeros(2)}])["x"], list)
    with pytest.raises(ValueError, match="label"):
        coffer.torch.collate([data[0]] * 5, out)
    with pytest.raises(ValueError, match="does not fit"):
        coffer.torch.collate([{"x": np.ones(3)}], {"x": torch.empty(1, 2)})


@pytest.mark.filterwarnings("ignore:'pin_memory'")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_pins_batches_where_it_can(pages, workers):
    """Without a GPU, torch warns and gives ordinary memory."""
    gpu, expected = torch.cuda.is_available(), _order(pages, seed=3)
    data = coffer.torch.IterableDataset(pages, 4, fields=["label"], seed=3)
    whole = coffer.torch.Dataset(pages, fields=["label"])
    sampler = coffer.torch.BatchSampler(whole, 4, seed=3)
    for loader in (_loader(data, workers, "fork", False, batch_size=None, pin_memory=True),
                   _loader(whole, workers, "fork", False, batch_sampler=sampler, pin_memory=True)):
        batches = list(loader)
        assert [label for batch in batches for label in batch["label"].tolist()] == expected
        assert all(batch["label"].is_pinned() == gpu for batch in batches)


def test_pinned_memory_is_allocated_where_a_gpu_is(pages, recwarn):
    data = coffer.torch.Dataset(pages, fields=["label"])
    out = coffer.torch.allocate(data, 4, pin_memory=True)
    assert out["label"].is_pinned() == torch.cuda.is_available()
    assert [str(warning.message) for warning in recwarn if "not pinned" in str(warning.message)] or torch.cuda.is_available()
    assert data.batch([5, 3], out)["label"].tolist() == [5, 3]


def test_sets_of_a_server_are_read_by_the_workers(pages, server):
    data = coffer.torch.IterableDataset(f"{server}/{pages}", 8, fields=["label"], seed=3)
    assert _flat(_read(_loader(data, 2, "fork", False, batch_size=None))) == _order(pages, seed=3)
