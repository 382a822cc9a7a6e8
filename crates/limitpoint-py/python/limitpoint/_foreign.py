"""Fingerprints of optimisers that run in Python: the loop they share.

An optimiser sees the gradient of ln L, which neither vanishes nor overflows. Late in training it would see that of L, which is as small as
the loss; what it makes of small gradients is a second run, with gradients that are 10^late of their size and a learning rate raised
until its steps are as long as before. Optimisers without a scale of their own, such as sign descent, do the same in both; an ε, as in
Adam or in the Newton–Schulz iteration of Muon, is such a scale.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._progress import Progress
from ._verbs import Fingerprint, from_core

Floats = NDArray[np.float64]
# what the learning rate is multiplied by, one after the other, where an optimiser does not fit the probes
_FASTER = (10.0, 100.0)
# how far a geometry must lead to be named although its margin is not reached
_CLEAR = 0.5
Stepper = Callable[[Floats], Floats]
"""Takes a gradient of the weights' shape, makes a step and gives the weights."""
Maker = Callable[[Floats, float], Stepper]
"""A stepper that begins at weights, with the learning rate times a factor."""


def log_loss(margins: Floats) -> tuple[float, Floats]:
    """ln Σ exp(−q), and the shares of the examples in it."""
    least = margins.min()
    weights = np.exp(least - margins)
    total = weights.sum()
    return float(np.log(total) - least), weights / total


def follow(
    name: str,
    make: Maker,
    *,
    undecayed: Maker | None = None,
    starts: int,
    log10_loss: float,
    steps: int,
    objective: str,
    late: float | None,
    progress: bool | None,
) -> Fingerprint:
    """Follows an optimiser on the linear problems of the battery and reads its paths, early and late.

    Weight decay keeps weights bounded, and a small rate takes long, so that a loss may not fall far enough to tell anything. Then the
    optimiser is tried without its weight decay (`undecayed`, if it has any) and with higher rates; the answer says so.
    """
    if objective not in ("log", "plain"):
        raise _core.Error(f"the objective is log (ln L) or plain (L), not {objective!r}")
    if not log10_loss <= -2:
        raise _core.Error(f"log10_loss is {log10_loss}, but must be -2 or less: above nothing is decided")
    if late is not None and not -200 <= late < 0:
        raise _core.Error(f"late is {late}, but must be from -200 to below 0, or None: the exponent of a gradient's size")
    probes, levels = _core.probes(starts)
    with Progress(progress) as shown:

        def run(make: Maker, scale: float, factor: float, words: str) -> Fingerprint:
            paths: list[tuple[str, int, int, str, list[tuple[int, Floats]]]] = []
            for probe in probes:
                for start, origin in enumerate(probe["starts"]):
                    shown.line(f"{name}{words}: {probe['name']}, start {start}")
                    path = _walk(probe, origin, make, factor, levels, log10_loss, steps, objective, scale)
                    paths.append((probe["name"], start, *path))
            found = _core.fingerprint_paths(name, paths)
            return from_core(found["fingerprints"][0], found["page"], found["figure"])

        early, make, rate = _first_fit(make, undecayed, run)
        if late is None or objective == "plain":
            return replace(early, early=_leading(early), answer=_words(early))

        def run_late(factor: float) -> Fingerprint:
            return run(make, 10.0**late, rate * factor, ", late")

        return _with_late(early, late, run_late, _raise(probes[0], make, late))


def _first_fit(
    make: Maker, undecayed: Maker | None, run: Callable[[Maker, float, float, str], Fingerprint]
) -> tuple[Fingerprint, Maker, float]:
    """The fingerprint of an optimiser as it is, else without its weight decay, else at a higher rate; with what was changed."""
    attempts = [(make, 1.0, "")]
    words = ""
    if undecayed is not None:
        words = "without weight decay"
        attempts.append((undecayed, 1.0, words))
    for factor in _FASTER:
        faster = f"at {factor:.0f} times its rate"
        attempts.append((undecayed or make, factor, f"{words}, {faster}" if words else faster))
    first: _core.Error | None = None
    for maker, factor, changed in attempts:
        try:
            found = run(maker, 1.0, factor, f" {changed}" if changed else "")
        except _core.Error as error:
            first = first or error
            continue
        if changed:
            found = replace(found, answer=f"{found.answer} ({changed}; as it is, it fits too little to tell)")
        return found, maker, factor
    assert first is not None
    raise first


def _leading(found: Fingerprint) -> str | None:
    """The geometry that is maximised at the end, else one that leads its rivals clearly, else one that was maximised before."""
    clear = found.lead is not None and found.lead >= _CLEAR
    return found.late or (found.nearest if clear else found.early)


def _words(found: Fingerprint) -> str:
    if found.late is not None or found.lead is None:
        return found.answer
    return f"{found.answer}; it leads its rivals by {found.lead:.2f} of what its exact maximiser does"


def _raise(probe: dict[str, Any], make: Maker, late: float) -> float:
    """How much the learning rate must be raised for steps as long as with gradients of full size."""
    gradient = -probe["rows"].mean(axis=0).reshape(probe["shape"])
    lengths = []
    for scale in (1.0, 10.0**late):
        weights = np.zeros(probe["shape"])
        step = make(weights.copy(), 1.0)
        for _ in range(5):  # for the memory to fill
            before, weights = weights, step(scale * gradient)
        lengths.append(float(np.linalg.norm(weights - before)))
    return lengths[0] / lengths[1] if lengths[1] > 0 else float("inf")


def _with_late(early: Fingerprint, late: float, run: Callable[[float], Fingerprint], factor: float) -> Fingerprint:
    """A fingerprint with what happens to small gradients."""
    begin = f"Early: {_words(early)}. Late, with gradients of 1e{late:.0f}: "
    kept = replace(early, early=_leading(early), late=None)
    if not np.isfinite(factor):
        return replace(kept, answer=begin + "it does not move any more")
    try:
        found = run(factor)
    except _core.Error as error:
        return replace(kept, answer=begin + str(error))
    details = {**early.details, "late": found.details}
    return replace(kept, late=_leading(found), late_lead=found.lead, answer=begin + _words(found), details=details)


def _walk(
    probe: dict[str, Any],
    origin: Floats,
    make: Maker,
    factor: float,
    levels: list[float],
    log10_loss: float,
    steps: int,
    objective: str,
    size: float,
) -> tuple[int, str, list[tuple[int, Floats]]]:
    rows, shape = probe["rows"], tuple(probe["shape"])
    weights = origin.reshape(shape)
    step = make(weights.copy(), factor)
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
        scale = size if objective == "log" else float(np.exp(loss))
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
