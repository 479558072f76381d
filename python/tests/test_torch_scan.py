import numpy as np
import pytest

import coffer
from conftest import latest

torch = pytest.importorskip("torch")
import coffer.torch  # noqa: E402


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


# ---- The definition of the first scanner, computed independently ----

class Causal(torch.nn.Module):
    """A layer of causal attention: the state of a token depends on the tokens before it."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(13, 96)
        self.qkv = torch.nn.Linear(96, 3 * 96)
        self.out = torch.nn.Linear(96, 96)
        self.head = torch.nn.Linear(96, 13)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        return self.head(x + self.out(((q @ k.transpose(1, 2)) / 96 ** 0.5 + mask).softmax(-1) @ v))


def _first_scanner(values, block_size=64):
    """Zeros up to whole blocks, then the Euclidean norm of each block: of one token."""
    values = torch.nn.functional.pad(values.float(), (0, -values.shape[-1] % block_size))
    return torch.linalg.vector_norm(values.reshape(-1, block_size), ord=2, dim=-1)


def _token_by_token(model, ids, layer):
    """Norms of input and output of a layer, and of the gradient of each token's own loss: everything before the token is
    taken as given, as with a cache of detached keys and values."""
    found = {"input": [], "output": [], "gradient": []}
    for token in range(ids.shape[1]):
        kept = {}

        def hook(module, inputs, output):
            kept["input"], kept["output"] = inputs[0], output
            output.retain_grad()

        handle = layer.register_forward_hook(hook)
        logits = model(input_ids=ids[:, :token + 1])
        handle.remove()
        gradient = torch.zeros_like(kept["output"][0, -1])
        if token + 1 < ids.shape[1]:
            torch.nn.functional.cross_entropy(logits[:, -1], ids[:, token + 1]).backward()
            gradient = kept["output"].grad[0, -1]
        found["input"].append(_first_scanner(kept["input"][0, -1].detach()))
        found["output"].append(_first_scanner(kept["output"][0, -1].detach()))
        found["gradient"].append(_first_scanner(gradient))
    return {name: torch.stack(rows).numpy() for name, rows in found.items()}


@pytest.mark.parametrize("activation", ["output", "input"])
def test_gradients_of_tokens_agree_with_the_first_scanner(activation):
    torch.manual_seed(4)
    model, ids = Causal(), torch.randint(0, 13, (3, 7))
    coffer.torch.scan(model, [{"input_ids": ids}], "s.mscan", gradients="token", activation=activation)
    assert all(parameter.grad is None for parameter in model.parameters())
    with coffer.open("s.mscan") as scan:
        assert scan.metadata["metrics"] == {"activation": f"l2 of {activation}", "grad_norm": "token"}
        records, names = scan[:], {name: number for number, name in scan.params.items()}
        for name in ("qkv", "out", "head"):
            chosen = records["param_id"] == names[f"{name}.weight"]
            for sequence in range(3):
                expected = _token_by_token(model, ids[sequence:sequence + 1], getattr(model, name))
                rows = chosen & (records["token_idx"] // 7 == sequence)
                for metric, part in (("activation", activation), ("grad_norm", "gradient")):
                    step = scan.metadata["quantization"][metric]["scale"]
                    want = expected[part][:, :rows.sum() // 7]
                    assert want.size == rows.sum()
                    np.testing.assert_allclose(scan.values(metric)[rows].reshape(7, -1), want, atol=step * 0.52)


def test_a_scan_leaves_the_gradients_of_training_alone():
    model, ids = Causal(), torch.randint(0, 13, (1, 4))
    model(ids).sum().backward()
    before = [parameter.grad.clone() for parameter in model.parameters()]
    for gradients in (True, "token", False):
        coffer.torch.scan(model, [{"input_ids": ids}], "s.mscan", gradients=gradients, overwrite=True)
        assert all(torch.equal(one, parameter.grad) for one, parameter in zip(before, model.parameters()))
        assert not model.qkv._forward_hooks
    with pytest.raises(ValueError, match="gradients can be"):
        coffer.torch.scan(model, [{"input_ids": ids}], "t.mscan", gradients="both")


def test_a_scan_that_fails_leaves_no_file_and_no_hooks(folder):
    model = Causal()

    def batches():
        yield {"input_ids": torch.zeros(1, 3, dtype=torch.long)}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        coffer.torch.scan(model, batches(), "s.mscan")
    assert list(folder.iterdir()) == [] and not model.head._forward_hooks
    model.head.weight.data[0, 0] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        coffer.torch.scan(model, [{"input_ids": torch.zeros(1, 3, dtype=torch.long)}], "s.mscan")
    assert list(folder.iterdir()) == []


def test_memory_does_not_grow_with_the_number_of_batches():
    import tracemalloc

    model, peaks = Causal(), []
    ids = torch.randint(0, 13, (1, 16))
    coffer.torch.scan(model, [{"input_ids": ids}], "warm.mscan")
    for count in (20, 100):
        tracemalloc.start()
        coffer.torch.scan(model, ({"input_ids": ids} for _ in range(count)), f"{count}.mscan")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5 + 100_000
    assert len(coffer.open("100.mscan").sequences) == 100


@latest
@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_a_model_of_transformers_is_scanned(kind):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if kind == "llama":
        config = transformers.LlamaConfig(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
                                          num_key_value_heads=2, vocab_size=100)
        model, layer = transformers.LlamaForCausalLM(config), "model.layers.1.mlp.down_proj"
    else:
        config = transformers.BertConfig(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
                                         vocab_size=100, is_decoder=True)
        model, layer = transformers.BertLMHeadModel(config), "bert.encoder.layer.1.output.dense"
    model.eval()
    ids = torch.randint(0, 100, (2, 9))
    batch = {"input_ids": ids, "labels": ids}
    coffer.torch.scan(model, [batch], "s.mscan", layers=[layer])
    coffer.torch.scan(model, [{"input_ids": ids}], "t.mscan", layers=[layer], gradients="token")
    kept = {}

    def hook(module, inputs, output):
        kept["output"] = output
        output.retain_grad()

    handle = model.get_submodule(layer).register_forward_hook(hook)
    model(**batch).loss.backward()
    handle.remove()
    for metric, values in (("activation", kept["output"]), ("grad_norm", kept["output"].grad)):
        expected = torch.stack([_first_scanner(row.detach()) for row in values.reshape(-1, 64)]).numpy()
        with coffer.open("s.mscan") as scan:
            step = scan.metadata["quantization"][metric]["scale"]
            np.testing.assert_allclose(scan.values(metric).reshape(expected.shape), expected, atol=step * 0.52)
    with coffer.open("t.mscan") as scan:
        assert coffer.check("t.mscan", full=True).ok and scan["grad_norm"].reshape(2, 9)[:, -1].sum() == 0
        assert (scan["grad_norm"].reshape(2, 9)[:, :-1] > 0).all()


def test_a_layer_that_sees_some_of_the_tokens_is_refused_by_name(folder):
    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.common, self.pooled = torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)
            self.expert = torch.nn.Linear(8, 8)

        def forward(self, x):
            x = self.common(x)
            return x.sum() + self.expert(x.reshape(-1, 8)[:3]).sum() + self.pooled(x[:, 0]).sum()

    model, batch = Experts(), torch.randn(2, 5, 8)
    with pytest.raises(ValueError, match="layer expert saw 3 tokens"):
        coffer.torch.scan(model, [batch], "s.mscan", loss=lambda output, _: output)
    assert list(folder.iterdir()) == []
    coffer.torch.scan(model, [batch], "s.mscan", layers=["common", "pooled"], loss=lambda output, _: output)
    with coffer.open("s.mscan") as scan:
        assert scan.tokens == 10 and (scan["param_id"] == 0).sum() == 10
        assert sorted(scan["token_idx"][scan["param_id"] == 1]) == [0, 5]
