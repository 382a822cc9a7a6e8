"""JAX: audits of functions and fingerprints of optax optimisers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

from ._audit import NORMS, Audit, judge
from ._foreign import follow
from ._oracle import Floats, as_matrix, gram_of_rows
from ._verbs import Fingerprint

__all__ = ["FunctionOracle", "audit", "fingerprint"]


def _doubles() -> Any:
    """Double precision, for as long as it is asked for."""
    return jax.enable_x64(True)


class FunctionOracle:
    """A function `f(params, X)` of arrays by name, in double precision."""

    def __init__(self, f: Callable[[Any, Any], Any], params: Mapping[str, Any], X: Any, tree: Any = None) -> None:
        self._f, self._tree = f, tree
        with _doubles():
            inputs = np.asarray(X)
            self._X = jnp.asarray(inputs.astype(np.float64) if inputs.dtype.kind == "f" else inputs)
            self._params = {name: jnp.asarray(np.asarray(value, dtype=np.float64)) for name, value in params.items()}
        self.blocks = [(name, *as_matrix(tuple(value.shape))) for name, value in self._params.items()]
        self.params: Floats = self._flat(self._params)

    def _flat(self, values: Mapping[str, Any]) -> Floats:
        return np.concatenate([np.asarray(values[name], dtype=np.float64).ravel() for name in self._params])

    def _dict(self, flat: Floats) -> dict[str, Any]:
        parts, at = {}, 0
        for name, value in self._params.items():
            parts[name] = jnp.asarray(flat[at : at + value.size].reshape(value.shape))
            at += value.size
        return parts

    def _scores(self, params: dict[str, Any], X: Any) -> Any:
        given = params if self._tree is None else jax.tree_util.tree_unflatten(self._tree, list(params.values()))
        scores = self._f(given, X)
        return scores[:, None] if scores.ndim == 1 else scores

    def scores(self) -> Floats:
        with _doubles():
            return np.asarray(self._scores(self._params, self._X), dtype=np.float64)

    def pull_back(self, cotangent: Floats) -> Floats:
        with _doubles():
            scores, back = jax.vjp(lambda params: self._scores(params, self._X), self._params)
            return self._flat(back(jnp.asarray(cotangent, dtype=scores.dtype))[0])

    def push(self, direction: Floats) -> Floats:
        with _doubles():
            _, change = jax.jvp(lambda p: self._scores(p, self._X), (self._params,), (self._dict(direction),))
            return np.asarray(change, dtype=np.float64)

    def rows(self, examples: NDArray[np.intp], cotangents: Floats) -> Floats:
        def single(params: dict[str, Any], x: Any, weight: Any) -> Any:
            return (self._scores(params, x[None])[0] * weight).sum()

        with _doubles():
            pulled = jax.vmap(jax.grad(single), in_axes=(None, 0, 0))
            gradients = pulled(self._params, self._X[np.asarray(examples)], jnp.asarray(cotangents))
            parts = [np.asarray(gradients[name]).reshape(len(examples), -1) for name in self._params]
        return np.ascontiguousarray(np.hstack(parts).astype(np.float64))

    def gram(self, examples: NDArray[np.intp], cotangents: Floats, blocks: list[str]) -> Floats:
        return gram_of_rows(self, examples, cotangents, blocks)


def audit(
    apply: Callable[[Any, Any], Any],
    params: Any,
    X: Any,
    y: Any,
    *,
    norms: Sequence[str] = NORMS,
    level: str = "rows",
    smallest: int = 50,
    weight_decay: float | None = None,
    task: str | None = None,
) -> Audit:
    """Audits `apply(params, X) -> scores` with `params` any tree of arrays; see `limitpoint.audit`."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    named = {jax.tree_util.keystr(path) or "params": leaf for path, leaf in leaves}
    model = FunctionOracle(apply, named, X, tree)
    return judge(model, np.asarray(X), np.asarray(y), norms, level, smallest, weight_decay, None, task)


def fingerprint(
    make: Callable[[], Any] | Any,
    *,
    name: str = "optax",
    starts: int = 2,
    log10_loss: float = -100.0,
    steps: int = 10_000,
    objective: str = "log",
    late: float | None = -30.0,
    progress: bool | None = None,
) -> Fingerprint:
    """Which geometry does a gradient transformation of optax prefer? `fingerprint(optax.adam(1e-2), name="adam")`.

    Give the transformation, or a function that makes it. See `limitpoint.torch.fingerprint` for the other arguments.
    """
    transformation: Any = make if hasattr(make, "init") else make()

    def stepper(origin: Floats, factor: float) -> Callable[[Floats], Floats]:
        with _doubles():
            state: dict[str, Any] = {"weights": jnp.asarray(origin)}
            state["memory"] = transformation.init(state["weights"])

        @jax.jit
        def update(gradient: Any, memory: Any, weights: Any) -> Any:
            change, memory = transformation.update(gradient, memory, weights)
            return jax.tree_util.tree_map(lambda w, c: w + factor * c, weights, change), memory

        def step(gradient: Floats) -> Floats:
            with _doubles():
                moved, state["memory"] = update(jnp.asarray(gradient), state["memory"], state["weights"])
                state["weights"] = moved
                return np.asarray(moved, dtype=np.float64)

        return step

    return follow(
        name,
        stepper,
        starts=starts,
        log10_loss=log10_loss,
        steps=steps,
        objective=objective,
        late=late,
        progress=progress,
    )
