import numpy as np
import pytest

import coffer

torch = pytest.importorskip("torch")
import coffer.torch  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_tensors_round_trip(dtype):
    values = torch.arange(12).reshape(3, 4).to(dtype)
    coffer.torch.save_file({"x": values, "t": values.t()}, "m.mcf")
    loaded = coffer.torch.load_file("m.mcf")
    assert loaded["x"].dtype == dtype and torch.equal(loaded["x"], values) and torch.equal(loaded["t"], values.t())


def test_a_module_gets_its_weights():
    model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    coffer.torch.save_file(model.state_dict(), "m.safetensors")
    coffer.torch.load_state_dict(other, "m.safetensors")
    assert torch.equal(model.weight, other.weight) and torch.equal(model.bias, other.bias)


def _labels(dataset, **options):
    sampler = coffer.torch.BatchSampler(dataset, 4, **options)
    return sampler, lambda loader: [label for batch in loader for label in batch["label"].tolist()]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_order_does_not_depend_on_workers(dataset, workers, method):
    data = coffer.torch.Dataset(dataset, fields=["label"])
    sampler, read = _labels(data, seed=3)
    more = {"multiprocessing_context": method} if workers else {}
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler, num_workers=workers, **more)
    assert read(loader) == [int(i) for i in coffer.open(dataset).order(seed=3)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_iterable_batches_do_not_depend_on_workers(dataset, workers, method):
    more = {"multiprocessing_context": method} if workers else {}
    for world in (1, 2):
        seen = []
        for rank in range(world):
            data = coffer.torch.IterableDataset(dataset, 4, fields=["label"], seed=3, rank=rank, world=world)
            loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers, **more)
            batches = [batch["label"].tolist() for batch in loader]
            assert len(batches) == len(data)
            seen.append([label for batch in batches for label in batch])
        order = [int(i) for i in coffer.open(dataset).order(seed=3)]
        assert seen == [order[rank::world] for rank in range(world)]


def test_iterable_batches_resume(dataset):
    data = coffer.torch.IterableDataset(dataset, 4, fields=["label"], seed=3)
    running = iter(data)
    first = [next(running)["label"].tolist() for _ in range(3)]
    again = coffer.torch.IterableDataset(dataset, 4, fields=["label"], seed=3)
    again.load_state_dict(data.state_dict())
    whole = first + [batch["label"].tolist() for batch in again]
    assert sum(whole, []) == [int(i) for i in coffer.open(dataset).order(seed=3)] and again.epoch == 1
    assert sum([batch["label"].tolist() for batch in again], []) == [int(i) for i in coffer.open(dataset).order(seed=3, epoch=1)]
    with pytest.raises(ValueError, match="batch_size"):
        coffer.torch.IterableDataset(dataset, 5).load_state_dict(data.state_dict())


@pytest.mark.parametrize("window_pages", [0, 2])
@pytest.mark.parametrize("world, later", [(1, 1), (4, 2), (2, 3), (3, 4)])
def test_a_stopped_run_resumes_with_another_number_of_ranks(dataset, world, later, window_pages):
    data = coffer.torch.Dataset(dataset)
    options = {"seed": 9, "window_pages": window_pages}
    samplers = [coffer.torch.BatchSampler(data, 2, rank=rank, world=world, **options) for rank in range(world)]
    running = [iter(sampler) for sampler in samplers]
    seen = [sample for _ in range(2) for batches in running for sample in next(batches)]
    state = samplers[0].state_dict()
    for rank in range(later):
        sampler = coffer.torch.BatchSampler(data, 2, rank=rank, world=later, **options)
        sampler.load_state_dict(state)
        seen += [sample for batch in sampler for sample in batch]
        assert sampler.epoch == 1
    assert sorted(seen) == list(range(25))


def test_a_state_of_another_order_is_refused_by_name(dataset):
    data = coffer.torch.Dataset(dataset)
    state = coffer.torch.BatchSampler(data, 2, seed=1).state_dict()
    with pytest.raises(ValueError, match="seed"):
        coffer.torch.BatchSampler(data, 2, seed=2).load_state_dict(state)


