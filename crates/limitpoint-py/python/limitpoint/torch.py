"""PyTorch: audits of modules, fingerprints of optimisers, and a monitor for training loops."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
import torch
from torch.func import functional_call, grad, jvp, vmap

from . import _core
from ._audit import NORMS, Audit, judge
from ._foreign import follow
from ._history import History
from ._layers import layered_gram
from ._margins import Margins
from ._oracle import Floats, as_matrix
from ._verbs import Fingerprint

__all__ = ["FunctionOracle", "Monitor", "audit", "fingerprint"]


class FunctionOracle:
    """A function `f(params, X)` of tensors by name, in double precision."""

    def __init__(
        self, f: Callable[[dict[str, Any], Any], Any], params: Mapping[str, Any], X: Any, module: Any = None
    ) -> None:
        # the module behind f, if there is one: its layers are known
        self._f, self._module = f, module
        self._X = torch.as_tensor(np.asarray(X)) if not isinstance(X, torch.Tensor) else X
        if self._X.is_floating_point():
            self._X = self._X.double()
        self._params = {name: value.detach().double() for name, value in params.items()}
        self.blocks = [(name, *as_matrix(tuple(value.shape))) for name, value in self._params.items()]
        self.params: Floats = self._flat(self._params)

    def _flat(self, values: Mapping[str, Any]) -> Floats:
        parts = [values[name].detach().cpu().numpy().astype(np.float64).ravel() for name in self._params]
        return np.concatenate(parts)

    def _dict(self, flat: Floats) -> dict[str, Any]:
        parts, at = {}, 0
        for name, value in self._params.items():
            piece = torch.as_tensor(flat[at : at + value.numel()].copy(), device=value.device)
            parts[name] = piece.reshape(value.shape)
            at += value.numel()
        return parts

    def _scores(self, params: dict[str, Any], X: Any) -> Any:
        scores = self._f(params, X)
        return scores[:, None] if scores.ndim == 1 else scores

    def scores(self) -> Floats:
        with torch.no_grad():
            found: Floats = self._scores(self._params, self._X).cpu().numpy().astype(np.float64)
        return found

    def pull_back(self, cotangent: Floats) -> Floats:
        params = {name: value.clone().requires_grad_() for name, value in self._params.items()}
        scores = self._scores(params, self._X)
        weighted = (scores * torch.as_tensor(cotangent, device=scores.device)).sum()
        gradients = torch.autograd.grad(weighted, list(params.values()), allow_unused=True)
        named = zip(params, gradients, strict=True)
        return self._flat({n: torch.zeros_like(self._params[n]) if g is None else g for n, g in named})

    def push(self, direction: Floats) -> Floats:
        tangents = self._dict(direction)
        try:
            with _exact_attention():
                change = jvp(lambda params: self._scores(params, self._X), (self._params,), (tangents,))[1]
        except (NotImplementedError, RuntimeError):
            # no forward mode: the gradient of a pull-back with respect to its cotangent
            with _exact_attention():
                params = {name: value.clone().requires_grad_() for name, value in self._params.items()}
                scores = self._scores(params, self._X)
                probe = torch.zeros_like(scores, requires_grad=True)
                pulled = torch.autograd.grad((scores * probe).sum(), list(params.values()), create_graph=True)
                inner = sum((g * tangents[n]).sum() for n, g in zip(params, pulled, strict=True))
                (change,) = torch.autograd.grad(inner, probe)
        return change.detach().cpu().numpy().astype(np.float64)  # type: ignore[no-any-return]

    def rows(self, examples: NDArray[np.intp], cotangents: Floats) -> Floats:
        found = self._gradients(*self._chosen(examples, cotangents), list(self._params))
        return np.ascontiguousarray(found.cpu().numpy().astype(np.float64))

    def gram(self, examples: NDArray[np.intp], cotangents: Floats, blocks: list[str]) -> Floats:
        chosen, weights = self._chosen(examples, cotangents)
        total, left = torch.zeros(len(chosen), len(chosen), dtype=torch.float64, device=weights.device), list(blocks)
        if self._module is not None:
            with _exact_attention():
                total, left = layered_gram(self._module, chosen, weights, blocks)
        for names in _groups({name: self._params[name].numel() for name in left}, len(chosen)):
            rows = self._gradients(chosen, weights, names)
            total = total + rows @ rows.T
        return np.ascontiguousarray(total.detach().cpu().numpy().astype(np.float64))

    def _chosen(self, examples: NDArray[np.intp], cotangents: Floats) -> tuple[Any, Any]:
        chosen = self._X[torch.as_tensor(np.asarray(examples), device=self._X.device)]
        return chosen, torch.as_tensor(cotangents, device=chosen.device)

    def _gradients(self, chosen: Any, weights: Any, names: list[str]) -> Any:
        """Gradients of ⟨weights[k], scores(chosen[k])⟩ with respect to the named parameters, one row each."""
        others = {name: value for name, value in self._params.items() if name not in names}
        moved = {name: self._params[name] for name in names}

        def single(params: dict[str, Any], x: Any, weight: Any) -> Any:
            return (self._scores({**others, **params}, x[None])[0] * weight).sum()

        try:
            with _exact_attention():
                pulled = vmap(grad(single), in_dims=(None, 0, 0), chunk_size=64)(moved, chosen, weights)
            return torch.cat([pulled[name].reshape(len(chosen), -1) for name in names], 1)
        except RuntimeError:
            # what vmap cannot follow, such as activation checkpointing, a loop can
            found = []
            for x, weight in zip(chosen, weights, strict=True):
                params = {name: value.clone().requires_grad_() for name, value in moved.items()}
                parts = torch.autograd.grad(single(params, x, weight), list(params.values()), allow_unused=True)
                named = zip(params.values(), parts, strict=True)
                found.append(torch.cat([(torch.zeros_like(p) if g is None else g).ravel() for p, g in named]))
            return torch.stack(found)


def _groups(sizes: dict[str, int], rows: int) -> list[list[str]]:
    """Names in groups whose gradients fit into 256 MB together, or are one block."""
    groups: list[list[str]] = []
    held = 0
    for name, size in sizes.items():
        if not groups or (held + size) * rows > 1 << 25:
            groups.append([])
            held = 0
        groups[-1].append(name)
        held += size
    return groups


@contextmanager
def _exact_attention() -> Iterator[None]:
    """Attention by its formula: the fast kernels know no forward mode."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def audit(
    module: Any,
    X: Any,
    y: Any,
    *,
    norms: Sequence[str] = NORMS,
    level: str = "rows",
    smallest: int = 50,
    weight_decay: float | None = None,
    task: str | None = None,
) -> Audit:
    """Audits a trained module on its training data, in double precision and in evaluation mode; see `limitpoint.audit`.

    The module itself is left as it is. The last linear layer gets a head certificate, whatever the architecture.
    """
    twin = copy.deepcopy(module).double().eval()
    inputs = X if isinstance(X, torch.Tensor) else torch.as_tensor(np.asarray(X))
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    params = {name: value.detach() for name, value in twin.named_parameters() if value.requires_grad}
    still = {name: value.detach() for name, value in twin.named_parameters() if not value.requires_grad}

    def f(chosen: dict[str, Any], x: Any) -> Any:
        return functional_call(twin, {**still, **chosen}, (x,))

    features = _features(twin, inputs)
    labels = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else np.asarray(y)
    model = FunctionOracle(f, params, inputs, twin)
    return judge(model, inputs, labels, norms, level, smallest, weight_decay, features, task)


