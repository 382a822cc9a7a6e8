"""Recomputes what `max_margin` proves, in 50 digits, with nothing of limitpoint.

Reads one JSON object a line: norm, shape, rows, status, lower, upper, direction and dual as sums of two lists of
doubles. Writes one line a problem: "ok", or what is wrong. What is checked:

  optimal, inaccurate   lower <= min <h, v>/|v| of the stated direction,  |sum p h|_*/sum p of the stated weights <= upper
                        (so that the value of the problem, which lies between the two, lies in the bracket), p >= 0
  optimal               (upper - lower)/upper <= 1e-9
  not-separable         p >= 0, sum p = 1, and every column of sum p h vanishes to 1e-24 of the terms it adds
"""

import json
import sys

from mpmath import mp, mpf, matrix, svd_r

mp.dps = 50


def exact(high, low):
    low = low or [0.0] * len(high)
    return [mpf(a) + mpf(b) for a, b in zip(high, low)]


def lp(v, p):
    if p == mp.inf:
        return max(abs(x) for x in v)
    return sum(abs(x) ** p for x in v) ** (1 / p)


def singular_values(v, rows, cols):
    if rows == 1 or cols == 1:
        return [lp(v, mpf(2))]
    scale = max(abs(x) for x in v) or mpf(1)
    square = matrix([[v[i * cols + j] / scale for j in range(cols)] for i in range(rows)])
    values = svd_r(square, compute_uv=False)
    return [x * scale for x in values]


def groups(v, rows, cols):
    return [lp(v[i * cols:(i + 1) * cols], mpf(2)) for i in range(rows)]


def norm(name, v, rows, cols, dual):
    """The norm of that name, or its dual norm; on one block, so compositions are weighted norms."""
    weight = mpf(1)
    if name.startswith(("max(", "sum(", "root(")):
        entry = name[name.index("(") + 1:-1].split(",")[0].split("=", 1)[1]
        if "*" in entry:
            factor, entry = entry.split("*", 1)
            weight = mpf(float(factor))
        size = norm(entry, v, rows, cols, dual)
        return size / weight if dual else size * weight
    if name.startswith("quadratic:"):
        diagonal = [mpf(float(x)) for x in name.split(":")[1:]]
        return mp.sqrt(sum(x * x / d if dual else x * x * d for x, d in zip(v, diagonal)))
    if name.startswith("lp:"):
        text = name[3:]
        parts = text.split("/")
        p = float(parts[0]) / float(parts[1]) if len(parts) == 2 else float(text)
        p = mpf(p)
        return lp(v, p / (p - 1) if dual else p)
    if name in ("l1", "l1-averaged"):
        return lp(v, mp.inf if dual else mpf(1))
    if name == "linf":
        return lp(v, mpf(1) if dual else mp.inf)
    if name in ("l2", "frobenius"):
        return lp(v, mpf(2))
    if name in ("spectral", "nuclear"):
        values = singular_values(v, rows, cols)
        return max(values) if (name == "spectral") != dual else sum(values)
    if name in ("group21", "group2inf"):
        values = groups(v, rows, cols)
        return sum(values) if (name == "group21") != dual else max(values)
    raise ValueError(f"no norm {name}")


def check(problem):
    rows, cols = problem["shape"]
    h = [[mpf(x) for x in row] for row in problem["rows"]]
    p = exact(problem["dual"], problem["dual_low"])
    if any(x < 0 for x in p):
        return "a negative weight"
    total = sum(p)
    z = [sum(pi * row[j] for pi, row in zip(p, h)) for j in range(rows * cols)]
    if problem["status"] == "not-separable":
        if abs(total - 1) > mpf(10) ** -12:
            return f"the weights add up to {mp.nstr(total, 20)}"
        for j, entry in enumerate(z):
            terms = sum(pi * abs(row[j]) for pi, row in zip(p, h))
            if abs(entry) > mpf(10) ** -24 * terms:
                return f"column {j} is {mp.nstr(entry, 5)} of {mp.nstr(terms, 5)}"
        return "ok"
    lower, upper = mpf(problem["lower"]), mpf(problem["upper"])
    v = exact(problem["direction"], problem["direction_low"])
    achieved = min(sum(a * b for a, b in zip(row, v)) for row in h)
    size = norm(problem["norm"], v, rows, cols, False)
    proven = achieved / size if size > 0 else mpf(0)
    bound = norm(problem["norm"], z, rows, cols, True) / total
    # a direction need not be given where nothing is known but that 0 is a lower bound
    if lower > max(proven, 0):
        return f"lower {mp.nstr(lower, 20)} is above {mp.nstr(proven, 20)}"
    if bound > upper:
        return f"upper {mp.nstr(upper, 20)} is below {mp.nstr(bound, 20)}"
    if lower > upper:
        return "the bracket is inverted"
    if problem["status"] == "optimal" and (upper - lower) > mpf(10) ** -9 * upper:
        return f"optimal with a gap of {mp.nstr((upper - lower) / upper, 5)}"
    planted = mpf(problem["planted"])
    if problem["status"] == "optimal" and planted > 0 and upper < 0:
        return "a planted margin is missing"
    return "ok"


for line in sys.stdin:
    print(check(json.loads(line)), flush=True)
