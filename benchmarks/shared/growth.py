"""How a routine's time grows with its size."""

from collections.abc import Callable, Sequence

import numpy as np

from .processor_time import seconds


def exponent(run: Callable[[int], Callable[[], object]], sizes: Sequence[int], repetitions: int = 5) -> float:
    """Return the slope of a line through the logarithms of sizes and times: 1 where time is proportional to size."""
    times = [seconds(run(size), repetitions) for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
