"""Data of all kinds come in as the same numbers, and are copied once."""

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
import numpy as np
from limitpoint import _core
X = np.zeros((1000, 25_000)); X[:, 0] = 1.0; X += 0.0  # 200 MB, touched
y = np.ones(1000)
def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = most()
from limitpoint._arrays import of_numbers
data = of_numbers(X, y, "binary")
print((most() - before) / (X.nbytes / 1024))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted differently elsewhere")
def test_an_array_in_c_order_is_copied_once():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    copies = float(done.stdout)
    assert 0.9 < copies < 1.1, f"{copies} copies were made"
