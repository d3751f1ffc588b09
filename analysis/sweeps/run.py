"""Sweeps: many tasks on many processes or machines, each saved when it is finished, and one table of them all at the end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import pandas as pd
from joblib import Parallel, delayed, parallel_config

from ...arguments import check_integer
from ...design.contracts.mechanism import VectorMechanism
from ...progress import OnStep, silent
from ..calibration.table_cache import TableCache
from .store import SweepStore, task_rows
from .task import MechanismDesign, SweepTask, build_design, run_task

MOST_WORKERS = 1024
# How many different faults a message names; `IncompleteSweepError.failures` has them all.
NAMED_FAULTS = 5

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class TaskFailure:
    """A task that could not be done.

    Attributes
    ----------
    task : SweepTask
        The task.
    message : str
        Why.
    """

    task: SweepTask
    message: str


class IncompleteSweepError(ValueError):
    """Some tasks of a sweep failed; the others are done and saved.

    Parameters
    ----------
    failures : tuple of TaskFailure
        The tasks that failed, in their order.
    results : DataFrame
        Rows of the others, as ``results.parquet`` has them.
    total : int
        Number of tasks of the sweep.
    """

    def __init__(self, failures: tuple[TaskFailure, ...], results: pd.DataFrame, total: int) -> None:
        by_fault: dict[tuple[str, str], int] = {}
        for failure in failures:
            fault = failure.task.setting, failure.message
            by_fault[fault] = by_fault.get(fault, 0) + 1
        named = [
            f"{setting} ({count} {'repetition' if count == 1 else 'repetitions'}): {message}"
            for (setting, message), count in list(by_fault.items())[:NAMED_FAULTS]
        ]
        more = len(by_fault) - len(named)
        if more:
            named.append(f"and {more} more {'setting' if more == 1 else 'settings'}")
        super().__init__(f"{len(failures)} of {total} tasks failed, the others are saved: {'; '.join(named)}")
        self.failures = failures
        self.results = results
        self.total = total


def run_sweep(
    tasks: Sequence[SweepTask],
    output: Path,
    *,
    workers: int = 1,
    cache: TableCache | None = None,
    dask: str | None = None,
    on_step: OnStep = silent,
) -> pd.DataFrame:
    """Run the tasks that are not finished yet, and return the results of all.

    Every finished task is saved at once, under ``output/tasks``; a sweep that was killed goes on where it was. The results depend on the
    tasks and the versions of the software only: not on the number of workers, nor on what was killed and when.

    Parameters
    ----------
    tasks : sequence of SweepTask
        The tasks, all different; `SweepSpec.tasks` makes them.
    output : Path
        Folder of the results; made if it is not there. One sweep may use it at a time.
    workers : int
        Processes; each uses one thread. 1 runs the tasks in this process.
    cache : TableCache or None
        Where designed tables are kept; None for the user's own cache folder. Workers on other machines must see it under the same name.
    dask : str or None
        Address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``; its workers then do the work, and `workers` does not count.
    on_step : callable
        Called with the number of steps done, the number of steps, and what was done; mechanisms that are built count as steps.

    Returns
    -------
    DataFrame
        One row per task and measured quantity (`metric`, `value`), in the order of the tasks; ``output/results.parquet`` has the same.

    Raises
    ------
    ValueError
        If a task is there twice, an argument is out of range, or a scheduler is named and Dask is not installed; nothing is done then.
    IncompleteSweepError
        If tasks failed; the others are done, and their results written.
    OSError
        If a file cannot be written, or the scheduler not reached.
    """
    workers = check_integer("workers", workers, low=1, high=MOST_WORKERS)
    if len(set(tasks)) != len(tasks):
        raise ValueError(f"tasks must all be different, got {len(tasks) - len(set(tasks))} twice")
    if dask is not None and find_spec("distributed") is None:
        raise ValueError(f"dask needs the package distributed, which is not installed: install quietbits[dask]; got {dask!r}")
    cache = TableCache() if cache is None else cache
    store = SweepStore(output)
    finished = {task: rows for task in tasks if (rows := store.read(task)) is not None}
    pending = [task for task in tasks if task not in finished]
    designs = list(dict.fromkeys(task.design for task in pending))
    steps = len(designs) + len(tasks)
    done = len(finished)
    on_step(done, steps, f"{done} of {len(tasks)} tasks were finished before" if done else "starting")

    built: dict[MechanismDesign, VectorMechanism] = {}
    faults: dict[MechanismDesign | SweepTask, str] = {}
    with _parallel(workers, dask) as parallel:
        for number, mechanism in _unordered(parallel, build_design, [(design, cache) for design in designs]):
            design = designs[number]
            if isinstance(mechanism, str):
                faults[design] = mechanism
            else:
                built[design] = mechanism
            done += 1
            on_step(done, steps, f"built {design.mechanism}")
        # Of a task whose mechanism could not be built nothing is left to do.
        ready = [task for task in pending if task.design in built]
        done += len(pending) - len(ready)
        for number, result in _unordered(parallel, run_task, [(task, built[task.design]) for task in ready]):
            task = ready[number]
            if isinstance(result, str):
                faults[task] = result
            else:
                finished[task] = task_rows(task, built[task.design], result)
                store.write(task, finished[task])
            done += 1
            on_step(done, steps, f"ran {task.design.mechanism}")

    results: pd.DataFrame = store.write_results([finished[task] for task in tasks if task in finished]).to_pandas()
    failures = tuple(TaskFailure(task, faults.get(task) or faults[task.design]) for task in tasks if task not in finished)
    if failures:
        raise IncompleteSweepError(failures, results, len(tasks))
    return results


@contextmanager
def _parallel(workers: int, dask: str | None) -> Iterator[Parallel]:
    """Return what runs calls: processes here, or the workers of a Dask scheduler."""
    if dask is None:
        with (
            parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1),
            Parallel(return_as="generator_unordered") as parallel,
        ):
            yield parallel
        return
    with (
        import_module("distributed").Client(dask) as client,
        parallel_config(backend="dask", n_jobs=-1, client=client),
        Parallel(return_as="generator_unordered") as parallel,
    ):
        yield parallel


def _unordered(
    parallel: Parallel, function: Callable[[*Arguments], Result], calls: Sequence[tuple[*Arguments]]
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each call and what came back, in the order in which they end."""
    yield from parallel(delayed(_numbered)(number, function, arguments) for number, arguments in enumerate(calls))


def _numbered(number: int, function: Callable[[*Arguments], Result], arguments: tuple[*Arguments]) -> tuple[int, Result]:
    return number, function(*arguments)
