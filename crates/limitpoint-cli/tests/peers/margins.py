"""Max-margin problems with the answers of other people's solvers, one JSON object per line.

    max { min_i <h_i, v> : |v| <= 1 }        usage: margins.py COUNT SEED

l1 and linf are linear programs for HiGHS (scipy). l2 is a least-distance problem, solved by non-negative least squares
(Lawson and Hanson 1974, chapter 23). lp, group and matrix norms are cone programs for cvxpy with Clarabel, where that is
installed; a last line {"skipped": [...]} names the norms that were left out.

Each answer carries the peer's own bracket: `lower` from its direction, `upper` from its multipliers, both in plain
arithmetic, so that the peer's accuracy is known and not assumed.
"""

import json
import sys

import numpy as np
from scipy.optimize import linprog, nnls

CONIC = ["lp:3", "lp:1.5", "group21", "group2inf", "spectral", "nuclear"]


def separable(rng, examples, entries):
    """Random rows on the positive side of a random plane."""
    plane = rng.standard_normal(entries)
    rows = rng.standard_normal((examples, entries))
    rows *= np.where(rows @ plane < 0, -1.0, 1.0)[:, None]
    kind = rng.integers(4)
    if kind == 1 and examples > 1:  # duplicate and parallel rows
        rows[-1] = rows[0]
        rows[examples // 2] = 3.0 * rows[0]
    if kind == 2:  # whole numbers, where ties happen
        rows = np.round(2.0 * rows)
        rows[~rows.any(axis=1)] = 1.0
        rows *= np.where(rows @ plane < 0, -1.0, 1.0)[:, None]
    return rows


def norm(name, v, shape):
    matrix = v.reshape(shape)
    lengths = np.sqrt((matrix**2).sum(axis=1))
    if name.startswith("lp:"):
        return np.linalg.norm(v, float(name[3:]))
    return {
        "l1": lambda: np.abs(v).sum(),
        "l2": lambda: np.linalg.norm(v),
        "linf": lambda: np.abs(v).max(),
        "group21": lambda: lengths.sum(),
        "group2inf": lambda: lengths.max(),
        "spectral": lambda: np.linalg.norm(matrix, 2),
        "nuclear": lambda: np.linalg.norm(matrix, "nuc"),
    }[name]()


DUAL = {
    "l1": "linf", "linf": "l1", "l2": "l2", "lp:3": "lp:1.5", "lp:1.5": "lp:3",
    "group21": "group2inf", "group2inf": "group21", "spectral": "nuclear", "nuclear": "spectral",
}


def bracket(name, rows, shape, direction, weights):
    weights = np.maximum(weights, 0.0)
    lower = (rows @ direction).min() / norm(name, direction, shape)
    upper = norm(DUAL[name], rows.T @ weights, shape) / weights.sum()
    return lower, upper


def linear_program(name, rows):
    n, d = rows.shape
    if name == "l1":  # v = a - b with a, b >= 0, sum(a + b) <= 1
        unit = np.concatenate([np.ones(2 * d), [0.0]])[None, :]
        bounds = [(0, None)] * (2 * d) + [(None, None)]
        margins = np.hstack([-rows, rows, np.ones((n, 1))])
        answer = linprog(
            np.concatenate([np.zeros(2 * d), [-1.0]]), A_ub=np.vstack([margins, unit]), b_ub=np.append(np.zeros(n), 1.0),
            bounds=bounds, method="highs", options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        return answer.x[:d] - answer.x[d : 2 * d], -answer.ineqlin.marginals[:n]
    answer = linprog(
        np.append(np.zeros(d), -1.0), A_ub=np.hstack([-rows, np.ones((n, 1))]), b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, None)], method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return answer.x[:d], -answer.ineqlin.marginals


def least_distance(rows):
    n, d = rows.shape
    matrix = np.vstack([rows.T, np.ones(n)])
    target = np.append(np.zeros(d), 1.0)
    weights, _ = nnls(matrix, target, maxiter=1000 * n)
    rest = target - matrix @ weights
    return -rest[:d] / rest[d], weights


class Cones:
    """One cvxpy problem for each norm, compiled once."""

    def __init__(self, name, examples, shape):
        import cvxpy as cp

        self.rows = cp.Parameter((examples, shape[0] * shape[1]))
        self.v = cp.Variable(shape)
        margin = cp.Variable()
        size = {
            "group21": lambda: cp.sum(cp.norm(self.v, 2, axis=1)),
            "group2inf": lambda: cp.max(cp.norm(self.v, 2, axis=1)),
            "spectral": lambda: cp.sigma_max(self.v),
            "nuclear": lambda: cp.normNuc(self.v),
        }.get(name, lambda: cp.pnorm(cp.vec(self.v, order="C"), float(name[3:])))
        self.margins = self.rows @ cp.vec(self.v, order="C") >= margin
        self.problem = cp.Problem(cp.Maximize(margin), [self.margins, size() <= 1])

    def solve(self, rows):
        self.rows.value = rows
        self.problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=200)
        return self.v.value.ravel(), self.margins.dual_value


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    rng = np.random.default_rng(seed)

    def tell(name, rows, shape, direction, weights):
        lower, upper = bracket(name, rows, shape, direction, weights)
        print(json.dumps({"norm": name, "shape": shape, "rows": rows.tolist(), "lower": lower, "upper": upper}))

    for name in ["l1", "l2", "linf"]:
        for _ in range(count):
            rows = separable(rng, int(rng.integers(1, 25)), int(rng.integers(1, 16)))
            answer = least_distance(rows) if name == "l2" else linear_program(name, rows)
            tell(name, rows, (1, rows.shape[1]), *answer)
    try:
        import cvxpy  # noqa: F401
    except ImportError:
        print(json.dumps({"skipped": CONIC}))
        return
    for name in CONIC:
        cones = Cones(name, 6, (3, 3))
        for _ in range(count):
            rows = separable(rng, 6, 9)
            tell(name, rows, (3, 3), *cones.solve(rows))


main()
