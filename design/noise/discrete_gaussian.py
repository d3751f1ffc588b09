"""The discrete Gaussian distribution: exact samples, and its variance.

Canonne, Kamath, Steinke 2020, *The discrete Gaussian for differential privacy*, define the distribution; this module samples it by another
algorithm.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...arrays import FloatArray, IntegerArray, flat_view
from .exact_sampler import ExactSampler, exponential_bounds, rational_parameter, sample_shape
from .random_words import WordsLike, word_source

LEAST_SIGMA, LARGEST_SIGMA = 1e-6, 1e12
SAMPLERS = 16
# Sigma from which the variance and sigma**2 are the same number in double precision.
SMOOTH_SIGMA = 2
SERIES_BITS = 160
MOST_ZEROS = 2000


@dataclass(frozen=True)
class GaussianCurve:
    """The function exp(-x**2 / (2 sigma**2)) of whole numbers x.

    Sigma is from 1e-6 to 1e12.
    """

    sigma: Fraction

    @property
    def mode(self) -> int:
        """Mode of the curve, zero."""
        return 0

    @property
    def spread(self) -> float:
        """Parameter sigma, rounded."""
        return float(self.sigma)

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at points up to 2**53 in magnitude.

        The absolute error is at most 2**-44: k roundings of the exponent y change the value by y exp(-y) k roundings.
        """
        scaled = points / float(self.sigma)
        return np.exp(-0.5 * scaled * scaled)

    def first_bounds(self, most: int, bits: int) -> Iterator[tuple[int, int]]:
        """Yield `bounds` of the points from 0 to `most`."""
        for point in range(most + 1):
            yield self.bounds(point, bits)

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return bounds on f at a point that are at most 2 apart."""
        return exponential_bounds((point / self.sigma) ** 2 / 2, bits)


def sample_discrete_gaussian(
    sigma: float | Fraction, size: int | tuple[int, ...], random_words: WordsLike, kind: DTypeLike = np.int64
) -> NDArray[Any]:
    """Draw whole numbers x with probability proportional to exp(-x**2 / (2 sigma**2)), exactly.

    Parameters
    ----------
    sigma : float, int or Fraction
        Parameter of the distribution, 1e-6 to 1e12; a float counts as the binary fraction that it is.
    size : int or tuple of int
        Number of samples, or the shape of the result.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.
    kind : dtype-like
        Type of the result; a type of w bits holds the numbers modulo 2**w.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_discrete_gaussian(10.0, (1000, 100), seeded_words(np.random.default_rng(0)))
    >>> draws.shape, round(float(draws.std()), 1)
    ((1000, 100), 10.0)
    """
    total: NDArray[Any] = np.zeros(sample_shape(size), dtype=kind)
    add_discrete_gaussian(total, sigma, random_words)
    return total


def add_discrete_gaussian(total: NDArray[Any], sigma: float | Fraction, random_words: WordsLike) -> None:
    """Add a draw of `sample_discrete_gaussian` to each whole number of a contiguous array, modulo 2**w for numbers of w bits."""
    random_words = word_source(random_words)
    # The cache hashes a float faster than a fraction.
    _sampler(sigma if isinstance(sigma, float) else _exact(sigma)).add(flat_view("total", total), random_words)


def discrete_gaussian_variance(sigma: float | Fraction) -> float:
    """Return the variance of the discrete Gaussian distribution, which is below sigma**2.

    Sigma is from 1e-6 to 1e12. By Poisson's summation formula the variance is sigma**2 (1 - 8 pi**2 sigma**2 exp(-2 pi**2 sigma**2) (1 +
    o(1))); for small sigma it is 2 exp(-1 / (2 sigma**2)) (1 + o(1)).

    The function sums the variance in whole numbers and rounds once. From sigma = 2 on it returns sigma**2, as the two differ by a relative
    error below 1e-31. It returns 0.0 if the variance is too small for a float.

    Examples
    --------
    >>> round(discrete_gaussian_variance(0.5), 6), discrete_gaussian_variance(100.0)
    (0.215013, 10000.0)
    """
    exact = _exact(sigma)
    if exact >= SMOOTH_SIGMA:
        return float(exact**2)
    curve = GaussianCurve(exact)
    # The first term exceeds 2**-zeros; beyond this number of zeros the first term is less than half of the smallest float.
    zeros = int(1 / exact**2)
    if zeros > MOST_ZEROS:
        return 0.0
    bits = SERIES_BITS + zeros
    total, square_total, point = 1 << bits, 0, 1
    while term := curve.bounds(point, bits)[0]:
        total += 2 * term
        square_total += 2 * point * point * term
        point += 1
    return float(Fraction(square_total, total))


@lru_cache(maxsize=SAMPLERS)
def _sampler(sigma: float | Fraction) -> ExactSampler:
    return ExactSampler(GaussianCurve(_exact(sigma)))


def _exact(sigma: float | Fraction) -> Fraction:
    return rational_parameter("sigma", sigma, low=LEAST_SIGMA, high=LARGEST_SIGMA)
