"""The bench workloads in PyTorch or JAX, driven line by line from stdin.

usage: peer.py ENGINE THREADS FOLDER      ENGINE: torch-eager, torch-compile or jax

Each request is a line "NAME SECONDS"; FOLDER/NAME.json describes the workload and FOLDER/NAME.*.f64 hold its numbers.
The answer is a JSON line {"steps_per_second": ..., "log_loss": ...}, the latter after 100 steps from the start, so that
engines can be checked against each other. {"error": ...} reports what went wrong.
"""

import json
import os
import sys
import time

ENGINE, THREADS, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
CHUNK = 100
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)
if ENGINE == "jax" and THREADS == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np


def read(name):
    with open(os.path.join(FOLDER, name + ".json")) as file:
        spec = json.load(file)
    array = lambda part, shape: np.fromfile(os.path.join(FOLDER, f"{name}.{part}.f64")).reshape(shape)
    sizes = [spec["features"], *spec["widths"], 1]
    shapes = [(b, a) for a, b in zip(sizes, sizes[1:])]
    flat, weights = array("params", -1), []
    for shape in shapes:
        weights.append(flat[: shape[0] * shape[1]].reshape(shape).copy())
        flat = flat[shape[0] * shape[1]:]
    return spec, array("inputs", (spec["examples"], spec["features"])), array("labels", -1), weights


def torch_chunk(spec, inputs, labels, weights, compiled):
    import math

    import torch

    torch.set_num_threads(THREADS)
    x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    start = [torch.from_numpy(w) for w in weights]
    params = [w.clone().requires_grad_(True) for w in start]
    count, rate, sign = len(labels), spec["rate"], spec["optimiser"] == "sign"

    def log_loss(params):
        h = x
        for w in params[:-1]:
            h = torch.relu(h @ w.T)
        q = y * (h @ params[-1].T).squeeze(1)
        if spec["loss"] == "exponential":
            return torch.logsumexp(-q, 0) - math.log(count)
        return torch.nn.functional.softplus(-q).mean()

    # gradient steps of size rate/L on L are gradient steps of size rate on ln L
    def update(params, gradients):
        for w, g in zip(params, gradients):
            w.sub_(torch.sign(g) if sign else g, alpha=rate)

    forward, move = (torch.compile(log_loss), torch.compile(update)) if compiled else (log_loss, update)

    def chunk():
        with torch.no_grad():
            for w, s in zip(params, start):
                w.copy_(s)
        for _ in range(CHUNK):
            gradients = torch.autograd.grad(forward(params), params)
            with torch.no_grad():
                move(params, gradients)
        with torch.no_grad():
            value = float(log_loss(params))
        return value if spec["loss"] == "exponential" else math.log(value)

    return chunk


def jax_chunk(spec, inputs, labels, weights):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    x, y, start = jnp.asarray(inputs), jnp.asarray(labels), [jnp.asarray(w) for w in weights]
    count, rate, sign = len(labels), spec["rate"], spec["optimiser"] == "sign"

    def log_loss(params):
        h = x
        for w in params[:-1]:
            h = jnp.maximum(h @ w.T, 0)
        q = y * (h @ params[-1].T)[:, 0]
        if spec["loss"] == "exponential":
            return jax.nn.logsumexp(-q) - jnp.log(float(count))
        return jax.nn.softplus(-q).mean()

    def step(_, params):
        gradients = jax.grad(log_loss)(params)
        return [w - rate * (jnp.sign(g) if sign else g) for w, g in zip(params, gradients)]

    loop = jax.jit(lambda params: jax.lax.fori_loop(0, CHUNK, step, params))
    final = jax.jit(log_loss)

    def chunk():
        value = float(final(loop(start)))
        return value if spec["loss"] == "exponential" else float(np.log(value))

    return chunk


chunks = {}
for line in sys.stdin:
    try:
        name, seconds = line.split()[0], float(line.split()[1])
        if name not in chunks:
            problem = read(name)
            make = jax_chunk if ENGINE == "jax" else lambda *p: torch_chunk(*p, compiled=ENGINE == "torch-compile")
            chunks[name] = make(*problem)
            chunks[name]()
        value, count, begin = chunks[name](), 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            chunks[name]()
            count += CHUNK
        answer = {"steps_per_second": count / (time.perf_counter() - begin), "log_loss": value}
    except Exception as error:  # whatever is missing or broken is reported, not hidden
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
