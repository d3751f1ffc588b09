"""Exact samples of binomial noise, from random bits or from ratios of probabilities.

The sampler counts random bits if counting is fast. `count_successes` draws binomial numbers with few trials and many different
probabilities, such as tosses of coins with different biases.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IndexArray, IntegerArray, WordArray, flat_view
from .exact_sampler import WORD_BITS, ExactSampler, RatioCurve, rational_parameter, sample_shape
from .random_words import WordsLike, WordSource, word_source

MOST_TOSSES = 2**20
LARGEST_BIAS = 0.499
# Number of coins tossed together, whose numbers a processor's cache holds.
BLOCK = 2**15
# Once at most this share of the coins has undecided trials, further comparisons leave the other coins out.
KEPT_SHARE = 0.1
# Largest number of trials that are faster with a word each.
WHOLE_WORDS = 4
HALF_WORD = np.uint64(2**63)

MOST_TRIALS = 2**40
# Largest number of fair trials that the sampler counts bit by bit.
COUNTED_TRIALS = 2 * WORD_BITS
# Number of words drawn at a time, a quarter of a megabyte.
CHUNK = 2**15
# Largest variance of a single draw. The sampler splits larger variances into parts, as a sum of binomial numbers of equal probability is
# binomial.
LARGEST_PART = 2**26
SAMPLERS = 16


def sample_binomial(
    trials: int, probability: float | Fraction, size: int | tuple[int, ...], random_words: WordsLike, kind: DTypeLike = np.int64
) -> NDArray[Any]:
    """Draw numbers of successes in independent trials, exactly.

    Parameters
    ----------
    trials : int
        Number of trials, 0 to 2**40.
    probability : float or Fraction
        Chance of success in a trial, from 0 to 1; a float counts as the binary fraction that it is. Time grows with the variance,
        trials * probability * (1 - probability), from 2**26 on.
    size : int or tuple of int
        Number of samples, or the shape of the result.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.
    kind : dtype-like
        Type of the result; a type of w bits holds the numbers modulo 2**w.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_binomial(1000, Fraction(1, 3), 100_000, seeded_words(np.random.default_rng(0)))
    >>> round(float(draws.mean())), round(binomial_variance(1000, Fraction(1, 3)), 1)
    (333, 222.2)
    """
    total: NDArray[Any] = np.zeros(sample_shape(size), dtype=kind)
    add_binomial(total, trials, probability, random_words)
    return total


def add_binomial(total: NDArray[Any], trials: int, probability: float | Fraction, random_words: WordsLike) -> None:
    """Add a draw of `sample_binomial` to each whole number of a contiguous array, modulo 2**w for numbers of w bits."""
    random_words, flat = word_source(random_words), flat_view("total", total)
    trials = check_integer("trials", trials, low=0, high=MOST_TRIALS)
    # The cache hashes a float faster than a fraction.
    parts = _parts(trials, probability if isinstance(probability, float) else _exact(probability))
    if parts.certain:
        flat += np.array([parts.certain]).astype(total.dtype)
    if parts.fair:
        _add_bits(flat, parts.fair, random_words)
    for sampler in parts.samplers:
        sampler.add(flat, random_words)


@dataclass(frozen=True)
class _Parts:
    """Trials that certainly succeed, fair trials whose bits are counted, and samplers of the successes of others."""

    certain: int = 0
    fair: int = 0
    samplers: tuple[ExactSampler, ...] = ()


@lru_cache(maxsize=SAMPLERS)
def _parts(trials: int, probability: float | Fraction) -> _Parts:
    exact = _exact(probability)
    if exact in (0, 1):
        return _Parts(certain=trials * int(exact))
    if exact == Fraction(1, 2) and trials <= COUNTED_TRIALS:
        return _Parts(fair=trials)
    parts = math.ceil(trials * exact * (1 - exact) / LARGEST_PART)
    return _Parts(samplers=tuple(_sampler((trials + part) // parts, exact) for part in range(parts)))


def _exact(probability: float | Fraction) -> Fraction:
    return rational_parameter("probability", probability, low=0.0, high=1.0)


def binomial_variance(trials: int, probability: float | Fraction) -> float:
    """Return the variance of a binomial number, rounded once.

    The variance is trials * probability * (1 - probability).

    Examples
    --------
    >>> binomial_variance(1000, 0.25)
    187.5
    """
    trials = check_integer("trials", trials, low=0, high=MOST_TRIALS)
    exact = _exact(probability)
    return float(trials * exact * (1 - exact))


def _add_bits(total: NDArray[Any], trials: int, random_words: WordSource) -> None:
    """Add the number of ones among `trials` random bits to each number of an array."""
    for start in range(0, len(total), CHUNK):
        chunk = total[start : start + CHUNK]
        for bits in range(trials, 0, -WORD_BITS):
            words = random_words(len(chunk))
            words >>= np.uint64(max(0, WORD_BITS - bits))
            chunk += np.bitwise_count(words).astype(total.dtype)


@lru_cache(maxsize=SAMPLERS)
def _sampler(trials: int, probability: Fraction) -> ExactSampler:
    ups, total = probability.as_integer_ratio()
    downs = total - ups
    # f(x + 1) / f(x) = (trials - x) probability / ((x + 1) (1 - probability)).
    return ExactSampler(
        RatioCurve(
            mode=math.floor((trials + 1) * probability),
            spread=math.sqrt(trials * probability * (1 - probability)),
            ratio=lambda point: ((trials - point) * ups, (point + 1) * downs),
        )
    )


def count_successes(biases: FloatArray, trials: int, random_words: WordsLike) -> IntegerArray:
    """Return numbers of successes in trials of probability 1/2 + bias, one per bias.

    The result has the shape of `biases`.

    A trial succeeds if a uniform number of 64 bits is below a whole number: its probability is a multiple of 2**-64, rounded toward 1/2 by
    less than 2**-64, and no further from 1/2 than the bias. All trials of a coin are compared together, a binary digit at a time, until all
    are decided: 64 trials take 7.4 random words on average. The number of words depends on random bits alone, never on a bias.

    Parameters
    ----------
    biases : ndarray of float64, any shape
        Probabilities of success less 1/2, from -0.499 to 0.499.
    trials : int
        Number of trials of each coin, from 1 to 2**20.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator for experiments.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> counts = count_successes(np.tile([-0.25, 0.0, 0.4], (100_000, 1)), 10, seeded_words(np.random.default_rng(0)))
    >>> counts.mean(axis=0).round(1).tolist()
    [2.5, 5.0, 9.0]
    """
    random_words = word_source(random_words)
    trials = check_integer("trials", trials, low=1, high=MOST_TOSSES)
    flat = np.asarray(biases, dtype=float).ravel()
    if not (np.abs(flat) <= LARGEST_BIAS).all():
        wrong = flat[~(np.abs(flat) <= LARGEST_BIAS)][0]
        raise ValueError(f"biases must be from {-LARGEST_BIAS} to {LARGEST_BIAS}, got {float(wrong)!r}")
    # The product of a float and a power of two is exact. Truncation is toward 1/2; 0.499 * 2**64 is below 2**63.
    thresholds = np.trunc(flat * 2.0**64).astype(np.int64).view(np.uint64) + HALF_WORD
    counts = np.zeros(len(flat), dtype=np.int64)
    for start in range(0, len(flat), BLOCK):
        block, below = counts[start : start + BLOCK], thresholds[start : start + BLOCK]
        for tosses in range(trials, 0, -WORD_BITS):
            if tosses <= WHOLE_WORDS:
                for _ in range(tosses):
                    block += random_words(len(block)) < below
            else:
                block += _count_below(below, min(tosses, WORD_BITS), random_words)
    return counts.reshape(np.shape(biases))


def _count_below(thresholds: WordArray, tosses: int, random_words: WordSource) -> IntegerArray:
    """Return how many of up to 64 uniform 64-bit numbers are below each threshold.

    A number's first digit equals the threshold's with probability 1/2, and so does each further digit. At its first other digit the number
    is below the threshold if the threshold's digit is 1. A random bit of each number states whether its next digit is equal.
    """
    total = np.zeros(len(thresholds), dtype=np.int64)
    kind = np.min_scalar_type((1 << tosses) - 1)
    equal: NDArray[Any] = np.full(len(thresholds), (1 << tosses) - 1, dtype=kind)
    places: slice | IndexArray = slice(None)
    # Up to 64 successes fit a byte.
    left: NDArray[np.uint8] = np.full(len(thresholds), tosses, dtype=np.uint8)
    below, digits = np.zeros_like(left), left
    for place in range(WORD_BITS):
        if place % 8 == 0:
            digits = (thresholds >> np.uint64(WORD_BITS - 8 - place)).astype(np.uint8)
        equal &= random_words(-(-len(equal) * kind.itemsize // 8)).view(kind)[: len(equal)]
        still = np.bitwise_count(equal)
        # Masks of all ones or all zeros select the numbers that this digit decides.
        below += (left - still) & -(digits >> np.uint8(7))
        digits <<= 1
        left = still
        if tosses >> place <= 2:
            if np.count_nonzero(left) <= KEPT_SHARE * len(left):
                open_places = np.flatnonzero(left)
                total[places] += below
                places = open_places if isinstance(places, slice) else places[open_places]
                equal, left = equal[open_places], left[open_places]
                digits, thresholds = digits[open_places], thresholds[open_places]
                below = np.zeros_like(left)
            if not len(left):
                break
    total[places] += below
    return total
