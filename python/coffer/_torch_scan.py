"""Scans of PyTorch models: what every block of features of each Linear layer did, token by token."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from . import mscan as _mscan

Path = Union[str, "os.PathLike[str]"]

_LARGEST = 65535
_HEADROOM = 8


class _Recorder:
    """Norms of the blocks of a layer's output (or input) and of the gradient of its output, token by token."""

    def __init__(self, block_size: int, activation: str) -> None:
        self.block_size, self.of_input = block_size, activation == "input"
        self.activation: "Dict[str, torch.Tensor]" = {}
        self.gradient: "Dict[str, torch.Tensor]" = {}
        self.outputs: "Dict[str, torch.Tensor]" = {}  # kept only while gradients of single tokens are computed
        self.cut = 0  # values that were too large for the scale

    def clear(self) -> None:
        self.activation.clear()
        self.gradient.clear()
        self.outputs.clear()

    def expect_finite(self) -> None:
        for metric, found in (("activation", self.activation), ("gradient", self.gradient)):
            for name, norms in found.items():
                if not bool(torch.isfinite(norms).all()):
                    raise ValueError(f"the {metric} of {name} has NaN or infinite values, which a scan cannot store")

    def scales(self) -> "Tuple[float, float]":
        """A step for each metric, so that values somewhat larger than the present ones fit."""
        largest = [max((float(norms.max()) for norms in found.values() if norms.numel()), default=0.0)
                   for found in (self.activation, self.gradient)]
        return tuple(value * _HEADROOM / _LARGEST or 1.0 for value in largest)  # type: ignore[return-value]

    def stored(self, norms: torch.Tensor, step: float) -> Any:
        steps = (norms / step).round()
        self.cut += int((steps > _LARGEST).sum())
        return steps.clamp(0, _LARGEST).cpu().numpy().astype("u2").reshape(-1)

    def blocks(self, values: torch.Tensor) -> torch.Tensor:
        """The norm of each block of the last dimension: tokens x blocks."""
        flat = values.detach().reshape(-1, values.shape[-1]).float()
        rest = -flat.shape[1] % self.block_size
        if rest:
            flat = torch.nn.functional.pad(flat, (0, rest))
        return flat.reshape(flat.shape[0], -1, self.block_size).norm(dim=-1)

    def hook(self, name: str, gradient: str) -> "Callable[[Any, Any, torch.Tensor], None]":
        def forward(module: Any, inputs: Any, output: torch.Tensor) -> None:
            self.activation[name] = self.blocks(inputs[0] if self.of_input else output)
            if gradient == "token" and output.requires_grad:
                self.outputs[name] = output
            elif gradient == "sequence" and output.requires_grad:
                output.register_hook(lambda found: self.gradient.__setitem__(name, self.blocks(found)))

        return forward

    def token_gradients(self, losses: torch.Tensor) -> None:
        """For each token, the gradient of its own loss at its own outputs. losses : sequences x tokens."""
        names, outputs = list(self.outputs), list(self.outputs.values())
        for name, output in self.outputs.items():
            self.gradient[name] = torch.zeros(self.blocks(output).shape, device=output.device)
        sequences, tokens = losses.shape
        for token in range(tokens):
            found = torch.autograd.grad(losses[:, token].sum(), outputs, retain_graph=token + 1 < tokens, allow_unused=True)
            for name, output, gradient in zip(names, outputs, found):
                if gradient is not None and token < output.numel() // output.shape[-1] // sequences:
                    here = gradient.reshape(sequences, -1, gradient.shape[-1])[:, token]
                    rows = slice(token, None, self.gradient[name].shape[0] // sequences)
                    self.gradient[name][rows] = self.blocks(here)


def _logits(output: Any) -> torch.Tensor:
    return output.logits if hasattr(output, "logits") else output


def _loss(output: Any, batch: Any) -> torch.Tensor:
    if hasattr(output, "loss") and output.loss is not None:
        return output.loss
    if _is_text(output, batch):
        return _token_losses(output, batch)[:, :-1].mean()
    return _logits(output).float().pow(2).sum()


def _is_text(output: Any, batch: Any) -> bool:
    return isinstance(batch, Mapping) and "input_ids" in batch and _logits(output).dim() == 3


def _token_losses(output: Any, batch: Any) -> torch.Tensor:
    """The loss of each token, sequences x tokens: next-token cross-entropy, 0 for the last token; or the sum of squares
    of what a model without text gives for it."""
    logits = _logits(output).float()
    if not _is_text(output, batch):
        return logits.pow(2).reshape(logits.shape[0], logits.shape[1] if logits.dim() > 2 else 1, -1).sum(-1)
    ids = batch["input_ids"]
    flat = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1),
                                             reduction="none")
    return torch.nn.functional.pad(flat.reshape(ids.shape[0], -1), (0, 1))


