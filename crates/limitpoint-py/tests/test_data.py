"""Data of all kinds come in as the same numbers; doubles in C order are not copied."""

import subprocess
import sys

import numpy as np
import pytest

import limitpoint as lp


def weights(X, y):
    return lp.run(X, y, until=-20).weights


def test_all_kinds_of_arrays_give_the_same_bits(separable):
    X, y = separable
    expected = weights(X, y)
    assert np.array_equal(weights(np.asfortranarray(X), y), expected)
    assert np.array_equal(weights(X.tolist(), y.tolist()), expected)
    assert np.array_equal(weights(X, y.reshape(-1, 1)), expected)
    assert np.array_equal(weights(X, np.where(y > 0, "b", "a")), expected)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert np.array_equal(weights(pandas.DataFrame(X), pandas.Series(y)), expected)
    assert np.array_equal(weights(polars.DataFrame(X), polars.Series(y)), expected)


def test_tensors_and_arrays_of_others(separable):
    X, y = separable
    expected = weights(X, y)
    torch = pytest.importorskip("torch", reason="PyTorch is not there")
    assert np.array_equal(weights(torch.tensor(X, requires_grad=True), torch.tensor(y)), expected)


def test_arrays_of_jax(separable):
    X, y = separable
    jax = pytest.importorskip("jax", reason="JAX is not there")
    single = X.astype(np.float32)
    assert np.array_equal(weights(jax.numpy.asarray(single), y), weights(single.astype(np.float64), y))


def test_sparse_matrices(separable):
    X, y = separable
    sparse = pytest.importorskip("scipy.sparse")
    thin = np.where(np.abs(X) > 0.7, X, 0.0)
    best = lp.solve_margin(thin, y, norm="l2")
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        assert lp.solve_margin(kind(thin), y, norm="l2").margin == pytest.approx(best.margin, rel=1e-12)
    run = lp.run(sparse.csr_array(thin), y, steps=50)
    assert np.allclose(run.weights, lp.run(thin, y, steps=50).weights, rtol=1e-10)
    twice = sparse.coo_array((np.ones(2), ([0, 0], [1, 1])), shape=(1, 3)).tocsr()
    assert lp.solve_margin(twice, [1.0], norm="l2").margin == pytest.approx(2.0)


def test_matrices_as_examples():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 4, 3))
    y = np.array([1, -1, 1, -1, 1, -1.0])
    found = lp.solve_margin(X, y, norm="spectral")
    assert found.direction.shape == (4, 3) and np.linalg.norm(found.direction, 2) == pytest.approx(1, rel=1e-9)


MEMORY = """
import sys
import numpy as np
from limitpoint import _core
from limitpoint._arrays import of_numbers
rows, columns = 1000, 25_000  # 200 MB in double precision
X = np.zeros((rows, columns), dtype=sys.argv[1], order=sys.argv[2])
X[:, 0] = 1.0
X += 0.0  # touched
if sys.argv[3] == "part":
    X = X[:, ::2]
y = np.ones(rows)
def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = most()
data = of_numbers(X, y, "binary")
print((most() - before) / (8 * X.size / 1024))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted differently elsewhere")
@pytest.mark.parametrize(
    ("kind", "order", "part", "expected"),
    [
        ("f8", "C", "whole", 0),
        ("f8", "F", "whole", 1),
        ("f4", "C", "whole", 1),
        ("f8", "C", "part", 1),
    ],
)
def test_an_array_is_copied_only_where_its_layout_asks_for_it(kind, order, part, expected):
    words = [sys.executable, "-c", MEMORY, kind, order, part]
    copies = float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert abs(copies - expected) < 0.1, f"{copies} copies were made"


def test_an_array_that_changes_later_is_noticed(separable):
    X, y = separable
    mine = X.copy()
    run = lp.run(mine, y, until=-20)
    margin, verdict = run.margin("l2"), run.certify("l2").verdict
    mine *= 2.0
    with pytest.raises(lp.Error, match="changed in place"):
        run.certify("l2")
    with pytest.raises(lp.Error, match="changed in place"):
        run.polish("l2")
    mine /= 2.0
    assert run.margin("l2") == margin and run.certify("l2").verdict == verdict
    weights = run.weights
    del mine  # the run keeps what it looks at
    assert run.margin("l2") == margin and np.array_equal(run.weights, weights)
