"""tau of a trained convolutional network, with nothing of limitpoint.

    usage: convolution.py DATA.npz WEIGHTS.safetensors NORM        (l2 or linf; prints one JSON object)

The network is written out here by shifts and sums, in JAX: 3 kernels of 3x3 with zeros around and biases, ReLU, a max-pool
of 2x2, 4 kernels of 3x3 without zeros, ReLU, a dense output. It is homogeneous of degree 3. Its rows are gradients of the
margins y f(x), and the tangent problem

    gamma = min |sum p_i h_i|_*  over the simplex,      tau = 1 - 3 min(q) / (|theta| gamma)

is solved by cvxpy.
"""

import json
import struct
import sys

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def tensors(path):
    """The tensors of a safetensors file: the length of a JSON header, the header, the numbers."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F64":
            first, last = about["data_offsets"]
            numbers = np.frombuffer(data[8 + length + first : 8 + length + last], dtype="<f8")
            found[name] = jnp.asarray(numbers.reshape(about["shape"]))
    return found


def correlate(image, kernel):
    """Cross-correlation of (channels, height, width) with (outputs, channels, 3, 3), without zeros around."""
    height, width = image.shape[1] - 2, image.shape[2] - 2
    total = 0.0
    for i in range(3):
        for j in range(3):
            total = total + jnp.einsum("oc,cyx->oyx", kernel[:, :, i, j], image[:, i : i + height, j : j + width])
    return total


def score(weights, image):
    padded = jnp.pad(image[None], ((0, 0), (1, 1), (1, 1)))
    first = correlate(padded, weights["layer1.weight"].reshape(3, 1, 3, 3)) + weights["layer1.bias"].reshape(3, 1, 1)
    first = jnp.maximum(first, 0.0)
    pooled = first.reshape(3, 4, 2, 4, 2).max(axis=(2, 4))
    second = jnp.maximum(correlate(pooled, weights["layer2.weight"].reshape(4, 3, 3, 3)), 0.0)
    return weights["layer3.weight"].reshape(-1) @ second.reshape(-1)


def main():
    data, weights, norm = np.load(sys.argv[1]), tensors(sys.argv[2]), sys.argv[3]
    names = ["layer1.weight", "layer1.bias", "layer2.weight", "layer3.weight"]
    weights = {name: weights[name] for name in names}
    value_and_row = jax.jit(jax.value_and_grad(score))
    margins, rows = [], []
    for image, label in zip(data["X"], data["y"]):
        value, gradient = value_and_row(weights, jnp.asarray(image))
        margins.append(label * float(value))
        rows.append(label * np.concatenate([np.asarray(gradient[name]).ravel() for name in names]))
    theta = np.concatenate([np.asarray(weights[name]).ravel() for name in names])
    order, dual = (2, 2) if norm == "l2" else (np.inf, 1)
    size = np.linalg.norm(theta, order)
    # rows of length about 1, which suits the solver
    scale = np.linalg.norm(np.mean(rows, axis=0), dual)
    p = cvxpy.Variable(len(rows), nonneg=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(np.array(rows).T / scale @ p, dual)), [cvxpy.sum(p) == 1])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    gamma = scale * problem.value
    tau = 1.0 - 3.0 * min(margins) / (size * gamma)
    print(json.dumps({"tau": tau, "smallest_margin": min(margins), "tangent_margin": gamma, "size": size}))


main()
