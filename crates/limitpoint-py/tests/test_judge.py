"""The exact judge, fingerprints, horizons and claims of papers."""

import numpy as np
import pytest

import limitpoint as lp


def test_margins_are_proven(separable):
    X, y = separable
    for norm, dual in (("l1", np.inf), ("l2", 2), ("linf", 1)):
        found = lp.solve_margin(X, y, norm=norm)
        assert found.status == "optimal" and found.separable and found.lower <= found.margin <= found.upper
        assert found.gap < 1e-9 and found.unique in (True, False, None) and found.details["iterations"] > 0
        assert (y * (X @ found.direction)).min() == pytest.approx(found.margin, rel=1e-9)
        assert np.linalg.norm((found.dual * y) @ X, dual) / found.dual.sum() == pytest.approx(found.upper, rel=1e-9)


def test_inseparable_data_come_with_a_proof():
    X, y = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([1, -1])
    found = lp.solve_margin(X, y)
    assert not found.separable and found.status == "not-separable"
    assert np.allclose((found.dual * y) @ X, 0, atol=1e-12) and found.dual.sum() == pytest.approx(1)


def test_classes_and_cones(classes):
    X, y = classes
    found = lp.solve_margin(X, y, norm="l2")
    scores = X @ found.direction.T
    own = scores[np.arange(60), y]
    others = np.where(np.eye(3, dtype=bool)[y], -np.inf, scores).max(axis=1)
    assert (own - others).min() == pytest.approx(found.margin, rel=1e-9)
    squares = np.array([np.eye(2), -np.diag([0.5, 0.2])])
    cone = lp.solve_margin(squares, [1.0, -1.0], norm="nuclear", semidefinite=True)
    assert np.linalg.eigvalsh(cone.direction).min() > -1e-9


def test_interpolation():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(4, 7)), rng.normal(size=4)
    least = lp.interpolate(X, y, norm="l2")
    assert np.allclose(least.weights, np.linalg.pinv(X) @ y) and abs(least.gap) < 1e-12 and least.rank == 4
    near = lp.interpolate(X, y, norm="l2", start=np.ones(7))
    assert np.linalg.norm(near.weights - 1) <= np.linalg.norm(least.weights - 1)
    positive = lp.interpolate(np.abs(X), np.abs(X) @ np.full(7, 1 / 7), potential="entropy", total=1.0)
    assert positive.weights.min() > 0 and positive.weights.sum() == pytest.approx(1)
    with pytest.raises(lp.Error, match="either a norm or a potential"):
        lp.interpolate(X, y)
    with pytest.raises(lp.Error):
        lp.interpolate(np.ones((2, 3)), [1.0, 2.0], norm="l2")


def test_fingerprints(tmp_path):
    found = lp.fingerprint("sign", starts=1, log10_loss=-50)
    assert found.late == "linf" and found.confidence > 0.5 and found.reached <= -50 and "ℓ∞" in str(found)
    assert "<html" in found.report(tmp_path / "f.html").read_text() and "<svg" in found._repr_html_()
    parts = lp.fingerprint("blocks(first=sign, rest=gradient)", starts=1, log10_loss=-50, norms=["lp:4"])
    assert [part.late for part in parts] == ["linf", "l2"]
    with pytest.raises(lp.Error, match="-2 or less"):
        lp.fingerprint("sign", log10_loss=-1)


def test_horizons(tmp_path):
    found = lp.horizon("|t|^3/3 + t^2/2")
    assert found.has_limit and found.degree == pytest.approx(3, abs=1e-6) and found.formula
    assert "<html" in found.report(tmp_path / "h.html").read_text() and "3" in str(found)
    assert not lp.horizon("sin(t)").has_limit
    with pytest.raises(lp.Error):
        lp.horizon("t +")


def test_claims_of_papers(tmp_path):
    assert "B.prop2a" in lp.list_claims()
    found = lp.reproduce("B.prop2a")
    assert found.as_recorded and found.claims[0]["id"] == "B.prop2a" and "B.prop2a" in str(found)
    assert "<html" in found.report(tmp_path / "g.html").read_text()
    for ids, settings, words in [((), {}, "name claims"), (("Z.1",), {}, "Z.1"), (("B.prop2a",), {"scale": "x"}, "quick")]:
        with pytest.raises(lp.Error, match=words):
            lp.reproduce(*ids, **settings)
