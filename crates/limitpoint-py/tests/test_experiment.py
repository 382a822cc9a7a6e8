"""Experiments in folders: the same bits as the command line, interrupted and resumed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import limitpoint as lp


def command(*words, code=0):
    done = subprocess.run([sys.executable, "-m", "limitpoint", *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_python_and_the_command_line_agree_to_the_last_bit(separable, tmp_path):
    X, y = separable
    np.savez(tmp_path / "data.npz", X=X, y=y)
    recipe = """
loss = "logistic"
model = { network = { widths = [16], activation = "relu" } }
optimiser = "sign"
seeds = [3]
stop.log10_loss = -60
[data.file]
path = "data.npz"
task = "binary"
"""
    (tmp_path / "mine.toml").write_text(recipe)
    command("run", "mine.toml", "--quiet", "--out", "there")
    theirs = lp.load("there")["sign-seed3"]
    ours = lp.run(X, y, model="relu 16", optimiser="sign", seed=3, until=-60)
    assert np.array_equal(ours.weights, theirs.weights)
    assert ours.log10_loss == theirs.log10_loss and ours.steps == theirs.steps
    for column, values in theirs.history.items():
        if column != "seconds":
            assert np.array_equal(ours.history[column], values, equal_nan=True), column
    assert ours.margins == theirs.margins
    one, other = ours.certify("linf"), theirs.certify("linf")
    assert one == other
    certified = json.loads(command("certify", "there/sign-seed3", "--norm", "linf", "--format", "json", code=1))
    assert certified[0]["verdict"] == one.verdict and certified[0]["summary"] == one.summary
    through = lp.run("mine.toml", out="again")["sign-seed3"]
    assert np.array_equal(through.weights, ours.weights)


def test_solve_margin_agrees_with_the_command_line(separable, tmp_path):
    X, y = separable
    np.savez(tmp_path / "data.npz", X=X, y=y)
    for norm in ("l1", "l2", "linf", "lp:3"):
        told = json.loads(command("solve", "margin", "data.npz", "--norm", norm, "--format", "json"))
        found = lp.solve_margin(X, y, norm=norm)
        assert told["margin"] == found.margin and told["direction"] == found.direction.tolist()
        assert told["dual"] == found.dual.tolist() and told["support"] == found.support.tolist()


def test_experiments_by_name(tmp_path):
    found = lp.run("linear", until=-10, seed=[1, 2], out="mine")
    assert len(found) == 6 and (tmp_path / "mine" / "report.html").exists() and found.name == "linear"
    assert "runs" not in os.listdir() and "gradient" in found.table and found.config and found.title
    loaded = lp.load("mine")
    assert list(loaded.runs) == list(found.runs) and repr(loaded).startswith("<Experiment linear of 6")
    alone = lp.load("mine/sign-seed2")
    assert list(alone.runs) == ["sign-seed2"] and alone["sign-seed2"].certify("linf").verdict
    with pytest.raises(lp.Error, match="already holds"):
        lp.run("linear", out="mine")
    with pytest.raises(lp.Error, match="no experiment"):
        lp.load("nowhere")
    swept = lp.sweep("linear", optimiser="sign", until=-5, overrides={"seed": [1, 2, 3]})
    assert len(swept) == 3 and (tmp_path / "runs" / "linear").is_dir()
    further = lp.resume("mine", "stop.log10_loss=-12")
    assert all(run.log10_loss <= -12 for run in further)
    with pytest.raises(lp.Error, match="linaer"):
        lp.run("linaer")
    with pytest.raises(lp.Error, match="no setting 'colour'"):
        lp.run("linear", colour="red")
    assert sorted(os.listdir("runs")) == ["linear"]


def test_damage_is_told(tmp_path):
    lp.run("linear", until=-3, optimiser="sign", out="mine")
    table = tmp_path / "mine" / "sign-seed0" / "metrics.csv"
    table.write_text(table.read_text().replace("1", "2", 1))
    with pytest.raises(lp.Damaged):
        lp.load("mine")


def interrupt_after(seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def interrupt_when(ready):
    def wait():
        while not ready():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def test_ctrl_c_stops_a_run_and_leaves_it_resumable(separable):
    X, y = separable
    settings = {"model": "relu 16", "schedule": "flow-resolved(resolution=0.00005)", "until": -30, "steps": 400_000}
    begin = time.monotonic()
    expected = lp.run(X, y, **settings)
    # in the middle, however fast the machine is
    interrupt_after(0.4 * (time.monotonic() - begin))
    with pytest.raises(lp.Interrupted) as stopped:
        lp.run(X, y, **settings)
    assert isinstance(stopped.value, KeyboardInterrupt)
    half = stopped.value.run
    assert half.interrupted and 0 < half.steps < 400_000 and half.reason == "interrupted"
    whole = lp.resume()
    assert np.array_equal(whole.weights, expected.weights) and whole.steps > half.steps
    with pytest.raises(lp.Error, match="nothing was interrupted"):
        lp.resume()
    with pytest.raises(lp.Error, match="nothing to resume"):
        whole.resume()


def test_ctrl_c_leaves_an_experiment_resumable():
    settings = {"optimiser": "sign", "schedule": "flow-resolved(resolution=0.0001)", "until": -1e9, "steps": 10**12}
    # written while a run goes on
    run = Path("half/sign-seed0")
    interrupt_when(lambda: (run / "claim.json").exists())
    with pytest.raises(lp.Interrupted, match="checkpoints in"):
        lp.run("linear", out="half", **settings)
    assert not (lp.load("half")["sign-seed0"].healthy)
    with pytest.raises(lp.Error, match="not finished"):
        lp.load("half")["sign-seed0"].weights
    interrupt_when(lambda: (run / "claim.json").exists())
    with pytest.raises(lp.Interrupted):
        lp.resume("half")


def test_python_goes_on_while_rust_computes(separable):
    X, y = separable
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    worker = threading.Thread(target=tick)
    worker.start()
    inside = 0
    for _ in range(100):
        begin = time.monotonic()
        lp.run(X, y, model="relu 16", schedule="flow-resolved(resolution=0.0005)", until=-30, steps=60_000)
        # in the middle of a call, where nothing but Rust runs
        quarter = (time.monotonic() - begin) / 4
        inside += sum(begin + quarter < tick < begin + 3 * quarter for tick in ticks)
        if inside > 3:
            break
    done.set()
    worker.join()
    assert inside > 3


def test_the_command_is_in_the_package():
    assert "limitpoint trains linear models" in command("--help")
    assert "error" in command("run", "nothing-of-the-kind", "--format", "json", code=2)
    from limitpoint import _command

    assert callable(_command.main)


def test_runs_in_memory_make_an_experiment(separable):
    X, y = separable
    runs = [lp.run(X, y, optimiser=name, until=-20) for name in ("gradient", "sign")]
    together = lp.Experiment.of("mine", runs, [{"rate": 1}, {"rate": 2}])
    assert together.name == "mine" and len(together) == 2 and all(run.optimiser in together.table for run in runs)
    alone = runs[1].experiment()
    assert list(alone.runs) == [runs[1].name] and "sign" in alone.table
    judged = runs[1].certify("linf")
    assert judged.certified == bool(judged) == (judged.verdict == "certified")
