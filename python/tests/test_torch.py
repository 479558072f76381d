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


def test_changing_loaded_tensors_leaves_the_file_alone(tmp_path):
    tensors = {"a": torch.arange(6000.0), "b": torch.ones(3, dtype=torch.bfloat16)}
    for name in ("m.mcf", "m.safetensors"):
        path = tmp_path / name
        coffer.torch.save_file(tensors, path)
        before = path.read_bytes()
        loaded = coffer.torch.load_file(path)
        loaded["a"] += 1
        loaded["b"].zero_()
        assert torch.equal(loaded["a"], tensors["a"] + 1)
        with coffer.mcf.safe_open(path, framework="pt") as file:
            file.get_tensor("a").mul_(2)
        assert path.read_bytes() == before
        assert torch.equal(coffer.torch.load_file(path)["a"], tensors["a"])



def test_a_module_gets_its_weights():
    model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    coffer.torch.save_file(model.state_dict(), "m.safetensors")
    coffer.torch.load_state_dict(other, "m.safetensors")
    assert torch.equal(model.weight, other.weight) and torch.equal(model.bias, other.bias)


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


@pytest.mark.parametrize("quant_type", ["q8", "k4", "k2"])
def test_a_layer_with_rounded_inputs_stays_within_its_bound(quant_type):
    torch.manual_seed(2)
    linear, x = torch.nn.Linear(320, 40, bias=False), torch.randn(70, 320)
    exact = coffer.torch.QuantLinear.from_linear(linear, quant_type)
    rounded = coffer.torch.QuantLinear(quant_type, 40, 320, exact.payload, inputs="int8")
    weights = exact(torch.eye(320)).t()
    scales = x.reshape(70, 10, 32).abs().amax(2, keepdim=True).expand(70, 10, 32).reshape(70, 320) / 127
    bound = scales @ weights.abs().t() * 0.50002 + 1e-5
    assert ((rounded(x) - exact(x)).abs() <= bound).all() and not torch.equal(rounded(x), exact(x))
    assert torch.allclose(rounded(x[:1]), rounded(x)[:1], atol=1e-5)
    with pytest.raises(ValueError, match="'int4', not 'f32' or 'int8'"):
        coffer.torch.QuantLinear.from_linear(linear, quant_type, inputs="int4")


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
