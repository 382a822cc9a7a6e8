"""One training: what it came to, and what can be proven about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import dataset, of_numbers
from ._history import History
from ._progress import Progress

if TYPE_CHECKING:
    from ._experiment import Experiment


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run, which can go on.

    `run` is where a run in memory stands, `folder` where an experiment left its checkpoints; `limitpoint.resume()` goes on with
    either, bit for bit as if nothing had happened.
    """

    def __init__(self, run: "Run | None" = None, folder: Path | None = None) -> None:
        where = f"at step {run.steps}" if run is not None else f"with checkpoints in {folder}"
        super().__init__(f"interrupted {where}; go on with limitpoint.resume()")
        self.run = run
        self.folder = folder


@dataclass(frozen=True)
class Certificate:
    """A claim about the limit, judged. It is true if the claim is proven."""

    verdict: str
    """certified, refuted or inconclusive."""
    in_words: str
    """The verdict, with the reason where there is none."""
    statement: str
    """What is claimed."""
    summary: str
    """The numbers that decide it."""
    evidence: dict[str, Any] = field(repr=False)
    """All that the verdict follows from."""

    @property
    def certified(self) -> bool:
        """Whether the claim is proven."""
        return self.verdict == "certified"

    def __bool__(self) -> bool:
        return self.certified

    def __str__(self) -> str:
        return f"{self.in_words}; {self.summary}"

    def _repr_html_(self) -> str:
        colour = {"certified": "#009e73", "refuted": "#d55e00"}.get(self.verdict, "#777")
        return (
            f"<p><b style='color:{colour}'>{escape(self.in_words)}</b>: {escape(self.statement)}<br>"
            f"<small>{escape(self.summary)}</small></p>"
        )


@dataclass(frozen=True)
class Polished:
    """A KKT point next to where a run ended."""

    run: "Run"
    """The run with the polished weights."""
    status: str
    """polished, or stalled."""
    why: str | None
    """Why it stalled."""
    norm: str
    tau_before: float
    tau_after: float
    margin_before: float
    margin_after: float
    angle_degrees: float
    details: dict[str, Any] = field(repr=False)

    def __bool__(self) -> bool:
        return self.status == "polished"


