"""Teacher and student in PyTorch, driven line by line from stdin.

usage: figure_1.py ENGINE THREADS FOLDER      ENGINE: torch-eager or torch-compile

Each request is a line "ALGORITHM SECONDS"; FOLDER/figure.json describes the problem and FOLDER/figure.*.f64 hold its
numbers. The answer is a JSON line {"steps_per_second": ..., "log_loss": ...}, the latter after 100 steps from the start.
"""

import json
import os
import sys
import time

ENGINE, THREADS, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
CHUNK = 100
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

import numpy as np
import torch

torch.set_num_threads(THREADS)
with open(os.path.join(FOLDER, "figure.json")) as file:
    SPEC = json.load(file)
N, D, K, RATE = (SPEC[name] for name in ("examples", "features", "width", "rate"))


def array(part, shape):
    return torch.from_numpy(np.fromfile(os.path.join(FOLDER, f"figure.{part}.f64"))).reshape(shape)


X, Y, FLAT = array("inputs", (N, D)), array("labels", N), array("params", -1)
START = [FLAT[: K * D].reshape(K, D).clone(), FLAT[K * D:].reshape(1, K).clone()]


def make(algorithm):
    params = [w.clone().requires_grad_(True) for w in START]

    def log_loss(params):
        w, u = params
        return torch.logsumexp(-Y * (torch.relu(X @ w.T) @ u.T).squeeze(1), 0)

    def gradient(params, gradients, loss):
        for w, g in zip(params, gradients):
            w.sub_(RATE * torch.exp(loss) * g)

    def sign(params, gradients, loss):
        for w, g in zip(params, gradients):
            w.sub_(torch.sign(g), alpha=RATE)

    def coordinate(params, gradients, loss):
        flat = [g.reshape(-1) for g in gradients]
        best = [int(torch.argmax(g.abs())) for g in flat]
        layer = int(flat[1][best[1]].abs() > flat[0][best[0]].abs())
        params[layer].view(-1)[best[layer]] -= RATE * torch.sign(flat[layer][best[layer]])

    update = {"gd": gradient, "sd": sign, "cd": coordinate}[algorithm]
    forward = log_loss
    if ENGINE == "torch-compile":
        forward = torch.compile(log_loss)
        # picking one weight leaves the graph anyway
        update = update if algorithm == "cd" else torch.compile(update)

    def chunk():
        with torch.no_grad():
            for w, s in zip(params, START):
                w.copy_(s)
        for _ in range(CHUNK):
            loss = forward(params)
            gradients = torch.autograd.grad(loss, params)
            with torch.no_grad():
                update(params, gradients, loss.detach())
        with torch.no_grad():
            return float(log_loss(params))

    return chunk


chunks = {}
for line in sys.stdin:
    try:
        name, seconds = line.split()[0], float(line.split()[1])
        if name not in chunks:
            chunks[name] = make(name)
            chunks[name]()
        value, count, begin = chunks[name](), 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            chunks[name]()
            count += CHUNK
        answer = {"steps_per_second": count / (time.perf_counter() - begin), "log_loss": value}
    except Exception as error:  # whatever is missing or broken is reported, not hidden
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
