"""Domains of clients' inputs: numbers of an interval, and items of a list.

The module `norm_ball` has the third domain, a ball of vectors.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CATEGORIES, check_integer, check_interval
from ...arrays import FloatArray, IntegerArray, check_unmasked
from ..transforms.dithering import finite_values
from .norm_ball import NormBall


@dataclass(frozen=True)
class Interval:
    """An interval of numbers; clipping moves values outside to the nearer end."""

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
        """Return the number of finite values outside the interval."""
        array = finite_values("values", values)
        return int(np.count_nonzero((array < self.low) | (array > self.high)))

    def total(self, values: NDArray[Any]) -> FloatArray:
        """Return the sum of clients' values: `Mechanism.decode` estimates their mean."""
        return np.asarray(values.sum(axis=0))

    @property
    def dimension(self) -> int:
        """Number of coordinates of an estimate."""
        return 1

    @property
    def middle(self) -> float:
        """The estimate of a server that receives no message."""
        return (self.low + self.high) / 2

    def ball(self, adjacency: str) -> NormBall:  # noqa: ARG002
        """Return the ball of vectors whose mean has the same error under a trusted server's noise."""
        return NormBall(1, 2.0, (self.high - self.low) / 2)


@dataclass(frozen=True)
class Categories:
    """A list of items, numbered from 0; `size` is the number of items.

    The mean of clients' items is the frequency of each item.
    """

    size: int

    def __post_init__(self) -> None:
        """Check the number of items."""
        object.__setattr__(self, "size", check_integer("size", self.size, low=1, high=MOST_CATEGORIES))

    def clip(self, items: ArrayLike) -> IntegerArray:
        """Return items as whole numbers, shape (clients,), and refuse unknown items."""
        check_unmasked("items", items)
        array = np.asarray(items)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"items must be whole numbers, one for each client, got an array of {array.dtype} and shape {array.shape}")
        unknown = array[(array < 0) | (array >= self.size)]
        if unknown.size:
            raise ValueError(f"items must be whole numbers from 0 to {self.size - 1}, got {unknown[0]}")
        return array.astype(np.int64, copy=False)

    def clipped_count(self, items: ArrayLike) -> int:
        """Return 0, after a check that all items are in the list."""
        self.clip(items)
        return 0

    def total(self, items: NDArray[Any]) -> FloatArray:
        """Return the number of clients that hold each item, shape (size,)."""
        return np.bincount(items, minlength=self.size).astype(float)

    @property
    def dimension(self) -> int:
        """Number of coordinates of an estimate."""
        return self.size

    @property
    def middle(self) -> float:
        """The estimate of a server without messages, in which all items are equally frequent."""
        return 1 / self.size

    def ball(self, adjacency: str) -> NormBall:
        """Return the ball of vectors whose mean has the same error under a trusted server's noise.

        The indicator vectors of two items are sqrt(2) apart, and an indicator vector is 1 away from zero.
        """
        return NormBall(self.size, 2.0, math.sqrt(0.5) if adjacency == "replace-one" else 1.0)


Domain = Interval | NormBall | Categories
