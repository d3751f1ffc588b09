"""Runs of sweeps, trainings and grids: parallel tasks, each saved, and a table of all rows."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...arguments import check_integer
from ...design.contracts.privacy import Scalar
from ...design.tables.table_cache import check_cache, default_folder
from ...extras import require
from ...progress import OnStep, notebook_progress
from ..catalogue.registry import REGISTRY
from .engine import OnRows, SweepRun
from .protocol import SweepTask
from .store import RESULTS_NAME, SweepStore
from .workers import open_workers

if TYPE_CHECKING:
    import pandas as pd

OnRow = Callable[[Mapping[str, Scalar]], None]
MOST_WORKERS = 1024
SCHEDULER = re.compile(r"(\w+://)?\S+:\d+|inproc://\S+")
# Number of different faults that a message names; `IncompleteSweepError.failures` has them all.
NAMED_FAULTS = 5


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed, with its error or the error of its preparation."""

    task: SweepTask
    error: Exception

    @property
    def message(self) -> str:
        """Reason for the failure in words."""
        # Python's own MemoryError has no text.
        return str(self.error) or ("not enough memory" if isinstance(self.error, MemoryError) else type(self.error).__name__)


class IncompleteSweepError(ValueError):
    """Error for failed tasks of a sweep, training or grid; the other tasks are done and saved.

    Parameters
    ----------
    failures : tuple of TaskFailure
        The tasks that failed, in their order.
    results_path : Path
        File with the rows of the other tasks: results, or the index of a grid's tables.
    total : int
        Number of tasks.
    """

    def __init__(self, failures: tuple[TaskFailure, ...], results_path: Path, total: int) -> None:
        by_fault: dict[tuple[str, str], int] = {}
        for failure in failures:
            fault = failure.task.setting, failure.message
            by_fault[fault] = by_fault.get(fault, 0) + 1
        named = [
            f"{setting} ({count} repetitions): {message}" if count > 1 else f"{setting}: {message}"
            for (setting, message), count in list(by_fault.items())[:NAMED_FAULTS]
        ]
        more = len(by_fault) - len(named)
        if more:
            named.append(f"and {more} more {'setting' if more == 1 else 'settings'}")
        others = ", the others are saved" if len(failures) < total else ""
        super().__init__(f"{len(failures)} of {total} tasks failed{others}: {'; '.join(named)}")
        self.failures = failures
        self.results_path = results_path
        self.total = total

    @property
    def results(self) -> "pd.DataFrame":
        """Rows of the tasks that did not fail."""
        import pandas as pd

        return pd.read_parquet(self.results_path)


def run_tasks(
    tasks: Sequence[SweepTask],
    output: Path,
    *,
    workers: int = 1,
    cache: Path | None = None,
    dask: str | None = None,
    on_step: OnStep = notebook_progress,
) -> "pd.DataFrame":
    """Run the unfinished tasks as `run_sweep` does, and return the results of all tasks.

    Parameters, errors and results are those of `run_sweep`.

    Returns
    -------
    DataFrame
        The rows of ``output/results.parquet``.
    """
    # The import is local because it takes a fifth of a second, which callers that only write a table do not need.
    import pandas as pd

    return pd.read_parquet(run_sweep(tasks, output, workers=workers, cache=cache, dask=dask, on_step=on_step))


