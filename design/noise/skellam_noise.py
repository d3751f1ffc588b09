"""Skellam noise: the difference of two Poisson numbers with the same rate, exactly."""

from fractions import Fraction

from ...arrays import IntegerArray
from .poisson_noise import LARGEST_RATE, LEAST_RATE, sample_poisson
from .random_words import WordsLike, word_source
from .rational_parameter import rational_parameter


def sample_skellam(variance: float | Fraction, size: int | tuple[int, ...], words: WordsLike) -> IntegerArray:
    """Draw differences of two independent Poisson numbers of rate variance / 2 each, exactly.

    Parameters
    ----------
    variance : float, int or Fraction
        Variance of the noise, 2e-6 to 2e10; a float counts as the binary fraction that it is. Time grows with it from 2**27 on.
    size : int or tuple of int
        How many, or the shape of the result.
    words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.

    Examples
    --------
    >>> import numpy as np
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_skellam(40, 100_000, seeded_words(np.random.default_rng(0)))
    >>> abs(float(draws.mean())) < 0.1, round(float(draws.var()))
    (True, 40)
    """
    words = word_source(words)
    rate = rational_parameter("variance", variance, low=2 * LEAST_RATE, high=2 * LARGEST_RATE) / 2
    noise = sample_poisson(rate, size, words)
    noise -= sample_poisson(rate, size, words)
    return noise
