"""MaxMarginClassifier against SVC(C=1e10) and LinearSVC: how many digits of the largest margin, in how much time?

    python crates/limitpoint-py/benches/margins.py [--rounds 5] [--mnist FOLDER] [--plot docs/sklearn.png]

Digits are −log₁₀(1 − γ/γ*), where γ is the margin of the hyperplane that a solver found, its intercept moved to the best place, and
γ* the upper bound that our judge proves. Times are the least of all rounds, solvers in turns. Needs scikit-learn; the plot Matplotlib.
"""

import argparse
import gzip
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import limitpoint as lp


def problems(mnist: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Separable problems: those that travel with scikit-learn, and drawn ones of the size of public ones."""
    for name, load, positive in [
        ("wine, 0 against rest", datasets.load_wine, 0),
        ("breast cancer", datasets.load_breast_cancer, 1),
        ("digits, 0 against rest", datasets.load_digits, 0),
    ]:
        X, y = load(return_X_y=True)
        yield name, np.ascontiguousarray(StandardScaler().fit_transform(X)), np.where(y == positive, 1.0, -1.0)
    for name, rows, columns in [("as large as colon", 62, 2000), ("as large as leukemia", 72, 7129), ("as large as madelon", 2000, 500)]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(rows, columns))
        y = np.sign(X @ rng.normal(size=columns))
        yield name, X + (0.05 if rows > columns else 0.0) * y[:, None] * X.std(), y
    if mnist is not None:
        images = np.frombuffer(_bytes(mnist, "train-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 784) / 255.0
        labels = np.frombuffer(_bytes(mnist, "train-labels-idx1-ubyte")[8:], np.uint8)
        chosen = labels < 2
        yield "MNIST, 0 against 1", np.ascontiguousarray(images[chosen]), np.where(labels[chosen] == 1, 1.0, -1.0)


def _bytes(folder: Path, name: str) -> bytes:
    packed = folder / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()


SOLVERS: dict[str, Callable[[], object]] = {
    "MaxMarginClassifier": lambda: lp.MaxMarginClassifier(norm="l2"),
    "SVC(C=1e10)": lambda: SVC(kernel="linear", C=1e10, max_iter=300_000),
    "SVC(C=1e10, tol=1e-8)": lambda: SVC(kernel="linear", C=1e10, tol=1e-8, max_iter=300_000),
    "LinearSVC(C=1e10)": lambda: LinearSVC(C=1e10, loss="hinge", tol=1e-8, max_iter=5_000),
}


def margin(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """The margin of the direction w with the best intercept."""
    scores = X @ w
    return float((scores[y > 0].min() - scores[y < 0].max()) / 2 / np.linalg.norm(w))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--mnist", type=Path, help="folder with MNIST's IDX files")
    words.add_argument("--plot", type=Path)
    asked = words.parse_args()
    warnings.filterwarnings("ignore")
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for name, X, y in problems(asked.mnist):
        seconds: dict[str, float] = {}
        found: dict[str, float] = {}
        judge = None
        for _ in range(asked.rounds):
            for solver, make in SOLVERS.items():
                model = make()
                begin = time.perf_counter()
                model.fit(X, y)
                took = time.perf_counter() - begin
                seconds[solver] = min(took, seconds.get(solver, took))
                found[solver] = margin(model.coef_.ravel(), X, y)
                judge = model if solver == "MaxMarginClassifier" else judge
        if not judge.separable_:
            print(f"{name}: not separable")
            continue
        best = judge.margin_ / (1 - judge.gap_)
        table[name] = {s: (seconds[s], min(16.0, -np.log10(max(1e-16, 1 - found[s] / best)))) for s in SOLVERS}
        print(f"\n{name}: {X.shape[0]} x {X.shape[1]}, margin {best:.6e}, proven gap {judge.gap_:.1e}")
        for solver, (took, digits) in table[name].items():
            wrong = " (does not separate)" if found[solver] <= 0 else ""
            print(f"  {solver:<24} {took * 1e3:>10.2f} ms  {digits:>5.1f} digits{wrong}", flush=True)
    if asked.plot is not None:
        draw(table, asked.plot)


def draw(table: dict[str, dict[str, tuple[float, float]]], path: Path) -> None:
    """One panel a problem: time across, digits up."""
    from matplotlib import pyplot

    columns = (len(table) + 1) // 2
    figure, axes = pyplot.subplots(2, columns, figsize=(3.2 * columns, 5.6), sharey=True, squeeze=False)
    for panel in axes.ravel()[len(table) :]:
        panel.set_visible(False)
    for panel, (name, row) in zip(axes.ravel(), table.items(), strict=False):
        for (solver, (took, digits)), mark in zip(row.items(), "o^sv", strict=True):
            panel.plot(1e3 * took, max(digits, 0.0), mark, markersize=8, label=solver)
        panel.set_xlim(0, 1.15e3 * max(took for took, _ in row.values()))
        panel.set_ylim(-0.5, 17)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("milliseconds", fontsize=8)
        panel.grid(alpha=0.3)
    axes[0, 0].set_ylabel("digits of the largest margin")
    axes[1, 0].set_ylabel("digits of the largest margin")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
