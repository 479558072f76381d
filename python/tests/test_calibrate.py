"""Second moments of a model's layers, and what quantizing does with them."""
import numpy as np
import pytest

import coffer

torch = pytest.importorskip("torch")
import coffer.torch  # noqa: E402


class Shared(torch.nn.Module):
    """Two layers with the same input, and one after them."""

    def __init__(self, size=6):
        super().__init__()
        self.query, self.key = torch.nn.Linear(size, 4, bias=False), torch.nn.Linear(size, 4, bias=False)
        self.out = torch.nn.Linear(4, 2)

    def forward(self, x, scale=1.0):
        return self.out(self.query(x) * scale + self.key(x))


def whole_numbers(*shape):
    return torch.randint(-4, 5, shape).float()


def test_moments_equal_those_of_numpy():
    torch.manual_seed(1)
    model = Shared()
    with torch.no_grad():
        for layer in (model.query, model.key):
            layer.weight.copy_(whole_numbers(4, 6))
    batches = [whole_numbers(5, 6), whole_numbers(2, 3, 6)]
    model.train()
    counts = coffer.torch.calibrate(model, batches, "moments.safetensors")
    assert counts == {"query": 11, "key": 11, "out": 11} and model.training
    x = np.concatenate([batch.numpy().reshape(-1, 6) for batch in batches])
    y = x @ model.query.weight.detach().numpy().T + x @ model.key.weight.detach().numpy().T
    moments = coffer.mcf.load_file("moments.safetensors")
    for name, inputs in (("query", x), ("key", x), ("out", y)):
        assert np.array_equal(moments[name + ".moments"], inputs.T @ inputs)
        assert moments[name + ".count"].tolist() == [11]
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_batches_are_arguments_of_the_model():
    torch.manual_seed(2)
    x = whole_numbers(3, 6)
    for form, batch in enumerate(((x, 2.0), {"x": x, "scale": 2.0}, [x])):
        assert coffer.torch.calibrate(Shared(), [batch], f"{form}.mcf", layers=["key"]) == {"key": 3}
        assert np.array_equal(coffer.mcf.load_file(f"{form}.mcf")["key.moments"], x.numpy().T @ x.numpy())


def test_what_cannot_be_calibrated_is_refused():
    model = Shared()
    with pytest.raises(ValueError, match="no Linear layer matches nothing"):
        coffer.torch.calibrate(model, [], "m.mcf", layers=["nothing"])
    with pytest.raises(ValueError, match="no batch reached"):
        coffer.torch.calibrate(model, [], "m.mcf")
    with pytest.raises(ValueError, match="the input of query has NaN"):
        coffer.torch.calibrate(model, [torch.full((1, 6), float("nan"))], "m.mcf")
    coffer.torch.calibrate(model, [torch.ones(1, 6)], "m.mcf")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        coffer.torch.calibrate(model, [torch.ones(1, 6)], "m.mcf")
    coffer.torch.calibrate(model, [torch.ones(1, 6)], "m.mcf", overwrite=True)


# ---- Quantizing ----

def layer_with_inputs(rows=40, cols=300, samples=500):
    random = np.random.default_rng(3)
    inputs = random.standard_normal((samples, 20)) @ random.standard_normal((20, cols))
    inputs = inputs + 0.3 * random.standard_normal((samples, cols))
    return random.standard_normal((rows, cols)).astype("f4"), inputs


def save_layer(weights, inputs):
    coffer.mcf.save_file({"layer.weight": weights}, "w.safetensors")
    coffer.mcf.save_file({"layer.moments": (inputs.T @ inputs).astype("f4"),
                          "layer.count": np.array([len(inputs)])}, "moments.safetensors")


def decoded(path):
    with coffer.open(path) as model:
        return model["layer.weight"].dequantize().astype("f8")


