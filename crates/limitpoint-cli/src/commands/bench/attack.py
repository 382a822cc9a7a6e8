"""Attacks a network with foolbox; answers one JSON line a request.

Arguments: engine (torch or jax), threads, folder. FOLDER/attack.json gives the shapes of the layers (outputs, inputs), the
number of examples, the labels and the walls of the box; attack.weights.f64 and attack.inputs.f64 hold doubles. The network has
ReLU between its layers and no biases. Requests: {"attack": "carlini-wagner" or "deep-fool", settings of foolbox}.
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
    weights = []
    for rows, columns in spec["layers"]:
        weights.append(numbers[: rows * columns].reshape(rows, columns).astype(np.float32))
        numbers = numbers[rows * columns :]
    inputs = np.fromfile(f"{folder}/attack.inputs.f64").reshape(len(spec["labels"]), -1)
    return weights, inputs, np.array(spec["labels"]), tuple(spec["bounds"])


def with_torch(weights, bounds):
    import foolbox
    import torch

    torch.set_num_threads(threads)
    layers = []
    for weight in weights:
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weight))
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return foolbox.PyTorchModel(model, bounds=bounds), torch.tensor


def with_jax(weights, bounds):
    import foolbox
    import jax.numpy as jnp

    turned = [jnp.asarray(weight.T) for weight in weights]

    def scores(x):
        for weight in turned[:-1]:
            x = jnp.maximum(x @ weight, 0)
        return x @ turned[-1]

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
        moved = np.linalg.norm(np.asarray(found, dtype=np.float64) - inputs, axis=1)
        distances = [float(d) if ok else None for d, ok in zip(moved, np.asarray(success))]
        print(json.dumps({"seconds": seconds, "distances": distances}), flush=True)


main()
