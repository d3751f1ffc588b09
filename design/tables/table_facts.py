"""Facts of integer weights by exact arithmetic: realised privacy, and each row's moments."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...solvers.bounds.privacy_constraint import metric_power

# Number of digits of the only logarithm, whose relative error, 1e-50, is far below the rounding up to a float.
DIGITS = 50


@dataclass(frozen=True)
class RowMoments:
    """Exact mean and variance of each row's decoded letters, on the unit interval's scale."""

    means: tuple[Fraction, ...]
    variances: tuple[Fraction, ...]

    @cached_property
    def max_bias(self) -> Fraction:
        """Largest distance of a row's mean from its input i / (rows - 1)."""
        steps = len(self.means) - 1
        return max(abs(mean - Fraction(i, steps)) for i, mean in enumerate(self.means))

    @cached_property
    def mean_variance(self) -> Fraction:
        """Average of the rows' variances."""
        return sum(self.variances, Fraction(0)) / len(self.variances)

    @cached_property
    def worst_variance(self) -> Fraction:
        """Largest of the rows' variances."""
        return max(self.variances)


def row_moments(weights: NDArray[np.int64], alphabet: tuple[Fraction, ...], total: int) -> RowMoments:
    """Return the exact moments of every row of a table.

    `weights` are non-negative, with the shape (rows, letters), and rows sum to `total`. Variances are around the rows' means, which are the
    rows' inputs if there is no bias.
    """
    denominator = math.lcm(*(letter.denominator for letter in alphabet))
    # The weights and letters are Python integers of about 60 bits each, whose sums of products are exact.
    numerators = np.array([int(letter * denominator) for letter in alphabet], dtype=object)
    whole = weights.astype(object)
    first, second = whole @ numerators, whole @ numerators**2
    means = tuple(Fraction(mean, total * denominator) for mean in first)
    variances = tuple(
        Fraction(total * square - mean * mean, (total * denominator) ** 2) for mean, square in zip(first, second, strict=True)
    )
    return RowMoments(means, variances)


def realised_epsilon(weights: NDArray[np.int64], metric: str | None) -> float:
    """Return the smallest epsilon of a table, as an upper bound.

    `weights` have the shape (rows, letters), and rows have the same sum. For local privacy (metric None), epsilon is the largest log-ratio
    of two entries of a column. For metric privacy |y - y'|**p, it is the largest log-ratio of neighbouring entries, divided by their
    distance (1 / (rows - 1))**p; as p >= 1 no other pair needs a larger epsilon (eq. 3 of Chaudhuri, Guo, Rabbat 2022).

    The error is at most one unit in the last place. Epsilon is infinite if a column has both a zero and a non-zero entry.
    """
    ratio = largest_ratio(weights, neighbours_only=metric is not None)
    if ratio is None:
        return math.inf
    power = metric_power(metric)
    with localcontext() as context:
        context.prec = DIGITS
        # Decimal functions round correctly; each next_plus turns "nearest" into "up", so that the product cannot fall below the truth.
        context.rounding = ROUND_CEILING
        epsilon = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).next_plus().ln().next_plus()
        if power is not None:
            epsilon *= (Decimal(len(weights) - 1) ** Decimal(power)).next_plus()
        return 0.0 if ratio == 1 else rounded_up(Fraction(epsilon))


def largest_ratio(weights: NDArray[np.int64], *, neighbours_only: bool) -> Fraction | None:
    """Return the exact largest ratio, at least 1, of two entries of a column.

    The result is None if a column has both a zero and a non-zero entry. Columns of zeros have no effect.
    """
    if neighbours_only:
        high, low = np.maximum(weights[1:], weights[:-1]), np.minimum(weights[1:], weights[:-1])
    else:
        high, low = weights.max(axis=0), weights.min(axis=0)
    if np.any((low == 0) & (high > 0)):
        return None
    best_high, best_low = 1, 1
    for top, bottom in zip(high.ravel().tolist(), low.ravel().tolist(), strict=True):
        if top * best_low > best_high * bottom:
            best_high, best_low = top, bottom
    return Fraction(best_high, best_low)


def rounded_up(value: Fraction) -> float:
    """Return the smallest float that is not below a number.

    Examples
    --------
    >>> rounded_up(Fraction(1, 2)), rounded_up(Fraction(1, 10)) > 0.1, rounded_up(Fraction(1, 3)) > Fraction(1, 3)
    (0.5, False, True)
    """
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)
