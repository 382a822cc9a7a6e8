"""Steps of gradient descent, or evaluations, of networks of images in PyTorch or JAX."""

import json
import math
import sys
import time

import numpy as np

ENGINE, THREADS, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def read(name):
    return np.fromfile(f"{FOLDER}/{name}.f64", dtype=np.float64)


def blocks(layers, flat, kind):
    """The parameters, layer by layer, as arrays."""
    parts, at = [], 0
    for layer in layers:
        for shape in layer.get("blocks", []):
            size = math.prod(shape)
            parts.append(flat[at : at + size].reshape(shape).astype(kind))
            at += size
    return parts


class Torch:
    def __init__(self, case):
        import torch

        torch.set_num_threads(THREADS)
        self.torch, self.case = torch, case
        self.kind = torch.float32 if case["precision"] == "f32" else torch.float64
        images = torch.from_numpy(read("conv.inputs").reshape(-1, *case["image"])).to(self.kind)
        # single precision is fastest with channels side by side, double precision without
        self.last = case["precision"] == "f32"
        self.images = images.to(memory_format=torch.channels_last) if self.last else images
        self.labels = torch.from_numpy(read("conv.labels").astype(np.int64))
        self.forward = torch.compile(self.scores) if ENGINE == "torch-compile" else self.scores

    def scores(self, weights, x):
        functional, at = self.torch.nn.functional, 0
        for layer in self.case["layers"]:
            own = weights[at : at + len(layer.get("blocks", []))]
            at += len(own)
            bias = own[1] if len(own) > 1 else None
            if layer["kind"] == "conv":
                top, left, bottom, right = layer["zeros"]
                if top == bottom and left == right:
                    x = functional.conv2d(x, own[0], bias, layer["stride"], (top, left))
                else:
                    x = functional.conv2d(functional.pad(x, (left, right, top, bottom)), own[0], bias, layer["stride"])
            elif layer["kind"] == "max":
                x = functional.max_pool2d(x, layer["size"], layer["stride"])
            elif layer["kind"] == "average":
                x = functional.avg_pool2d(x, layer["size"], layer["stride"])
            else:
                x = functional.linear(x.flatten(1), own[0], bias)
            if layer["relu"]:
                x = functional.relu(x)
        return x

    def start(self):
        kind = np.float32 if self.last else np.float64
        parts = [self.torch.from_numpy(part) for part in blocks(self.case["layers"], read("conv.params"), kind)]
        if self.last:
            form = self.torch.channels_last
            parts = [part.to(memory_format=form) if part.dim() == 4 else part for part in parts]
        return [part.requires_grad_() for part in parts]

    def step(self, weights):
        loss = self.torch.nn.functional.cross_entropy(self.forward(weights, self.images), self.labels)
        for weight in weights:
            weight.grad = None
        loss.backward()
        with self.torch.no_grad():
            for weight in weights:
                weight.add_(weight.grad, alpha=-self.case["rate"])
        return weights

    def loss(self, weights):
        total = 0.0
        with self.torch.no_grad():
            for first in range(0, len(self.labels), 500):
                part = slice(first, first + 500)
                scores = self.forward(weights, self.images[part]).double()
                total += self.torch.nn.functional.cross_entropy(scores, self.labels[part], reduction="sum").item()
        return math.log(total / len(self.labels))

    def flat(self, weights):
        return np.concatenate([weight.detach().double().contiguous().numpy().ravel() for weight in weights])


class Jax:
    def __init__(self, case):
        import os

        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if THREADS > 1 else 'false'}"
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.case = jax, case
        self.kind = np.float32 if case["precision"] == "f32" else np.float64
        self.images = jax.numpy.asarray(read("conv.inputs").reshape(-1, *case["image"]), dtype=self.kind)
        self.labels = jax.numpy.asarray(read("conv.labels").astype(np.int64))
        self.move = jax.jit(self.moved)
        self.total = jax.jit(self.total_loss)

    def scores(self, weights, x):
        numpy, lax, at = self.jax.numpy, self.jax.lax, 0
        for layer in self.case["layers"]:
            own = weights[at : at + len(layer.get("blocks", []))]
            at += len(own)
            if layer["kind"] == "conv":
                top, left, bottom, right = layer["zeros"]
                stride = (layer["stride"],) * 2
                form = ("NCHW", "OIHW", "NCHW")
                x = lax.conv_general_dilated(x, own[0], stride, [(top, bottom), (left, right)], dimension_numbers=form)
                x = x + own[1][None, :, None, None] if len(own) > 1 else x
            elif layer["kind"] in ("max", "average"):
                window, stride = (1, 1) + (layer["size"],) * 2, (1, 1) + (layer["stride"],) * 2
                if layer["kind"] == "max":
                    x = lax.reduce_window(x, -numpy.inf, lax.max, window, stride, "VALID")
                else:
                    x = lax.reduce_window(x, 0.0, lax.add, window, stride, "VALID") / layer["size"] ** 2
            else:
                x = x.reshape(len(x), -1) @ own[0].T
                x = x + own[1] if len(own) > 1 else x
            x = numpy.maximum(x, 0) if layer["relu"] else x
        return x

    def losses(self, weights, x, y):
        scores = self.scores(weights, x)
        return self.jax.nn.logsumexp(scores, axis=1) - scores[self.jax.numpy.arange(len(y)), y]

    def moved(self, weights, x, y):
        gradient = self.jax.grad(lambda weights: self.losses(weights, x, y).mean())(weights)
        return [weight - self.case["rate"] * change for weight, change in zip(weights, gradient)]

    def total_loss(self, weights, x, y):
        return self.losses(weights, x, y).astype(np.float64).sum()

    def start(self):
        return [self.jax.numpy.asarray(part) for part in blocks(self.case["layers"], read("conv.params"), self.kind)]

    def step(self, weights):
        return self.jax.block_until_ready(self.move(weights, self.images, self.labels))

    def loss(self, weights):
        total = 0.0
        for first in range(0, len(self.labels), 500):
            part = slice(first, first + 500)
            total += float(self.total(weights, self.images[part], self.labels[part]))
        return math.log(total / len(self.labels))

    def flat(self, weights):
        return np.concatenate([np.asarray(weight, dtype=np.float64).ravel() for weight in weights])


case = json.load(open(f"{FOLDER}/conv.json"))
engine = Jax(case) if ENGINE == "jax" else Torch(case)
ended = None
for line in sys.stdin:
    seconds = float(line.split()[1])
    if ended is None:
        ended = engine.start()
        for _ in range(case["steps"]):
            ended = engine.step(ended)
        engine.flat(ended).tofile(f"{FOLDER}/{ENGINE}.end.f64")
    log_loss, count, weights = engine.loss(ended), 0, engine.start()
    begin = time.perf_counter()
    while count == 0 or time.perf_counter() - begin < seconds:
        if case["evaluate"]:
            engine.loss(weights)
        else:
            weights = engine.step(weights)
        count += 1
    rate = count / (time.perf_counter() - begin)
    print(json.dumps({"steps_per_second": rate, "log_loss": log_loss}), flush=True)
