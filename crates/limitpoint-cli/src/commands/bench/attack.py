"""Attacks a network with foolbox; answers one JSON line a request.

Arguments: engine (torch or jax), threads, folder. FOLDER/attack.json gives the layers, the labels, the walls of the box and, for
images, their channels, height and width; attack.weights.f64 and attack.inputs.f64 hold doubles. A layer is [outputs, inputs], or
{"conv": [outputs, inputs, height, width]} with as many zeros around as keep the sides, or {"pool": size} of windows side by side.
There is a ReLU after every convolution and every dense layer but the last, and there are no biases. Requests: {"attack": "carlini-wagner" or "deep-fool", settings of foolbox}.
"""
import json
import os
import sys
import time

engine, threads, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.environ["OMP_NUM_THREADS"] = str(threads)

import numpy as np


def load():
    with open(f"{folder}/attack.json") as file:
        spec = json.load(file)
    numbers = np.fromfile(f"{folder}/attack.weights.f64")
    layers = []
    for layer in spec["layers"]:
        if isinstance(layer, dict) and "pool" in layer:
            layers.append(layer["pool"])
            continue
        shape = layer["conv"] if isinstance(layer, dict) else layer
        layers.append(numbers[: np.prod(shape)].reshape(shape).astype(np.float32))
        numbers = numbers[np.prod(shape) :]
    shape = spec.get("shape") or [-1]
    inputs = np.fromfile(f"{folder}/attack.inputs.f64").reshape(len(spec["labels"]), *shape)
    return layers, inputs, np.array(spec["labels"]), tuple(spec["bounds"])


def with_torch(weights, bounds):
    import foolbox
    import torch

    torch.set_num_threads(threads)
    layers, flat = [], False
    for weight in weights:
        if isinstance(weight, int):
            layers.append(torch.nn.MaxPool2d(weight))
            continue
        if weight.ndim == 4:
            outputs, inputs, *sides = weight.shape
            layer = torch.nn.Conv2d(inputs, outputs, sides, padding="same", bias=False)
        else:
            layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            layers += [] if flat else [torch.nn.Flatten()]
            flat = True
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weight))
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return foolbox.PyTorchModel(model, bounds=bounds), torch.tensor


def with_jax(weights, bounds):
    import foolbox
    import jax
    import jax.numpy as jnp

    layers = [weight if isinstance(weight, int) else jnp.asarray(weight) for weight in weights]

    @jax.jit
    def scores(x):
        for index, layer in enumerate(layers):
            if isinstance(layer, int):
                window = (1, 1, layer, layer)
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
                continue
            if layer.ndim == 4:
                x = jax.lax.conv_general_dilated(x, layer, (1, 1), "SAME")
            else:
                x = x.reshape(len(x), -1) @ layer.T
            x = jnp.maximum(x, 0) if index + 1 < len(layers) else x
        return x

    return foolbox.JAXModel(scores, bounds=bounds), jnp.asarray


def main():
    try:
        weights, inputs, labels, bounds = load()
        model, tensor = {"torch": with_torch, "jax": with_jax}[engine](weights, bounds)
        from foolbox.attacks import L2CarliniWagnerAttack, L2DeepFoolAttack
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({"ready": engine}), flush=True)
    x, y = tensor(inputs.astype(np.float32)), tensor(labels)
    kinds = {"carlini-wagner": L2CarliniWagnerAttack, "deep-fool": L2DeepFoolAttack}
    for line in sys.stdin:
        settings = json.loads(line)
        attack = kinds[settings.pop("attack")](**settings)
        start = time.perf_counter()
        _, found, success = attack(model, x, y, epsilons=None)
        seconds = time.perf_counter() - start
        moved = np.linalg.norm((np.asarray(found, dtype=np.float64) - inputs).reshape(len(inputs), -1), axis=1)
        distances = [float(d) if ok else None for d, ok in zip(moved, np.asarray(success))]
        print(json.dumps({"seconds": seconds, "distances": distances}), flush=True)


main()
