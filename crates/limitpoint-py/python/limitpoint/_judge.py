"""The exact judge: largest margins and nearest solutions, with proofs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import dataset, targets, of_numbers


@dataclass(frozen=True)
class MaxMargin:
    """The largest margin γ* = max over ‖v‖ ≤ 1 of min yᵢ⟨v, xᵢ⟩, or the proof that there is none."""

    status: str
    """optimal, not-separable, or inaccurate (the bracket holds, but is wider than 1e-9)."""
    separable: bool
    margin: float
    """γ*, the proven lower bound."""
    lower: float
    upper: float
    """lower ≤ γ* ≤ upper, with outward rounding. Of data that cannot be separated, ‖Σ r h‖_*."""
    gap: float
    """(upper − lower)/upper."""
    direction: NDArray[np.float64]
    """The direction that proves the lower bound, of norm 1; a matrix for several classes or matrix-shaped examples."""
    dual: NDArray[np.float64]
    """Weights of the rows that prove the upper bound, or that combine all rows to 0 (Farkas, Gordan)."""
    support: NDArray[np.int64]
    """Rows with positive weight."""
    unique: bool | None
    """Whether the direction is the only one; None where that is not known."""
    norm: str
    labels: NDArray[Any] = field(repr=False)
    """The labels of the examples in the order of the core: the second is +1."""
    details: dict[str, Any] = field(repr=False)
    """Everything else: missing digits of direction and dual, the dimension of the face of maximisers, …"""


def solve_margin(
    X: Any, y: Any, *, norm: str = "l2", task: str | None = None, semidefinite: bool = False
) -> MaxMargin:
    """The largest margin of a linear model without bias, exactly. Examples may be vectors or matrices, dense or sparse."""
    data, labels = dataset(X, y, task)
    found = _core.solve_margin(data, norm, semidefinite)
    direction = found["direction"]
    rows, columns = found["shape"]
    if rows > 1:
        direction = direction.reshape(rows, columns)
    used = ("status", "separable", "margin", "lower", "upper", "dual", "unique", "norm")
    rest = {key: value for key, value in found.items() if key not in (*used, "direction", "support", "relative_gap")}
    return MaxMargin(
        **{key: found[key] for key in used},
        gap=found["relative_gap"],
        direction=direction,
        support=np.asarray(found["support"], dtype=np.int64),
        labels=labels,
        details=rest,
    )


@dataclass(frozen=True)
class Interpolation:
    """The solution of Xw = y that a norm or a potential prefers, with its proof."""

    weights: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    """One for every equation; they prove `lower_bound`."""
    objective: float
    lower_bound: float
    gap: float
    residual: float
    """‖Xw − y‖/‖y‖."""
    stationarity: float
    rank: int
    iterations: int


def interpolate(
    X: Any,
    y: Any,
    *,
    norm: str | None = None,
    potential: str | None = None,
    start: Any = None,
    total: float | None = None,
) -> Interpolation:
    """The weights with Xw = y of least norm, or of least divergence from `start`; `total` also fixes their sum."""
    numbers, kind, _ = targets(y, "regression")
    begin = None if start is None else np.ascontiguousarray(np.asarray(start, dtype=np.float64).ravel())
    return Interpolation(**_core.interpolate(of_numbers(X, numbers, kind), norm, potential, begin, total))
