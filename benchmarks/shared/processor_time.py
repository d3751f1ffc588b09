"""How benchmarks measure: the processor's time, which other programs on the machine do not change."""

import time
from collections.abc import Callable


def seconds(run: Callable[[], object], repetitions: int = 5) -> float:
    """Return the processor's time for the shortest of several runs, after one to warm up unless there is one alone."""
    if repetitions > 1:
        run()
    durations = []
    for _ in range(repetitions):
        started = time.process_time()
        run()
        durations.append(time.process_time() - started)
    return min(durations)
