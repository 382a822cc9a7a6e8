"""Audits of foreign models without any framework, and tangent files."""

import subprocess
import sys

import numpy as np
import pytest

import limitpoint as lp
from limitpoint import _core


def network(params, X):
    return np.maximum(X @ params["first"].T, 0) @ params["second"][0]


def pull_back(params, X, cotangent):
    z = X @ params["first"].T
    hidden = np.maximum(z, 0)
    back = np.outer(cotangent, params["second"][0]) * (z > 0)
    return {"first": back.T @ X, "second": (cotangent @ hidden)[None, :]}


@pytest.fixture
def trained(separable):
    X, y = separable
    run = lp.run(X, y, model="relu 8", until=-60)
    return run, {"first": run.params["layer1.weight"], "second": run.params["layer2.weight"]}, X, y


def test_an_audit_agrees_with_our_own_judge(trained):
    run, params, X, y = trained
    found = lp.audit(network, params, X, y, vjp=pull_back)
    assert found.degree == 2 and [block.degree for block in found.blocks] == [1, 1] and found.accuracy == 1
    for norm in ("l1", "l2", "linf", "spectral"):
        assert found.margins[norm] == pytest.approx(run.margin(norm), rel=1e-10)
        assert found.norms[norm].tau_lower <= found.taus[norm] <= 1 and found.norms[norm].level == "rows"
    ours = run.polish("l2").tau_before
    assert found.taus["l2"] == pytest.approx(ours, abs=1e-8)
    assert found.norms["l2"].tau_lower == pytest.approx(ours, abs=1e-6)
    assert found.log10_loss == pytest.approx(-60, abs=0.1)
    assert "degree 2" in str(found) and "<pre>" in found._repr_html_() and found.report().exists()


def test_each_level_is_a_bound_of_the_next(trained):
    _, params, X, y = trained
    cheap = lp.audit(network, params, X, y, vjp=pull_back, level="pass")
    middle = lp.audit(network, params, X, y, vjp=pull_back, level="gram", smallest=3)
    dear = lp.audit(network, params, X, y, vjp=pull_back, level="rows", smallest=3)
    assert cheap.taus["l2"] >= middle.taus["l2"] - 1e-9 and middle.taus["l2"] == pytest.approx(dear.taus["l2"], abs=1e-7)
    assert all(cheap.taus[norm] >= dear.taus[norm] - 1e-9 for norm in dear.taus)
    with pytest.raises(lp.Error, match="pass, gram or rows"):
        lp.audit(network, params, X, y, vjp=pull_back, level="all")


@pytest.mark.parametrize("level", ["pass", "gram", "rows"])
def test_tangent_files_are_verified_without_python(trained, tmp_path, level):
    _, params, X, y = trained
    path = lp.audit(network, params, X, y, vjp=pull_back, level=level, smallest=5).save(tmp_path / "t.safetensors")
    claims = lp.check(path)
    assert {claim["norm"] for claim in claims} == {"l1", "l2", "linf", "spectral"}
    done = subprocess.run([sys.executable, "-m", "limitpoint", "check", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and "every number agrees" in done.stdout, done.stderr
    bytes_ = bytearray(path.read_bytes())
    bytes_[-20] ^= 1
    path.write_bytes(bytes_)
    with pytest.raises(lp.Damaged, match="SHA-256"):
        lp.check(path)
    done = subprocess.run([sys.executable, "-m", "limitpoint", "check", str(path)], capture_output=True, text=True)
    assert done.returncode == 3


def test_what_is_not_homogeneous_is_left_out_with_a_reason(trained):
    _, params, X, y = trained
    biased = {**params, "bias": np.array([0.3])}

    def pulled(p, x, c):
        return {**pull_back(p, x, c), "bias": np.array([c.sum()])}

    found = lp.audit(lambda p, x: network(p, x) + p["bias"][0], biased, X, y, vjp=pulled)
    assert "not homogeneous" in found.left_out["bias"] and found.degree is None and not found.norms
    with pytest.raises(lp.Error, match="no block is homogeneous"):
        found.save("nothing")
    idle = lp.audit(network, {**params, "idle": np.ones(2)}, X, y, vjp=lambda p, x, c: {**pull_back(p, x, c), "idle": np.zeros(2)})
    assert "degree is 0" in idle.left_out["idle"] and idle.degree == 2


def test_a_model_that_errs_has_margins_but_no_tau(trained):
    _, params, X, y = trained
    found = lp.audit(network, params, X, -y, vjp=pull_back, weight_decay=0.1)
    assert found.accuracy < 0.5 and found.smallest_margin < 0 and "smallest margin" in found.left_out["τ"]
    assert set(found.blocks[0].frank_wolfe) == {"l2", "linf", "spectral"}
    with pytest.raises(lp.Error, match="PyTorch"):
        lp.audit(network, params, X, y)


def test_the_command_audits_weights_of_networks_it_can_build(trained, tmp_path):
    run, params, X, y = trained
    save = pytest.importorskip("safetensors.numpy").save_file
    np.savez(tmp_path / "data.npz", X=X, y=y)
    names = {"net.0.weight": params["first"], "net.2.weight": params["second"]}
    save(names, tmp_path / "w.safetensors")
    words = [sys.executable, "-m", "limitpoint", "audit", "w.safetensors", "data.npz", "--model", "relu 8"]
    done = subprocess.run([*words, "--out", "t.safetensors"], capture_output=True, text=True)
    assert done.returncode == 0 and "degree 2" in done.stdout and "net.0.weight as layer1.weight" in done.stdout, done.stderr
    assert lp.check("t.safetensors")
    found = lp.audit(network, params, X, y, vjp=pull_back)
    assert f"{found.margins['l2'] * 10:.6f}e-1" in done.stdout
    save({name: value.astype(np.float32) for name, value in names.items()}, tmp_path / "w.safetensors")
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and "single precision" in done.stdout


def test_norms_of_blocks():
    blocks = [("a", 2, 2), ("b", 3, 1)]
    vector = np.arange(7.0)
    assert _core.norm_values(blocks, vector, ["l1", "linf"]) == [21.0, 6.0]
    assert _core.norm_values(blocks, vector, ["l1"], dual=True) == [6.0]
    with pytest.raises(lp.Error):
        _core.norm_values(blocks, vector[:3], ["l1"])
