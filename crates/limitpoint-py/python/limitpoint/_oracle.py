"""A model that somebody else wrote, as an audit sees it: scores, and derivatives in two directions."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._arrays import array
from ._core import Error

Floats = NDArray[np.float64]
Block = tuple[str, int, int]


class Oracle(Protocol):
    """What an audit asks of a model. Parameters are one vector, block after block."""

    blocks: list[Block]
    """Name, rows and columns of every block."""
    params: Floats
    """θ."""

    def scores(self) -> Floats:
        """Scores at θ, one row an example; one column for two classes."""
        ...

    def pull_back(self, cotangent: Floats) -> Floats:
        """Σ cotangent[n, c] ∇ score_c(xₙ): one backward pass."""
        ...

    def push(self, direction: Floats) -> Floats:
        """The change of all scores along a direction of θ: one forward pass."""
        ...

    def rows(self, examples: NDArray[np.intp], cotangents: Floats) -> Floats:
        """Gradients of ⟨cotangents[k], scores(x)⟩ for x the k-th of the named examples, one row each."""
        ...

    def gram(self, examples: NDArray[np.intp], cotangents: Floats, blocks: list[str]) -> Floats:
        """Products of these gradients over the named blocks, whether or not there is room for the gradients."""
        ...


def places(blocks: list[Block], names: list[str]) -> NDArray[np.intp]:
    """Where the named blocks lie in the vector of all parameters."""
    ends = np.cumsum([rows * cols for _, rows, cols in blocks])
    parts = [
        np.arange(int(end) - rows * cols, int(end))
        for end, (name, rows, cols) in zip(ends, blocks, strict=True)
        if name in names
    ]
    return np.concatenate(parts)


def gram_of_rows(model: Oracle, examples: NDArray[np.intp], cotangents: Floats, blocks: list[str]) -> Floats:
    """The Gram matrix by the gradients themselves."""
    rows = model.rows(examples, cotangents)[:, places(model.blocks, blocks)]
    return np.ascontiguousarray(rows @ rows.T)


def as_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tensor as a matrix: the first axis against all others, vectors as a column."""
    if len(shape) < 2:
        return (int(np.prod(shape)), 1)
    return (int(shape[0]), int(np.prod(shape[1:])))


class NumpyOracle:
    """A model of plain arrays: `f(params, X)`, and its vector–Jacobian product `vjp(params, X, cotangent)`."""

    def __init__(
        self,
        f: Callable[[dict[str, Any], Any], Any],
        params: Mapping[str, Any],
        X: Any,
        vjp: Callable[[dict[str, Any], Any, Floats], Mapping[str, Any]],
    ) -> None:
        self._f, self._vjp, self._X = f, vjp, X
        self._shapes = {name: array(value).shape for name, value in params.items()}
        self.blocks = [(name, *as_matrix(shape)) for name, shape in self._shapes.items()]
        self.params = np.concatenate([array(value).astype(np.float64).ravel() for value in params.values()])

    def _dict(self, flat: Floats) -> dict[str, Floats]:
        parts, at = {}, 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            parts[name] = flat[at : at + size].reshape(shape)
            at += size
        return parts

    def _scores(self, flat: Floats, X: Any) -> Floats:
        scores = array(self._f(self._dict(flat), X)).astype(np.float64)
        return scores[:, None] if scores.ndim == 1 else scores

    def scores(self) -> Floats:
        return self._scores(self.params, self._X)

    def _pull_back(self, X: Any, cotangent: Floats, flat_scores: bool) -> Floats:
        given = cotangent[:, 0] if flat_scores else cotangent
        gradient = self._vjp(self._dict(self.params), X, given)
        return np.concatenate([array(gradient[name]).astype(np.float64).ravel() for name in self._shapes])

    def _is_flat(self) -> bool:
        return array(self._f(self._dict(self.params), self._X[:1])).ndim == 1

    def pull_back(self, cotangent: Floats) -> Floats:
        return self._pull_back(self._X, cotangent, self._is_flat())

    def push(self, direction: Floats) -> Floats:
        # a central difference, short enough to cross hardly any kink and long enough for nine digits
        size = 1e-6 * max(1e-300, float(np.linalg.norm(self.params))) / max(1e-300, float(np.linalg.norm(direction)))
        ahead, behind = self.params + size * direction, self.params - size * direction
        return (self._scores(ahead, self._X) - self._scores(behind, self._X)) / (2 * size)

    def rows(self, examples: NDArray[np.intp], cotangents: Floats) -> Floats:
        flat = self._is_flat()
        found = [
            self._pull_back(self._X[n : n + 1], cotangent[None, :], flat)
            for n, cotangent in zip(examples, cotangents, strict=True)
        ]
        return np.array(found)

    def gram(self, examples: NDArray[np.intp], cotangents: Floats, blocks: list[str]) -> Floats:
        return gram_of_rows(self, examples, cotangents, blocks)


def oracle_of(f: Callable[..., Any], params: Mapping[str, Any], X: Any, vjp: Callable[..., Any] | None) -> Oracle:
    """The oracle that suits the arrays of `params`."""
    first = next(iter(params.values()), None)
    home = type(first).__module__.split(".")[0]
    if vjp is not None:
        return NumpyOracle(f, params, X, vjp)
    if home == "torch":
        from .torch import FunctionOracle

        return FunctionOracle(f, params, X)
    if home in ("jax", "jaxlib"):
        from .jax import FunctionOracle as JaxOracle

        return JaxOracle(f, params, X)
    raise Error(
        "plain arrays do not know their derivatives; give tensors of PyTorch or arrays of JAX, or "
        "vjp(params, X, cotangent) -> gradients by name"
    )
