"""The classifier with the largest margin, by the exact judge, and what all classifiers of `limitpoint.sklearn` have in common."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _core
from ._arrays import is_sparse, of_numbers

Floats = NDArray[np.float64]

# examples of each class that make new pairs in a round
_NEAR = 12
# size of the constant input beside that of the examples
_CHEAP = 1e3


def with_column(X: Any, column: Floats) -> Any:
    """X with a further column."""
    if is_sparse(X):
        from scipy.sparse import csr_array, hstack

        return hstack([X, csr_array(column[:, None])], format="csr")
    return np.hstack([X, column[:, None]])


def _with_slack(X: Any, size: float) -> Any:
    """X with a column for every example that is `size` there and 0 elsewhere."""
    if is_sparse(X):
        from scipy.sparse import eye_array, hstack

        return hstack([X, size * eye_array(X.shape[0])], format="csr")
    return np.hstack([X, size * np.eye(X.shape[0])])


class LabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What classifiers have in common: labels in, labels out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, y: Any) -> tuple[Any, NDArray[np.intp]]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs examples of at least two classes; there is one class only")
        return X, codes

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each example."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> Floats:
        raise NotImplementedError


class MaxMarginClassifier(LabelClassifier):
    """The linear classifier of largest margin in a norm, solved exactly and proven.

    Parameters
    ----------
    norm : str, default "l2"
        l1, l2, linf, lp:3, group21, spectral, nuclear, …; see `limitpoint list norms`. For several classes it is the norm of the
        matrix of all weights.
    C : float, default inf
        Infinite: every example is on its side (hard margin). Finite: an example may fall short by ξ, and (w, Cξ) together are
        measured by the norm; in ℓ1 this is the ℓ1 support vector machine, in ℓ2 the one with squared slacks. Norms in which
        slacks do not add up, such as ℓ∞, have hard margins only.
    on_inseparable : {"soft", "raise"}, default "soft"
        What to do where C is infinite and no direction separates the data, which `farkas_` proves: C = 1 instead, or an error.
    fit_intercept : bool, default True
        Of two classes with a hard margin the intercept is free, as in `SVC`. Elsewhere it is the weight of a constant
        input 1, and measured by the norm with the others.

    Attributes
    ----------
    coef_, intercept_ : the weights, of norm 1 with a hard margin and a free intercept.
    margin_ : the margin γ*, a proven lower bound; min yᵢ(⟨w, xᵢ⟩ + b) for ‖w‖ = 1.
    gap_ : the relative distance to the upper bound, proven with outward rounding.
    support_ : the examples with positive dual weight.
    dual_ : dual weights of the examples, of sum 1.
    separable_ : whether the data are separable; None where a finite C leaves that open.
    farkas_ : weights that combine all rows to 0 where they are not, else None.
    unique_ : whether the direction is the only one; None where that is not known.
    """

    def __init__(
        self, norm: str = "l2", *, C: float = np.inf, on_inseparable: str = "soft", fit_intercept: bool = True
    ) -> None:
        self.norm = norm
        self.C = C
        self.on_inseparable = on_inseparable
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any) -> Self:
        """Solves for the largest margin."""
        if self.on_inseparable not in ("soft", "raise"):
            raise ValueError(f"on_inseparable is 'soft' or 'raise', not {self.on_inseparable!r}")
        if not self.C > 0:
            raise ValueError(f"C is {self.C}, but must be positive")
        X, codes = self._read(X, y)
        two = len(self.classes_) == 2
        self.farkas_: Floats | None = None
        self.separable_: bool | None = None
        if np.isinf(self.C):
            found = self._free(X, codes) if two and self.fit_intercept else self._fixed(X, codes, None)
            if found is not None:
                self.separable_ = True
                return self
            self.separable_ = False
            if self.on_inseparable == "raise":
                raise _core.Error(
                    "the data cannot be separated; farkas_ has weights that combine all rows to 0. Set C or "
                    "on_inseparable='soft'"
                )
        if self.norm not in ("l1", "l2", "nuclear") and not self.norm.startswith("lp"):
            raise _core.Error(
                f"slacks do not add up in the norm {self.norm!r}, so that a soft margin means nothing there; use l1, l2, lp:P or "
                "nuclear, or data that can be separated"
            )
        self._fixed(X, codes, 1.0 if np.isinf(self.C) else float(self.C))
        if self.separable_ is None and np.all(self.predict(X) == self.classes_[codes]):
            self.separable_ = True
        return self

    def _keep(self, found: dict[str, Any], factor: float, dual: Floats) -> None:
        self.margin_ = factor * found["margin"]
        self.gap_ = found["relative_gap"]
        self.unique_ = found["unique"]
        self.dual_ = dual
        self.support_ = np.flatnonzero(dual > 1e-9 * dual.sum())

    def _free(self, X: Any, codes: NDArray[np.intp]) -> bool | None:
        """Two classes, an intercept that costs nothing: the distance of two hulls in ℓ2, or the margin of differences x₊ − x₋, half
        of which it is."""
        rows = np.ascontiguousarray(X.toarray() if is_sparse(X) else X)
        if self.norm == "l2":
            signs: Floats = np.where(codes == 1, 1.0, -1.0)
            data = _core.Data.dense(rows, signs, "binary", [rows.shape[1]], "data", sealed=False)
            nearest = _core.free_margin(data)
            if nearest is not None:
                self.coef_ = nearest["direction"][None, :]
                self.intercept_ = np.array([nearest["intercept"]])
                self._keep(nearest | {"unique": True}, 1.0, nearest["dual"])
                return True
        above, below = np.flatnonzero(codes == 1), np.flatnonzero(codes == 0)
        scores = rows @ (rows[above].mean(axis=0) - rows[below].mean(axis=0))
        pairs, best, begun = self._likely_pairs(rows, above, below), np.inf, False
        while True:
            if begun or len(pairs) == 0:
                # pairs that are near each other in the direction found last; those that are violated are always among them
                first = above[np.argsort(scores[above], kind="stable")[:_NEAR]]
                second = below[np.argsort(-scores[below], kind="stable")[:_NEAR]]
                fresh = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
                known = set(map(tuple, pairs))
                added = [pair for pair in map(tuple, fresh) if pair not in known]
                if not added:
                    break
                pairs = np.vstack([pairs, added])
            begun = True
            data = of_numbers(rows[pairs[:, 0]] - rows[pairs[:, 1]], np.ones(len(pairs)), "binary")
            found = _core.solve_margin(data, self.norm)
            dual = np.zeros(len(codes))
            np.add.at(dual, pairs[:, 0], found["dual"] / 2)
            np.add.at(dual, pairs[:, 1], found["dual"] / 2)
            if not found["separable"]:
                self.farkas_ = dual
                return None
            direction = found["direction"]
            scores = rows @ direction
            least, most = scores[above].min(), scores[below].max()
            if least - most >= found["margin"] * (1 - 1e-12) - 1e-300:
                break
            if found["margin"] < best * (1 - 1e-9):  # it went on: pairs without weight have done their work
                pairs = pairs[found["dual"] > 1e-12 * found["dual"].max()]
            best = min(best, found["margin"])
        self.coef_ = direction[None, :]
        self.intercept_ = np.array([-(least + most) / 2])
        self._keep(found, 0.5, dual)
        self.margin_ = float(min(self.margin_, (least - most) / 2))
        return True

    def _likely_pairs(self, rows: Floats, above: NDArray[np.intp], below: NDArray[np.intp]) -> NDArray[np.intp]:
        """Pairs that carry the dual weights of a problem whose intercept costs next to nothing: the weight of a large constant.

        Weights of both classes are passed along as goods from sources to sinks, which takes fewer pairs than there are examples with
        weight. No pairs where the norm is not one of single weights, or the classes cannot be separated.
        """
        none = np.empty((0, 2), dtype=np.intp)
        if self.norm not in ("l1", "l2", "linf") and not self.norm.startswith("lp"):
            return none
        constant = _CHEAP * float(np.sqrt(np.mean(np.einsum("ij,ij->i", rows, rows)))) or 1.0
        signs = np.full(len(rows), -1.0)
        signs[above] = 1.0
        wide = with_column(rows, np.full(len(rows), constant))
        found = _core.solve_margin(of_numbers(wide, signs, "binary"), self.norm)
        if not found["separable"]:
            return none
        dual = np.where(found["dual"] > 1e-10 * found["dual"].max(), found["dual"], 0.0)
        sources, sinks = above[dual[above] > 0], below[dual[below] > 0]
        supply, demand = dual[sources] / dual[sources].sum(), dual[sinks] / dual[sinks].sum()
        ends = np.unique(np.concatenate([np.cumsum(supply)[:-1], np.cumsum(demand)[:-1], [1.0]]))
        at = np.minimum(np.searchsorted(np.cumsum(supply), ends), len(sources) - 1)
        to = np.minimum(np.searchsorted(np.cumsum(demand), ends), len(sinks) - 1)
        return np.unique(np.stack([sources[at], sinks[to]], axis=1), axis=0)

    def _fixed(self, X: Any, codes: NDArray[np.intp], cost: float | None) -> bool | None:
        """Any number of classes, an intercept as a weight of a constant input, slacks as weights of inputs of their own."""
        dimension = X.shape[1]
        inputs = with_column(X, np.ones(X.shape[0])) if self.fit_intercept else X
        wide = inputs if cost is None else _with_slack(inputs, 1.0 / cost)
        classes = len(self.classes_)
        if classes == 2:
            data = of_numbers(wide, np.asarray(2.0 * codes - 1.0, dtype=np.float64), "binary")
        else:
            data = of_numbers(wide, codes.astype(np.float64), "classes")
        found = _core.solve_margin(data, self.norm)
        per_example = found["dual"].reshape(len(codes), -1).sum(axis=1)
        if not found["separable"]:
            self.farkas_ = per_example
            return None
        weights = found["direction"].reshape(1 if classes == 2 else classes, -1)
        self.coef_ = np.ascontiguousarray(weights[:, :dimension])
        self.intercept_ = weights[:, dimension].copy() if self.fit_intercept else np.zeros(len(weights))
        self._keep(found, 1.0, per_example)
        return True

    def decision_function(self, X: Any) -> Floats:
        """⟨w, x⟩ + b: one number for two classes, one for each class otherwise."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores: Floats = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores
