"""Exact mean and variance of every row of an integer table, in rational arithmetic."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RowMoments:
    """What each row of a table decodes to, exactly, on the unit interval's scale.

    Attributes
    ----------
    means, variances : tuple of Fraction
        One per row.
    """

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
    """Return the exact moments of every row.

    Parameters
    ----------
    weights : ndarray of int64, shape (rows, letters)
        Non-negative weights whose rows sum to `total`.
    alphabet : tuple of Fraction
        The letters.
    total : int
        Sum of every row.

    Returns
    -------
    RowMoments
        Means and variances around the means (not around the inputs; the two agree where there is no bias).
    """
    denominator = lcm(*(letter.denominator for letter in alphabet))
    # Python integers: weights and letters have about 60 bits each, and their sums of products are kept whole.
    numerators = np.array([int(letter * denominator) for letter in alphabet], dtype=object)
    whole = weights.astype(object)
    first, second = whole @ numerators, whole @ numerators**2
    means = tuple(Fraction(one, total * denominator) for one in first)
    variances = tuple(Fraction(total * two - one * one, (total * denominator) ** 2) for one, two in zip(first, second, strict=True))
    return RowMoments(means, variances)
