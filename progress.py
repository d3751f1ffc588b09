"""How long computations report their progress: steps in words, with the time left."""

import html
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

OnStep = Callable[[int, int, str], None]
"""Callback for progress: ``on_step(done, total, text)`` after each step."""
# Seconds between two updates of a notebook's line.
UPDATE_SECONDS = 0.1


def silent(done: int, total: int, text: str) -> None:
    """Report nothing."""


@dataclass
class Steps:
    """Reported steps of a computation, in words.

    The time left assumes that the remaining steps take as long on average as those since the first report: steps that an earlier run has
    finished do not count.

    Attributes
    ----------
    text : str
        The current step.
    clock : callable
        Returns the time in seconds.
    done, total : int
        Number of finished steps, and of all steps; `total` is 0 until they are known.
    """

    text: str
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    total: int = 0
    _started: float = field(init=False)
    _first: tuple[float, int] = field(init=False)
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._started = self._last = self.clock()
        self._first = self._started, 0

    def report(self, done: int, total: int, text: str) -> None:
        """Take a report of progress; other steps, or fewer of them done, are a new computation's."""
        now = self.clock()
        if total != self.total or done < self.done:
            self._first = now, done
        if done != self.done or total != self.total:
            self._last = now
        self.done, self.total, self.text = done, total, text

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the time left; None as long as no step has been timed, or if no step is left."""
        since, before = self._first
        if self.done <= before or self.done >= self.total:
            return None
        pace = (self._last - since) / (self.done - before)
        return max(0.0, pace * (self.total - self.done) - (self.clock() - self._last))

    @property
    def count(self) -> str:
        """Number of finished steps, and of all."""
        return f"{self.done} of {self.total}" if self.total else ""

    @property
    def times(self) -> str:
        """Time so far, and the time left."""
        left = self.seconds_left
        return in_time(self.clock() - self._started) + ("" if left is None else f", about {in_time(left)} left")


def in_time(seconds: float) -> str:
    """Return a duration in words of whole seconds, minutes or hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def notebook_progress(done: int, total: int, text: str) -> None:
    """Show progress below the cell of a notebook that is running, and nothing elsewhere: the default of `on_step`."""
    ipython: Any = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    # Only a notebook's shell has a kernel: IPython in a terminal stays silent.
    if hasattr(shell, "kernel"):
        global _LINE
        cell: int = shell.execution_count
        if _LINE is None or _LINE.cell != cell:
            _LINE = _NotebookLine(cell)
        _LINE.report(done, total, text)


class _NotebookLine:
    """The line of progress below a cell."""

    def __init__(self, cell: int) -> None:
        self.cell = cell
        self._steps = Steps("")
        self._shown = -UPDATE_SECONDS
        self._handle: Any = None

    def report(self, done: int, total: int, text: str) -> None:
        if done < self._steps.done:
            # Another computation of the same cell.
            self._steps = Steps("")
        self._steps.report(done, total, text)
        now = self._steps.clock()
        if done < total and now - self._shown < UPDATE_SECONDS:
            return
        self._shown = now
        words = f"{self._steps.count}, {self._steps.times}: {text}"
        bar = f'<progress value="{done}" max="{total}"></progress> {html.escape(words)}'
        content = {"text/plain": words, "text/html": bar}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


_LINE: _NotebookLine | None = None
