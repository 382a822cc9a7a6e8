"""Training steps in PyTorch or JAX, driven line by line from stdin.

usage: peer.py ENGINE THREADS FOLDER      ENGINE: torch-eager, torch-compile or jax

Each request is a line "NAME SECONDS"; under a new name, FOLDER/workload.json describes the problem and
FOLDER/workload.*.f64 hold its numbers. The answer is a JSON line {"steps_per_second": ..., "log_loss": ...}, the latter
after the number of steps that the description names, so that engines can be checked against each other. Training starts
again after as many steps, which is not timed. {"error": ...} reports what went wrong.
"""

import json
import math
import os
import sys
import time

ENGINE, THREADS, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)
if ENGINE == "jax" and THREADS == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np


def read():
    with open(os.path.join(FOLDER, "workload.json")) as file:
        spec = json.load(file)
    kind = np.float32 if spec["precision"] == "f32" else np.float64
    numbers = lambda part: np.fromfile(os.path.join(FOLDER, f"workload.{part}.f64"))
    sizes = [spec["features"], *spec["widths"], spec["outputs"]]
    flat, weights = numbers("params").astype(kind), []
    for fan_in, units in zip(sizes, sizes[1:]):
        weights.append(flat[: units * fan_in].reshape(units, fan_in).copy())
        flat = flat[units * fan_in :]
    inputs = numbers("inputs").astype(kind).reshape(spec["examples"], spec["features"])
    labels = numbers("labels").astype(np.int64 if spec["loss"] == "cross-entropy" else kind)
    return spec, inputs, labels, weights


def logarithm(spec, value):
    """ln L of what is minimised: of the exponential loss that is the logarithm already."""
    return value if spec["loss"] == "exponential" else math.log(value)


class Torch:
    """One step at a time."""

    steps = 1

    def __init__(self, spec, inputs, labels, weights):
        import torch

        torch.set_num_threads(THREADS)
        compiled = ENGINE == "torch-compile"
        if compiled:
            torch._dynamo.reset()
        x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
        count, rate, sign, loss = len(labels), spec["rate"], spec["sign"], spec["loss"]

        def objective(params):
            h = x
            for w in params[:-1]:
                h = torch.relu(h @ w.T)
            scores = h @ params[-1].T
            if loss == "cross-entropy":
                return torch.nn.functional.cross_entropy(scores, y)
            q = y * scores.squeeze(1)
            if loss == "exponential":
                return torch.logsumexp(-q, 0) - math.log(count)
            return torch.nn.functional.softplus(-q).mean()

        # gradient steps of size rate/L on L are gradient steps of size rate on ln L
        def update(params, gradients):
            for w, g in zip(params, gradients):
                w.sub_(torch.sign(g) if sign else g, alpha=rate)

        self.torch, self.spec, self.objective = torch, spec, objective
        self.forward, self.move = (torch.compile(objective), torch.compile(update)) if compiled else (objective, update)
        self.start = [torch.from_numpy(w) for w in weights]
        self.params = [w.clone().requires_grad_(True) for w in self.start]

    def restart(self):
        with self.torch.no_grad():
            for w, s in zip(self.params, self.start):
                w.copy_(s)

    def advance(self):
        gradients = self.torch.autograd.grad(self.forward(self.params), self.params)
        with self.torch.no_grad():
            self.move(self.params, gradients)

    def log_loss(self):
        with self.torch.no_grad():
            return logarithm(self.spec, float(self.objective(self.params)))


class Jax:
    """All steps until the next start in one compiled loop."""

    def __init__(self, spec, inputs, labels, weights):
        import jax

        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp

        x, y = jnp.asarray(inputs), jnp.asarray(labels)
        count, rate, sign, loss = len(labels), spec["rate"], spec["sign"], spec["loss"]

        def objective(params):
            h = x
            for w in params[:-1]:
                h = jnp.maximum(h @ w.T, 0)
            scores = h @ params[-1].T
            if loss == "cross-entropy":
                return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean()
            q = y * scores[:, 0]
            if loss == "exponential":
                return jax.nn.logsumexp(-q) - jnp.log(float(count))
            return jax.nn.softplus(-q).mean()

        def step(_, params):
            gradients = jax.grad(objective)(params)
            return [w - rate * (jnp.sign(g) if sign else g) for w, g in zip(params, gradients)]

        self.steps, self.spec = spec["steps"], spec
        self.loop = jax.jit(lambda params: jax.lax.fori_loop(0, self.steps, step, params))
        self.objective = jax.jit(objective)
        self.start = [jnp.asarray(w) for w in weights]

    def restart(self):
        self.params = self.start

    def advance(self):
        self.params = [w.block_until_ready() for w in self.loop(self.params)]

    def log_loss(self):
        return logarithm(self.spec, float(self.objective(self.params)))


def measure(run, steps, seconds):
    """Steps per second over at least `seconds`."""
    count, spent = 0, 0.0
    while spent < seconds:
        run.restart()
        before, begin = spent, time.perf_counter()
        for _ in range(0, steps, run.steps):
            run.advance()
            count += run.steps
            spent = before + time.perf_counter() - begin
            if spent >= seconds:
                break
    return count / spent


current, run, steps, log_loss = None, None, 0, 0.0
for line in sys.stdin:
    try:
        name, seconds = line.split()[0], float(line.split()[1])
        if name != current:
            # the problem before is let go first
            current, run = None, None
            problem = read()
            run, steps = (Jax if ENGINE == "jax" else Torch)(*problem), problem[0]["steps"]
            run.restart()
            for _ in range(0, steps, run.steps):
                run.advance()
            log_loss, current = run.log_loss(), name
        answer = {"steps_per_second": measure(run, steps, seconds), "log_loss": log_loss}
    except Exception as error:  # whatever is missing or broken is reported, not hidden
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
