"""Problems that several tests share."""

import os
import signal

# before SciPy is imported: scikit-learn's checks of array interfaces ask for it
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest


@pytest.fixture
def separable():
    """Thirty vectors with labels ±1 that a line tells apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    return X, np.sign(X @ rng.normal(size=8))


@pytest.fixture
def classes():
    """Sixty vectors of three classes."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 20)
    return rng.normal(size=(60, 6)) + 6 * np.eye(6)[y], y


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files that tests write stay out of the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell that starts tests in the background has them ignore Ctrl-C; some of them are about it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
