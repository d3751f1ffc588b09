"""Sweeps: many tasks on many processes or machines, each saved when it is finished, and one table of them all at the end."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache as keep
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any, Generic, TypeVar

import pandas as pd
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import ThreadpoolController

from ...arguments import check_integer
from ...errors import ConvergenceError
from ...progress import OnStep, silent
from ..calibration.table_cache import default_folder
from .protocol import SweepTask
from .store import SweepStore, task_rows

MOST_WORKERS = 1024
# How many different faults a message names; `IncompleteSweepError.failures` has them all.
NAMED_FAULTS = 5
STEP_WIDTH = 60
# What a task may raise when it cannot be done; anything else is a mistake in the program, and ends the sweep.
FAULTS = (ValueError, ArithmeticError, ConvergenceError)

Result = TypeVar("Result")


@dataclass(frozen=True)
class TaskFailure:
    """A task that could not be done, and what it, or the preparation for it, raised."""

    task: SweepTask
    error: Exception

    @property
    def message(self) -> str:
        """Why, in words."""
        return str(self.error)


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


def run_tasks(
    tasks: Sequence[SweepTask],
    output: Path,
    *,
    workers: int = 1,
    cache: Path | None = None,
    dask: str | None = None,
    on_step: OnStep = silent,
) -> pd.DataFrame:
    """Run the tasks that are not finished yet, and return the results of all.

    Every finished task is saved at once, under ``output/tasks``; a sweep that was killed goes on where it was. The results depend on the
    tasks and the versions of the software only: not on the number of workers, nor on what was killed and when.

    Parameters
    ----------
    tasks : sequence of SweepTask
        The tasks, all with different names or seeds; `SweepSpec.tasks` makes some.
    output : Path
        Folder of the results; made if it is not there. One sweep may use it at a time.
    workers : int
        Processes; each uses one thread. 1 runs the tasks in this process.
    cache : Path or None
        Folder where designed tables are kept; None for the user's own. Workers on other machines must see it under the same name.
    dask : str or None
        Address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``; its workers then do the work, and `workers` does not count.
    on_step : callable
        Called with the number of steps done, the number of steps, and what was done; preparations count as steps.

    Returns
    -------
    DataFrame
        The tasks' rows in the order of the tasks, with ``seed`` and a column ``version_<name>`` for each piece of software;
        ``output/results.parquet`` has the same. A column that some tasks do not have is missing in their rows.

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
    identities = {(task.name, task.seed) for task in tasks}
    if len(identities) != len(tasks):
        raise ValueError(f"tasks must all be different, got {len(tasks) - len(identities)} twice")
    if dask is not None and find_spec("distributed") is None:
        raise ValueError(f"dask needs the package distributed, which is not installed: install quietbits[dask]; got {dask!r}")
    folder = default_folder() if cache is None else cache
    store = SweepStore(output)
    rows = {number: found for number, task in enumerate(tasks) if (found := store.read(task)) is not None}
    pending = [number for number in range(len(tasks)) if number not in rows]
    # The task that prepares for all that share its design.
    first: dict[Hashable, int] = {}
    for number in pending:
        if (design := tasks[number].design) is not None:
            first.setdefault(design, number)
    steps = len(first) + len(tasks)
    done = len(rows)
    on_step(done, steps, f"{done} of {len(tasks)} tasks were finished before" if done else "starting")

    prepared: dict[Hashable, Any] = {}
    errors: dict[int, Exception] = {}
    with _parallel(workers, dask) as parallel:
        for outcome in _unordered(parallel, [(number, _prepare, (tasks[number], folder)) for number in first.values()]):
            task = tasks[outcome.number]
            if outcome.error is None:
                prepared[task.design] = outcome.result
            else:
                errors |= {number: outcome.error for number in pending if tasks[number].design == task.design}
            done += 1
            on_step(done, steps, _step("prepared", task))
        # Of a task whose preparation failed nothing is left to do.
        ready = [number for number in pending if number not in errors]
        done += len(pending) - len(ready)
        for ran in _unordered(parallel, [(number, _run, (tasks[number], prepared.get(tasks[number].design), folder)) for number in ready]):
            task = tasks[ran.number]
            if ran.error is None:
                assert ran.result is not None  # noqa: S101 - what has no error has a result
                rows[ran.number] = task_rows(task, ran.result)
                store.write(task, rows[ran.number])
            else:
                errors[ran.number] = ran.error
            done += 1
            on_step(done, steps, _step("ran", task))

    results: pd.DataFrame = store.write_results([rows[number] for number in sorted(rows)]).to_pandas()
    if errors:
        failures = tuple(TaskFailure(tasks[number], errors[number]) for number in sorted(errors))
        raise IncompleteSweepError(failures, results, len(tasks))
    return results


@dataclass(frozen=True)
class _Outcome(Generic[Result]):
    """What became of a call: its result, or what it raised."""

    number: int
    result: Result | None = None
    error: Exception | None = None


_Call = tuple[int, Callable[..., Result], tuple[Any, ...]]


def _prepare(task: SweepTask, cache: Path) -> Any:
    return task.prepare(cache)


def _run(task: SweepTask, prepared: Any, cache: Path) -> Any:
    return task.run(task.prepare(cache) if task.design is None else prepared)


def _step(verb: str, task: SweepTask) -> str:
    return f"{verb} {shorten(task.setting, STEP_WIDTH, placeholder=' ...')}"


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


def _unordered(parallel: Parallel, calls: Sequence[_Call[Result]]) -> Iterator[_Outcome[Result]]:
    """Yield what became of each call, in the order in which they end."""
    yield from parallel(delayed(_attempt)(*call) for call in calls)


def _attempt(number: int, function: Callable[..., Result], arguments: tuple[Any, ...]) -> _Outcome[Result]:
    try:
        with _one_thread():
            return _Outcome(number, function(*arguments))
    except FAULTS as error:
        # Without its traceback, which would keep all that the call had in memory.
        return _Outcome(number, error=error.with_traceback(None))


def _one_thread() -> AbstractContextManager[object]:
    """Hold libraries to one thread, in whatever process: the order in which they add up must not depend on how many they may use."""
    limits: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limits


@keep
def _libraries() -> ThreadpoolController:
    # Looking for them takes longer than a small task.
    return ThreadpoolController()
