"""PyTorch: audits of modules, fingerprints of optimisers, the monitor."""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not there")

import limitpoint as lp  # noqa: E402
import limitpoint.torch  # noqa: E402

torch.set_num_threads(1)


def train(module, X, y, steps=300, rate=0.5):
    """Descent on ln L, which reaches any loss."""
    optimiser = torch.optim.SGD(module.parameters(), lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        scores = module(X)
        scores = scores if scores.ndim > 1 else torch.stack([torch.zeros_like(scores), scores], 1)
        margins = scores.gather(1, y[:, None]) - scores
        others = margins[torch.arange(scores.shape[1])[None, :] != y[:, None]]
        torch.logsumexp(-others, 0).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimiser.step()
    return module


@pytest.fixture
def images():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(24) % 3
    X = torch.randn(24, 1, 8, 8, generator=generator, dtype=torch.float64)
    X[torch.arange(24), 0, y, :] += 2.0
    return X, y


class Cnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, bias=False)
        self.head = torch.nn.Linear(4 * 9, 3, bias=False)

    def forward(self, x):
        return self.head(torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2).flatten(1))


def independent(module, X, y):
    """τ in ℓ2 and the margins by autograd and a quadratic programme of SciPy."""
    from scipy.optimize import nnls

    params = list(module.parameters())
    theta = torch.cat([p.detach().ravel() for p in params]).numpy()
    rows, margins = [], []
    for x, label in zip(X, y, strict=True):
        scores = module(x[None])[0]
        for other in range(len(scores)):
            if other == label:
                continue
            q = scores[label] - scores[other]
            gradient = torch.autograd.grad(q, params, retain_graph=True)
            rows.append(torch.cat([g.ravel() for g in gradient]).numpy())
            margins.append(float(q.detach()))
    H = np.array(rows)
    scale = np.linalg.norm(H, axis=1).mean()
    # min ‖Hᵀp‖ over the simplex as a problem of non-negative least squares with a heavy equation for the sum
    heavy = 1e6
    p, _ = nnls(np.vstack([H.T / scale, heavy * np.ones(len(H))]), np.append(np.zeros(H.shape[1]), heavy), maxiter=10_000)
    gamma = np.linalg.norm(H.T @ p) / p.sum()
    degree = float(np.median(H @ theta / np.array(margins)))
    return 1 - degree * min(margins) / (np.linalg.norm(theta) * gamma), min(margins) / np.linalg.norm(theta) ** degree


def test_a_perceptron_agrees_with_independent_python(images):
    X, y = images
    torch.manual_seed(1)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 10, bias=False), torch.nn.ReLU(), torch.nn.Linear(10, 3, bias=False)
    ).double()
    train(module, X, y, steps=400)
    found = lp.torch.audit(module, X, y)
    tau, margin = independent(module, X, y)
    assert found.degree == 2 and found.log10_loss < -30
    assert found.taus["l2"] == pytest.approx(tau, abs=1e-8) and found.margins["l2"] == pytest.approx(margin, rel=1e-8)
    assert found.head is not None and all(0 < share <= 1 + 1e-9 for share in found.head.shares.values())