def _linear_layers(model: torch.nn.Module, patterns: "Sequence[str]") -> "List[Tuple[str, torch.nn.Module]]":
    from .torch import _matching

    return list(_matching(model, patterns))


def scan(model: torch.nn.Module, batches: "Iterable[Any]", path: Path, *, layers: "Sequence[str]" = ("*",),
         block_size: int = 64, gradients: "Union[bool, str]" = True, activation: str = "output",
         loss: "Optional[Callable[[Any, Any], torch.Tensor]]" = None, model_name: Optional[str] = None,
         scale: "Optional[Tuple[float, float]]" = None, sources: "Optional[Sequence[str]]" = None,
         overwrite: bool = False) -> None:
    """Runs a model and writes a scan: the L2 norm of every block of features of each Linear layer's output, and of its
    gradient, for each token.

    batches : inputs of the model; a dict is passed as keyword arguments (input_ids, as transformers has it), a tuple as
    arguments, anything else as one argument. Each item along the first dimension is a sequence, the second counts
    tokens. layers : patterns of names. activation : "output", or "input" for the norms of what the layer
    gets; where input and output have different numbers of blocks, the records are of the smaller number.

    gradients : "sequence" (or True) is the gradient of the loss of the whole batch, one backward pass. "token" is the
    gradient of each token's own loss at that token, one backward pass for each token, as the first scanner defines it.
    False runs under torch.no_grad. loss : a function of output and batch; the default is output.loss, else next-token
    cross-entropy, else the sum of squares. For "token" it gives sequences x tokens.

    scale : how large one step of the stored 16-bit integers is, for activation and gradient; the default leaves room for
    values 8 times as large as those of the first batch. Larger ones are stored as 65535 steps, and a warning says how
    many there were. The model and its gradients are left as they were.
    """
    kind = "none" if gradients is False else "sequence" if gradients is True else gradients
    if kind not in ("none", "sequence", "token") or activation not in ("output", "input"):
        raise ValueError("gradients can be False, \"sequence\" or \"token\", activation \"output\" or \"input\"")
    name = model_name or getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__
    recorder = _Recorder(block_size, activation)
    found = _linear_layers(model, layers)
    handles = [module.register_forward_hook(recorder.hook(layer, kind)) for layer, module in found]
    writer: "Optional[_mscan.Writer]" = None
    count = 0
    try:
        for batch in batches:
            sequences = _run(model, batch, recorder, kind, loss)
            recorder.expect_finite()
            if writer is None:
                scale = scale or recorder.scales()
                writer = _mscan.Writer(path, overwrite=overwrite, model_name=name, block_size=block_size,
                                       activation=(scale[0], 0.0), grad_norm=(scale[1], 0.0) if kind != "none" else None,
                                       extra={"metrics": {"activation": f"l2 of {activation}", "grad_norm": kind}})
                ids = {layer: writer.param(f"{layer}.weight") for layer, _ in found}
            assert scale is not None
            _write(writer, recorder, ids, sequences, scale, sources, count)
            count += sequences
        if writer is None:
            raise ValueError("batches is empty; pass at least one input of the model")
        writer.commit()
    finally:
        if writer is not None:
            writer.discard()
        for handle in handles:
            handle.remove()
        recorder.clear()
    if recorder.cut:
        warnings.warn(f"{recorder.cut} values were larger than the scale allows and are stored as its largest; pass a "
                      f"larger scale than {scale}", stacklevel=2)


