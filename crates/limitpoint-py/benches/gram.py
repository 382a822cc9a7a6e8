"""The Gram matrix of gradients of a network of a million parameters: layer by layer here, and by torch.func; and one weighted pass.

    python crates/limitpoint-py/benches/gram.py [--examples 1000] [--rounds 3] [--threads 2]

torch.func makes all gradients (8 GB for 1,000 examples in double precision) in pieces of 64 examples and multiplies them. Times are the least
of all rounds, in turns. Both matrices are compared.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

import limitpoint.torch as lpt


def network() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        *[nn.Conv2d(1, 32, 3, bias=False), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(32, 64, 3, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()],
        *[nn.Linear(1600, 600, bias=False), nn.ReLU(), nn.Linear(600, 10, bias=False)],
    ).double()


def clock(work: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--examples", type=int, default=1000)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--threads", type=int, default=2)
    asked = words.parse_args()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(0)
    module, count = network(), asked.examples
    X = torch.randn(count, 1, 28, 28, dtype=torch.float64)
    y = torch.arange(count) % 10
    params = {name: value.detach() for name, value in module.named_parameters()}
    cotangents = np.random.default_rng(0).normal(size=(count, 10))
    weights = torch.as_tensor(cotangents)
    oracle = lpt.FunctionOracle(lambda p, x: functional_call(module, p, (x,)), params, X, module)
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-9)

    def single(p: dict[str, torch.Tensor], x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (functional_call(module, p, (x[None],))[0] * weight).sum()

    def by_func() -> np.ndarray:
        rows = vmap(grad(single), in_dims=(None, 0, 0), chunk_size=64)(params, X, weights)
        flat = [row.reshape(count, -1) for row in rows.values()]
        return sum(row @ row.T for row in flat).numpy()

    def train() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(X), y).backward()
        optimiser.step()

    ways = {
        "Gram, layer by layer": lambda: oracle.gram(np.arange(count), cotangents, list(params)),
        "Gram, torch.func": by_func,
        "one weighted pass": lambda: oracle.pull_back(cotangents),
        "the user's training step": train,
    }
    seconds: dict[str, float] = {}
    found: dict[str, object] = {}
    for _ in range(asked.rounds):
        for name, work in ways.items():
            took, found[name] = clock(work)
            seconds[name] = min(took, seconds.get(name, took))
    ours, theirs = (np.asarray(found[name]) for name in list(ways)[:2])
    print(f"{sum(p.numel() for p in module.parameters())} parameters, {count} examples, {asked.threads} threads, f64")
    for name, took in seconds.items():
        print(f"{name:<26} {took:8.2f} s")
    print(f"the matrices differ by {np.abs(ours - theirs).max() / np.abs(theirs).max():.1e} of their largest entry")


if __name__ == "__main__":
    main()