def reference(weights, inputs, damping=0.01):
    """int8 with error feedback, column by column: the text book's form with the inverse."""
    cols = weights.shape[1]
    moments = (inputs.T @ inputs).astype("f4").astype("f8")
    moments = moments / np.mean(np.diag(moments)) + damping * np.eye(cols)

    def by_importance(pieces):
        return sorted(pieces, key=lambda piece: (-np.mean(np.diag(moments)[piece]), -piece[0]))

    columns = list(range(cols))
    order = [column for large in by_importance([columns[i:i + 256] for i in range(0, cols, 256)])
             for small in by_importance([large[i:i + 32] for i in range(0, len(large), 32)])
             for (column,) in by_importance([[one] for one in small])]
    inverse = np.linalg.cholesky(np.linalg.inv(moments[np.ix_(order, order)])).T
    scale = float(np.float32(np.abs(weights).max()) / 127)
    left, out = weights[:, order].astype("f8"), np.empty(weights.shape)
    for i in range(cols):
        out[:, order[i]] = np.clip(np.rint(left[:, i] / scale), -127, 127) * scale
        error = (left[:, i] - out[:, order[i]]) / inverse[i, i]
        left[:, i + 1:] -= np.outer(error, inverse[i, i + 1:])
    return out


def test_int8_equals_a_plain_implementation():
    weights, inputs = layer_with_inputs()
    save_layer(weights, inputs)
    coffer.mcf.quantize("w.safetensors", "w.mcf", "int8", hessian="moments.safetensors")
    got, expected = decoded("w.mcf"), reference(weights, inputs)
    # A number next to a half may be rounded the other way, and moves its row from there on.
    same = np.isclose(got, expected, rtol=1e-6, atol=1e-9).mean()
    assert same > 0.98
    errors = [np.sum((inputs @ (weights - made).T) ** 2) for made in (got, expected)]
    assert errors[0] < 1.01 * errors[1]


@pytest.mark.parametrize("quant_type", ["q8", "q4", "k6", "k4", "k3", "k2", "int8", "int4"])
def test_outputs_have_half_of_the_error(quant_type):
    weights, inputs = layer_with_inputs()
    save_layer(weights, inputs)
    coffer.mcf.quantize("w.safetensors", "plain.mcf", quant_type)
    report = coffer.mcf.quantize("w.safetensors", "w.mcf", quant_type, hessian="moments.safetensors")
    errors = [np.sum((inputs @ (weights - decoded(path)).T) ** 2) for path in ("w.mcf", "plain.mcf")]
    assert errors[0] < 0.5 * errors[1]
    row = report["tensors"][0]
    assert row["method"] == "calibrated"
    assert row["output_snr_db"] == pytest.approx(10 * np.log10(np.sum((inputs @ weights.T) ** 2) / errors[0]), abs=0.05)
    assert report["moments"] == {"file": "moments.safetensors", "used": 1, "without": [], "unused": []}


def test_targets_and_names():
    weights, inputs = layer_with_inputs()
    save_layer(weights, inputs)
    good = coffer.mcf.quantize("w.safetensors", "good.mcf", None, min_snr=30)["tensors"][0]
    assert good["type"] == "k6" and good["snr_db"] >= 30 and good["size"] > 0
    calibrated = coffer.mcf.quantize("w.safetensors", "c.mcf", None, min_snr=30, hessian="moments.safetensors")
    assert calibrated["tensors"][0]["output_snr_db"] >= 30 and calibrated["tensors"][0]["size"] < good["size"]
    assert coffer.mcf.quantize("w.safetensors", "e.mcf", None, max_error=0.2, dry_run=True)["tensors"][0]["type"] == "k3"
    coffer.mcf.quantize("w.safetensors", "s.mcf", None, max_size=10000)
    with open("s.mcf", "rb") as file:
        assert len(file.read()) <= 10000
    named = coffer.mcf.quantize("w.safetensors", "n.mcf", "Q4_K_M")
    assert named["tensors"][0]["type"] == "k4" and named["preset"]["name"] == "Q4_K_M"
    with pytest.raises(ValueError, match="Q5_K_M"):
        coffer.mcf.quantize("w.safetensors", "n5.mcf", "Q5_K_M")
