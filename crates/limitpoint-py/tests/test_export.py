"""What other people's viewers get is what was measured."""

import math
import sys
import types

import numpy as np
import pytest

import limitpoint as lp


@pytest.fixture
def trained(separable):
    X, y = separable
    return lp.run(X, y, model="relu 8", optimiser="sign", seed=1, until=-400)


def measured(run, prefixes=("log10_", "margin.", "tau.")):
    """Step → column → number, as it should arrive."""
    names = [name for name in run.history if name.startswith(prefixes)]
    rows = {}
    for row, step in enumerate(run.history["step"]):
        numbers = {name: float(run.history[name][row]) for name in names}
        rows[int(step)] = {name: value for name, value in numbers.items() if math.isfinite(value)}
    return {step: numbers for step, numbers in rows.items() if numbers}


def test_trackio_reads_back_value_for_value(trained, tmp_path, monkeypatch):
    # read when it is imported
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    from trackio import sqlite_storage

    sent = lp.export(trained, to="trackio", project="tested", auto_log_gpu=False, auto_log_cpu=False)
    logs = sqlite_storage.SQLiteStorage.get_logs("tested", trained.name)
    expected = measured(trained)
    names = {name for numbers in expected.values() for name in numbers}
    found = {log["step"]: {name: log[name] for name in names if name in log} for log in logs}
    assert found == expected
    assert sent == sum(len(numbers) for numbers in expected.values())
    # far below what a float of the loss could hold, and not 0
    assert min(numbers["log10_loss"] for numbers in found.values()) <= -400
    assert sqlite_storage.SQLiteStorage.get_run_config("tested", trained.name)["optimiser"] == "sign"


@pytest.fixture
def wandb(monkeypatch):
    """The three functions of Weights & Biases that are called, taken down."""
    calls = []
    module = types.ModuleType("wandb")

    def recorder(called):
        return lambda *given, **named: calls.append((called, given, named))

    for called in ("init", "log", "finish"):
        setattr(module, called, recorder(called))
    monkeypatch.setitem(sys.modules, "wandb", module)
    return calls


def test_wandb_gets_every_run_and_only_what_is_asked_for(trained, separable, wandb):
    X, y = separable
    other = lp.run(X, y, model="relu 8", optimiser="gradient", seed=1, until=-5)
    sent = lp.export([trained, other], to="wandb", project="p", columns=["margin.l2"], mode="offline")
    assert [named["name"] for name, _, named in wandb if name == "init"] == [trained.name, other.name]
    assert all(named["mode"] == "offline" and named["project"] == "p" for name, _, named in wandb if name == "init")
    logged = [(given[0], named["step"]) for name, given, named in wandb if name == "log"]
    assert sent == len(logged) and all(list(numbers) == ["margin.l2"] for numbers, _ in logged)
    margins = trained.history["margin.l2"]
    assert logged[0][0]["margin.l2"] == margins[np.isfinite(margins)][0]
    assert sum(name == "finish" for name, _, _ in wandb) == 2


def test_what_cannot_be_exported_is_said_before_anything_is_sent(trained, wandb):
    with pytest.raises(lp.Error, match="no column 'margin.nothing'; there are step"):
        lp.export(trained, to="wandb", columns=["margin.nothing"])
    with pytest.raises(lp.Error, match="there are 'trackio' and 'wandb'"):
        lp.export(trained, to="nowhere")
    assert wandb == []
