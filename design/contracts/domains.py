"""What a client may hold: one number of an interval, or one item of a list. Vectors of a ball are in `norm_ball`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_interval
from ...arrays import FloatArray
from ..transforms.dithering import finite_values
from .norm_ball import NormBall

MOST_CATEGORIES = 2**40


@dataclass(frozen=True)
class Interval:
    """Numbers from low to high; a value outside counts as the nearer end."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        """Check the ends."""
        low, high = check_interval("interval", (self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def clip(self, values: ArrayLike) -> FloatArray:
        """Return finite values moved into the interval."""
        return np.clip(finite_values("values", values), self.low, self.high)

    def clipped_count(self, values: ArrayLike) -> int:
        """Return how many finite values lie outside the interval."""
        array = finite_values("values", values)
        return int(np.count_nonzero((array < self.low) | (array > self.high)))


@dataclass(frozen=True)
class Categories:
    """Items, numbered from 0; `size` is how many there are."""

    size: int

    def __post_init__(self) -> None:
        """Check the number of items."""
        object.__setattr__(self, "size", check_integer("size", self.size, low=1, high=MOST_CATEGORIES))


Domain = Interval | NormBall | Categories
