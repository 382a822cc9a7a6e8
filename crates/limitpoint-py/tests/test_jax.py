"""JAX: audits of functions, fingerprints of optax."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not there")

import limitpoint as lp  # noqa: E402
import limitpoint.jax  # noqa: E402


def test_an_audit_of_a_tree_agrees_with_our_own_judge(separable):
    X, y = separable
    run = lp.run(X, y, model="relu 8", until=-60)
    tree = [{"w": run.params["layer1.weight"].T}, {"w": run.params["layer2.weight"].T}]

    def apply(params, x):
        return (jax.nn.relu(x @ params[0]["w"]) @ params[1]["w"])[:, 0]

    found = lp.jax.audit(apply, tree, X, y, level="rows")
    assert found.degree == 2 and found.margins["l2"] == pytest.approx(run.margin("l2"), rel=1e-10)
    assert found.taus["l2"] == pytest.approx(run.polish("l2").tau_before, abs=1e-8)
    by_name = {"a": jax.numpy.asarray(tree[0]["w"]), "b": jax.numpy.asarray(tree[1]["w"])}
    also = lp.audit(lambda p, x: (jax.nn.relu(x @ p["a"]) @ p["b"])[:, 0], by_name, X, y, level="pass")
    assert also.degree == 2 and also.blocks[0].name == "a"


def test_optax():
    optax = pytest.importorskip("optax", reason="optax is not there")
    found = lp.jax.fingerprint(optax.sgd(1.0), name="sgd", starts=1, steps=1500, log10_loss=-100)
    assert found.late == "l2" and found.confidence > 0.3 and found.reached < -10, found.answer
    sign = lp.jax.fingerprint(lambda: optax.sign_sgd(0.1), name="sign", starts=1, steps=1500)
    assert sign.late == "linf" and np.isfinite(sign.reached)