def _run(model: torch.nn.Module, batch: Any, recorder: _Recorder, gradients: str,
         loss: "Optional[Callable[[Any, Any], torch.Tensor]]") -> int:
    """One forward pass, and the backward passes. Returns the number of sequences."""
    recorder.clear()
    first = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0] if isinstance(batch, tuple) else batch
    with torch.set_grad_enabled(gradients != "none"):
        if isinstance(batch, Mapping):
            output = model(**batch)
        else:
            output = model(*batch) if isinstance(batch, tuple) else model(batch)
        if gradients == "sequence":
            _backward(model, (loss or _loss)(output, batch))
        elif gradients == "token":
            recorder.token_gradients((loss or _token_losses)(output, batch))
            recorder.outputs.clear()
    return int(first.shape[0]) if first.dim() > 1 else 1


def _backward(model: torch.nn.Module, value: torch.Tensor) -> None:
    """A backward pass that leaves the gradients of the parameters as they were."""
    kept = [(parameter, parameter.grad) for parameter in model.parameters()]
    for parameter, _ in kept:
        parameter.grad = None
    try:
        value.backward()
    finally:
        for parameter, gradient in kept:
            parameter.grad = gradient


def _tokens(recorder: _Recorder, sequences: int) -> int:
    """Tokens of each sequence. A layer sees all of them, or one row for a sequence, which counts as its first token."""
    most = max((norms.shape[0] for norms in recorder.activation.values()), default=0)
    for name, norms in recorder.activation.items():
        if norms.shape[0] not in (most, sequences) or norms.shape[0] % sequences:
            raise ValueError(f"layer {name} saw {norms.shape[0]} tokens, others {most} in {sequences} sequences: which ones is "
                             "not known. Leave it out with layers=")
    return most // sequences


def _write(writer: "_mscan.Writer", recorder: _Recorder, ids: "Mapping[str, int]", sequences: int,
           scale: "Tuple[float, float]", sources: "Optional[Sequence[str]]", first: int) -> None:
    import numpy as np

    tokens = _tokens(recorder, sequences)
    for sequence in range(sequences):
        source = sources[first + sequence] if sources is not None and first + sequence < len(sources) else None
        parts = []
        for layer, param in ids.items():
            norms = recorder.activation.get(layer)
            if norms is None:
                continue
            own = norms.shape[0] // sequences
            rows = slice(sequence * own, (sequence + 1) * own)
            parts.append(_records(recorder, norms[rows], _rows(recorder.gradient.get(layer), rows), param, scale))
        records = np.concatenate(parts) if parts else np.empty(0, _mscan.RECORD)
        writer.sequence(records[np.argsort(records["token_idx"], kind="stable")], tokens, source)


def _rows(norms: Optional[torch.Tensor], rows: slice) -> Optional[torch.Tensor]:
    return None if norms is None else norms[rows]


def _records(recorder: _Recorder, activation: torch.Tensor, gradient: Optional[torch.Tensor], param: int,
             scale: "Tuple[float, float]") -> Any:
    import numpy as np

    tokens, blocks = activation.shape
    if gradient is not None and gradient.shape[1] != blocks:  # norms of inputs have as many blocks as the input
        blocks = min(blocks, gradient.shape[1])
        activation, gradient = activation[:, :blocks], gradient[:, :blocks]
    records = np.zeros(tokens * blocks, _mscan.RECORD)
    records["token_idx"] = np.repeat(np.arange(tokens, dtype="u4"), blocks)
    records["block_idx"] = np.tile(np.arange(blocks, dtype="u2"), tokens)
    records["param_id"] = param
    records["activation"] = recorder.stored(activation, scale[0])
    if gradient is not None:
        records["grad_norm"] = recorder.stored(gradient, scale[1])
    return records
