"""Integer distributions given by the ratios of neighbouring probabilities, all rational: Poisson, binomial and the like."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import FloatArray, IntegerArray

# The table is computed to this many bits after the binary point and ends where the curve is below 2**-LEAST_BITS. There its errors, one
# unit per step at most, are far below what is allowed: it has fewer than 2**20 steps.
TABLE_BITS = 96
LEAST_BITS = 48
# Bounds are walked with more bits than asked for, as their rounding adds up over the steps from the mode.
GUARD_BITS = 40


@dataclass(frozen=True, eq=False)
class RatioCurve:
    """A log-concave function f of whole numbers with f(mode) = 1 and f(x + 1) / f(x) = numerator / denominator.

    Attributes
    ----------
    mode : int
        Where f is largest.
    spread : float
        About the standard deviation; up to 2**14.
    ratio : callable
        Takes x and returns the numerator and the denominator, non-negative whole numbers; the ratio falls with x. A numerator 0 means
        that the support ends at x, a denominator 0 that it begins at x + 1.
    """

    mode: int
    spread: float
    ratio: Callable[[int], tuple[int, int]]

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at whole numbers; 0.0 beyond where f is below 2**-48."""
        first, values = self._table
        return np.asarray(values[np.clip(points - first, 0, len(values) - 1)])

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return bounds that are at most 3 apart up to 2**38 steps from the mode, by walking from there."""
        low = high = 1 << (bits + GUARD_BITS)
        for numerator, denominator in self._steps(point - self.mode):
            low, high = low * numerator // denominator, -(-high * numerator // denominator)
            # From here on the bounds say that f is below one unit, which stays true.
            if high <= 1:
                break
        return low >> GUARD_BITS, -(-high >> GUARD_BITS)

    def _steps(self, distance: int) -> Iterator[tuple[int, int]]:
        """Yield the ratios of successive values on the way from the mode to a point at a signed distance."""
        if distance >= 0:
            yield from (self.ratio(point) for point in range(self.mode, self.mode + distance))
        else:
            yield from (self.ratio(point)[::-1] for point in range(self.mode - 1, self.mode + distance - 1, -1))

    @cached_property
    def _table(self) -> tuple[int, FloatArray]:
        """First point and values; with a zero at either end, for all points beyond."""
        right, left = self._side(1), self._side(-1)
        values = [*reversed(left), 1 << TABLE_BITS, *right]
        return self.mode - len(left), np.array([value / (1 << TABLE_BITS) for value in values])

    def _side(self, direction: int) -> list[int]:
        """Return the values on one side of the mode, outward, ending with a zero."""
        values, value = [], 1 << TABLE_BITS
        for numerator, denominator in self._steps(direction * 2**62):
            value = value * numerator // denominator
            if not value >> (TABLE_BITS - LEAST_BITS):
                break
            values.append(value)
        return [*values, 0]
