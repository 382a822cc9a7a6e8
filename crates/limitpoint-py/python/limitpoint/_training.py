"""Training: `run` and `sweep`."""

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import array, dataset
from ._core import Error
from ._experiment import Experiment, execute
from ._progress import Progress
from ._run import Interrupted, Run, remember

Overrides = Mapping[str, Any] | Iterable[str]

_TO_RECIPE = {
    "optimiser": "optimiser",
    "flow": "flow",
    "loss": "loss",
    "reduction": "reduction",
    "initialiser": "initialiser",
    "schedule": "schedule",
    "seed": "seed",
    "precision": "precision",
    "until": "stop.log10_loss",
    "steps": "stop.steps",
    "norms": "observe.norms",
    "potentials": "observe.potentials",
}


@overload
def run(data: str | Path | None = None, y: None = None, /, **settings: Any) -> Experiment: ...
@overload
def run(data: Any, y: Any, /, **settings: Any) -> Run: ...
def run(data: Any = None, y: Any = None, /, **settings: Any) -> Run | Experiment:
    """Trains.

    `run(X, y, …)` trains one model in memory and gives a `Run`. `run("digits", …)` runs a built-in experiment or a recipe of your
    own, a .toml file, in a folder, and gives an `Experiment`; `run()` is the one of the README: eight optimisers on embedded
    handwritten digits.

    Settings of both (texts are those of the command line, `limitpoint list optimisers` shows them):

    model:        "linear", "relu 32", "network(widths=[64, 64], activation=relu)", "diagonal(factors=3)", …
    optimiser:    "gradient", "sign", "adam(epsilon=0)", "mirror(potential=entropy)", …
    loss:         "logistic", "exponential", "cross-entropy", "squared", …; chosen by the targets if absent
    until:        log₁₀ of the loss to stop at, such as -100
    steps:        the most steps
    initialiser, schedule, seed, reduction, precision, norms (measured), potentials (measured), threads, progress

    Settings of data in memory: task ("binary", "classes", "regression"), batch, start (weights), every or per_decade (which steps
    are measured), flow, log10_time, angle. Without `until`, `steps`, `log10_time` and `angle` a run ends at 1e-100, in
    regression at 1e-20, or after 100,000 steps.

    Settings of experiments: out (folder; runs/NAME if absent), overrides (`{"model.width": [16, 32]}` or `["model.width=16,32"]`),
    data_dir, report (whether report.html is written).
    """
    if y is None and (data is None or isinstance(data, str | Path)):
        return _experiment("showcase" if data is None else str(data), settings)
    if y is None:
        raise Error("data in memory need targets: run(X, y, …)")
    return _one(data, y, settings)


def sweep(data: Any, y: Any = None, /, **settings: Any) -> Experiment:
    """Every combination of the settings that are lists: `sweep(X, y, optimiser=["sign", "gradient"], seed=[0, 1])`.

    With the name of an experiment or recipe it is a sweep in a folder: `sweep("digits", seed=[1, 2], until=-50)`.
    """
    if y is None:
        if not isinstance(data, str | Path):
            raise Error("data in memory need targets: sweep(X, y, …)")
        return _experiment(str(data), settings)
    lists = {"norms", "potentials", "start"}
    swept = {key: list(value) for key, value in settings.items() if isinstance(value, list | tuple) and key not in lists}
    fixed = {key: value for key, value in settings.items() if key not in swept}
    runs, points = [], []
    with Progress(fixed.get("progress")) as shown:
        combinations = list(itertools.product(*swept.values()))
        for place, values in enumerate(combinations):
            chosen = dict(zip(swept, values, strict=True))
            shown.line(f"{place} of {len(combinations)} done")
            runs.append(_one(data, y, {**fixed, **chosen, "progress": False}))
            points.append({key: value for key, value in chosen.items() if key not in ("optimiser", "flow", "seed")})
            label = "".join(f"-{key}={value}" for key, value in points[-1].items())
            runs[-1].name = f"{runs[-1].optimiser}{label}-seed{chosen.get('seed', fixed.get('seed', 0))}"
    return Experiment.of(str(fixed.get("name", "sweep")), runs, points)


