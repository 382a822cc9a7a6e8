"""Estimators: the checks of scikit-learn, and what they promise beyond them."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not there")

from sklearn.datasets import load_breast_cancer, load_iris, make_blobs  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import limitpoint as lp  # noqa: E402

ESTIMATORS = [
    lp.MaxMarginClassifier(),
    lp.MaxMarginClassifier("l1"),
    lp.MaxMarginClassifier("l2", C=10.0, fit_intercept=False),
    lp.MinimumNormRegressor(),
    lp.MinimumNormRegressor("l1", fit_intercept=False),
    lp.ImplicitBiasClassifier(steps=300),
    lp.ImplicitBiasClassifier("relu 8", "adam", steps=300),
]


@parametrize_with_checks(ESTIMATORS)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_hard_margins_agree_with_svc():
    X, y = make_blobs(80, 4, centers=2, random_state=3)
    found = lp.MaxMarginClassifier().fit(X, y)
    theirs = SVC(kernel="linear", C=1e10, tol=1e-10).fit(X, y)
    assert found.separable_ and found.farkas_ is None and found.gap_ < 1e-9
    assert found.margin_ == pytest.approx(1 / np.linalg.norm(theirs.coef_), rel=1e-6)
    signs = np.where(y == 1, 1, -1)
    assert (signs * found.decision_function(X)).min() == pytest.approx(found.margin_, rel=1e-9)
    assert np.linalg.norm(found.coef_) == pytest.approx(1, rel=1e-9)
    assert set(found.support_) <= set(np.flatnonzero(signs * found.decision_function(X) < found.margin_ * (1 + 1e-6)))
    assert found.dual_.sum() == pytest.approx(1) and np.all(found.predict(X) == y)


@pytest.mark.parametrize(("rows", "columns"), [(60, 4), (20, 50), (300, 30)])
def test_two_hulls_and_pairs_of_examples_have_the_same_margin(rows, columns):
    """ℓ2 goes to the distance of two hulls, lp:2, which is the same norm, to differences between the classes."""
    X, y = make_blobs(rows, columns, centers=2, random_state=columns)
    twice = np.vstack([X, X]) + 5.0, np.concatenate([y, y])
    wider = np.hstack([X, X[:, :1], np.ones((rows, 1))]), y
    for inputs, labels in ((X, y), twice, wider):
        hulls, pairs = lp.MaxMarginClassifier().fit(inputs, labels), lp.MaxMarginClassifier("lp:2").fit(inputs, labels)
        assert hulls.margin_ == pytest.approx(pairs.margin_, rel=1e-9) and hulls.gap_ < 1e-11 and hulls.unique_
        assert hulls.coef_ == pytest.approx(pairs.coef_, abs=1e-6)
        signs = np.where(labels == hulls.classes_[1], 1.0, -1.0)
        upper = np.linalg.norm((hulls.dual_ * signs) @ inputs) / hulls.dual_.sum()
        assert upper == pytest.approx(hulls.margin_, rel=1e-9) and abs(hulls.dual_ @ signs) < 1e-12


def test_many_pairs_are_found_one_by_one():
    X, y = make_blobs(400, 6, centers=2, random_state=5)
    found = lp.MaxMarginClassifier("linf").fit(X, y)
    signs = np.where(y == 1, 1, -1)
    assert (signs * found.decision_function(X)).min() == pytest.approx(found.margin_, rel=1e-9) and found.margin_ > 0


def test_inseparable_data():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :3]
    soft = lp.MaxMarginClassifier().fit(X[:150], y[:150])
    assert soft.separable_ is False and soft.score(X[:150], y[:150]) > 0.8
    signs = np.where(y[:150] == 1, 1, -1)
    farkas = soft.farkas_ * signs
    assert np.abs(farkas @ X[:150]).max() < 1e-9 and abs(farkas.sum()) < 1e-9 and soft.farkas_.min() >= 0
    with pytest.raises(lp.Error, match="cannot be separated"):
        lp.MaxMarginClassifier(on_inseparable="raise").fit(X[:150], y[:150])
    with pytest.raises(lp.Error, match="slacks do not add up"):
        lp.MaxMarginClassifier("linf").fit(X[:150], y[:150])
    with pytest.raises(ValueError, match="C is"):
        lp.MaxMarginClassifier(C=-1).fit(X, y)
    with pytest.raises(ValueError, match="on_inseparable"):
        lp.MaxMarginClassifier(on_inseparable="hope").fit(X, y)


def test_sparse_inputs_pipelines_and_grids():
    sparse = pytest.importorskip("scipy.sparse")
    X, y = load_iris(return_X_y=True)
    for estimator in (lp.MaxMarginClassifier(), lp.ImplicitBiasClassifier(steps=100)):
        one = estimator.fit(X, y).predict(X)
        assert np.mean(estimator.fit(sparse.csr_array(X), y).predict(sparse.csr_array(X)) == one) > 0.99
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), lp.MaxMarginClassifier()),
        {"maxmarginclassifier__norm": ["l1", "l2"], "maxmarginclassifier__C": [1.0, 10.0]},
        cv=3,
    )
    assert grid.fit(X, y).best_score_ > 0.9


def test_regressors_interpolate_and_project():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 20)), rng.normal(size=6)
    sparse = lp.MinimumNormRegressor("l1").fit(X, y)
    assert sparse.interpolates_ and np.allclose(sparse.predict(X), y) and (np.abs(sparse.coef_) > 1e-9).sum() <= 6
    assert sparse.lower_bound_ == pytest.approx(np.abs(sparse.coef_).sum(), rel=1e-9) == sparse.objective_
    plain = lp.MinimumNormRegressor(fit_intercept=False).fit(X, y)
    assert np.allclose(plain.coef_, np.linalg.pinv(X) @ y) and plain.rank_ == 6 and plain.intercept_ == 0
    smooth = lp.MinimumNormRegressor(potential="hyperbolic:0.1").fit(X, y)
    assert np.allclose(smooth.predict(X), y)
    tall, goal = X.T, rng.normal(size=20)
    least = lp.MinimumNormRegressor(fit_intercept=False).fit(tall, goal)
    assert not least.interpolates_ and np.allclose(least.coef_, np.linalg.lstsq(tall, goal, rcond=None)[0])
    with pytest.raises(lp.Error, match="no weights fit"):
        lp.MinimumNormRegressor(on_inconsistent="raise").fit(tall, goal)
    with pytest.raises(ValueError, match="on_inconsistent"):
        lp.MinimumNormRegressor(on_inconsistent="hope").fit(tall, goal)


def test_implicit_bias_goes_far_below_what_floats_hold():
    X, y = make_blobs(60, 3, centers=2, random_state=1)
    found = lp.ImplicitBiasClassifier(steps=100_000).fit(X, y)
    assert found.log10_loss_ <= -400 and found.run_.healthy and found.n_iter_ > 0 and "log10 L" in found.stop_
    logs = found.predict_log_proba(X)
    assert np.all(np.isfinite(logs)) and logs.min() < -400 and np.allclose(found.predict_proba(X).sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.decision_function(X), found.decision_function(X)) and not hasattr(again, "run_")
    assert found.margins_["l2"] > 0 and found.weights_.size == 4
    many = lp.ImplicitBiasClassifier("relu 8", steps=500, random_state=np.random.RandomState(0)).fit(*load_iris(return_X_y=True))
    assert many.predict_proba(load_iris().data).shape == (150, 3) and many.score(*load_iris(return_X_y=True)) > 0.9