def _features(module: Any, X: Any) -> tuple[Floats, Floats] | None:
    """Inputs of the last linear layer and its weights, the bias as a further column."""
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    if not layers:
        return None
    seen: list[Any] = []
    hook = layers[-1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        with torch.no_grad():
            scores = module(X)
    finally:
        hook.remove()
    if not seen:
        return None
    inputs: Floats = seen[-1].cpu().numpy().astype(np.float64)
    weights: Floats = layers[-1].weight.detach().cpu().numpy().astype(np.float64)
    if layers[-1].bias is not None:
        bias = layers[-1].bias.detach().cpu().numpy().astype(np.float64)
        weights = np.column_stack([weights, bias])
        if inputs.ndim == 2:
            inputs = np.column_stack([inputs, np.ones(len(inputs))])
    found = scores.detach().cpu().numpy()
    found = found[:, None] if found.ndim == 1 else found
    if inputs.ndim != 2 or not np.allclose(inputs @ weights.T, found, rtol=1e-8, atol=1e-8 * np.abs(found).max()):
        return None  # something comes after it
    return inputs, weights


def fingerprint(
    make: Callable[[list[Any]], Any],
    *,
    name: str | None = None,
    starts: int = 2,
    log10_loss: float = -100.0,
    steps: int = 10_000,
    objective: str = "log",
    late: float | None = -30.0,
    progress: bool | None = None,
) -> Fingerprint:
    """Which geometry does an optimiser of PyTorch prefer? `fingerprint(lambda params: torch.optim.Adam(params, lr=1e-2))`.

    The optimiser sees the gradient of ln L (`objective="log"`), which neither vanishes nor overflows however small the loss, so
    that ordinary optimisers can be followed far; `reached` of the answer says down to which loss. Late in training gradients are small,
    and an optimiser with an ε, such as Adam, becomes another: a second run hands it gradients of 10^`late` of their size, with a learning
    rate raised until steps are as long as before, and its answer is `late` (None leaves it out). `objective="plain"` hands the optimiser
    the gradient of L itself instead, which a float cannot hold for long. An optimiser that does not fit the problems is tried without its
    weight decay and at higher rates, and the answer says so.
    """

    def stepper(origin: Floats, factor: float, decays: bool = True) -> Callable[[Floats], Floats]:
        weights = torch.nn.Parameter(torch.as_tensor(origin))
        optimiser = make([weights])
        for group in optimiser.param_groups:
            group["lr"] *= factor
            if not decays:
                group["weight_decay"] = 0.0
        view = weights.detach().numpy()

        def step(gradient: Floats) -> Floats:
            weights.grad = torch.as_tensor(gradient)
            optimiser.step()
            moved: Floats = view.copy()
            return moved

        return step

    sample = make([torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))])
    decays = any(group.get("weight_decay") for group in sample.param_groups)
    return follow(
        name if name is not None else type(sample).__name__,
        stepper,
        undecayed=(lambda origin, factor: stepper(origin, factor, decays=False)) if decays else None,
        starts=starts,
        log10_loss=log10_loss,
        steps=steps,
        objective=objective,
        late=late,
        progress=progress,
    )


