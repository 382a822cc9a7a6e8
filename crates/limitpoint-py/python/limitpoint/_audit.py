"""Audits of models that somebody else wrote and trained.

The model is asked for scores and derivatives only. With margins q_k, gradients h_k = ∇q_k and ⟨h_k, θ⟩ = L q_k,

    τ = 1 − L q_min / (‖θ‖ γ),   γ = max over ‖v‖ ≤ 1 of min ⟨h_k, v⟩ = min over p of ‖Σ p_k h_k‖_*,

is 0 exactly at a KKT point of the margin problem. Any weights p bound τ from above, any direction v from below.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._arrays import array
from ._core import Error
from ._judge import solve_margin
from ._margins import Margins
from ._oracle import Block, Floats, Oracle, oracle_of
from ._tangent import AuditedNorm, Tangent

NORMS = ("l1", "l2", "linf", "spectral")
# a degree that differs by more between examples is none
_STEADY = 1e-6


@dataclass(frozen=True)
class AuditedBlock:
    """One block of parameters."""

    name: str
    shape: tuple[int, int]
    degree: float
    """The median of ⟨∇_B q, θ_B⟩/q over the margins."""
    spread: float
    """How far that is from being one number."""
    judged: bool
    reason: str
    """Why it was left out; empty if it was judged."""
    frank_wolfe: dict[str, float] = field(default_factory=dict)
    """By norm, 1 + λ⟨∇L, W⟩/‖∇L‖_* under weight decay λ: 0 at a KKT point of the ball ‖W‖ ≤ 1/λ."""


@dataclass(frozen=True)
class Head:
    """The last linear layer on its features, which is a linear model whatever is below."""

    margins: dict[str, float]
    """Its normalised margins by norm."""
    best: dict[str, float]
    """The largest margins there are, by the exact judge."""
    shares: dict[str, float]
    """Their ratios: 1 if the head has the largest margin."""


@dataclass(frozen=True)
class Audit:
    """What can be said about somebody's model on its training data."""

    examples: int
    parameters: int
    accuracy: float
    smallest_margin: float
    log10_loss: float
    """log₁₀ of Σ exp(−q)."""
    degree: float | None
    """The measured degree L of the judged blocks; None if nothing is homogeneous."""
    blocks: list[AuditedBlock]
    norms: dict[str, AuditedNorm]
    head: Head | None
    left_out: dict[str, str]
    """What was not judged, and why."""
    _tangent: dict[str, Any] = field(repr=False, default_factory=dict)

    @property
    def margins(self) -> dict[str, float]:
        """Normalised margins by norm."""
        return {norm: found.margin for norm, found in self.norms.items()}

    @property
    def taus(self) -> dict[str, float]:
        """Upper bounds of τ by norm."""
        return {norm: found.tau for norm, found in self.norms.items()}

    def save(self, path: str | Path) -> Path:
        """Writes the tangent file, which `limitpoint check` verifies without Python and without the model."""
        if not self._tangent:
            raise Error("there is no tangent problem to write: " + "; ".join(self.left_out.values()))
        _core.save_tangent(Path(path), **self._tangent)
        return Path(path)

    def __str__(self) -> str:
        lines = [
            f"{self.examples} examples, {self.parameters} parameters, accuracy {self.accuracy:.4f}",
            f"log10 Σ exp(-q) {self.log10_loss:.2f}, smallest margin {self.smallest_margin:.6e}, "
            + (f"degree {self.degree:.6g}" if self.degree is not None else "no degree"),
            "",
            f"{'block':<28} {'shape':>12} {'degree':>10} {'spread':>9}",
        ]
        for block in self.blocks:
            shape = f"{block.shape[0]}x{block.shape[1]}"
            mark = "" if block.judged else f"  left out: {block.reason}"
            lines.append(f"{block.name:<28} {shape:>12} {block.degree:>10.4g} {block.spread:>9.1e}{mark}")
            for norm, gap in block.frank_wolfe.items():
                lines.append(f"    Frank-Wolfe gap in {norm}: {gap:.3e}")
        if self.norms:
            lines += ["", f"{'norm':<10} {'margin':>14} {'τ at most':>11} {'at least':>11}  by"]
            for found in self.norms.values():
                lines.append(
                    f"{found.norm:<10} {found.margin:>14.6e} {found.tau:>11.3e} {found.tau_lower:>11.3e}  {found.level}"
                )
        if self.head is not None:
            lines += ["", "head: share of the largest margin on its features"]
            lines += [f"{norm:<10} {share:>14.6f}" for norm, share in self.head.shares.items()]
        others = {name: why for name, why in self.left_out.items() if name not in {b.name for b in self.blocks}}
        lines += [f"left out: {name}: {why}" for name, why in others.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def report(self, path: str | Path = "audit.html") -> Path:
        """Writes the page."""
        page = Path(path)
        page.write_text(
            "<!doctype html><meta charset='utf-8'><title>Audit</title><h1>Audit of a trained model</h1>"
            + self._repr_html_()
            + "<p>τ is 0 exactly at a KKT point of the margin problem in a norm; both bounds are proven.</p>",
            encoding="utf-8",
        )
        return page


def audit(
    f: Callable[[dict[str, Any], Any], Any],
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    vjp: Callable[..., Any] | None = None,
    norms: Sequence[str] = NORMS,
    level: str = "rows",
    smallest: int = 50,
    weight_decay: float | None = None,
    task: str | None = None,
) -> Audit:
    """Audits any model `f(params, X) -> scores`, with `params` a dictionary of arrays.

    Tensors of PyTorch and arrays of JAX bring their derivatives; plain arrays need `vjp(params, X, cotangent)`, the gradients of
    ⟨cotangent, scores⟩ by name. `level` says what may be spent on τ: "pass" is one weighted backward pass, "gram" adds the Gram
    matrix of the `smallest` margins and of those that it violates (ℓ2), "rows" their gradients in every norm.
    """
    return judge(oracle_of(f, params, X, vjp), X, y, norms, level, smallest, weight_decay, None, task)


def judge(
    model: Oracle,
    X: Any,
    y: Any,
    norms: Sequence[str],
    level: str,
    smallest: int,
    weight_decay: float | None,
    features: tuple[Floats, Floats] | None,
    task: str | None,
) -> Audit:
    """The audit itself; `features` are those of the head, and its weights."""
    if level not in ("pass", "gram", "rows"):
        raise Error(f"the level is pass, gram or rows, not {level!r}")
    scores = model.scores()
    if not np.all(np.isfinite(scores)):
        raise Error("the model gives scores that are no numbers")
    margins = Margins(y, scores.shape[1], task)
    q = margins.of(scores)
    least = float(q.min())
    blocks = _blocks(model, margins, q, weight_decay, scores)
    left_out = {block.name: block.reason for block in blocks if not block.judged}
    found: dict[str, AuditedNorm] = {}
    tangent: dict[str, Any] = {}
    degree = None
    judged = [place for place, block in enumerate(blocks) if block.judged]
    if judged:
        degree = float(sum(blocks[place].degree for place in judged))
    if degree is not None and least > 0:
        part = Tangent(model, judged, margins, q, degree)
        found, tangent = part.solve(norms, level, smallest)
        tangent["data_sha256"] = _digest(X, y)
    elif least <= 0:
        left_out["τ"] = f"the smallest margin is {least:.3e}; τ is known where all examples are classified correctly"
    else:
        left_out["τ"] = "no block is homogeneous"
    head = None
    if features is not None:
        head = _head(features, y, scores, margins, norms, left_out, task)
    else:
        left_out["head"] = "its features are not known; limitpoint.torch.audit finds them"
    shifted = -q + least
    return Audit(
        examples=len(scores),
        parameters=len(model.params),
        accuracy=margins.accuracy(scores),
        smallest_margin=least,
        log10_loss=float((-least + np.log(np.exp(shifted).sum())) / np.log(10)),
        degree=degree,
        blocks=blocks,
        norms=found,
        head=head,
        left_out=left_out,
        _tangent=tangent,
    )


def _ranges(blocks: list[Block]) -> list[slice]:
    ends = np.cumsum([rows * cols for _, rows, cols in blocks])
    return [slice(int(end) - rows * cols, int(end)) for end, (_, rows, cols) in zip(ends, blocks, strict=True)]


def _blocks(
    model: Oracle, margins: Margins, q: Floats, weight_decay: float | None, scores: Floats
) -> list[AuditedBlock]:
    """The degree of every block, by Euler's identity at each margin."""
    gradient = None
    if weight_decay is not None:
        gradient = model.pull_back(_loss_cotangent(margins, scores))
    reports = []
    size = np.abs(q).max()
    heard = np.abs(q) > 1e-9 * size
    for block, place in zip(model.blocks, _ranges(model.blocks), strict=True):
        direction = np.zeros_like(model.params)
        direction[place] = model.params[place]
        change = margins.of(model.push(direction))
        ratio = change[heard] / q[heard]
        degree = float(np.median(ratio)) if len(ratio) else float("nan")
        spread = float(np.abs(ratio - degree).max()) if len(ratio) else float("nan")
        if spread <= _STEADY and abs(degree - round(degree)) <= _STEADY:
            degree = float(round(degree))
        reason = ""
        if not spread <= _STEADY:
            low, high = (float(ratio.min()), float(ratio.max())) if len(ratio) else (degree, degree)
            reason = f"not homogeneous: ⟨∇q, θ⟩/q lies between {low:.3g} and {high:.3g}"
        elif degree <= 0:
            reason = "its degree is 0: the scores do not depend on its length"
        gaps: dict[str, float] = {}
        if gradient is not None and weight_decay is not None:
            part, named = np.ascontiguousarray(gradient[place]), ["l2", "linf", "spectral"]
            duals = _core.norm_values([block], part, named, True)
            inner = float(part @ model.params[place])
            gaps = {n: 1.0 + weight_decay * inner / dual for n, dual in zip(named, duals, strict=True) if dual > 0}
        reports.append(AuditedBlock(block[0], (block[1], block[2]), degree, spread, not reason, reason, gaps))
    return reports


def _loss_cotangent(margins: Margins, scores: Floats) -> Floats:
    """Of the logistic loss or of cross-entropy, scaled to be neither 0 nor infinite."""
    q = margins.of(scores).reshape(len(scores), -1)
    # −∂L/∂q_k: of one margin 1/(1 + e^q), of several e^{−q_k}/(1 + Σ e^{−q_j})
    logs = -q - np.logaddexp.reduce(np.hstack([np.zeros((len(q), 1)), -q]), axis=1)[:, None]
    return -margins.cotangent(np.exp(logs - logs.max()).ravel())


def _head(
    features: tuple[Floats, Floats],
    y: Any,
    scores: Floats,
    margins: Margins,
    norms: Sequence[str],
    left_out: dict[str, str],
    task: str | None,
) -> Head | None:
    """The exact judge on the features of the last layer."""
    inputs, weights = features
    if inputs.ndim != 2 or len(inputs) != len(scores):
        left_out["head"] = f"its features have the shape {inputs.shape} for {len(scores)} examples"
        return None
    own: dict[str, float] = {}
    best: dict[str, float] = {}
    least = float(margins.of(inputs @ weights.T).min())
    block = ("head", *weights.shape)
    flat = np.ascontiguousarray(weights.ravel())
    kind = task if task is not None else ("binary" if weights.shape[0] == 1 else "classes")
    for norm in norms:
        try:
            solved = solve_margin(inputs, y, norm=norm, task=kind)
        except Error as error:
            left_out[f"head in {norm}"] = str(error)
            continue
        if not solved.separable:
            left_out["head"] = "its features cannot be separated by a linear layer"
            return None
        own[norm] = least / _core.norm_values([block], flat, [norm], False)[0]
        best[norm] = solved.margin
    return Head(own, best, {norm: own[norm] / best[norm] for norm in own})


def _digest(X: Any, y: Any) -> str:
    inputs = X.toarray() if hasattr(X, "toarray") else array(X)
    digest = hashlib.sha256(np.ascontiguousarray(inputs).tobytes())
    digest.update(np.ascontiguousarray(array(y)).tobytes())
    return digest.hexdigest()


def check(path: str | Path) -> list[dict[str, Any]]:
    """Checks a tangent file and gives what it claims; an error says what does not agree."""
    complaints, claims = _core.check_tangent(Path(path))
    if complaints:
        raise _core.Damaged(f"{path} does not hold: " + "; ".join(complaints))
    return claims
