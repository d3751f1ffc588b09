"""The registry of figures, and the writing of their pictures, tables and Markdown."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..analysis.provenance_columns import with_provenance
from ..analysis.sweeps.protocol import SweepTask
from ..analysis.sweeps.run import IncompleteSweepError
from ..arguments import check_listed
from ..errors import DataNotFoundError
from ..extras import missing_extra
from ..files import check_folder
from ..loaded_by_name import LoadedByName
from ..progress import OnStep, notebook_progress
from .drawing.save import save_figure
from .drawing.style import print_style
from .entry import FigureEntry
from .finished import RESULTS, FinishedFigure, GridRun, read_finished, record_finished, source_digest
from .listing import LISTING
from .markdown import markdown_document
from .selection import parse_selection
from .work import ExpectedWork, figure_work, part_of

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


def reproduce(
    names: Sequence[str] | None,
    output: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    data: Path | None = None,
    only: Sequence[str] = (),
    workers: int = 1,
    dask: str | None = None,
    cache: Path | None = None,
    on_work: Callable[[ExpectedWork], None] | None = None,
    on_step: OnStep = notebook_progress,
) -> list[Path]:
    """Make figures, one after the other, as SVG, PDF, PNG, CSV and Markdown, and an index page of all figures of the folder.

    The CSV file holds the table behind the figure; the Markdown file is for readers. ``index.html`` states for each figure what its paper
    claims, what came out, and whether the table agrees. The tasks of a figure are a sweep in the folder ``results/<name>``. An interrupted
    run resumes, and a training resumes from its checkpoint; a figure that was drawn from the same tasks and code is kept. The same seed and
    the same versions of the software give the same files, for any number of workers.

    Parameters
    ----------
    names : sequence of str or None
        Names of figures (`FIGURES`). None selects all figures, or, with `data`, all figures that can run on some of the data.
    output : Path
        Folder of the files, created if missing.
    seed : int
        Root seed.
    quick : bool
        Whether to make each figure smaller, in the recorded times of `LISTING`.
    data : Path or None
        Folder with the data of the papers, in the layout of `found_data`. The trainings are then those of the papers, on all data sets of
        the figure that the folder holds. Figures without `FigureEntry.on_data` refuse it.
    only : sequence of str
        Parts of the grids, such as ``["epsilon=4"]``: tasks whose field has the value. Conditions on the same field allow both values,
        those on different fields must all hold. Tasks without the field stay, as references. Figures without a task of such a value are
        left out. A picture states that it is partial, and a later run of all tasks uses the results.
    workers, dask, cache
        Workers, scheduler and folder of tables, as in `run_tasks`.
    on_work : callable or None
        Called with the expected work before any task runs.
    on_step : callable
        Progress callback ``on_step(done, total, text)`` over all figures together, in seconds of expected work where durations are
        recorded.

    Returns
    -------
    list of Path
        The files; the last one is the index page.

    Raises
    ------
    ValueError
        If a figure's name is unknown, an argument is out of range, a condition of `only` names an unknown field or a value that no task
        has, a figure that needs no data gets a folder, or, as a `MissingExtraError`, if a model needs torch, which is not installed. No
        task runs then.
    DataError
        If a file of the data is damaged, or, as a `DataNotFoundError`, if the folder has no data for a named figure. No task runs then.
    IncompleteSweepError
        If some tasks of the only figure failed; the other tasks are finished and saved. Where several figures are made, the others are
        drawn, and a ValueError names those that failed.
    """
    from .agreement.index_page import FigureIndex

    check_folder(output)
    tasks = _named_tasks(names, seed, data, quick=quick, on_step=on_step)
    selection = parse_selection(only, tasks.values())
    part = str(selection)
    chosen = {name: selection.of(own) for name, own in tasks.items()}
    selected = {name: own for name, own in chosen.items() if own}
    if not selected:
        raise ValueError(f"only must leave a task of some figure, got {part}: no figure has tasks of all these values")
    records = {name: read_finished(output, name) for name in selected}
    kept = {name: record for name, record in records.items() if record and record.source == source_digest(selected[name], part)}
    work = ExpectedWork(
        figures=[
            figure_work(name, own, output / RESULTS / name, of=len(tasks[name]), quick=quick, drawn=name in kept, recorded=data is None)
            for name, own in selected.items()
        ],
        part=part,
        left_out=[name for name in chosen if name not in selected],
        workers=1 if dask else workers,
    )
    if on_work is not None:
        on_work(work)
    index = FigureIndex(output, list(selected))
    for name in work.left_out:
        index.leave_out(name, f"no task has {part}")
    files, failed, before = list[Path](), dict[str, ValueError | LookupError](), 0
    for figure in work.figures:
        entry, own = FIGURES[figure.name], selected[figure.name]
        if figure.drawn:
            files += [output / file for file, _ in kept[figure.name].files]
            continue
        progress = part_of(on_step, before, figure.weight, work.steps, entry.name)
        try:
            rows = entry.run(own, output / RESULTS / entry.name, workers=workers, dask=dask, cache=cache, on_step=progress)
        except IncompleteSweepError as error:
            if len(work.figures) == 1:
                raise
            # The other figures do not depend on this one.
            failed[entry.name] = error
            index.leave_out(entry.name, str(error))
            before += figure.weight
            continue
        on_step(before + figure.weight - 1, work.steps, f"drawing {entry.name}")
        before += figure.weight
        grid = GridRun(
            name=entry.name,
            seed=seed,
            quick=quick,
            data=None if data is None else str(data),
            part=part,
            tasks=len(own),
            of=len(tasks[entry.name]),
            source=source_digest(own, part),
        )
        try:
            finished = _write(entry, entry.table(_without_provenance(rows)), output, grid)
        except (LookupError, ValueError) as error:
            if len(work.figures) == 1 and not part:
                raise
            failed[entry.name] = error
            advice = "; the part may lack tasks that the picture needs" if part else ""
            index.leave_out(entry.name, f"its drawing failed: {error}{advice}")
            continue
        files += [output / file for file, _ in finished.files]
        index.add(finished)
        index.write()
        on_step(before, work.steps, f"drew {entry.name}")
    files.append(index.write())
    if failed:
        faults = "; ".join(f"{name}: {error}" for name, error in failed.items())
        advice = f". only must leave the tasks that a picture needs, got {part}: allow more values; results are kept" if part else ""
        raise ValueError(f"{len(failed)} of {len(work.figures)} figures failed, the others are drawn: {faults}{advice}") from next(
            iter(failed.values())
        )
    return files


def _named_tasks(
    names: Sequence[str] | None, seed: int, data: Path | None, *, quick: bool, on_step: OnStep
) -> Mapping[str, Sequence[SweepTask]]:
    """Return the tasks of figures by name."""
    if names is None and data is not None:
        return _tasks_on(data, seed, quick=quick, on_step=on_step)
    if names is not None and not names:
        raise ValueError("names must have a figure, got none: None selects all figures")
    for name in names or ():
        check_listed("figure", name, FIGURES, "quietbits reproduce --help")
    return {name: _tasks(FIGURES[name], seed, data, quick=quick) for name in names or FIGURES}


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
        on_step(0, sum(map(len, tasks.values())), f"left out, {reasons}")
    return tasks


def _without_provenance(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=[name for name in rows if name == "seed" or str(name).startswith("version_")])


def _write(entry: FigureEntry, table: pd.DataFrame, output: Path, grid: GridRun) -> FinishedFigure:
    """Draw a figure, write its files, and record them."""
    frame, heading = with_provenance(table, entry.experiment, grid.seed), entry.heading(table)
    title = heading + grid.partial
    with print_style():
        files = save_figure(entry.draw(frame), frame, output, entry.name, title, markdown_document(title, entry.summary(table)))
    return record_finished(output, grid, heading, files)
