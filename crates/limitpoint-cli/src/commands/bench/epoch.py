"""One epoch of a perceptron on MNIST-shaped images in PyTorch: batches of 100, then the loss of all images."""

import json
import math
import sys
import time

import numpy as np
import torch

THREADS, FOLDER = int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(THREADS)


def read(name, kind=np.float64):
    return np.fromfile(f"{FOLDER}/{name}.f64", dtype=np.float64).astype(kind)


SHAPE = json.load(open(f"{FOLDER}/epoch.json"))
N, D, WIDTH, CLASSES, BATCH, RATE = (SHAPE[key] for key in ("examples", "features", "width", "classes", "batch", "rate"))
pixels = np.fromfile(f"{FOLDER}/epoch.pixels", dtype=np.uint8).reshape(N, D)
inputs = torch.from_numpy(pixels.astype(np.float32) / np.float32(255))
labels = torch.from_numpy(read("epoch.labels", np.int64))
start = read("epoch.params", np.float32)


def epoch(weights):
    order = torch.randperm(N)
    for first in range(0, N, BATCH):
        rows = order[first : first + BATCH]
        hidden = torch.relu(inputs[rows] @ weights[0].T)
        loss = torch.nn.functional.cross_entropy((hidden @ weights[1].T).double(), labels[rows])
        for weight in weights:
            weight.grad = None
        loss.backward()
        with torch.no_grad():
            for weight in weights:
                weight.add_(weight.grad, alpha=-RATE)
    total = 0.0
    with torch.no_grad():
        for first in range(0, N, 5000):
            hidden = torch.relu(inputs[first : first + 5000] @ weights[0].T)
            scores = (hidden @ weights[1].T).double()
            total += torch.nn.functional.cross_entropy(scores, labels[first : first + 5000], reduction="sum").item()
    return math.log(total / N)


for line in sys.stdin:
    weights = [
        torch.tensor(start[: WIDTH * D].reshape(WIDTH, D), requires_grad=True),
        torch.tensor(start[WIDTH * D :].reshape(CLASSES, WIDTH), requires_grad=True),
    ]
    begin = time.perf_counter()
    log_loss = epoch(weights)
    seconds = time.perf_counter() - begin
    print(json.dumps({"steps_per_second": math.ceil(N / BATCH) / seconds, "log_loss": log_loss}), flush=True)
