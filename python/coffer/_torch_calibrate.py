"""Second moments of the inputs of a model's layers, for calibrated quantization."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple, Union

import torch

from . import mcf as _mcf

Path = Union[str, "os.PathLike[str]"]


class _Sums:
    """The sum of x^T x over the inputs x of each layer, and their number. In float64: 8 bytes for each pair of a layer's
    inputs."""

    def __init__(self, layers: "Sequence[Tuple[str, torch.nn.Linear]]") -> None:
        self.counts = {name: 0 for name, _ in layers}
        self.moments = {name: torch.zeros(layer.in_features, layer.in_features, dtype=torch.float64)
                        for name, layer in layers}
        # Layers that share their input, as those of queries, keys and values do, are called one after the other.
        self._last: "Tuple[Any, Any]" = (None, None)

    def hook(self, name: str) -> Any:
        def before(module: Any, inputs: "Tuple[Any, ...]") -> None:
            given = inputs[0]
            if self._last[0] is not given:
                x = given.detach().reshape(-1, given.shape[-1]).double()
                if not bool(torch.isfinite(x).all()):
                    raise ValueError(f"the input of {name} has NaN or infinite values")
                self._last = given, (x.T @ x).cpu()
            self.moments[name] += self._last[1]
            self.counts[name] += given.numel() // given.shape[-1]
        return before

    def clear(self) -> None:
        self._last = None, None

    def tensors(self) -> "Dict[str, torch.Tensor]":
        out: "Dict[str, torch.Tensor]" = {}
        for name, moments in self.moments.items():
            # The product of a matrix with itself is symmetric up to rounding.
            out[name + ".moments"] = ((moments + moments.T) / 2).float()
            out[name + ".count"] = torch.tensor([self.counts[name]], dtype=torch.int64)
        return out


def _call(model: torch.nn.Module, batch: Any) -> None:
    if isinstance(batch, Mapping):
        model(**batch)
    elif isinstance(batch, (tuple, list)):
        model(*batch)
    else:
        model(batch)


def run(model: torch.nn.Module, batches: "Iterable[Any]", out: Path,
        layers: "List[Tuple[str, torch.nn.Linear]]", overwrite: bool) -> "Dict[str, int]":
    if os.path.exists(out) and not overwrite:
        raise FileExistsError(f"{os.fspath(out)} exists; pass overwrite=True to replace it")
    sums = _Sums(layers)
    hooks = [layer.register_forward_pre_hook(sums.hook(name)) for name, layer in layers]
    training = model.training
    try:
        model.eval()
        with torch.no_grad():
            for batch in batches:
                _call(model, batch)
                sums.clear()
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    if not any(sums.counts.values()):
        raise ValueError("no batch reached any of the layers")
    _mcf.save_file(sums.tensors(), out, overwrite=overwrite)
    return sums.counts
