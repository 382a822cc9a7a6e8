"""Fingerprints of optimisers that run in Python: the loop they share."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._progress import Progress
from ._verbs import Fingerprint, from_core

Floats = NDArray[np.float64]
Stepper = Callable[[Floats], Floats]
"""Takes a gradient of the weights' shape, makes a step and gives the weights."""


def log_loss(margins: Floats) -> tuple[float, Floats]:
    """ln Σ exp(−q), and the shares of the examples in it."""
    least = margins.min()
    weights = np.exp(least - margins)
    total = weights.sum()
    return float(np.log(total) - least), weights / total


def follow(
    name: str,
    make: Callable[[Floats], Stepper],
    *,
    starts: int,
    log10_loss: float,
    steps: int,
    objective: str,
    progress: bool | None,
) -> Fingerprint:
    """Follows an optimiser on the linear problems of the battery and reads its paths."""
    if objective not in ("log", "plain"):
        raise _core.Error(f"the objective is log (ln L) or plain (L), not {objective!r}")
    if not log10_loss <= -2:
        raise _core.Error(f"log10_loss is {log10_loss}, but must be -2 or less: above nothing is decided")
    probes, levels = _core.probes(starts)
    paths: list[tuple[str, int, int, str, list[tuple[int, Floats]]]] = []
    with Progress(progress) as shown:
        for probe in probes:
            for start, origin in enumerate(probe["starts"]):
                shown.line(f"{name}: {probe['name']}, start {start}")
                path = _walk(probe, origin, make, levels, log10_loss, steps, objective)
                paths.append((probe["name"], start, *path))
    found = _core.fingerprint_paths(name, paths)
    return from_core(found["fingerprints"][0], found["page"], found["figure"])


def _walk(
    probe: dict[str, Any],
    origin: Floats,
    make: Callable[[Floats], Stepper],
    levels: list[float],
    log10_loss: float,
    steps: int,
    objective: str,
) -> tuple[int, str, list[tuple[int, Floats]]]:
    rows, shape = probe["rows"], tuple(probe["shape"])
    weights = origin.reshape(shape)
    step = make(weights.copy())
    points: list[tuple[int, Floats]] = []
    level, reason, taken = 0, f"{steps} steps made", False
    for count in range(steps + 1):
        margins = rows @ weights.ravel()
        if not np.all(np.isfinite(margins)):
            reason = "the weights are no numbers any more"
            break
        loss, shares = log_loss(margins)
        depth = -loss / np.log(10)
        taken = level < len(levels) and depth >= levels[level]
        if taken:
            points.append((count, weights.ravel().copy()))
            while level < len(levels) and depth >= levels[level]:
                level += 1
        if depth >= -log10_loss:
            reason = f"log10 L reached {log10_loss}"
            break
        if count == steps:
            break
        scale = 1.0 if objective == "log" else float(np.exp(loss))
        if scale == 0.0:
            reason = "the loss is 0 as a float"
            break
        before = weights
        weights = step(-scale * (shares @ rows).reshape(shape))
        if objective == "plain" and np.array_equal(before, weights):
            reason = "the weights do not move any more"
            break
    if not taken and np.all(np.isfinite(weights)):
        points.append((count, weights.ravel().copy()))
    return count, reason, points
