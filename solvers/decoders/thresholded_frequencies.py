"""Expected squared error of noisy frequencies of which the largest are kept and projected onto those that add up to at most 1."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..numerics.safe_root import falling_root

# How closely cut and shift are found: in expected numbers and sums, and relative to the largest value.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class ThresholdedError:
    """Expected squared error of frequencies that are cut off and projected.

    Attributes
    ----------
    kept, missed : float
        Squared error of the values that are kept, and of those that are cut off and estimated as 0.
    """

    kept: float
    missed: float

    @property
    def squared(self) -> float:
        """Squared error of all values."""
        return self.kept + self.missed


def thresholded_error(frequencies: ArrayLike, deviation: float, most: int, threshold: float = 0.0) -> ThresholdedError:
    """Predict the squared error of frequencies with Gaussian noise, of which the server keeps the `most` largest above a threshold.

    Where the kept values v add up to more than 1, the server projects them: they become ``max(v - shift, 0)``. Cut and shift are
    computed from expected numbers and sums, which is what they are close to for many items. The prediction errs upward by less than
    ``deviation**2`` where few items are held: noise then moves their sum above 1 or below.

    Parameters
    ----------
    frequencies : array_like of shape (items,)
        The true frequencies.
    deviation : float
        Standard deviation of the noise on each of them, above 0.
    most : int
        Number of values that are kept at most, from 1.
    threshold : float
        Value that kept ones exceed, at least 0.

    Examples
    --------
    Ten items out of the noise's reach have ten times its variance. Noise on a thousand items that are all kept loses most of it by the
    projection.

    >>> few = thresholded_error(np.full(10, 0.1), 1e-3, 10)
    >>> many = thresholded_error(np.repeat([0.01, 0.0], [100, 900]), 5e-3, 1000)
    >>> round(few.squared / 1e-6, 3), round(many.squared / (1000 * 25e-6), 3)
    (10.0, 0.23)
    """
    values, counts = np.unique(np.asarray(frequencies, dtype=float), return_counts=True)
    deviation = check_real("deviation", deviation, low=1e-100, high=1e100)
    most, cut = check_integer("most", most, low=1, high=2**53), check_real("threshold", threshold, low=0.0, high=1e100)
    highest = float(values.max()) + 40 * deviation

    def kept(above: float) -> FloatArray:
        return _tail((above - values) / deviation)

    def total(shift: float) -> float:
        standard = (max(cut, shift) - values) / deviation
        return float(counts @ (deviation * _density(standard) + (values - shift) * _tail(standard)))

    if counts @ kept(cut) > most:
        cut = falling_root(lambda above: float(counts @ kept(above)) - most, cut, highest, tolerance=TOLERANCE, jump=TOLERANCE)
    shift = 0.0
    if total(0.0) > 1:
        shift = falling_root(lambda lowered: total(lowered) - 1, 0.0, highest, tolerance=TOLERANCE, jump=TOLERANCE)
    standard = (max(cut, shift) - values) / deviation
    tail, density = _tail(standard), _density(standard)
    # A value v = f + deviation z that is kept is off by deviation z - shift, any other by f.
    errors = deviation**2 * (tail + standard * density) - 2 * deviation * shift * density + shift**2 * tail
    return ThresholdedError(float(counts @ errors), float(counts @ (values**2 * (1 - tail))))


def _tail(standard: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(-standard))


def _density(standard: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-np.square(standard) / 2) / math.sqrt(2 * math.pi))
