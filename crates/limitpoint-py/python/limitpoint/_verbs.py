"""Which geometry does an optimiser prefer? What does mirror flow with a potential tend to?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _core


@dataclass(frozen=True)
class Fingerprint:
    """Which margin an optimiser maximises, early and late."""

    optimiser: str
    answer: str
    """The answer as a sentence."""
    early: str | None
    """The key of the geometry of the first phase that has one, such as `linf`; None if there is none. Of an optimiser that runs in
    Python, the geometry that it maximises while gradients are of their natural size, or that leads by at least one half."""
    late: str | None
    """That of the last phase. Of an optimiser that runs in Python, the one with gradients as small as late in training."""
    nearest: str | None
    """The geometry that comes nearest in the last phase, whether or not its margin is reached."""
    confidence: float | None
    """How sure the answer of the last phase is, from 0 to 1: how far the winner leads, or how far the nearest falls short."""
    reached: float
    """log₁₀ of the smallest loss to which all runs were followed."""
    phases: list[dict[str, Any]] = field(repr=False)
    details: dict[str, Any] = field(repr=False)
    """Every run with what was read off it, and the network."""
    page: str = field(repr=False, default="")
    figure: str | None = field(repr=False, default=None)
    lead: float | None = None
    """How far `nearest` leads its rivals at the end, from 0 (not at all) to 1 (as far as at its exact maximiser)."""
    late_lead: float | None = None
    """The same with small gradients, of an optimiser that runs in Python."""

    def report(self, path: str | Path = "fingerprint.html") -> Path:
        """Writes the page."""
        page = Path(path)
        page.write_text(self.page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        return self.answer

    def _repr_html_(self) -> str:
        return f"<p>{self.answer}</p><div style='max-width:32em'>{self.figure or ''}</div>"


def _lead(found: dict[str, Any], nearest: str) -> float | None:
    """The mean over runs of (1 − attained by the best rival / attained by the answer) / (the same at the answer's maximiser)."""
    answer = [geometry["key"] for geometry in found["geometries"]].index(nearest)
    leads = []
    for run in found["runs"]:
        if not run["readings"] or not run["rivals"][answer]:
            continue
        end = run["readings"][-1]
        attained = [share / floor for share, floor in zip(end["shares"], end["floors"], strict=True)]
        rival = max(attained[other] for other in run["rivals"][answer])
        leads.append(min(1.0, max(0.0, (1.0 - rival / attained[answer]) / run["leads"][answer])))
    return sum(leads) / len(leads) if leads else None


def from_core(found: dict[str, Any], page: str = "", figure: str | None = None) -> Fingerprint:
    """A fingerprint of the core as people read it."""
    phases = found["phases"]
    spoken = [phase for phase in phases if phase["geometry"] is not None]
    ends = [run["readings"][-1]["log10_loss"] for run in found["runs"] if run["readings"]]
    return Fingerprint(
        optimiser=found["optimiser"],
        answer=found["answer"],
        early=spoken[0]["geometry"] if spoken else None,
        late=phases[-1]["geometry"] if phases else None,
        nearest=phases[-1]["nearest"] if phases else None,
        confidence=phases[-1]["confidence"] if phases else None,
        reached=max(ends, default=float("nan")),
        phases=phases,
        details=found,
        page=page,
        figure=figure,
        lead=_lead(found, phases[-1]["nearest"]) if phases else None,
    )


def fingerprint(
    optimiser: str,
    *,
    starts: int = 2,
    schedule: str | None = None,
    log10_loss: float | None = None,
    steps: int | None = None,
    norms: list[str] | None = None,
) -> Fingerprint | list[Fingerprint]:
    """The fingerprint of one of our optimisers, such as `adam(epsilon=0)`; of a composition by blocks a list, one for each part.

    `limitpoint.torch.fingerprint` and `limitpoint.jax.fingerprint` take those of others.
    """
    found = _core.fingerprint(optimiser, starts, schedule, log10_loss, steps, norms or [])
    parts = [from_core(part, found["page"], found["figure"]) for part in found["fingerprints"]]
    return parts[0] if len(parts) == 1 else parts


@dataclass(frozen=True)
class Horizon:
    """What mirror flow with a potential tends to."""

    title: str
    answer: str
    has_limit: bool
    """Whether the potential is convex and has a homogeneous limit."""
    degree: float | None
    formula: str | None
    """The horizon, as a formula."""
    details: dict[str, Any] = field(repr=False)
    page: str = field(repr=False, default="")

    def report(self, path: str | Path = "horizon.html") -> Path:
        """Writes the page."""
        page = Path(path)
        page.write_text(self.page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        return f"{self.title}\n{self.answer}"


def horizon(potential: str) -> Horizon:
    """The horizon of a potential: a formula in t, such as "t*asinh(t) - sqrt(t^2 + 1)", or a name, such as "hyperbolic:0.1"."""
    found = _core.horizon(potential)
    survey = found["survey"]
    limit = survey["limit"] or {}
    return Horizon(
        title=survey["title"],
        answer=survey["answer"],
        has_limit=found["has_limit"],
        degree=limit.get("degree"),
        formula=limit.get("formula"),
        details=survey,
        page=found["page"],
    )
