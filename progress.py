"""How long computations report their progress: steps in words, with the time left."""

import html
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Generic, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")
OnStep = Callable[[int, int, str], None]
"""Callback for progress: ``on_step(done, total, text)`` after each step."""
# Seconds between two updates of a notebook's line.
UPDATE_SECONDS = 0.1


class AtMost(int):
    """An upper bound on the number of steps, which may fall while the steps are done."""

    word = "at most"

    def __str__(self) -> str:
        """Return the bound in words."""
        return f"{self.word} {int(self)}"


class About(AtMost):
    """An estimate of the number of steps, which falls while the steps are done, or grows by single steps."""

    word = "about"


def silent(done: int, total: int, text: str) -> None:
    """Report nothing."""


_LISTENER: ContextVar[OnStep] = ContextVar("callback of inner steps", default=silent)


@contextmanager
def reporting(on_step: OnStep) -> Iterator[None]:
    """Report the steps of searches and loops deep inside: the outermost that run here, one after the other.

    Mechanisms' builders search for parameters at many places. `Evaluations` counts the steps of a search, and `counted` those of a loop.
    """
    token = _LISTENER.set(on_step)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def counted(items: Sequence[Value], text: str) -> Iterator[Value]:
    """Yield items, and report each to the callback of `reporting`; loops and searches between them report nothing."""
    on_step = _LISTENER.get()
    for done, item in enumerate(items):
        on_step(done, len(items), text)
        with reporting(silent):
            yield item


class Evaluations(Generic[Argument, Value]):
    """Counted evaluations of a search's function, whose number has a bound or an estimate.

    Parameters
    ----------
    function : callable
        Function that the search evaluates.
    total : AtMost
        Bound on the number of evaluations, or an estimate.
    text : str
        Argument that the search is for.
    """

    def __init__(self, function: Callable[[Argument], Value], total: AtMost, text: str) -> None:
        self._function, self._total, self._text = function, total, text
        self._on_step, self._done = _LISTENER.get(), 0

    def __call__(self, argument: Argument) -> Value:
        """Return the function's value, and report the evaluation."""
        if self._on_step is silent:
            return self._function(argument)
        with reporting(silent):
            value = self._function(argument)
        self._done += 1
        self.expect(self._total - self._done)
        return value

    def expect(self, evaluations: int) -> None:
        """Report the number of further evaluations; a larger number than before counts only if none were left."""
        if self._on_step is not silent:
            left = max(min(self._total - self._done, evaluations), min(evaluations, 1), 0)
            self._total = type(self._total)(self._done + left)
            self._on_step(self._done, self._total, f"searching {self._text}")


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
        """Take a report of progress; fewer finished steps, or another exact total, start a new computation."""
        now = self.clock()
        same = total == self.total or (isinstance(total, AtMost) and isinstance(self.total, AtMost))
        if not same or done < self.done:
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
        word = self.total.word if isinstance(self.total, AtMost) else About.word
        return in_time(self.clock() - self._started) + ("" if left is None else f", {word} {in_time(left)} left")


def in_time(seconds: float) -> str:
    """Return a duration in words of whole seconds, minutes or hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def about(seconds: float) -> str:
    """Return an expected duration in words, rounded up to about two digits.

    Examples
    --------
    >>> about(0.4), about(13), about(92), about(754), about(5400)
    ('1 s', '13 s', '1 min 35 s', '13 min 0 s', '1 h 30 min')
    """
    unit = next(unit for unit, most in ((1, 60), (5, 300), (30, 3600), (300, 36_000), (1800, math.inf)) if seconds < most)
    return in_time(max(1, math.ceil(seconds / unit)) * unit)


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
