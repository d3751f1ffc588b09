"""Resumable runs of plan grids: tasks are planned in parallel, and one table has all rows."""

from pathlib import Path

from ...files import write_atomically
from ...progress import OnStep, notebook_progress
from ..sweeps.run import IncompleteSweepError, run_stored
from .spec import PlanGrid

CSV_NAME = "results.csv"


def plan_grid(grid: PlanGrid, output: Path, *, workers: int = 1, dask: str | None = None, on_step: OnStep = notebook_progress) -> Path:
    """Plan the tasks of a grid that are not planned yet, and write the table of all plans.

    Each finished plan is saved in ``tasks.sqlite`` in the same folder. A killed run resumes from the saved plans. The table depends only on
    the grid and the versions of the software.

    Parameters
    ----------
    grid : PlanGrid
        The tasks, with the choices that all plans share; `load_plan_grid` reads them from a file.
    output : Path
        Folder of the table, which is made if missing. A single run may use it at a time.
    workers, dask, on_step
        Workers, scheduler and callback, as in `run_tasks`.

    Returns
    -------
    Path
        ``output/results.parquet``, with the same rows in ``output/results.csv``: a row for each mechanism that serves a task, by trust
        model and predicted error, in the order of the tasks. A task that no mechanism serves has a row with the ``reason``. Rows have the
        mechanism with its options, provider and version, the columns of `plan`, those of the task, ``seed`` and the versions of the
        software.

    Raises
    ------
    ValueError
        If `run_tasks` raises it for its arguments; no task is planned then.
    IncompleteSweepError
        If some plans failed; the rows of the others are written.
    OSError
        If a file cannot be written, or the scheduler cannot be reached.
    """
    try:
        path = run_stored(grid.plans(), output, workers=workers, dask=dask, on_step=on_step)
    except IncompleteSweepError as error:
        _write_csv(error.results_path)
        raise
    _write_csv(path)
    return path


def _write_csv(path: Path) -> None:
    # The import is local because it takes a fifth of a second.
    import pandas as pd

    rows = pd.read_parquet(path)
    write_atomically(path.with_name(CSV_NAME), rows.to_csv(index=False, lineterminator="\n").encode())
