"""Several runs together: those of an experiment's folder, or those of a sweep in memory."""

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from . import _core
from ._history import History
from ._progress import Progress
from ._run import Interrupted, Run, last_interrupted, remember


class Experiment:
    """Runs that belong together. `limitpoint.run`, `limitpoint.sweep` and `limitpoint.load` make them."""

    def __init__(self, record: _core.Record, runs: Iterable[Run], folder: Path | None = None) -> None:
        self._record = record
        self._described = record.describe()
        self.folder = folder
        """Where its files are; None for runs in memory."""
        self.runs = {run.name: run for run in runs}
        """The runs by name."""

    @classmethod
    def of(cls, name: str, runs: Iterable[Run], points: Iterable[dict[str, Any]] = ()) -> "Experiment":
        """An experiment of runs in memory; `points` says in which settings they differ."""
        runs = list(runs)
        settings = list(points) or [{} for _ in runs]
        named = [
            (run.name, run.optimiser, [(key, str(value)) for key, value in point.items()], run.core)
            for run, point in zip(runs, settings, strict=True)
        ]
        return cls(_core.Record.of(name, named), runs)

    @property
    def name(self) -> str:
        """Name of the recipe."""
        return str(self._described["name"])

    @property
    def title(self) -> str:
        """A title for people."""
        return str(self._described["title"])

    @property
    def config(self) -> str:
        """The resolved recipe as TOML; empty for runs in memory."""
        return str(self._described["config"])

    @property
    def table(self) -> str:
        """The table of final values, as `limitpoint run` prints it."""
        return self._record.table()

    @property
    def summary(self) -> dict[str, Any]:
        """The table as data, what stands out in it, and runs that failed."""
        return self._record.summary()

    def figures(self) -> dict[str, str]:
        """Figures as SVG, by name."""
        return self._record.figures()

    def report(self, path: str | Path | None = None, *, svg: bool = False) -> Path:
        """Writes the page with everything that was measured: into the experiment's folder, or to `path`."""
        if path is None and self.folder is not None:
            return Path(self._record.save(self.folder, svg))
        page = Path(path if path is not None else "report.html")
        page.write_text(self._record.html(), encoding="utf-8")
        if svg:
            for name, drawing in self.figures().items():
                page.with_name(f"{name}.svg").write_text(drawing, encoding="utf-8")
        return page

    def __getitem__(self, name: str) -> Run:
        return self.runs[name]

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs.values())

    def __len__(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        return self.table + (f"\n{self.folder / 'report.html'}" if self.folder is not None else "")

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder is not None else ""
        return f"<Experiment {self.name} of {len(self)} runs{where}>"

    def _repr_html_(self) -> str:
        drawn = self.figures()
        chosen = [name for name in drawn if name.startswith("margin-")][:3] or list(drawn)[:1]
        pictures = "".join(f"<div style='max-width:24em'>{drawn[name]}</div>" for name in chosen)
        return (
            f"<p><b>{escape(self.title or self.name)}</b></p><pre>{escape(self.table)}</pre>"
            f"<div style='display:flex;flex-wrap:wrap;gap:1em'>{pictures}</div>"
        )


def load(folder: str | Path, *, data_dir: str | Path | None = None) -> Experiment:
    """Reads what an experiment left behind: its folder, or that of one of its runs."""
    place = Path(folder)
    only = None
    if not (place / "manifest.json").exists():
        raise _core.Error(f"{place} holds no experiment: there is no manifest.json")
    if (place / "metrics.csv").exists() or (place / "checkpoints").is_dir():
        place, only = place.resolve().parent, place.resolve().name
    record = _core.Record.load(place)
    runs = []
    for facts in record.describe()["runs"]:
        name = str(facts["name"])
        if only is None or only == name:
            runs.append(_from_folder(place, name, facts, record, None if data_dir is None else Path(data_dir)))
    return Experiment(record, runs, place)


def _from_folder(
    folder: Path, name: str, facts: dict[str, Any], record: _core.Record, data_dir: Path | None
) -> Run:
    return Run(
        lambda: _core.open_run(folder, name, data_dir),
        name=name,
        optimiser=str(facts["optimiser"]),
        facts=facts,
        history=lambda: History(record.history(name)),
        folder=folder / name,
    )


def execute(
    source: str | None,
    overrides: list[str],
    folder: Path,
    *,
    threads: int | None = None,
    data_dir: str | Path | None = None,
    report: bool = True,
    progress: bool | None = None,
) -> Experiment:
    """Runs an experiment in a folder and reads it back."""
    with Progress(progress) as shown:
        interrupted = _core.run_experiment(
            source, overrides, folder, threads, None if data_dir is None else Path(data_dir), shown.many
        )
    if interrupted:
        raise Interrupted(folder=remember(folder))
    experiment = load(folder, data_dir=data_dir)
    if report:
        experiment.report()
    return experiment


def resume(
    what: "str | Path | Run | None" = None,
    *overrides: str,
    threads: int | None = None,
    data_dir: str | Path | None = None,
    progress: bool | None = None,
) -> "Run | Experiment":
    """Goes on with what was interrupted: a folder, a run, or whatever Ctrl-C stopped last.

    A finished experiment goes on to a later stop, such as `resume("runs/mine", "stop.log10_loss=-2000")`.
    """
    target = last_interrupted() if what is None else what
    if target is None:
        raise _core.Error("nothing was interrupted in this session; name the folder of an experiment")
    if isinstance(target, Run):
        return target.resume(progress=progress)
    return execute(None, list(overrides), Path(target), threads=threads, data_dir=data_dir, progress=progress)
