"""Exact samples and the variance of the discrete Laplace (two-sided geometric) distribution."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...arrays import FloatArray, IntegerArray
from .exact_sampler import ExactSampler, exponential_bounds, rational_parameter, sample_shape
from .random_words import WordsLike, word_source

LEAST_SCALE, LARGEST_SCALE = 1e-6, 1e12
SAMPLERS = 16


@dataclass(frozen=True)
class LaplaceCurve:
    """The function exp(-abs(x) / scale) of whole numbers x, for scales from 1e-6 to 1e12."""

    scale: Fraction

    @property
    def mode(self) -> int:
        """Mode of the curve, zero."""
        return 0

    @property
    def spread(self) -> float:
        """Parameter of the curve, rounded."""
        return float(self.scale)

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at points up to 2**53 in magnitude."""
        return np.exp(-np.abs(points) / float(self.scale))

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return bounds on f at a point that are at most 2 apart."""
        return exponential_bounds(abs(point) / self.scale, bits)


def sample_discrete_laplace(scale: float | Fraction, size: int | tuple[int, ...], random_words: WordsLike) -> IntegerArray:
    """Draw whole numbers x with probability proportional to exp(-abs(x) / scale), exactly.

    Parameters
    ----------
    scale : float, int or Fraction
        Parameter of the distribution, 1e-6 to 1e12; a float counts as the binary fraction that it is.
    size : int or tuple of int
        Number of samples, or the shape of the result.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_discrete_laplace(Fraction(7, 2), 100_000, seeded_words(np.random.default_rng(0)))
    >>> round(float(draws.var())), round(discrete_laplace_variance(Fraction(7, 2)))
    (24, 24)
    """
    random_words = word_source(random_words)
    exact = rational_parameter("scale", scale, low=LEAST_SCALE, high=LARGEST_SCALE)
    shape = sample_shape(size)
    return _sampler(exact).draw(math.prod(shape), random_words).reshape(shape)


def discrete_laplace_variance(scale: float | Fraction) -> float:
    """Return the variance of the discrete Laplace distribution.

    With q = exp(-1 / scale) the variance is 2 q / (1 - q)**2. The result is right to a few units in the last place, and 0.0 if the variance
    is too small for a float.

    Examples
    --------
    >>> round(discrete_laplace_variance(1.0), 6)
    1.841347
    """
    rate = float(1 / rational_parameter("scale", scale, low=LEAST_SCALE, high=LARGEST_SCALE))
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


@lru_cache(maxsize=SAMPLERS)
def _sampler(scale: Fraction) -> ExactSampler:
    return ExactSampler(LaplaceCurve(scale))
