"""The tangent problem of a trained model: bounds of τ at three costs.

Any weights p of the margins bound τ from above by ‖Σ p_k h_k‖_*, any direction from below. One weighted backward pass takes the
weights of the exponential loss; a Gram matrix gives the best ones in ℓ2, the rows h_k themselves those of every norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._margins import Margins
from ._oracle import Floats, Oracle, places

# entries of rows that are solved at most (256 MB)
_LARGEST = 1 << 25
# rows of a Gram matrix at most (128 MB)
_MOST = 4096


@dataclass(frozen=True)
class AuditedNorm:
    """What an audit says about one norm."""

    norm: str
    size: float
    """‖θ‖ of the judged blocks."""
    margin: float
    """q_min/‖θ‖^L."""
    tau: float
    """An upper bound of τ, proven by multipliers."""
    tau_lower: float
    """A lower bound, proven by a direction; 0 where nobody looked."""
    level: str
    """pass, gram or rows: what the bound cost."""


class Tangent:
    """The tangent problem of the judged blocks."""

    def __init__(self, model: Oracle, judged: list[int], margins: Margins, q: Floats, degree: float) -> None:
        self.model, self.margins, self.q, self.degree = model, margins, q, degree
        self.blocks = [model.blocks[place] for place in judged]
        self.places = places(model.blocks, [name for name, _, _ in self.blocks])
        self.theta = np.ascontiguousarray(model.params[self.places])
        self.least = float(q.min())

    def push(self, direction: Floats) -> Floats:
        """⟨h_k, v⟩ for all margins."""
        whole = np.zeros_like(self.model.params)
        whole[self.places] = direction
        return self.margins.of(self.model.push(whole))

    def solve(
        self, norms: Sequence[str], level: str, smallest: int
    ) -> tuple[dict[str, AuditedNorm], dict[str, Any]]:
        sizes = _core.norm_values(self.blocks, self.theta, list(norms), False)
        weights = np.exp(self.least - self.q)
        weights /= weights.sum()
        total = np.ascontiguousarray(self.model.pull_back(self.margins.cotangent(weights))[self.places])
        duals = _core.norm_values(self.blocks, total, list(norms), True)
        found: dict[str, AuditedNorm] = {}
        claims: list[tuple[str, str, float, float, Floats, Floats | None]] = []
        for norm, size, dual in zip(norms, sizes, duals, strict=True):
            margin, own = self.least / size**self.degree, self.degree * self.least / size
            tau = max(0.0, 1.0 - own / dual)
            found[norm] = AuditedNorm(norm, size, margin, tau, 0.0, "pass")
            claims.append((norm, "pass", tau, margin, weights, total))
        rows: Floats | None = None
        gram: Floats | None = None
        active: list[int] = []
        if level == "gram":
            active = [int(k) for k in np.argsort(self.q)[: max(1, min(smallest, _MOST))]]
            gram, active, answer = self._close_gram(active)
            earlier = found.get("l2")
            if earlier is not None:
                tau = min(earlier.tau, answer[0])
                found["l2"] = AuditedNorm("l2", earlier.size, earlier.margin, tau, min(tau, answer[1]), level)
                if answer[0] <= earlier.tau:
                    claims = [claim for claim in claims if claim[0] != "l2"]
                    claims.append(("l2", level, answer[0], earlier.margin, answer[2], None))
        elif level == "rows":
            affordable = max(1, _LARGEST // len(self.theta))
            active = [int(k) for k in np.argsort(self.q)[: min(max(1, smallest), affordable)]]
            rows = self._rows(active)
            for norm in norms:
                rows, active, answer = self._close(norm, rows, active, affordable)
                earlier = found[norm]
                tau = min(earlier.tau, answer[0])
                found[norm] = AuditedNorm(norm, earlier.size, earlier.margin, tau, min(tau, answer[1]), level)
                if answer[0] <= earlier.tau:
                    claims = [claim for claim in claims if claim[0] != norm]
                    claims.append((norm, level, answer[0], earlier.margin, answer[2], None))
            # rows were added on the way: multipliers of earlier norms are 0 there
            claims = [
                (*claim[:4], np.pad(claim[4], (0, len(active) - len(claim[4]))), None) if claim[1] != "pass" else claim
                for claim in claims
            ]
        tangent = {
            "blocks": self.blocks,
            "params": self.theta,
            "margins": np.ascontiguousarray(self.q),
            "degree": self.degree,
            "rows": rows,
            "gram": gram,
            "margin_of_row": active,
            "claims": claims,
            "about": "",
        }
        return found, tangent

    def _rows(self, active: list[int]) -> Floats:
        examples, cotangents = self.margins.single(np.array(active))
        return np.ascontiguousarray(self.model.rows(examples, cotangents)[:, self.places])

    def _violators(self, slopes: Floats, upper: float, active: list[int], most: int) -> list[int]:
        """Margins whose slope along a direction is below the bound, the worst first."""
        known = set(active)
        below = [int(k) for k in np.argsort(slopes) if slopes[k] < upper * (1 - 1e-9) and int(k) not in known]
        return below[: max(0, most)]

    def _close(
        self, norm: str, rows: Floats, active: list[int], affordable: int
    ) -> tuple[Floats, list[int], tuple[float, float, Floats]]:
        """τ in a norm, rows added until no margin violates the direction; upper bound, lower bound and multipliers."""
        size = _core.norm_values(self.blocks, self.theta, [norm], False)[0]
        own = self.degree * self.least / size
        for _ in range(20):
            answer = _core.tangent(self.blocks, self.theta, self.q, self.degree, rows, active, norm)
            weights, direction = answer["weights"], answer["direction"]
            dual = _core.norm_values(self.blocks, np.ascontiguousarray(weights @ rows), [norm], True)[0]
            upper = dual / weights.sum()
            slopes = self.push(direction)
            lower = max(float(slopes.min()), own)
            tau, tau_lower = max(0.0, 1.0 - own / upper), max(0.0, 1.0 - own / lower)
            worse = self._violators(slopes, upper, active, min(20, affordable - len(active)))
            if not worse or upper - lower <= 1e-9 * upper:
                break
            rows = np.ascontiguousarray(np.vstack([rows, self._rows(worse)]))
            active = active + worse
        return rows, active, (tau, tau_lower, weights)

    def _close_gram(self, active: list[int]) -> tuple[Floats, list[int], tuple[float, float, Floats]]:
        """τ in ℓ2 by the Gram matrix, margins added until none violates the direction; no gradient is kept."""
        own = self.degree * self.least / float(np.linalg.norm(self.theta))
        names = [name for name, _, _ in self.blocks]
        for _ in range(20):
            examples, cotangents = self.margins.single(np.array(active))
            gram = self.model.gram(examples, cotangents, names)
            weights, _, _ = _core.gram_weights(gram)
            spread = np.zeros(len(self.q))
            spread[active] = weights
            direction = self.model.pull_back(self.margins.cotangent(spread))[self.places]
            length = float(np.linalg.norm(direction))
            upper = length / weights.sum()
            slopes = self.push(direction / length)
            lower = max(float(slopes.min()), own)
            tau, tau_lower = max(0.0, 1.0 - own / upper), max(0.0, 1.0 - own / lower)
            most = min(max(20, len(active) // 2), _MOST - len(active))
            worse = self._violators(slopes, upper, active, most)
            if not worse or upper - lower <= 1e-9 * upper:
                break
            active = active + worse
        return gram, active, (tau, tau_lower, weights)