@pytest.mark.parametrize("quant_type", ["q8", "q4", "k6", "k4", "k3", "k2"])
def test_a_quantized_layer_multiplies_the_decoded_weights(quant_type):
    torch.manual_seed(1)
    linear, x = torch.nn.Linear(300, 40), torch.randn(2, 35, 300)
    layer = coffer.torch.QuantLinear.from_linear(linear, quant_type)
    coffer.torch.save_file({"w": linear.weight}, "w.mcf")
    coffer.mcf.quantize("w.mcf", "q.mcf", quant_type)
    with coffer.open("q.mcf") as file:
        weights = torch.from_numpy(file["w"].dequantize())
        same = coffer.torch.QuantLinear.from_tensor(file["w"], linear.bias)
    expected = torch.nn.functional.linear(x, weights, linear.bias)
    assert torch.allclose(layer(x), expected, atol=1e-4) and torch.equal(layer(x), same(x))
    assert layer(x.half()).dtype == torch.float16 and layer(torch.empty(0, 300)).shape == (0, 40)


def test_a_model_is_quantized_in_place():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    x = torch.randn(5, 64)
    before = model(x).detach()
    assert coffer.torch.quantize(model, "q8", layers=["0"]) is model
    assert isinstance(model[0], coffer.torch.QuantLinear) and isinstance(model[2], torch.nn.Linear)
    assert torch.allclose(model(x), before, atol=0.05)
    again = torch.nn.Sequential(coffer.torch.QuantLinear.from_linear(torch.nn.Linear(64, 64), "q8"), torch.nn.ReLU(),
                                torch.nn.Linear(64, 8))
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x))


class Tiny(torch.nn.Module):
    """Two layers with the interface of a language model."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 70)
        self.up = torch.nn.Linear(70, 130)
        self.head = torch.nn.Linear(130, 11)

    def forward(self, input_ids):
        return self.head(torch.relu(self.up(self.embed(input_ids))))


def test_a_scan_has_the_norms_that_torch_computes():
    torch.manual_seed(0)
    model, ids = Tiny(), torch.randint(0, 11, (2, 5))
    coffer.torch.scan(model, [{"input_ids": ids}], "s.mscan", sources=["one", "two"])
    up = model.up(model.embed(ids))
    up.retain_grad()
    logits = model.head(torch.relu(up))
    torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, 11), ids[:, 1:].reshape(-1)).backward()

    def norms(values):
        return torch.nn.functional.pad(values, (0, -130 % 64)).reshape(2, 5, 3, 64).norm(dim=-1).detach().numpy()

    assert coffer.check("s.mscan", full=True).ok
    with coffer.open("s.mscan") as scan:
        assert scan.params == {0: "up.weight", 1: "head.weight"} and [row["source"] for row in scan.sequences] == ["one", "two"]
        records = scan[:]
        chosen = records["param_id"] == 0
        for metric, expected in (("activation", norms(up)), ("grad_norm", norms(up.grad))):
            step = scan.metadata["quantization"][metric]["scale"]
            found = scan.values(metric)[chosen].reshape(2, 5, 3)
            np.testing.assert_allclose(found, expected, atol=step * 0.51)


def test_a_scan_without_gradients_and_by_pattern():
    model = Tiny()
    coffer.torch.scan(model, [torch.zeros(1, 4, dtype=torch.long)] * 3, "s.mscan", layers=["head"], gradients=False)
    with coffer.open("s.mscan") as scan:
        assert list(scan.params.values()) == ["head.weight"] and len(scan.sequences) == 3
        assert not scan["grad_norm"].any() and model.head.weight.grad is None
    with pytest.raises(ValueError, match="no Linear layer"):
        coffer.torch.scan(model, [], "t.mscan", layers=["nothing*"])
    with pytest.warns(UserWarning, match="larger than the scale"):
        coffer.torch.scan(model, [torch.zeros(1, 4, dtype=torch.long)], "u.mscan", scale=(1e-9, 1e-9))