def test_a_convolutional_network(images, tmp_path):
    X, y = images
    torch.manual_seed(2)
    module = train(Cnn().double(), X, y, steps=400)
    found = lp.torch.audit(module, X, y)
    tau, margin = independent(module, X, y)
    assert [block.degree for block in found.blocks] == [1, 1] and found.log10_loss < -30
    assert found.taus["l2"] == pytest.approx(tau, abs=1e-8) and found.margins["l2"] == pytest.approx(margin, rel=1e-8)
    assert lp.check(found.save(tmp_path / "cnn.safetensors"))
    single = lp.torch.audit(module.float(), X.float(), y, level="pass")
    assert single.degree == 2 and single.margins["l2"] == pytest.approx(margin, rel=1e-4)
    assert next(module.parameters()).dtype == torch.float32, "the module itself is left alone"


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(8, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = torch.nn.Linear(16, 3, bias=False)

    def forward(self, x):
        return self.head(self.layer(self.embed(x[:, 0])).mean(1))


def test_a_transformer_gets_its_head_and_reasons(images):
    X, y = images
    torch.manual_seed(3)
    module = train(Transformer().double(), X, y, steps=150, rate=0.2)
    found = lp.torch.audit(module, X, y, level="gram")
    judged = [block.name for block in found.blocks if block.judged]
    assert judged == ["head.weight"] and found.degree == 1 and found.head is not None
    assert all("not homogeneous" in why or "degree is 0" in why for n, why in found.left_out.items() if "." in n)


def test_functions_of_tensors(separable):
    X, y = separable
    w = torch.tensor(lp.run(X, y, until=-30).weights)
    found = lp.audit(lambda p, x: x @ p["w"], {"w": w}, torch.tensor(X), torch.tensor(y))
    assert found.degree == 1 and found.taus["l2"] == pytest.approx(
        1 - found.margins["l2"] / lp.solve_margin(X, y).margin, abs=1e-8
    )


@pytest.mark.parametrize(
    ("make", "early", "late", "lead"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.5), "l2", "l2", 0.9),
        # gradients below ε = 1e-8: Adam is descent with momentum
        (lambda p: torch.optim.Adam(p, lr=0.02), "linf", "l2", 0.6),
    ],
)
def test_fingerprints(make, early, late, lead):
    found = lp.torch.fingerprint(make, starts=1, steps=4000)
    assert (found.early, found.late) == (early, late) and found.reached < -10, found.answer
    assert found.lead > lead and found.late_lead > 0.9 and "followed to 1e-" in found.answer, found.answer


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
def test_muon_is_spectral_early():
    found = lp.torch.fingerprint(lambda p: torch.optim.Muon(p, lr=0.01, weight_decay=0.0), starts=1, steps=5000)
    # its Newton–Schulz iteration divides by ‖G‖ + 1e-7: small gradients are not made orthogonal
    assert (found.early, found.late) == ("spectral", "l2") and found.optimiser == "Muon", found.answer
    assert found.lead > 0.5 and found.late_lead > 0.8


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
def test_weight_decay_and_small_rates_are_put_aside_where_they_keep_an_optimiser_from_fitting():
    # with its weight decay of 0.1 Muon's weights stay in a ball, and the loss above 0.1
    found = lp.torch.fingerprint(lambda p: torch.optim.Muon(p, lr=0.01), starts=1, steps=5000)
    assert found.early == "spectral" and "without weight decay; as it is" in found.answer, found.answer
    slow = lp.torch.fingerprint(lambda p: torch.optim.SGD(p, lr=1e-3), starts=1, steps=3000, late=None)
    assert slow.early == "l2" and "at 10" in slow.answer and "weight decay" not in slow.answer, slow.answer


def test_lion_maximises_the_largest_entry_early_and_late():
    lion = pytest.importorskip("lion_pytorch", reason="the package lion-pytorch is not there").Lion
    found = lp.torch.fingerprint(lambda p: lion(p, lr=0.01), starts=1, steps=5000)
    assert (found.early, found.late) == ("linf", "linf") and min(found.lead, found.late_lead) > 0.9, found.answer


def test_plain_gradients_end_where_floats_do():
    found = lp.torch.fingerprint(
        lambda p: torch.optim.SGD(p, lr=2.0), starts=1, steps=3000, objective="plain", log10_loss=-50
    )
    assert -10 < found.reached < -1
    with pytest.raises(lp.Error, match="log \\(ln L\\) or plain"):
        lp.torch.fingerprint(lambda p: torch.optim.SGD(p, lr=1.0), objective="other")
    with pytest.raises(lp.Error, match="late is 3"):
        lp.torch.fingerprint(lambda p: torch.optim.SGD(p, lr=1.0), late=3.0)
    with pytest.raises(lp.Error, match="does not fit probe"):
        lp.torch.fingerprint(lambda p: torch.optim.SGD(p, lr=1e-9), starts=1, steps=5)


def test_the_monitor_sees_what_the_audit_sees(images):
    X, y = images
    torch.manual_seed(4)
    module = Cnn().double()
    monitor = lp.torch.Monitor(module, X, y, every=10, norms=("l2", "linf"))
    for _ in range(20):
        train(module, X, y, steps=5)
        monitor.step()
    before = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
    seen = monitor.look()
    after = [p.grad for p in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True)) and module.training
    found = lp.torch.audit(module, X, y, level="pass", norms=("l2", "linf"))
    assert seen["margin.l2"] == pytest.approx(found.margins["l2"], rel=1e-9)
    assert seen["tau.linf"] == pytest.approx(found.taus["linf"], abs=1e-9) and seen["degree"] == pytest.approx(2)
    assert list(monitor.history["step"]) == [10, 20, 20] and monitor.history.margins()
    with pytest.raises(lp.Error, match="at least 1"):
        lp.torch.Monitor(module, X, y, every=0)
    with pytest.raises(lp.Error, match="no trainable parameter"):
        lp.torch.Monitor(module, X, y, blocks=["none"])


def test_a_look_costs_few_passes(images):
    """No clock decides: the model is called as often as it is."""
    X, y = images
    module, calls = Cnn().double(), []
    module.register_forward_hook(lambda *_: calls.append(time.monotonic()))
    monitor = lp.torch.Monitor(module, X, y, every=100)
    calls.clear()
    for _ in range(200):
        monitor.step()
    assert len(calls) == 2


