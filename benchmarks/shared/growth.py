"""Growth of a routine's time with its size."""

from collections.abc import Callable, Sequence

import numpy as np

from .processor_time import seconds


def slope(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of a line through logarithms of sizes and times; 1 means proportional."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def exponent(run: Callable[[int], Callable[[], object]], sizes: Sequence[int], repetitions: int = 5) -> float:
    """Return the slope for the routines that `run` makes for several sizes."""
    return slope(sizes, [seconds(run(size), repetitions) for size in sizes])