def run_sweep(
    tasks: Sequence[SweepTask],
    output: Path,
    *,
    workers: int = 1,
    cache: Path | None = None,
    dask: str | None = None,
    on_step: OnStep = notebook_progress,
) -> Path:
    """Run the unfinished tasks and write the table of all tasks.

    Workers' results are saved in ``output/tasks.sqlite`` after a second or after a longer task; a killed sweep resumes from the saved
    results. The results depend only on the tasks and the versions of the software, not on the number of workers or on interruptions. Memory
    grows by some bytes for each task if the sequence makes tasks on demand.

    Parameters
    ----------
    tasks : sequence of SweepTask
        The tasks, all with different names or seeds; `SweepSpec.tasks` makes such tasks.
    output : Path
        Folder of the results, which is made if missing. A single sweep may use it at a time.
    workers : int
        Number of processes, each with one thread; 1 runs the tasks in this process.
    cache : Path or None
        Folder of designed tables; None for the user's cache. Workers on other machines must see it under the same name.
    dask : str or None
        Address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``; its workers then do the work, and `workers` has no effect.
    on_step : callable
        Function of the number of finished steps, the number of steps, and a text on the last step; preparations count as steps.

    Returns
    -------
    Path
        ``output/results.parquet``: the tasks' rows in the order of the tasks, with ``seed`` and a column ``version_<name>`` for each piece
        of software. A column that some tasks do not have is missing in their rows.

    Raises
    ------
    ValueError
        If a task occurs twice, an argument is out of range, another sweep uses the folder, or a scheduler is named and Dask is not
        installed; no task runs then.
    IncompleteSweepError
        If tasks failed, or the process that ran them was killed twice; the other tasks are finished, and their results written.
    DataError
        If a worker of the cluster has other software than this process.
    OSError
        If a file cannot be written, or the scheduler cannot be reached.
    """
    return run_stored(tasks, output, workers=workers, cache=cache, dask=dask, on_step=on_step)


def run_stored(
    tasks: Sequence[SweepTask],
    output: Path,
    *,
    workers: int,
    dask: str | None,
    on_step: OnStep,
    cache: Path | None = None,
    table: str = RESULTS_NAME,
    write_row: OnRow | None = None,
    leave_out: Collection[str] = (),
) -> Path:
    """Run the tasks as `run_sweep` does, and write files of rows' contents beside the table.

    Parameters
    ----------
    table : str
        Name of the table's file.
    write_row : callable or None
        Function of the first row of each task, called in this process: when the task finishes, and again for all finished tasks before the
        table is written.
    leave_out : collection of str
        Columns that the table omits.
    """
    check_workers(workers, dask)
    on_rows = None if write_row is None else lambda rows: write_row(rows.decoded()[0])
    with SweepStore(output, tasks) as store:
        failures = _run_pending(tasks, store, workers=workers, cache=cache, dask=dask, on_step=on_step, on_rows=on_rows)
        if on_rows is not None:
            for rows in store.finished():
                on_rows(rows)
        path = store.write_results(table, leave_out)
    if failures:
        raise IncompleteSweepError(failures, path, len(tasks))
    return path


def check_workers(workers: int, dask: str | None) -> None:
    """Raise ValueError for a bad number of workers, a bad scheduler address, or missing Dask."""
    check_integer("workers", workers, low=1, high=MOST_WORKERS)
    # For such an address, a client of distributed would wait forever, or leave threads that keep the process alive.
    if dask is not None and not SCHEDULER.fullmatch(dask):
        raise ValueError(f"dask must be the address of a scheduler with its port, such as tcp://127.0.0.1:8786, got {dask!r}")
    if dask is not None:
        require("distributed", f"dask {dask!r}")


def _run_pending(
    tasks: Sequence[SweepTask],
    store: SweepStore,
    *,
    workers: int,
    cache: Path | None,
    dask: str | None,
    on_step: OnStep,
    on_rows: OnRows | None,
) -> tuple[TaskFailure, ...]:
    """Run the unfinished tasks of a store and return the failures."""
    # The default folder matters only to tasks that design tables.
    if cache is not None:
        check_cache(cache)
    # Workers of a cluster may have other working directories.
    folder = (default_folder() if cache is None else cache).absolute()
    if dask is not None:
        # A silent scheduler takes half a minute to fail.
        on_step(0, len(tasks), f"connecting to the scheduler at {dask}")
    # Calls in this process use its registry.
    registered = b"" if workers == 1 and dask is None else REGISTRY.packed()
    with open_workers(workers, dask) as pool:
        run = SweepRun(
            tasks, store, pool, cache=folder, check_code=dask is not None, registered=registered, on_step=on_step, on_rows=on_rows
        )
        run.run()
    store.check_complete(len(run.errors))
    return tuple(TaskFailure(tasks[number], run.errors[number]) for number in sorted(run.errors))
