"""limitpoint tells you where an optimiser goes.

>>> import limitpoint as lp
>>> run = lp.run(X, y, model="relu 32", optimiser="sign", until=-100)   # doctest: +SKIP
>>> print(run.margins, run.certify("linf"))                            # doctest: +SKIP

`run` trains, in memory or as an experiment in a folder; `solve_margin` and `interpolate` ask the exact judge; `fingerprint`
says which geometry an optimiser prefers; `audit` judges models that somebody else wrote and trained. The estimators
(`MaxMarginClassifier`, `MinimumNormRegressor`, `ImplicitBiasClassifier`) need scikit-learn, `limitpoint.torch` needs PyTorch,
`limitpoint.jax` needs JAX; nothing, NumPy included, is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._audit import Audit, audit, check
    from ._core import Damaged, Error
    from ._experiment import Experiment, load, resume
    from ._export import export
    from ._history import History
    from ._judge import Interpolation, MaxMargin, interpolate, solve_margin
    from ._papers import Claims, list_claims, reproduce
    from ._run import Certificate, Interrupted, Polished, Run
    from ._training import run, sweep
    from ._verbs import Fingerprint, Horizon, fingerprint, horizon
    from .sklearn import ImplicitBiasClassifier, MaxMarginClassifier, MinimumNormRegressor

    __version__: str

__all__ = [
    "Audit",
    "Certificate",
    "Claims",
    "Damaged",
    "Error",
    "Experiment",
    "Fingerprint",
    "History",
    "Horizon",
    "ImplicitBiasClassifier",
    "Interpolation",
    "Interrupted",
    "MaxMargin",
    "MaxMarginClassifier",
    "MinimumNormRegressor",
    "Polished",
    "Run",
    "audit",
    "check",
    "export",
    "fingerprint",
    "horizon",
    "interpolate",
    "list_claims",
    "load",
    "reproduce",
    "resume",
    "run",
    "solve_margin",
    "sweep",
]

# which module has what; each is imported when something of it is asked for
_HOMES = {
    "_audit": ("Audit", "audit", "check"),
    "_core": ("Damaged", "Error"),
    "_experiment": ("Experiment", "load", "resume"),
    "_export": ("export",),
    "_history": ("History",),
    "_judge": ("Interpolation", "MaxMargin", "interpolate", "solve_margin"),
    "_papers": ("Claims", "list_claims", "reproduce"),
    "_run": ("Certificate", "Interrupted", "Polished", "Run"),
    "_training": ("run", "sweep"),
    "_verbs": ("Fingerprint", "Horizon", "fingerprint", "horizon"),
    "sklearn": ("ImplicitBiasClassifier", "MaxMarginClassifier", "MinimumNormRegressor"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def _version() -> str:
    """The version that was installed; "0" in a folder that nobody installed."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer than all the rest

    try:
        return version("limitpoint")
    except PackageNotFoundError:
        return "0"


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    elif name in ("sklearn", "torch", "jax"):
        return import_module(f".{name}", __name__)
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "sklearn", "torch", "jax", "__version__"])