class Mixed(torch.nn.Module):
    """Layers of all kinds: strided and padded convolutions, a layer that is used twice, one whose weights two layers share, a norm."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.second = torch.nn.Conv2d(4, 6, 3, stride=2, dilation=2, bias=False)
        self.depthwise = torch.nn.Conv2d(6, 6, 1, groups=6, bias=False)
        self.norm = torch.nn.LayerNorm(24)
        self.wide = torch.nn.Linear(24, 10)
        self.twice = torch.nn.Linear(10, 10, bias=False)
        self.tied = torch.nn.Linear(10, 10, bias=False)
        self.again = torch.nn.Linear(10, 10, bias=False)
        self.again.weight = self.tied.weight
        self.head = torch.nn.Linear(10, 3)
        self.relu = torch.nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.first(x))
        x = self.depthwise(self.relu(self.second(x)))
        x = self.relu(self.wide(self.norm(x.flatten(1))))
        x = self.twice(self.relu(self.twice(x)))
        return self.head(self.relu(self.again(self.relu(self.tied(x)))))


def test_gram_matrices_layer_by_layer_are_those_of_the_gradients(images):
    X, y = images
    torch.manual_seed(5)
    module = Mixed().double()
    params = {name: value.detach() for name, value in module.named_parameters()}

    def f(chosen, x):
        return torch.func.functional_call(module, chosen, (x,))

    names = list(params)
    whole, bare = (lp.torch.FunctionOracle(f, params, X, given) for given in (module, None))
    rng = np.random.default_rng(0)
    examples, cotangents = np.array([0, 3, 3, 7, 20]), rng.normal(size=(5, 3))
    rows = whole.rows(examples, cotangents)
    for chosen in (names, ["second.weight"], ["first.bias", "wide.weight", "norm.weight"], ["twice.weight", "tied.weight"]):
        mine = np.concatenate([rows[:, block_place(whole, name)] for name in chosen], axis=1)
        for oracle in (whole, bare):
            assert np.allclose(oracle.gram(examples, cotangents, chosen), mine @ mine.T, rtol=1e-12, atol=1e-13), chosen


def block_place(oracle, name):
    at = 0
    for other, height, width in oracle.blocks:
        if other == name:
            return slice(at, at + height * width)
        at += height * width
    raise KeyError(name)


def test_tokens_are_places(images):
    X, y = images
    torch.manual_seed(3)
    module = Transformer().double().eval()
    params = {name: value.detach() for name, value in module.named_parameters()}
    oracle = lp.torch.FunctionOracle(lambda p, x: torch.func.functional_call(module, p, (x,)), params, X, module)
    examples, cotangents = np.arange(4), np.random.default_rng(1).normal(size=(4, 3))
    rows = oracle.rows(examples, cotangents)
    assert np.allclose(oracle.gram(examples, cotangents, list(params)), rows @ rows.T, rtol=1e-10, atol=1e-13)


def test_the_gram_level_keeps_no_gradient(images, monkeypatch):
    X, y = images
    torch.manual_seed(2)
    module = train(Cnn().double(), X, y, steps=200)
    dear = lp.torch.audit(module, X, y, norms=["l2"])

    def never(*_):
        raise AssertionError("a gradient of a single margin was made")

    monkeypatch.setattr(lp.torch.FunctionOracle, "_gradients", never)
    found = lp.torch.audit(module, X, y, level="gram", smallest=48, norms=["l2", "linf"])
    assert found.norms["l2"].level == "gram" and found.norms["linf"].level == "pass"
    assert found.taus["l2"] == pytest.approx(dear.taus["l2"], abs=1e-8)
    assert found.norms["l2"].tau_lower == pytest.approx(found.taus["l2"], abs=1e-6)
    few = lp.torch.audit(module, X, y, level="gram", smallest=2, norms=["l2"])
    assert few.taus["l2"] == pytest.approx(found.taus["l2"], abs=1e-7), "violators are added until it closes"


def test_one_weighted_pass_is_one_forward_and_one_backward_pass(images):
    """No clock decides: the passes are counted."""
    X, y = images
    module = Cnn().double()
    params = {name: value.detach() for name, value in module.named_parameters()}
    oracle = lp.torch.FunctionOracle(lambda p, x: torch.func.functional_call(module, p, (x,)), params, X, module)
    forward, backward = [], []
    module.register_forward_hook(lambda *_: forward.append(1))
    module.head.register_full_backward_hook(lambda *_: backward.append(1))
    assert oracle.pull_back(np.ones((24, 3))).shape == (sum(p.numel() for p in module.parameters()),)
    assert (len(forward), len(backward)) == (1, 1)
    # two layers of degree 1: along θ itself all scores change by twice what they are
    assert np.allclose(oracle.push(oracle.params), 2 * oracle.scores(), rtol=1e-12)
