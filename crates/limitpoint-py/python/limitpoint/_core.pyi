"""The private core, written in Rust; see the public functions for what the arguments mean."""

from collections.abc import Callable
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Damaged",
    "Data",
    "Error",
    "Record",
    "Run",
    "check_tangent",
    "claims",
    "fingerprint",
    "fingerprint_paths",
    "free_margin",
    "gram_weights",
    "horizon",
    "interpolate",
    "list_claims",
    "main",
    "model_text",
    "norm_values",
    "open_run",
    "probes",
    "run_experiment",
    "run_names",
    "save_tangent",
    "scores_of",
    "solve_margin",
    "tangent",
    "train",
]

_Floats = NDArray[np.float64]
_Path = str | PathLike[str]

class Error(ValueError):
    """What limitpoint refuses, with the value, the place and the remedy."""

class Damaged(Error):
    """A file of a run or a certificate is damaged or was tampered with."""

@final
class Data:
    @staticmethod
    def dense(
        inputs: _Floats, targets: _Floats, kind: str, shape: list[int], name: str, sealed: bool = True
    ) -> Data: ...
    @staticmethod
    def sparse(
        columns: int,
        starts: NDArray[np.int64],
        indices: NDArray[np.int64],
        values: _Floats,
        targets: _Floats,
        kind: str,
        name: str,
    ) -> Data: ...
    def __len__(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def kind(self) -> str: ...

@final
class Run:
    @property
    def seconds(self) -> float: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def log10_loss(self) -> float: ...
    @property
    def log10_time(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def healthy(self) -> bool: ...
    @property
    def own_norm(self) -> str | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def degree(self) -> float | None: ...
    @property
    def description(self) -> dict[str, Any]: ...
    def resume(self, tell: Callable[[int, float], object] | None = None) -> Run: ...
    def weights(self, initial: bool = False) -> _Floats: ...
    def blocks(self) -> dict[str, _Floats]: ...
    def history(self) -> dict[str, _Floats]: ...
    def margin(self, norm: str) -> float: ...
    def norm(self, norm: str) -> float: ...
    def scores(self, data: Data) -> _Floats: ...
    def accuracy(self, data: Data) -> float: ...
    def certify(self, norm: str | None = None, tolerance: float | None = None) -> dict[str, Any]: ...
    def polish(
        self, norm: str | None = None, target: float | None = None, rounds: int | None = None
    ) -> tuple[Run, dict[str, Any]]: ...

@final
class Record:
    @staticmethod
    def load(folder: _Path) -> Record: ...
    @staticmethod
    def of(title: str, runs: list[tuple[str, str, list[tuple[str, str]], Run]]) -> Record: ...
    def html(self) -> str: ...
    def save(self, folder: _Path, svg: bool = False) -> _Path: ...
    def figures(self) -> dict[str, str]: ...
    def table(self) -> str: ...
    def summary(self) -> dict[str, Any]: ...
    def describe(self) -> dict[str, Any]: ...
    def history(self, name: str) -> dict[str, _Floats]: ...

def train(data: Data, settings: str, tell: Callable[[int, float], object] | None = None) -> Run: ...
def run_experiment(
    source: str | None,
    overrides: list[str],
    folder: _Path,
    threads: int | None = None,
    data_dir: _Path | None = None,
    tell: Callable[[list[tuple[str, int, float, float]], list[str]], object] | None = None,
) -> bool: ...
def run_names(folder: _Path) -> list[str]: ...
def open_run(folder: _Path, name: str, data_dir: _Path | None = None) -> Run: ...
def free_margin(data: Data) -> dict[str, Any] | None: ...
def solve_margin(data: Data, norm: str, semidefinite: bool = False) -> dict[str, Any]: ...
def interpolate(
    data: Data,
    norm: str | None = None,
    potential: str | None = None,
    start: _Floats | None = None,
    total: float | None = None,
) -> dict[str, Any]: ...
def fingerprint(
    optimiser: str,
    starts: int = 2,
    schedule: str | None = None,
    log10_loss: float | None = None,
    steps: int | None = None,
    norms: list[str] = ...,
) -> dict[str, Any]: ...
def horizon(potential: str) -> dict[str, Any]: ...
def claims(
    ids: list[str],
    scale: str = "quick",
    mnist: _Path | None = None,
    tell: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]: ...
def list_claims() -> list[tuple[str, str]]: ...
def model_text(text: str) -> str: ...
def main(words: list[str]) -> int: ...
def norm_values(blocks: list[tuple[str, int, int]], vector: _Floats, norms: list[str], dual: bool = False) -> list[float]: ...
def tangent(
    blocks: list[tuple[str, int, int]],
    params: _Floats,
    margins: _Floats,
    degree: float,
    rows: _Floats,
    margin_of_row: list[int],
    norm: str,
) -> dict[str, Any]: ...
def gram_weights(gram: _Floats) -> tuple[_Floats, float, float]: ...
def save_tangent(
    path: _Path,
    blocks: list[tuple[str, int, int]],
    params: _Floats,
    margins: _Floats,
    degree: float,
    rows: _Floats | None,
    gram: _Floats | None,
    margin_of_row: list[int],
    claims: list[tuple[str, str, float, float, _Floats, _Floats | None]],
    about: str,
    data_sha256: str,
) -> None: ...
def check_tangent(path: _Path) -> tuple[list[str], list[dict[str, Any]]]: ...
def scores_of(model: str, weights: _Floats, data: Data) -> _Floats: ...
def probes(starts: int) -> tuple[list[dict[str, Any]], list[float]]: ...
def fingerprint_paths(
    name: str, paths: list[tuple[str, int, int, str, list[tuple[int, _Floats]]]]
) -> dict[str, Any]: ...