class Monitor:
    """Watches a module in somebody's own training loop: margins in every norm, and a bound of τ by one backward pass.

    Make one with the training data, call `monitor.step()` after every `optimiser.step()`, and read `monitor.history`.

    The gradients of the module are not touched. Only parameters named in `blocks` are watched, all trainable ones by default;
    biases make the margin of a network no more than a number.
    """

    def __init__(
        self,
        module: Any,
        X: Any,
        y: Any,
        *,
        every: int = 100,
        norms: Sequence[str] = ("l2", "linf", "spectral"),
        degree: float | None = None,
        blocks: Iterable[str] | None = None,
    ) -> None:
        if every < 1:
            raise _core.Error(f"every is {every}, but must be at least 1")
        self._module, self._X, self._every, self._norms = module, X, every, list(norms)
        self._degree = degree
        chosen = None if blocks is None else set(blocks)
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad and (chosen is None or n in chosen)]
        if not named:
            raise _core.Error("no trainable parameter of the module is to be watched")
        self._params = [value for _, value in named]
        self._blocks = [(name, *as_matrix(tuple(value.shape))) for name, value in named]
        with torch.no_grad():
            scores = module(X)
        outputs = 1 if scores.ndim == 1 else scores.shape[1]
        labels = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else np.asarray(y)
        self._margins = Margins(labels, outputs)
        self._rows: list[dict[str, float]] = []
        self.steps = 0
        """Calls of `step` so far."""

    def step(self) -> dict[str, float] | None:
        """Counts a step and looks at every so many-th; what was seen, if it looked."""
        self.steps += 1
        return self.look() if self.steps % self._every == 0 else None

    def look(self) -> dict[str, float]:
        """Measures now."""
        training = self._module.training
        self._module.eval()
        try:
            with torch.enable_grad():
                scores = self._module(self._X)
                scores = scores[:, None] if scores.ndim == 1 else scores
                found = scores.detach().cpu().numpy().astype(np.float64)
                q = self._margins.of(found)
                least = float(q.min())
                weights = np.exp(least - q)
                weights /= weights.sum()
                cotangent = torch.as_tensor(self._margins.cotangent(weights), dtype=scores.dtype, device=scores.device)
                gradients = torch.autograd.grad((scores * cotangent).sum(), self._params, allow_unused=True)
        finally:
            self._module.train(training)
        named = zip(self._params, gradients, strict=True)
        flat = [torch.zeros_like(p) if g is None else g for p, g in named]
        total, theta = _vector(flat), _vector(self._params)
        weighted = float(weights @ q)
        measured = float(total @ theta) / weighted if weighted else float("nan")
        degree = self._degree if self._degree is not None else measured
        sizes = _core.norm_values(self._blocks, theta, self._norms, False)
        duals = _core.norm_values(self._blocks, total, self._norms, True)
        row = {
            "step": float(self.steps),
            "accuracy": self._margins.accuracy(found),
            "smallest_margin": least,
            "log10_loss": float((-least + np.log(np.exp(least - q).sum())) / np.log(10)),
            "degree": measured,
        }
        for norm, size, dual in zip(self._norms, sizes, duals, strict=True):
            row[f"norm.{norm}"] = size
            row[f"margin.{norm}"] = float(least / size**degree) if np.isfinite(degree) and size > 0 else float("nan")
            own = degree * least / size if size > 0 else float("nan")
            row[f"tau.{norm}"] = float(max(0.0, 1.0 - own / dual)) if least > 0 and dual > 0 else float("nan")
        self._rows.append(row)
        return row

    @property
    def history(self) -> History:
        """What was seen, columns by name."""
        columns = list(self._rows[0]) if self._rows else []
        return History({name: np.array([row[name] for row in self._rows]) for name in columns})


def _vector(tensors: Iterable[Any]) -> Floats:
    parts = [tensor.detach().cpu().numpy().astype(np.float64).ravel() for tensor in tensors]
    return np.concatenate(parts)
