"""Quantiles of the normal distribution that are the same on every machine: computed with + - * / only.

IEEE 754 says what these four give, to the last bit. What a mathematics library's logarithm or exponential gives, it leaves open, and
machines differ. Who has to agree on random numbers, bit by bit, computes them from quantiles of this kind.
"""

import numpy as np

from ...arrays import FloatArray
from .bisection import bisect_each

SMALLEST_TAIL = 2.0**-40
# 1 - Phi(7.5) is below 2**-40.
_LARGEST_QUANTILE = 7.5
# Below, the series for the centre; from there on, the continued fraction for the tail.
_TAIL_BEGINS = 2.5
_SERIES_TERMS = 40
_FRACTION_TERMS = 60
_HALVINGS = 60
_ROOT_OF_TWO_PI = 2.5066282746310002


def _exponential(values: FloatArray) -> FloatArray:
    """Return exp(-values) for values from 0 to 32: a Taylor polynomial of values / 1024, squared ten times."""
    small = values / -1024
    result = np.ones_like(values)
    for term in range(9, 0, -1):
        result = 1 + small * result / term
    for _ in range(10):
        result = result * result
    return result


def upper_tail(points: FloatArray) -> FloatArray:
    """Return 1 - Phi(x) for x from 0 to 7.5, the same bits on every machine, with a relative error below 1e-11.

    By Abramowitz, Stegun 1964, 26.2.11 for the centre and 26.2.14 for the tail.

    Examples
    --------
    >>> upper_tail(np.array([0.0, 1.0, 6.0])).tolist()  # doctest: +ELLIPSIS
    [0.5, 0.158655253931..., 9.86587645037...e-10]
    """
    density = _exponential(points * points / 2) / _ROOT_OF_TWO_PI
    centre = np.minimum(points, _TAIL_BEGINS)
    series = np.ones_like(points)
    for term in range(_SERIES_TERMS, 0, -1):
        series = 1 + centre * centre * series / (2 * term + 1)
    tail = np.maximum(points, _TAIL_BEGINS)
    fraction = tail.copy()
    for term in range(_FRACTION_TERMS, 0, -1):
        fraction = tail + term / fraction
    return np.where(points < _TAIL_BEGINS, 0.5 - density * points * series, density / fraction)


def upper_quantile(tails: FloatArray) -> FloatArray:
    """Return the points that a standard normal number exceeds with given probabilities, the same bits on every machine.

    Probabilities are from 2**-40 to 1/2, points from 0 to 7.1, with an absolute error below 1e-11.

    Examples
    --------
    >>> upper_quantile(np.array([0.5, 0.025, 2.0**-32])).round(9).tolist()
    [0.0, 1.959963985, 6.230260138]
    """
    if not ((tails >= SMALLEST_TAIL) & (tails <= 0.5)).all():
        raise ValueError(f"tails must be probabilities from 2**-40 to 0.5, got {tails.min()!r} to {tails.max()!r}")
    found = bisect_each(lambda points: upper_tail(points) > tails, np.zeros_like(tails), np.full_like(tails, _LARGEST_QUANTILE), _HALVINGS)
    # A half is met by zero, which bisection can only approach.
    return np.where(tails == 0.5, 0.0, (found.holds + found.fails) / 2)
