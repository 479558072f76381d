"""Payloads on GPUs. The tests that need one say why they are skipped."""

import pytest

torch = pytest.importorskip("torch")

import numpy as np

import coffer
import coffer.torch
from coffer import _core, _torch_cuda

TYPES = ("q8", "q4", "k6", "k4", "k3", "k2")


def why_not():
    if not torch.cuda.is_available():
        return "this machine has no GPU that PyTorch can use"
    try:
        return "" if _core.cuda_device_count() else "the module coffer-cuda finds no GPU"
    except coffer.UnsupportedError as error:
        return str(error)


gpu = pytest.mark.skipif(bool(why_not()), reason=why_not() or "a GPU is there")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    rng = np.random.default_rng(3)
    weights = {name: rng.standard_normal((96, 320)).astype("f4") for name in TYPES}
    coffer.mcf.save_file({**weights, "plain": np.arange(1000, dtype="i4")}, folder / "plain.mcf")
    coffer.mcf.quantize(folder / "plain.mcf", folder / "model.mcf", {name: name for name in TYPES})
    return folder / "model.mcf"


def test_a_device_of_the_processor_gives_a_tensor_with_the_same_numbers(model):
    with coffer.open(model) as file:
        tensor = file["k4"].dequantize(device="cpu")
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), file["k4"].dequantize())
        assert file["q8"].dequantize("bf16", device="cpu").dtype == torch.bfloat16
        with pytest.raises(ValueError, match="exclude each other"):
            file["k4"].dequantize(out=np.empty((96, 320), "f4"), device="cpu")


@pytest.mark.skipif(not why_not(), reason="the module and a GPU are here")
def test_without_the_module_the_message_says_what_to_install():
    try:
        assert _core.cuda_device_count() == 0
    except coffer.UnsupportedError as error:
        assert "coffer-cuda" in str(error) or "CUDA" in str(error)
    assert not _torch_cuda.is_usable()


def test_a_bad_tensor_is_refused_before_anything_starts():
    with pytest.raises(ValueError):
        _core.cuda_decode(("none", 1, 1, False, 0, 0), 0, "f32", 0)
    with pytest.raises(ValueError):
        _core.cuda_decode(("q4", 1, 1, False, 0, 0), 0, "none", 0)
    with pytest.raises(ValueError):
        _core.cuda_matmul(("none", 1, 1, False, 0, 0), 0, 0, 1, 0)


def test_shapes_fold_to_rows_and_columns():
    assert _torch_cuda._matrix((3, 4, 5)) == (3, 20)
    assert _torch_cuda._matrix((7,)) == (1, 7)
    assert _torch_cuda._matrix(()) == (1, 1)


@gpu
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_the_gpu_decodes_the_same_bits(model, name, dtype):
    with coffer.open(model) as file:
        here = file[name].dequantize(dtype, device="cpu")
        there = file[name].dequantize(dtype, device="cuda")
    assert there.is_cuda and there.dtype == here.dtype
    bits = torch.int32 if dtype == "f32" else torch.int16
    assert torch.equal(there.cpu().view(bits), here.view(bits))


@gpu
def test_a_file_is_loaded_to_the_gpu(model):
    here, there = coffer.torch.load_file(model), coffer.torch.load_file(model, device="cuda")
    assert list(here) == list(there)
    assert all(there[name].is_cuda and torch.equal(there[name].cpu(), here[name]) for name in here)


@gpu
def test_a_damaged_file_is_refused_on_the_gpu(model, tmp_path):
    with coffer.open(model) as file:
        offset = file.tensor_info("q8")["offset"]
    damaged = bytearray(model.read_bytes())
    damaged[offset + 100] ^= 1
    (tmp_path / "damaged.mcf").write_bytes(damaged)
    with coffer.open(tmp_path / "damaged.mcf") as file, pytest.raises(coffer.ChecksumError):
        file["q8"].dequantize(device="cuda")


@gpu
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("vectors", [1, 3, 16, 33, 100])
def test_layers_give_the_products_of_the_decoded_weights(model, name, vectors):
    x = torch.randn(vectors, 320, generator=torch.Generator().manual_seed(vectors))
    with coffer.open(model) as file:
        layer = coffer.torch.QuantLinear.from_tensor(file[name], torch.ones(96), device="cuda")
        expected = x.double() @ file[name].dequantize(device="cpu").double().t() + 1
    found = layer(x.cuda())
    assert found.is_cuda and found.shape == (vectors, 96)
    assert torch.equal(found, layer(x.cuda()))
    if vectors <= 64:
        torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-5, atol=1e-5)
    moved = coffer.torch.QuantLinear(name, 96, 320, layer.payload.cpu(), torch.ones(96)).to("cuda")
    assert torch.equal(moved(x.cuda()), found)


@gpu
def test_work_is_queued_on_the_current_stream(model):
    with coffer.open(model) as file:
        layer = coffer.torch.QuantLinear.from_tensor(file["k4"], device="cuda")
    x = torch.randn(4, 320, device="cuda")
    expected = layer(x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):  # fails unless every call uses the captured stream
        found = layer(x)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="the input is on cpu"):
        layer(x.cpu())
