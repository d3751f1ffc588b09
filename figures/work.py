"""Expected work of figures, from recorded durations and the tasks that are not finished."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from urllib.parse import quote

from ..analysis.sweeps.protocol import SweepTask
from ..analysis.sweeps.store import STORE_NAME, task_key
from ..progress import OnStep, about
from ..shown import counted
from .listing import LISTING


class SecondsOfWork(int):
    """A number of seconds of processor time, which progress shows as such."""

    def __str__(self) -> str:
        """Return the number with its unit."""
        return f"{int(self)} s of work"


@dataclass(frozen=True, kw_only=True)
class FigureWork:
    """Unfinished work of a figure.

    Attributes
    ----------
    name : str
        Name of the figure.
    tasks, pending : int
        Number of selected tasks, and of those without a result.
    drawn : bool
        Whether the figure's files are there, so that nothing is left to do.
    seconds : float or None
        Expected processor time; None if no duration is recorded, as on a user's data.
    """

    name: str
    tasks: int
    pending: int
    drawn: bool
    seconds: float | None

    @property
    def weight(self) -> int:
        """Number of steps of the figure in the progress of all: expected seconds, or pending tasks, and a step to draw it."""
        if self.drawn:
            return 0
        return max(1, ceil(self.pending if self.seconds is None else self.seconds)) + 1


@dataclass(frozen=True, kw_only=True)
class ExpectedWork:
    """Expected work of a run.

    Attributes
    ----------
    figures : sequence of FigureWork
        Work of each figure.
    part : str
        Selection of tasks in words; empty for all tasks.
    left_out : sequence of str
        Names of figures without a selected task.
    workers : int
        Number of processes.
    """

    figures: Sequence[FigureWork]
    part: str
    left_out: Sequence[str]
    workers: int

    @property
    def seconds(self) -> float | None:
        """Expected processor time of what remains, or None if it is not known."""
        undrawn = [figure.seconds for figure in self.figures if not figure.drawn]
        return None if None in undrawn else sum(seconds for seconds in undrawn if seconds is not None)

    @property
    def steps(self) -> int:
        """Number of steps of the progress, at least one."""
        steps = max(1, sum(figure.weight for figure in self.figures))
        return steps if self.seconds is None else SecondsOfWork(steps)

    def __str__(self) -> str:
        """Return the estimate in words."""
        drawn, pending, tasks = (
            sum(figure.drawn for figure in self.figures),
            sum(figure.pending for figure in self.figures if not figure.drawn),
            sum(figure.tasks for figure in self.figures),
        )
        count = len(self.figures)
        head = counted(count, "figure") + (f", {drawn} of them drawn before" if drawn else "")
        left = f"{pending:,} of {tasks:,} tasks are left"
        seconds = self.seconds
        if drawn == count:
            time = "nothing is left to do"
        elif seconds is None:
            time = "no duration is recorded on other data"
        else:
            wall = f", {about(seconds / self.workers)} with {self.workers} workers" if self.workers > 1 else ""
            time = f"about {about(seconds)} of processor time{wall}"
        part = f"; part: {self.part}" if self.part else ""
        out = f"; left out, without such tasks: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{head}: {left}, {time}{part}{out}"


def figure_work(name: str, tasks: Sequence[SweepTask], folder: Path, *, of: int, quick: bool, drawn: bool, recorded: bool) -> FigureWork:
    """Return the work of a figure whose results are in a folder, in proportion to its pending tasks."""
    pending = 0 if drawn else len(tasks) - finished_count(tasks, folder)
    listed = LISTING[name]
    seconds = (listed.quick_seconds if quick else listed.seconds) * pending / max(of, 1) if recorded else None
    return FigureWork(name=name, tasks=len(tasks), pending=pending, drawn=drawn, seconds=seconds)


def finished_count(tasks: Sequence[SweepTask], folder: Path) -> int:
    """Return how many tasks have a result in a folder; a file that cannot be read counts as none, as its tasks may run again."""
    path = folder / STORE_NAME
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as store:
            keys = {key for (key,) in store.execute("SELECT key FROM results")}
    except sqlite3.Error:
        return 0
    return sum(task_key(task) in keys for task in tasks)


def part_of(on_step: OnStep, before: int, weight: int, total: int, name: str) -> OnStep:
    """Return a callback that converts the steps of a figure's tasks to a share of its weight, without steps finished before."""
    first: list[int] = []

    def step(done: int, steps: int, text: str) -> None:
        first[:] = first or [done]
        share = (done - first[0]) / max(1, steps - first[0])
        on_step(before + int(share * (weight - 1)), total, f"{name}: {text}")

    return step
