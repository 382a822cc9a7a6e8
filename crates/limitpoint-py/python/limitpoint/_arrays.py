"""Arrays of any kind as data sets of the core.

NumPy arrays, SciPy sparse matrices, frames of pandas and polars, tensors of PyTorch and arrays of JAX are read where they lie.
Doubles in C order stay there, also while the core trains on them; everything else is copied once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import Data, Error

Floats = NDArray[np.float64]


def array(values: Any) -> NDArray[Any]:
    """Values as a NumPy array, without a copy where that is possible."""
    if hasattr(values, "detach"):  # a tensor
        tensor = values.detach().cpu()
        values = tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()
    elif hasattr(values, "to_numpy"):  # a frame or a series
        values = values.to_numpy()
    return np.asarray(values)


def is_sparse(inputs: Any) -> bool:
    """Whether inputs are a sparse matrix or array of SciPy."""
    return hasattr(inputs, "tocsr")


def targets(values: Any, task: str | None = None) -> tuple[Floats, str, NDArray[Any]]:
    """Targets as numbers, their kind, and the labels that the numbers stand for.

    Two labels are −1 and +1, in their order; more are classes 0, 1, …; numbers that are not all whole are values.
    """
    y = array(values)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise Error(f"targets have the shape {y.shape}, but there is one for each example; give a vector")
    if task not in (None, "binary", "classes", "regression"):
        raise Error(f"the task is binary, classes or regression, not {task!r}")
    real = y.dtype.kind == "f" and not np.all(y == np.round(y))
    if task == "regression" or (task is None and real):
        return np.ascontiguousarray(y, dtype=np.float64), "values", np.empty(0)
    labels, codes = np.unique(y, return_inverse=True)
    if task == "binary" or (task is None and len(labels) <= 2):
        if len(labels) > 2:
            raise Error(f"a binary task has two labels, but there are {len(labels)}: {labels[:5]}; say task=\"classes\"")
        if len(labels) == 1 and labels[0] in (-1, 1):
            return np.full(len(y), float(labels[0])), "binary", np.array([-1.0, 1.0])
        signs: Floats = np.asarray(2.0 * codes - (1.0 if len(labels) == 2 else -1.0), dtype=np.float64)
        return signs, "binary", labels
    return codes.astype(np.float64), "classes", labels


def dataset(inputs: Any, values: Any, task: str | None = None, name: str = "data") -> tuple[Data, NDArray[Any]]:
    """Inputs and targets as a data set, and the labels that its numbers stand for."""
    y, kind, labels = targets(values, task)
    return of_numbers(inputs, y, kind, name), labels


def of_numbers(inputs: Any, y: Floats, kind: str, name: str = "data") -> Data:
    """Inputs and finished targets as a data set."""
    if is_sparse(inputs):
        rows = inputs.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return Data.sparse(
            rows.shape[1],
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int64),
            np.ascontiguousarray(rows.data, dtype=np.float64),
            y,
            kind,
            name,
        )
    x = array(inputs)
    if x.ndim < 2:
        raise Error(f"inputs have the shape {x.shape}; give one example per row, such as x.reshape(-1, 1)")
    shape = list(x.shape[1:])
    x = np.require(x.reshape(x.shape[0], -1), np.float64, ["C_CONTIGUOUS", "ALIGNED"])
    return Data.dense(x, y, kind, shape, name)
