"""Estimators for scikit-learn.

`MaxMarginClassifier` and `MinimumNormRegressor` ask the exact judge and carry its proof as fitted attributes;
`ImplicitBiasClassifier` trains with any optimiser, far past a loss of 1e-300.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _core
from ._arrays import is_sparse, of_numbers
from ._judge import interpolate
from ._max_margin import Floats, LabelClassifier, MaxMarginClassifier, with_column
from ._training import run as train

__all__ = ["ImplicitBiasClassifier", "MaxMarginClassifier", "MinimumNormRegressor"]


class MinimumNormRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The linear interpolator of least norm or potential, with its proof.

    Parameters
    ----------
    norm : str, default "l2"
        What is made small; see `limitpoint list norms`.
    potential : str or None
        A potential instead of the norm, such as "hyperbolic:0.1".
    on_inconsistent : {"project", "raise"}, default "project"
        Where no weights fit all targets: the targets are replaced by their projection on what can be fitted, so that the
        answer is the least-squares solution of least norm; or an error.
    fit_intercept : bool, default True
        An intercept that costs nothing.

    Attributes
    ----------
    coef_, intercept_ : the weights.
    objective_, lower_bound_ : what was made small, and the bound that `dual_` proves.
    dual_ : one multiplier for each example.
    interpolates_ : whether all targets are fitted.
    rank_ : the number of independent equations.
    """

    def __init__(
        self,
        norm: str = "l2",
        *,
        potential: str | None = None,
        on_inconsistent: str = "project",
        fit_intercept: bool = True,
    ) -> None:
        self.norm = norm
        self.potential = potential
        self.on_inconsistent = on_inconsistent
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any) -> Self:
        """Solves Xw = y."""
        if self.on_inconsistent not in ("project", "raise"):
            raise ValueError(f"on_inconsistent is 'project' or 'raise', not {self.on_inconsistent!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        middle, mean = (X.mean(axis=0), y.mean()) if self.fit_intercept else (np.zeros(X.shape[1]), 0.0)
        rows, goal = X - middle, y - mean
        nearest = np.linalg.lstsq(rows, goal, rcond=None)[0]
        fitted = rows @ nearest
        size = np.linalg.norm(goal)
        self.interpolates_ = bool(np.linalg.norm(fitted - goal) <= 1e-9 * max(size, np.finfo(float).tiny))
        if not self.interpolates_:
            if self.on_inconsistent == "raise":
                raise _core.Error("no weights fit all targets; set on_inconsistent='project' for least squares")
            goal = fitted
        if np.linalg.norm(goal) <= 1e-14 * max(1.0, float(np.abs(y).max())) and self.potential is None:
            # nothing to fit: 0 is the solution of least norm
            self.coef_, self.dual_ = np.zeros(X.shape[1]), np.zeros(len(y))
            self.objective_ = self.lower_bound_ = 0.0
            self.rank_ = int(np.linalg.matrix_rank(rows))
        else:
            found = interpolate(
                rows, goal, norm=None if self.potential else self.norm, potential=self.potential
            )
            self.coef_, self.dual_, self.rank_ = found.weights, found.multipliers, found.rank
            self.objective_, self.lower_bound_ = found.objective, found.lower_bound
        self.intercept_ = float(mean - middle @ self.coef_)
        return self

    def predict(self, X: Any) -> Floats:
        """⟨w, x⟩ + b."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)


class ImplicitBiasClassifier(LabelClassifier):
    """A model trained by any optimiser until its direction has settled, far past a loss of 1e-300.

    Parameters
    ----------
    model : str, default "linear"
        "linear", "relu 32", "network(widths=[64, 64], activation=relu)", …
    optimiser : str, default "gradient"
        "gradient", "sign", "adam", "muon", "mirror(potential=hyperbolic:0.1)", …; see `limitpoint list optimisers`.
    until : float, default -400
        log₁₀ of the loss to stop at.
    steps : int, default 10000
        The most steps.
    loss, schedule, initialiser : str or None
        As in `limitpoint.run`.
    fit_intercept : bool, default True
        A constant input 1; its weights are trained with the others.
    random_state : int, RandomState or None
        The seed of the start.

    Attributes
    ----------
    log10_loss_, n_iter_, stop_ : how far it came, in how many steps, and why it ended.
    weights_ : all weights in one vector.
    margins_ : the normalised margins by norm.
    run_ : the `limitpoint.Run`, for certificates and reports; it does not survive pickling.
    """

    def __init__(
        self,
        model: str = "linear",
        optimiser: str = "gradient",
        *,
        until: float = -400.0,
        steps: int = 10_000,
        loss: str | None = None,
        schedule: str | None = None,
        initialiser: str | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.optimiser = optimiser
        self.until = until
        self.steps = steps
        self.loss = loss
        self.schedule = schedule
        self.initialiser = initialiser
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Trains."""
        X, codes = self._read(X, y)
        seed = self.random_state
        if seed is None:
            seed = 0
        elif not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        self.run_ = train(
            self._inputs(X),
            codes,
            task="binary" if len(self.classes_) == 2 else "classes",
            model=self.model,
            optimiser=self.optimiser,
            until=self.until,
            steps=self.steps,
            loss=self.loss,
            schedule=self.schedule,
            initialiser=self.initialiser,
            seed=int(seed),
            progress=False,
        )
        self.weights_ = self.run_.weights
        self.log10_loss_ = self.run_.log10_loss
        self.n_iter_ = self.run_.steps
        self.stop_ = self.run_.reason
        self.margins_ = self.run_.margins
        return self

    def _inputs(self, X: Any) -> Any:
        if is_sparse(X) and self.model != "linear":
            X = X.toarray()  # the core takes sparse inputs of linear models
        return with_column(X, np.ones(X.shape[0])) if self.fit_intercept else X

    def __getstate__(self) -> Any:
        return {key: value for key, value in super().__getstate__().items() if key != "run_"}

    def decision_function(self, X: Any) -> Floats:
        """The scores, which are logarithms of odds: they stay numbers where probabilities are 0 and 1."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        classes = len(self.classes_)
        y = np.ones(X.shape[0])
        if classes > 2:
            y[:] = classes - 1
        data = of_numbers(self._inputs(X), y, "binary" if classes == 2 else "classes")
        scores = _core.scores_of(self.model, np.ascontiguousarray(self.weights_), data)
        return scores[:, 0] if classes == 2 else scores

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities of the classes, finite where the probabilities themselves are not told from 0."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])
        shifted = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes."""
        return np.exp(self.predict_log_proba(X))
