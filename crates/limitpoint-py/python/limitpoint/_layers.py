"""Gram matrices of gradients of a PyTorch module, layer by layer.

With inputs U and back-signals D of a layer at P places (the pixels of a convolution, the tokens of a sequence), the gradient of
one margin is Σ_p d_p u_pᵀ, so that two margins have the product

    ⟨∇q_i, ∇q_j⟩ = Σ_p Σ_p' ⟨u_ip, u_jp'⟩ ⟨d_ip, d_jp'⟩,

which needs no gradient at all where places are few. Where they are many, gradients are made a group of output channels at a time.
Parameters outside of linear and convolutional layers come in by `torch.func`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

# numbers that one piece of the work holds at most (256 MB)
_PIECE = 1 << 25
# rows of one forward and backward pass
_BATCH = 128


@dataclass
class Layer:
    """A linear or convolutional layer, what went in and what came back."""

    module: Any
    weight: bool
    """Whether the weight counts."""
    bias: bool
    """Whether the bias does."""
    inputs: list[Any] = field(default_factory=list)
    signals: list[Any] = field(default_factory=list)

    def gram(self) -> Any:
        """Its share in the Gram matrix of all rows seen."""
        signals = _places(self.module, torch.cat(self.signals))
        total = torch.zeros(len(signals), len(signals), dtype=signals.dtype, device=signals.device)
        if self.bias:
            sums = signals.sum(1)
            total += sums @ sums.T
        if self.weight:
            inputs = torch.cat(self.inputs)
            places, width = signals.shape[1], signals.shape[2]
            depth = self.module.weight[0].numel()
            pairs = places * places * (depth + width) < depth * width or places == 1
            total += self._by_pairs(inputs, signals) if pairs else self._by_gradients(inputs, signals)
        return total

    def _by_pairs(self, inputs: Any, signals: Any) -> Any:
        """Products of inputs times products of signals, over all pairs of places."""
        count, places, _ = signals.shape
        patches = _patches(self.module, inputs).flatten(0, 1)
        flat = signals.flatten(0, 1)
        step = max(1, _PIECE // (count * places * places))
        rows = []
        for first in range(0, count, step):
            own = slice(first * places, min(count, first + step) * places)
            products = (patches[own] @ patches.T) * (flat[own] @ flat.T)
            rows.append(products.reshape(-1, places, count, places).sum((1, 3)))
        return torch.cat(rows)

    def _by_gradients(self, inputs: Any, signals: Any) -> Any:
        """Gradients of the weights of a group of outputs, and their products."""
        count, places, width = signals.shape
        depth = self.module.weight[0].numel()
        total = torch.zeros(count, count, dtype=signals.dtype, device=signals.device)
        group = max(1, min(width, _PIECE // (count * depth)))
        batch = max(1, min(count, _PIECE // (4 * places * depth)))
        for start in range(0, width, group):
            chosen = signals[:, :, start : start + group]
            gradients = torch.empty(count, chosen.shape[2] * depth, dtype=signals.dtype, device=signals.device)
            for first in range(0, count, batch):
                own = slice(first, first + batch)
                patches = _patches(self.module, inputs[own])
                gradients[own] = (chosen[own].transpose(1, 2) @ patches).flatten(1)
            total += gradients @ gradients.T
        return total


def _places(module: Any, outputs: Any) -> Any:
    """Outputs of a layer, or their signals, as rows × places × channels."""
    if isinstance(module, torch.nn.Conv2d):
        return outputs.flatten(2).transpose(1, 2)
    return outputs.reshape(len(outputs), -1, outputs.shape[-1])


def _patches(module: Any, inputs: Any) -> Any:
    """What each place of a layer sees, as rows × places × entries."""
    if isinstance(module, torch.nn.Conv2d):
        window: dict[str, Any] = {"dilation": module.dilation, "padding": module.padding, "stride": module.stride}
        return torch.nn.functional.unfold(inputs, module.kernel_size, **window).transpose(1, 2)
    return inputs.reshape(len(inputs), -1, inputs.shape[-1])


def _is_plain(module: Any) -> bool:
    """Whether a layer is one of those whose gradients are products of inputs and signals."""
    if type(module) is torch.nn.Linear:
        return True
    return (
        type(module) is torch.nn.Conv2d
        and module.groups == 1
        and module.padding_mode == "zeros"
        and not isinstance(module.padding, str)
    )


def _layers(module: Any, names: set[str]) -> tuple[list[Layer], list[str]]:
    """The plain layers with parameters of these names, and the names that are left."""
    owners: dict[int, int] = {}
    for part in module.modules():
        for value in part.parameters(recurse=False):
            owners[id(value)] = owners.get(id(value), 0) + 1
    found, left = [], set(names)
    for name, part in module.named_modules():
        if not _is_plain(part) or any(owners[id(value)] > 1 for value in part.parameters(recurse=False)):
            continue
        own = {kind: f"{name}.{kind}".lstrip(".") for kind in ("weight", "bias")}
        layer = Layer(part, own["weight"] in left, own["bias"] in left)
        if layer.weight or layer.bias:
            found.append(layer)
            left -= set(own.values())
    return found, [name for name in names if name in left]


def layered_gram(module: Any, X: Any, cotangents: Any, names: list[str]) -> tuple[Any, list[str]]:
    """Products of the gradients of ⟨cotangents[k], scores(X[k])⟩ over the named parameters, and the names that are still missing.

    A layer that does not see the examples along its first axis, or that is not reached by autograd, is among the missing.
    """
    layers, _ = _layers(module, set(names))
    total = torch.zeros(len(X), len(X), dtype=cotangents.dtype, device=cotangents.device)
    done: set[str] = set()
    for x, weights in _batches(X, cotangents):
        _pass(module, layers, x, weights)
    places = {id(part): name for name, part in module.named_modules()}
    for layer in layers:
        if sum(len(x) for x in layer.inputs) != len(X) or sum(len(d) for d in layer.signals) != len(X):
            continue
        total += layer.gram()
        name = places[id(layer.module)]
        kinds = [kind for kind, counts in (("weight", layer.weight), ("bias", layer.bias)) if counts]
        done |= {f"{name}.{kind}".lstrip(".") for kind in kinds}
        layer.inputs.clear()
        layer.signals.clear()
    return total, [name for name in names if name not in done]


def _batches(X: Any, cotangents: Any) -> Iterator[tuple[Any, Any]]:
    for first in range(0, len(X), _BATCH):
        yield X[first : first + _BATCH], cotangents[first : first + _BATCH]


def _pass(module: Any, layers: list[Layer], x: Any, weights: Any) -> None:
    """One forward and one backward pass; every layer keeps its inputs and its signals, if it was called once."""
    calls: list[tuple[Layer, Any, Any]] = []

    def listener(layer: Layer) -> Any:
        def hear(_: Any, given: Any, output: Any) -> Any:
            calls.append((layer, given[0].detach(), output))
            # the next layer may write over its input
            return output.clone()

        return hear

    hooks = [layer.module.register_forward_hook(listener(layer)) for layer in layers]
    try:
        with torch.enable_grad():
            scores = module(x)
    finally:
        for hook in hooks:
            hook.remove()
    scores = scores[:, None] if scores.ndim == 1 else scores
    outputs = [output for _, _, output in calls]
    signals = torch.autograd.grad((scores * weights).sum(), outputs, allow_unused=True)
    for layer in layers:
        own = [(given, d) for (other, given, _), d in zip(calls, signals, strict=True) if other is layer]
        # two calls share their places: a layer that is called twice has twice as many
        if not own or any(d is None or len(given) != len(x) for given, d in own):
            continue
        if len(own) == 1:
            layer.inputs.append(own[0][0])
            layer.signals.append(own[0][1])
        elif isinstance(layer.module, torch.nn.Linear):
            layer.inputs.append(torch.cat([_places(layer.module, given) for given, _ in own], 1))
            layer.signals.append(torch.cat([_places(layer.module, d) for _, d in own], 1))
