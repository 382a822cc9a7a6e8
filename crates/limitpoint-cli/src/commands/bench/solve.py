"""Solves max-margin problems with cvxpy + Clarabel and scikit-learn; answers one JSON line a request.

Arguments: folder. Requests: `NAME SOLVER`, where NAME.json gives rows, columns, norm and the labels of classes, NAME.f64
the rows y_i x_i of two labels or the inputs of classes.
"""
import json
import sys
import time

import numpy as np

folder = sys.argv[1]


def load(name):
    with open(f"{folder}/{name}.json") as file:
        spec = json.load(file)
    rows = np.fromfile(f"{folder}/{name}.f64").reshape(spec["rows"], spec["columns"])
    return rows, spec["norm"], np.array(spec["labels"], dtype=int)


def dual_order(norm):
    return {"l1": np.inf, "l2": 2, "linf": 1}[norm]


def order(norm):
    return {"l1": 1, "l2": 2, "linf": np.inf}[norm]


def with_cvxpy(rows, norm):
    import cvxpy as cp

    start = time.perf_counter()
    v, s = cp.Variable(rows.shape[1]), cp.Variable()
    ball = {"l1": cp.norm1, "l2": cp.norm2, "linf": cp.norm_inf}[norm](v) <= 1
    margins = rows @ v >= s
    problem = cp.Problem(cp.Maximize(s), [margins, ball])
    problem.solve(solver=cp.CLARABEL)
    seconds = time.perf_counter() - start
    p = np.maximum(margins.dual_value, 0)
    upper = np.linalg.norm(rows.T @ p, dual_order(norm)) / p.sum()
    lower = (rows @ v.value).min() / np.linalg.norm(v.value, order(norm))
    return {"seconds": seconds, "solver_seconds": problem.solver_stats.solve_time, "lower": lower, "upper": upper}


def with_svc(rows, norm):
    """libsvm has an intercept; with every point mirrored through the origin the best one is 0."""
    from sklearn.svm import SVC

    both, labels = np.vstack([rows, -rows]), np.repeat([1, -1], len(rows))
    start = time.perf_counter()
    model = SVC(C=1e10, kernel="linear").fit(both, labels)
    seconds = time.perf_counter() - start
    w = model.coef_[0]
    lower = (rows @ w).min() / np.linalg.norm(w)
    # the easier problem of the same size, intercept and all, for the time alone
    half = np.where(np.arange(len(rows)) % 2 == 0, 1, -1)
    start = time.perf_counter()
    SVC(C=1e10, kernel="linear").fit(rows * half[:, None], half)
    return {"seconds": seconds, "solver_seconds": time.perf_counter() - start, "lower": lower, "upper": None}


def with_linear_svc(rows, labels):
    """No intercept; two labels by mirrored points, classes by Crammer and Singer's problem."""
    from sklearn.svm import LinearSVC

    if len(labels):
        model, inputs = LinearSVC(C=1e6, multi_class="crammer_singer", fit_intercept=False, max_iter=1_000_000), rows
    else:
        # labels of both signs are needed; a mirrored point says the same
        labels = np.where(np.arange(len(rows)) % 2 == 0, 1, -1)
        model, inputs = LinearSVC(C=1e6, loss="hinge", fit_intercept=False, max_iter=1_000_000), rows * labels[:, None]
    start = time.perf_counter()
    model.fit(inputs, labels)
    seconds = time.perf_counter() - start
    w = model.coef_
    if len(w) == 1:
        lower = (rows @ w[0]).min() / np.linalg.norm(w)
    else:
        scores = rows @ w.T
        own = scores[np.arange(len(rows)), labels].copy()
        scores[np.arange(len(rows)), labels] = -np.inf
        lower = (own - scores.max(axis=1)).min() / np.linalg.norm(w)
    return {"seconds": seconds, "solver_seconds": seconds, "lower": lower, "upper": None}


for line in sys.stdin:
    try:
        name, solver = line.split()
        rows, norm, labels = load(name)
        if solver == "cvxpy":
            answer = with_cvxpy(rows, norm)
        else:
            answer = with_svc(rows, norm) if solver == "svc" else with_linear_svc(rows, labels)
    except Exception as error:  # said to the caller, which decides
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
