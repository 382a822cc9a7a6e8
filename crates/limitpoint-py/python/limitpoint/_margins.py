"""From scores to margins, and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import array, targets
from ._core import Error
from ._oracle import Floats


class Margins:
    """From scores to margins: y·s for two classes, s_y − s_j over all other classes j otherwise."""

    def __init__(self, y: Any, outputs: int, task: str | None = None) -> None:
        values, kind, _ = targets(y, task if task is not None else ("binary" if outputs == 1 else "classes"))
        if kind == "values":
            raise Error("an audit needs labels; real targets have no margin")
        labels = values if kind == "binary" and outputs == 1 else None
        codes = ((values + 1) / 2 if kind == "binary" else values).astype(np.intp)
        if labels is None and array(y).dtype.kind in "iu":
            codes = array(y).astype(np.intp)  # labels of several scores are their places
        if outputs > 1 and codes.max() >= outputs:
            raise Error(f"there are {outputs} scores, but a label {codes.max()}")
        self._signs, self._codes, self._outputs = labels, codes, outputs
        self.per_example = 1 if outputs == 1 else outputs - 1
        if outputs > 1:
            places = np.arange(outputs)
            self._others = np.array([places[places != code] for code in codes])

    def of(self, scores: Floats) -> Floats:
        """All margins, example by example."""
        if self._signs is not None:
            return self._signs * scores[:, 0]
        own = np.take_along_axis(scores, self._codes[:, None], axis=1)
        return (own - np.take_along_axis(scores, self._others, axis=1)).ravel()

    def cotangent(self, weights: Floats) -> Floats:
        """The cotangent of the scores that pulls Σ weights[k] q_k back."""
        if self._signs is not None:
            return (self._signs * weights)[:, None]
        per = weights.reshape(len(self._codes), -1)
        out = np.zeros((len(self._codes), self._outputs))
        np.put_along_axis(out, self._others, -per, axis=1)
        np.put_along_axis(out, self._codes[:, None], per.sum(axis=1, keepdims=True), axis=1)
        return out

    def single(self, k: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
        """Examples and cotangents of single margins."""
        examples = k // self.per_example
        if self._signs is not None:
            return examples, self._signs[examples][:, None]
        out = np.zeros((len(k), self._outputs))
        out[np.arange(len(k)), self._codes[examples]] = 1.0
        out[np.arange(len(k)), self._others[examples, k % self.per_example]] -= 1.0
        return examples, out

    def accuracy(self, scores: Floats) -> float:
        """The share of examples all of whose margins are positive."""
        return float(np.mean(self.of(scores).reshape(len(scores), -1).min(axis=1) > 0))
