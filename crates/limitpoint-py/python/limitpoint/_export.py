"""Measurements for other people's viewers."""

import math
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from . import _core
from ._experiment import Experiment, load
from ._run import Run

EXPORTED = ("log10_", "margin.", "tau.")
"""What the names of columns begin with that are exported unless others are asked for."""


def export(
    runs: "Run | Experiment | Iterable[Run] | str | Path",
    to: Literal["trackio", "wandb"],
    *,
    project: str = "limitpoint",
    columns: Sequence[str] | None = None,
    **options: Any,
) -> int:
    """Sends measurements to trackio or to Weights & Biases, run by run, and says how many numbers it sent.

    `runs` is a run, an experiment, several runs, or the folder of one of them. Without `columns`, all logarithms, margins and
    τ are sent. Losses go as `log10_loss` only: 10⁻¹⁰⁰⁰ is −1000 there, where the loss itself would be 0. What was not measured
    (NaN) and what no number is (±∞) is not sent. `options` go to the viewer's `init`, such as `space_id=` or `mode="offline"`.

    >>> lp.export("runs/widths", to="trackio", project="widths")   # doctest: +SKIP
    """
    if to not in ("trackio", "wandb"):
        raise _core.Error(
            f"cannot export to {to!r}; there are 'trackio' and 'wandb', and `limitpoint export --tensorboard` for TensorBoard"
        )
    chosen = list(_chosen(runs))
    for run in chosen:
        missing = [column for column in columns or () if column not in run.history]
        if missing:
            raise _core.Error(f"{run.name} has no column {missing[0]!r}; there are {', '.join(run.history)}")
    viewer = _viewer(to)
    sent = 0
    for run in chosen:
        viewer.init(project=project, name=run.name, config=_settings(run), **options)
        try:
            for step, numbers in _rows(run, columns):
                viewer.log(numbers, step=step)
                sent += len(numbers)
        finally:
            viewer.finish()
    return sent


def _viewer(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise _core.Error(f"{name} is not there: pip install {name}") from error


def _chosen(runs: "Run | Experiment | Iterable[Run] | str | Path") -> Iterable[Run]:
    if isinstance(runs, str | Path):
        return load(runs)
    return [runs] if isinstance(runs, Run) else runs


def _settings(run: Run) -> dict[str, Any]:
    """What tells runs apart, for the viewer's tables."""
    facts = {key: run._facts[key] for key in ("seed", "formula") if key in run._facts}
    point = dict(run._facts.get("point") or [])
    return {"optimiser": run.optimiser, **facts, **point}


def _rows(run: Run, columns: Sequence[str] | None) -> Iterator[tuple[int, dict[str, float]]]:
    history = run.history
    names = columns if columns is not None else [name for name in history if name.startswith(EXPORTED)]
    for row, step in enumerate(history["step"]):
        values = {name: float(history[name][row]) for name in names}
        numbers = {name: value for name, value in values.items() if math.isfinite(value)}
        if numbers:
            yield int(step), numbers