class Run:
    """One training, in memory or read from a folder. `limitpoint.run` makes them."""

    def __init__(
        self,
        core: _core.Run | Callable[[], _core.Run],
        *,
        name: str,
        optimiser: str,
        labels: NDArray[Any] | None = None,
        facts: dict[str, Any] | None = None,
        history: Callable[[], dict[str, NDArray[np.float64]]] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._source = core
        self._facts = facts or {}
        self._history = history
        self._labels = labels
        self.name = name
        """What tells it from others."""
        self.optimiser = optimiser
        """Who trained."""
        self.folder = folder
        """Where its files are, if it has any."""

    @cached_property
    def core(self) -> _core.Run:
        """The run in the core, read from its folder when it is first needed."""
        return self._source() if callable(self._source) else self._source

    # what it came to

    @cached_property
    def history(self) -> History:
        """The measurements, columns by name."""
        return History(self._history() if self._history is not None else self.core.history())

    @cached_property
    def margins(self) -> dict[str, float]:
        """The normalised margins min q/‖θ‖^L at the end, by norm; empty in regression and without homogeneity."""
        measured = [name.split(".", 1)[1] for name in self.history if name.startswith("margin.")]
        try:
            return {norm: self.margin(norm) for norm in measured}
        except _core.Error:
            return {}

    @property
    def params(self) -> dict[str, NDArray[np.float64]]:
        """The weights as matrices, by name of their block."""
        return self.core.blocks()

    @property
    def weights(self) -> NDArray[np.float64]:
        """All weights in one vector."""
        return self.core.weights()

    @property
    def start(self) -> NDArray[np.float64]:
        """The weights it started from."""
        return self.core.weights(initial=True)

    @property
    def log10_loss(self) -> float:
        """log₁₀ of the summed loss, which goes far below what a float of the loss could hold."""
        known = self._facts.get("log10_loss")
        return float(known) if known is not None else self.core.log10_loss

    @property
    def steps(self) -> int:
        """Accepted steps."""
        return int(self._facts.get("steps", None) or self.core.steps)

    @property
    def reason(self) -> str:
        """Why it ended."""
        return str(self._facts["stop"]) if "stop" in self._facts else self.core.reason

    @property
    def healthy(self) -> bool:
        """Whether it ended by a rule, and not in trouble."""
        return bool(self._facts["healthy"]) if "healthy" in self._facts else self.core.healthy

    @property
    def seconds(self) -> float:
        """Seconds it took."""
        return float(self._facts["seconds"]) if "seconds" in self._facts else self.core.seconds

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C stopped it; `resume` goes on."""
        return self.core.interrupted

    @property
    def own_norm(self) -> str | None:
        """The norm whose margin theory expects its optimiser to maximise."""
        known = self._facts["own_norm"] if "own_norm" in self._facts else self.core.own_norm
        return None if known is None else str(known)

    # what can be asked of it

    def margin(self, norm: str) -> float:
        """The normalised margin min q/‖θ‖^L in a norm."""
        return self.core.margin(norm)

    def norm(self, norm: str) -> float:
        """‖θ‖."""
        return self.core.norm(norm)

    def certify(self, norm: str | None = None, *, tolerance: float | None = None) -> Certificate:
        """Judges what theory says of the limit: without a norm, in the geometry of its optimiser."""
        answer = self.core.certify(norm, tolerance)
        return Certificate(**{key: answer[key] for key in ("verdict", "in_words", "statement", "summary", "evidence")})

    def polish(self, norm: str | None = None, *, target: float | None = None, rounds: int | None = None) -> Polished:
        """Jumps to a certified KKT point nearby."""
        moved, answer = self.core.polish(norm, target, rounds)
        run = Run(moved, name=f"{self.name}, polished", optimiser=self.optimiser, labels=self._labels)
        kept = ("status", "why", "norm", "tau_before", "tau_after", "margin_before", "margin_after", "angle_degrees")
        numbers: dict[str, Any] = {key: float("nan") if answer[key] is None and key != "why" else answer[key] for key in kept}
        return Polished(run=run, details=answer, **numbers)

    def scores(self, inputs: Any) -> NDArray[np.float64]:
        """The model's scores: one column for two classes and in regression, one per class otherwise."""
        count = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        kind = {"binary": "binary", "class": "classes", "real": "values"}[self._kind]
        y = np.ones(count) if kind == "binary" else np.zeros(count)
        if kind == "classes" and self._labels is not None and count:
            y[0] = len(self._labels) - 1  # the core counts classes by the largest
        return self.core.scores(of_numbers(inputs, y, kind))

    def accuracy(self, inputs: Any, labels: Any) -> float:
        """The share of examples that are classified correctly."""
        if self._labels is not None:
            wrong = np.setdiff1d(np.asarray(labels), self._labels)
            if len(wrong):
                raise _core.Error(f"the labels {wrong[:5]} were not trained on; there are {self._labels}")
            codes = np.searchsorted(self._labels, np.asarray(labels))
            scores = self.scores(inputs)
            found = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
            return float(np.mean(found == codes))
        return self.core.accuracy(dataset(inputs, labels)[0])

    @property
    def _kind(self) -> str:
        return self.core.kind

    def resume(self, *, progress: bool | None = None) -> "Run":
        """Goes on with a run that was interrupted, bit for bit."""
        with Progress(progress) as shown:
            core = self.core.resume(shown.one)
        run = Run(core, name=self.name, optimiser=self.optimiser, labels=self._labels)
        if run.interrupted:
            raise Interrupted(run=remember(run))
        return run

    # how it looks

    def experiment(self) -> "Experiment":
        """An experiment of this run alone, for tables and figures."""
        from ._experiment import Experiment

        return Experiment.of(self.name, [self])

    def report(self, path: str | Path | None = None) -> Path:
        """Writes the page with everything that was measured; `report.html` unless a path is given."""
        return self.experiment().report(path)

    def __repr__(self) -> str:
        margins = "  ".join(f"γ of {norm} {value:.4e}" for norm, value in self.margins.items())
        return f"<Run {self.name}: log10 L {self.log10_loss:.2f} after {self.steps} steps ({self.reason})  {margins}>"

    def _repr_html_(self) -> str:
        return self.experiment()._repr_html_()


_LAST: list[Any] = []


def remember(interrupted: Any) -> Any:
    """Keeps what was interrupted last, for `limitpoint.resume()`."""
    _LAST[:] = [interrupted]
    return interrupted


def last_interrupted() -> Any:
    """What was interrupted last; it is forgotten by being asked for."""
    return _LAST.pop() if _LAST else None
