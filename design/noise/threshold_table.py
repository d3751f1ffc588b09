"""Noise on whole numbers as a table of thresholds of 127 bits, with a bound on its distance from the exact law.

Clients in other languages draw noise from such a table with two random words and comparisons of whole numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ...errors import InfeasibleError

THRESHOLD_BITS = 127
# Bits of the curve's bounds, and the height of the curve at which the table ends.
CURVE_BITS, END_BITS = 192, 140
# Largest standard deviation in steps, and more points than the curve then has above its end.
LARGEST_SPREAD, MOST_POINTS = 512, 2**13


class SymmetricCurve(Protocol):
    """A log-concave, even function of whole numbers, 1 at zero."""

    def first_bounds(self, most: int, bits: int) -> Iterator[tuple[int, int]]:
        """Yield whole numbers (low, high) with low <= 2**bits f(point) <= high, for the points 0, 1, ... up to `most`."""

    @property
    def spread(self) -> float:
        """Approximate standard deviation."""


@dataclass(frozen=True)
class ThresholdTable:
    """Thresholds of the noise's magnitude.

    Attributes
    ----------
    thresholds : tuple of int
        Whole numbers of 127 bits: the magnitude of the noise is the number of thresholds that are at most a uniform number of 127 bits.
        A second random bit is the sign.
    distance : Fraction
        Upper bound on the total variation distance between the table's law and the exact law.
    """

    thresholds: tuple[int, ...]
    distance: Fraction


def threshold_table(curve: SymmetricCurve) -> ThresholdTable:
    """Return the table of a symmetric, log-concave curve.

    With h_k and l_k the bounds on the curve, in units of 2**-192, the exact probability of a magnitude up to k differs from the quotient of
    the sums of h by at most the sum of all h - l over the sum of all l. Cutting the tail moves its probability, which a geometric series
    bounds: the ratios of a log-concave curve fall. Rounding a threshold moves at most 2**-127 of probability.

    Raises
    ------
    InfeasibleError
        If the standard deviation is above 512 steps.
    """
    if curve.spread > LARGEST_SPREAD:
        raise InfeasibleError(
            f"noise must have a standard deviation of at most {LARGEST_SPREAD} steps for a table of thresholds, got {curve.spread:.6g}"
        )
    highs: list[int] = []
    spread_of_bounds = lows = previous = last = 0
    for low, high in curve.first_bounds(MOST_POINTS, CURVE_BITS):
        times = 1 if not highs else 2
        highs.append(times * high)
        lows += times * low
        spread_of_bounds += times * (high - low)
        if high < 1 << (CURVE_BITS - END_BITS):
            last = high
            break
        previous = low
    if last == 0:
        raise InfeasibleError(f"noise must fall below 2**-{END_BITS} within {MOST_POINTS} steps, got a spread of {curve.spread:.6g}")
    ratio = Fraction(last, previous)
    tail = 2 * last * ratio / (1 - ratio)
    total = sum(highs)
    reached, thresholds = 0, []
    for high in highs[:-1]:
        reached += high
        thresholds.append((reached << THRESHOLD_BITS) // total)
    rounding = Fraction(len(thresholds), 1 << THRESHOLD_BITS)
    return ThresholdTable(tuple(thresholds), Fraction(spread_of_bounds + tail, 1) / lows * 2 + rounding)
