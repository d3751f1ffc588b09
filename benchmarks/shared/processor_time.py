"""How benchmarks measure: the processor's time, which other programs on the machine do not change."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

from threadpoolctl import threadpool_limits

# One thread of linear algebra, in libraries that are loaded and those that will be: the time of other threads is counted too late.
os.environ["OMP_NUM_THREADS"] = "1"
threadpool_limits(1)

Result = TypeVar("Result")


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """Return what one call returns, and the processor's time for it."""
    started = time.process_time()
    result = run()
    return result, time.process_time() - started


def seconds(run: Callable[[], object], repetitions: int = 5, calls: int = 1) -> float:
    """Return the processor's time for a call: the least mean of several series of calls, after one call to warm up.

    Nothing is warmed up where there is one call alone.
    """
    if repetitions * calls > 1:
        run()
    return min(timed(lambda: [run() for _ in range(calls)])[1] for _ in range(repetitions)) / calls
