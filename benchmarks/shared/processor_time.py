"""Measurements of the processor's time, which other programs on the machine do not change."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

from threadpoolctl import threadpool_limits

# All libraries of linear algebra, loaded now or later, use one thread: the time of other threads is counted too late.
os.environ["OMP_NUM_THREADS"] = "1"
threadpool_limits(1)

Result = TypeVar("Result")


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """Return a call's result and its processor time."""
    started = time.process_time()
    result = run()
    return result, time.process_time() - started


def seconds(run: Callable[[], object], repetitions: int = 5, calls: int = 1) -> float:
    """Return a call's processor time: the least mean of several series, after a warm-up call.

    There is no warm-up for a single call.
    """
    if repetitions * calls > 1:
        run()
    return min(timed(lambda: [run() for _ in range(calls)])[1] for _ in range(repetitions)) / calls
