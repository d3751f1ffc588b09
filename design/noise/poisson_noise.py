"""The Poisson distribution: exact samples for any rational rate."""

import math
from fractions import Fraction
from functools import lru_cache

from ...arrays import IntegerArray
from .exact_sampler import ExactSampler
from .random_words import WordsLike, word_source
from .ratio_curve import RatioCurve
from .rational_parameter import rational_parameter
from .sample_shape import sample_shape

LEAST_RATE, LARGEST_RATE = 1e-6, 1e10
# Larger rates are split into equal parts: sums of Poisson numbers are Poisson.
LARGEST_PART = 2**26
SAMPLERS = 16


def sample_poisson(rate: float | Fraction, size: int | tuple[int, ...], words: WordsLike) -> IntegerArray:
    """Draw Poisson numbers, exactly.

    Parameters
    ----------
    rate : float, int or Fraction
        Mean and variance, 1e-6 to 1e10; a float counts as the binary fraction that it is. Time grows with it from 2**26 on.
    size : int or tuple of int
        How many, or the shape of the result.
    words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.

    Examples
    --------
    >>> import numpy as np
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_poisson(2.5, 100_000, seeded_words(np.random.default_rng(0)))
    >>> round(float(draws.mean()), 1), round(float(draws.var()), 1)
    (2.5, 2.5)
    """
    words = word_source(words)
    exact = rational_parameter("rate", rate, low=LEAST_RATE, high=LARGEST_RATE)
    parts = math.ceil(exact / LARGEST_PART)
    return _sampler(exact / parts).draw_sums(parts, sample_shape(size), words)


@lru_cache(maxsize=SAMPLERS)
def _sampler(rate: Fraction) -> ExactSampler:
    numerator, denominator = rate.as_integer_ratio()
    # f(x + 1) / f(x) = rate / (x + 1).
    return ExactSampler(RatioCurve(math.floor(rate), math.sqrt(rate), lambda point: (numerator, denominator * (point + 1))))
