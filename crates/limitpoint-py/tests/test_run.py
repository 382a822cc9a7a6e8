"""Training in memory: runs, sweeps, what is measured and what is judged."""

import numpy as np
import pytest

import limitpoint as lp


def test_a_run_goes_to_1e_100_and_tells_all(separable):
    X, y = separable
    run = lp.run(X, y, model="relu 16", optimiser="sign", until=-100, progress=False)
    assert run.log10_loss <= -100 and run.healthy and run.own_norm == "linf" and run.steps > 0 and run.seconds > 0
    assert set(run.margins) == {"l1", "l2", "linf"} and all(margin > 0 for margin in run.margins.values())
    assert run.margins["linf"] == run.margin("linf")
    first, last = run.history["log10_loss"][0], run.history["log10_loss"][-1]
    assert first > 0 > last and run.history["margin.linf"][-1] == pytest.approx(run.margins["linf"], rel=1e-12)
    assert run.params["layer1.weight"].shape == (16, 8) and run.weights.shape == run.start.shape == (16 * 8 + 16,)
    assert run.accuracy(X, y) == 1.0 and run.scores(X).shape == (30, 1)
    hidden = np.maximum(X @ run.params["layer1.weight"].T, 0)
    assert np.allclose(run.scores(X), hidden @ run.params["layer2.weight"].T, rtol=1e-12)
    assert run.norm("l2") == pytest.approx(np.linalg.norm(run.weights), rel=1e-14)
    assert "log10 L -100" in repr(run) and "log10 L reached" in run.reason and not run.interrupted


def test_margins_agree_with_numpy(separable):
    X, y = separable
    run = lp.run(X, y, until=-50)
    w = run.weights
    assert run.margin("l2") == pytest.approx((y * (X @ w)).min() / np.linalg.norm(w), rel=1e-13)
    assert run.margin("l1") == pytest.approx((y * (X @ w)).min() / np.abs(w).sum(), rel=1e-13)


def test_certificates(separable):
    X, y = separable
    run = lp.run(X, y, optimiser="gradient", until=-400)
    certificate = run.certify()
    assert certificate and certificate.verdict == "certified" and "margin" in str(certificate)
    assert certificate.evidence and certificate.statement and "certified" in certificate._repr_html_()
    assert not run.certify("linf")
    assert not run.certify(tolerance=1e-12)
    best = lp.solve_margin(X, y)
    assert run.margin("l2") <= best.upper and run.margin("l2") == pytest.approx(best.margin, rel=1e-2)


def test_polish_reaches_a_kkt_point(separable):
    X, y = separable
    polished = lp.run(X, y, model="relu 8", until=-60).polish("l2")
    assert polished and polished.tau_after <= 1e-11 and polished.margin_after > polished.margin_before
    assert polished.run.margin("l2") == pytest.approx(polished.margin_after, rel=1e-12)


def test_sweeps_and_reports(separable, tmp_path):
    X, y = separable
    swept = lp.sweep(X, y, optimiser=["sign", "gradient"], seed=[0, 1], until=-20)
    assert len(swept) == 4 and {run.optimiser for run in swept} == {"sign", "gradient"}
    assert "γ of ℓ∞" in swept.table and "sign" in str(swept) and swept["sign-seed1"].log10_loss <= -20
    assert swept.summary["summary"]["rows"] and any(name.startswith("margin-") for name in swept.figures())
    page = swept.report(tmp_path / "page.html", svg=True)
    assert "<html" in page.read_text() and list(tmp_path.glob("*.svg"))
    assert "<svg" in swept._repr_html_() and "<svg" in swept["sign-seed0"]._repr_html_()
    assert (tmp_path / "report.html") == swept["sign-seed0"].report().resolve()
    widths = lp.sweep(X, y, model=["relu 4", "relu 8"], until=-10)
    assert [run.weights.size for run in widths] == [36, 72]


def test_several_classes_and_labels_of_any_kind(classes):
    X, y = classes
    run = lp.run(X, np.array(["red", "green", "blue"])[y], until=-20)
    assert run.scores(X).shape == (60, 3) and run.accuracy(X, np.array(["red", "green", "blue"])[y]) == 1.0
    with pytest.raises(lp.Error, match="were not trained on"):
        run.accuracy(X, np.full(60, "yellow"))


def test_regression_ends_at_the_nearest_solution():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    run = lp.run(X, y, initialiser="constant(value=0)", schedule="constant(rate=0.02)", until=-25, steps=50_000)
    assert run.margins == {} and run.certify()
    assert np.allclose(run.weights, lp.interpolate(X, y, norm="l2").weights, atol=1e-8)


def test_settings_are_heard(separable):
    X, y = separable
    run = lp.run(
        X, y, loss="exponential", schedule="constant(rate=0.01)", steps=7, every=2, start=np.full(8, 0.1), norms=["l2"],
        reduction="mean", precision="f64", threads=1, batch=30, seed=3, potentials=["hyperbolic:0.1"],
    )  # fmt: skip
    assert run.steps == 7 and list(run.history["step"]) == [0, 2, 4, 6, 7] and np.all(run.start == 0.1)
    assert list(run.history.margins()) == ["l2"] and "horizon.hyperbolic" in " ".join(run.history)
    flow = lp.run(X, y, flow="steepest(norm=l2)", log10_time=1)
    assert flow.optimiser == "steepest(norm=l2)" and flow.history["log10_time"][-1] == pytest.approx(1, abs=0.05)
    assert lp.run(X, y, angle=1e-3, until=-1000, per_decade=5).healthy


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"optimiser": "sgin"}, "did you mean 'sign'"),
        ({"model": "relu x"}, "relu x"),
        ({"until": float("nan")}, "until is nan"),
        ({"colour": "red"}, "colour"),
        ({"task": "guess"}, "binary, classes or regression"),
        ({"start": [1.0]}, "1"),
        ({"batch": 1000, "schedule": "constant(rate=0.1)"}, "batch size is 1000"),
    ],
)
def test_refusals_say_what_is_wrong(separable, settings, words):
    with pytest.raises(lp.Error, match=words):
        lp.run(*separable, **settings)


def test_bad_data_are_refused(separable):
    X, y = separable
    for inputs, labels, words in [
        (X[:, 0], y, "one example per row"),
        (X, y[:5], "30"),
        (np.where(X > 2, np.nan, X), y, "NaN"),
        (X, X, "one for each example"),
    ]:
        with pytest.raises(lp.Error, match=words):
            lp.run(inputs, labels)
    with pytest.raises(lp.Error, match="need targets"):
        lp.run(X)
    with pytest.raises(lp.Error, match="need targets"):
        lp.sweep(X)


def test_frames_of_the_history(separable):
    history = lp.run(*separable, until=-5).history
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert isinstance(history.to_pandas(), pandas.DataFrame) and isinstance(history.to_polars(), polars.DataFrame)
    assert len(history.to_pandas()) == len(history.to_polars()) == len(history["step"])
    assert "rows: step" in repr(history)