def _one(inputs: Any, y: Any, settings: dict[str, Any]) -> Run:
    """One training in memory."""
    chosen = dict(settings)
    progress = chosen.pop("progress", None)
    name = str(chosen.pop("name", "data"))
    data, labels = dataset(inputs, y, chosen.pop("task", None), name)
    trainer = str(chosen.get("flow") or chosen.get("optimiser") or "gradient")
    with Progress(progress) as shown:
        core = _core.train(data, json.dumps(_settings(chosen, data.kind)), shown.one)
    result = Run(
        core,
        name=f"{trainer}-seed{int(chosen.get('seed', 0))}",
        optimiser=trainer,
        labels=labels if data.kind != "real" else None,
    )
    if result.interrupted:
        raise Interrupted(run=remember(result))
    return result


def _settings(chosen: dict[str, Any], kind: str) -> dict[str, Any]:
    """Keywords as the core takes them."""
    known = {key: value for key, value in chosen.items() if value is not None}
    known.setdefault("model", "linear")
    if "until" in known:
        known["log10_loss"] = float(known.pop("until"))
    if not {"log10_loss", "steps", "log10_time", "angle"} & set(known):
        known |= {"log10_loss": -20.0 if kind == "real" else -100.0, "steps": 100_000}
    for key in ("log10_loss", "log10_time", "angle"):
        if key in known and not np.isfinite(known[key]):
            raise Error(f"{'until' if key == 'log10_loss' else key} is {known[key]}, but must be a finite number")
    if "start" in known:
        start: NDArray[np.float64] = array(known["start"]).astype(np.float64).ravel()
        known["start"] = start.tolist()
    for key in ("seed", "steps", "batch", "threads", "every", "per_decade"):
        if key in known:
            known[key] = int(known[key])
    return known


def _experiment(source: str, settings: dict[str, Any]) -> Experiment:
    """A recipe in a folder."""
    chosen = {key: value for key, value in settings.items() if value is not None}
    shared = {key: chosen.pop(key) for key in ("threads", "data_dir", "report", "progress") if key in chosen}
    out = chosen.pop("out", None)
    extra = chosen.pop("overrides", ())
    overrides = []
    for key, value in chosen.items():
        if key == "model":
            models = value if isinstance(value, list | tuple) else [value]
            overrides.append("model=" + ",".join(_core.model_text(str(model)) for model in models))
        elif key in _TO_RECIPE:
            overrides.append(_override(_TO_RECIPE[key], value, whole=key in ("norms", "potentials")))
        else:
            raise Error(f"an experiment has no setting '{key}'; say overrides={{'{key}': …}} for a key of its recipe")
    if isinstance(extra, Mapping):
        overrides += [_override(key, value) for key, value in extra.items()]
    else:
        overrides += [extra] if isinstance(extra, str) else list(extra)
    name = Path(source).stem if source.endswith(".toml") else source
    folder = _free(name) if out is None else Path(out)
    if out is not None and (folder / "manifest.json").exists():
        raise Error(f"{folder} already holds an experiment; go on with limitpoint.resume(\"{folder}\"), or choose another")
    try:
        return execute(source, overrides, folder, **shared)
    except Error:
        if out is None:
            try:
                folder.rmdir()  # nothing was written in it
            except OSError:
                pass
        raise


def _override(key: str, value: Any, whole: bool = False) -> str:
    if isinstance(value, list | tuple):
        words = [str(item) for item in value]
        return f"{key}={json.dumps(words)}" if whole else f"{key}={','.join(words)}"
    return f"{key}={value}"


def _free(name: str) -> Path:
    """Makes runs/NAME, or the first of runs/NAME-2, runs/NAME-3, … that nobody else has made."""
    Path("runs").mkdir(exist_ok=True)
    for number in itertools.count(1):
        folder = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("there is always a next number")
