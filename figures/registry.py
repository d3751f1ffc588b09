"""The registry of figures, and the writing of their pictures, tables and Markdown."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..analysis.provenance_columns import with_provenance
from ..analysis.sweeps.protocol import SweepTask
from ..arguments import check_listed
from ..errors import DataNotFoundError
from ..extras import missing_extra
from ..files import check_folder
from ..loaded_by_name import LoadedByName
from ..progress import OnStep, notebook_progress
from .drawing.save import save_figure
from .drawing.style import print_style
from .entry import FigureEntry
from .listing import LISTING
from .markdown import markdown_document

if TYPE_CHECKING:
    from ..analysis.training.task import TrainingTask


def _entries(module: str) -> tuple[FigureEntry, ...]:
    loaded = import_module(f".{module}", __package__)
    return loaded.FIGURES if hasattr(loaded, "FIGURES") else (loaded.FIGURE,)


def _names() -> dict[str, tuple[str, ...]]:
    """Return the names of the figures that each module makes."""
    names: dict[str, tuple[str, ...]] = {}
    for name, listed in LISTING.items():
        names[listed.module] = (*names.get(listed.module, ()), name)
    return names


FIGURES: Mapping[str, FigureEntry] = LoadedByName(_names(), _entries)
"""Entries by name; accessing an entry loads its module."""
# Folder of the figures' tasks, beside the figures.
RESULTS = "results"


def reproduce(
    names: Sequence[str],
    output: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    data: Path | None = None,
    workers: int = 1,
    dask: str | None = None,
    cache: Path | None = None,
    on_step: OnStep = notebook_progress,
) -> list[Path]:
    """Make figures, one after the other, as SVG, PDF, PNG, CSV and Markdown.

    The CSV file holds the table behind the figure; the Markdown file is for readers. The tasks of a figure are a sweep in the folder
    ``results/<name>``. An interrupted run resumes, and a training resumes from its checkpoint. The same seed and the same versions of the
    software give the same files, for any number of workers.

    Parameters
    ----------
    names : sequence of str
        Names of figures (`FIGURES`). No names select all figures, or, with `data`, all figures that can run on some of the data.
    output : Path
        Folder of the files, created if missing.
    seed : int
        Root seed.
    quick : bool
        Whether to make each figure smaller, in half a minute on two cores, or trainings in one to three minutes.
    data : Path or None
        Folder with the data of the papers, in the layout of `found_data`. The trainings are then those of the papers, on all data sets of
        the figure that the folder holds. Figures without `FigureEntry.on_data` refuse it.
    workers, dask, cache
        Workers, scheduler and folder of tables, as in `run_tasks`.
    on_step : callable
        Progress callback ``on_step(done, total, text)`` over all figures together.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ValueError
        If a figure's name is unknown, an argument is out of range, a figure that needs no data gets a folder, or, as a `MissingExtraError`,
        if a model needs torch, which is not installed. No task runs then.
    DataError
        If a file of the data is damaged, or, as a `DataNotFoundError`, if the folder has no data for a named figure. No task runs then.
    IncompleteSweepError
        If some tasks failed; the other tasks are finished and saved.
    """
    check_folder(output)
    if names or data is None:
        for name in names:
            check_listed("figure", name, FIGURES, "quietbits reproduce --help")
        tasks = {name: _tasks(FIGURES[name], seed, data, quick=quick) for name in names or FIGURES}
    else:
        tasks = _tasks_on(data, seed, quick=quick, on_step=on_step)
    total = _steps(tasks)
    files, before = [], 0
    for name, own in tasks.items():
        entry = FIGURES[name]
        progress = _part_of(on_step, before, len(own), total, entry.name)
        rows = entry.run(own, output / RESULTS / entry.name, workers=workers, dask=dask, cache=cache, on_step=progress)
        before += len(own)
        on_step(before, total, f"drawing {entry.name}")
        files += _write(entry, entry.table(_without_provenance(rows)), output, seed)
        before += 1
        on_step(before, total, f"drew {entry.name}")
    return files


def _tasks(entry: FigureEntry, seed: int, data: Path | None, *, quick: bool) -> Sequence[SweepTask]:
    if data is None:
        return entry.tasks(seed, quick)
    if entry.on_data is None:
        able = ", ".join(name for name, entry in FIGURES.items() if entry.on_data is not None)
        raise ValueError(f"data must be left out for {entry.name}, got {data}: it is for {able}")
    tasks = entry.on_data(seed, quick, data.absolute())
    absent = _models_without_torch(tasks)
    if absent:
        raise missing_extra("torch", f"{entry.name} on data, with model {', '.join(absent)}")
    return tasks


def _models_without_torch(tasks: Sequence["TrainingTask"]) -> list[str]:
    from ..analysis.training.models.named_models import lacks_torch

    return [model for model in dict.fromkeys(task.training.model for task in tasks) if lacks_torch(model)]


def _tasks_on(data: Path, seed: int, *, quick: bool, on_step: OnStep) -> dict[str, Sequence[SweepTask]]:
    """Return the tasks of every figure that can run on a folder's data; raise if none can."""
    from ..analysis.datasets.found_data import PUBLISHED, found_data

    available = found_data(data, PUBLISHED)
    tasks: dict[str, Sequence[SweepTask]] = {}
    left_out = defaultdict(list)
    for name, entry in FIGURES.items():
        if entry.on_data is not None:
            try:
                own = entry.on_data(seed, quick, data.absolute())
            except DataNotFoundError:
                left_out["data"].append(name)
                continue
            if _models_without_torch(own):
                left_out["torch"].append(name)
            else:
                tasks[name] = own
    if not tasks:
        there = ", ".join(data_set.name for data_set in available)
        raise missing_extra("torch", f"figures on {there} in {data}")
    if left_out:
        reasons = "; ".join(f"without {lacking}: {', '.join(names)}" for lacking, names in left_out.items())
        on_step(0, _steps(tasks), f"left out, {reasons}")
    return tasks


def _steps(tasks: Mapping[str, Sequence[SweepTask]]) -> int:
    """Return the number of steps of figures: their tasks, and a step to draw each figure."""
    return sum(len(own) + 1 for own in tasks.values())


def _part_of(on_step: OnStep, before: int, own: int, total: int, name: str) -> OnStep:
    """Return a callback that converts the progress of one figure to that of all figures."""
    return lambda done, steps, text: on_step(before + done * own // steps, total, f"{name}: {text}")


def _without_provenance(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=[name for name in rows if name == "seed" or str(name).startswith("version_")])


def _write(entry: FigureEntry, table: pd.DataFrame, output: Path, seed: int) -> list[Path]:
    frame, title = with_provenance(table, entry.experiment, seed), entry.heading(table)
    with print_style():
        return save_figure(entry.draw(frame), frame, output, entry.name, title, markdown_document(title, entry.summary(table)))
