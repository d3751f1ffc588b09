"""Exact samples of Skellam noise and of Poisson numbers, for any rational rate.

Skellam noise is the difference of two Poisson numbers with the same rate.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...arrays import FloatArray, IntegerArray, flat_view
from .exact_sampler import GUARD_BITS, LEAST_BITS, TABLE_BITS, ExactSampler, RatioCurve, rational_parameter, sample_shape
from .random_words import WordsLike, word_source

LEAST_RATE, LARGEST_RATE = 1e-6, 1e10
LEAST_POISSON_RATE = 1e-10

# Largest variance of a single draw. The sampler splits larger variances into equal parts, as sums of Skellam numbers are Skellam.
LARGEST_PART = 2**26
SAMPLERS = 16
FEWEST_TERMS = 64


@dataclass(frozen=True, eq=False)
class SkellamCurve:
    """The function I_x(mu) / I_0(mu) of whole numbers x, I a modified Bessel function.

    The function is the Skellam distribution of variance mu, up to a factor. It is even, and log-concave as the law of the difference of two
    independent numbers with log-concave laws. The ratios r_x = f(x + 1) / f(x) obey r_(x - 1) = 1 / (2 x / mu + r_x) (Amos 1974,
    *Computation of modified Bessel functions and their ratios*, equation 2). Downward the recurrence contracts: an error e in r_x causes an
    error below r_(x - 1)**2 e in the next ratio. So the recurrence may begin with any ratio's certain bounds, 0 and 1, and carries both
    ends along in whole numbers.
    """

    variance: Fraction

    @property
    def mode(self) -> int:
        """Mode of the curve, zero."""
        return 0

    @property
    def spread(self) -> float:
        """Standard deviation of the distribution."""
        return math.sqrt(self.variance)

    def approximate(self, points: IntegerArray) -> FloatArray:
        """Return f at whole numbers; 0.0 from where f is below 2**-48."""
        return np.asarray(self._table[np.minimum(np.abs(points), len(self._table) - 1)])

    def first_bounds(self, most: int, bits: int) -> Iterator[tuple[int, int]]:
        """Yield bounds on f at the points from 0 on, up to `most` or the first point below one unit."""
        for low, high in self._values(self._first_terms(bits, most), bits + GUARD_BITS, least_bits=bits, most=most):
            yield low >> GUARD_BITS, -(-high >> GUARD_BITS)

    def bounds(self, point: int, bits: int) -> tuple[int, int]:
        """Return bounds on f at a point that are at most 3 apart."""
        terms = self._first_terms(bits, abs(point))
        while True:
            values = self._values(terms, bits + GUARD_BITS, least_bits=bits, most=abs(point))
            low, high = values[-1][0] >> GUARD_BITS, -(-values[-1][1] >> GUARD_BITS)
            # The function f falls: if it is below one unit before the point, it is below one unit at the point.
            if high <= 1:
                return (low if len(values) > abs(point) else 0), high
            if len(values) > abs(point) and high - low <= 3:
                return low, high
            terms *= 2

    @cached_property
    def _table(self) -> FloatArray:
        """Values from the mode on, with a zero at the end."""
        terms = self._first_terms(LEAST_BITS, math.inf)
        while True:
            values = self._values(terms, TABLE_BITS, least_bits=LEAST_BITS, most=terms)
            if len(values) <= terms and max(high - low for low, high in values) < 1 << (TABLE_BITS - LEAST_BITS):
                return np.array([low / (1 << TABLE_BITS) for low, _ in values[:-1]] + [0.0])
            terms *= 2

    def _first_terms(self, least_bits: int, most: float) -> int:
        """Return the number of terms to try first.

        Fewer terms end before `most`, and before f is below 2**-least_bits. The ratios fall, as f is log-concave, so that the recurrence
        gives r_(x - 1) >= exp(-x / mu), and f(x) >= exp(-x (x + 1) / (2 mu)).
        """
        terms, reach = FEWEST_TERMS, 2 * self.variance * least_bits * math.log(2)
        while terms < most and terms * (terms + 1) < reach:
            terms *= 2
        return terms

    def _values(self, terms: int, bits: int, least_bits: int, most: int) -> list[tuple[int, int]]:
        """Return bounds on 2**bits f(x) for x from 0, up to the first of three ends.

        The ends are f below 2**-least_bits, x = most, and x = terms.
        """
        numerator, denominator = self.variance.as_integer_ratio()
        unit = 1 << bits
        low, high, ratios = 0, unit, []
        for point in range(terms, 0, -1):
            quotient = ((2 * point * denominator) << bits) // numerator
            low, high = (unit << bits) // (quotient + 1 + high), min(unit, -(-(unit << bits) // (quotient + low)))
            ratios.append((low, high))
        values, least = [(unit, unit)], unit >> least_bits
        while ratios and len(values) <= most and values[-1][1] > least:
            low, high = ratios.pop()
            values.append((values[-1][0] * low >> bits, -(-values[-1][1] * high >> bits)))
        return values


def sample_skellam(
    variance: float | Fraction, size: int | tuple[int, ...], random_words: WordsLike, kind: DTypeLike = np.int64
) -> NDArray[Any]:
    """Draw differences of two independent Poisson numbers of rate variance / 2 each, exactly.

    Parameters
    ----------
    variance : float, int or Fraction
        Variance of the noise, 2e-6 to 2e10; a float counts as the binary fraction that it is. Time grows with it from 2**26 on.
    size : int or tuple of int
        Number of samples, or the shape of the result.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.
    kind : dtype-like
        Type of the result; a type of w bits holds the numbers modulo 2**w.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_skellam(40, 100_000, seeded_words(np.random.default_rng(0)))
    >>> abs(float(draws.mean())) < 0.1, round(float(draws.var()))
    (True, 40)
    """
    total: NDArray[Any] = np.zeros(sample_shape(size), dtype=kind)
    add_skellam(total, variance, random_words)
    return total


def add_skellam(total: NDArray[Any], variance: float | Fraction, random_words: WordsLike) -> None:
    """Add a draw of `sample_skellam` to each whole number of a contiguous array, modulo 2**w for numbers of w bits."""
    random_words = word_source(random_words)
    # The cache hashes a float faster than a fraction.
    sampler, parts = _sampler(variance if isinstance(variance, float) else _exact(variance))
    flat = flat_view("total", total)
    for _ in range(parts):
        sampler.add(flat, random_words)


@lru_cache(maxsize=SAMPLERS)
def _sampler(variance: float | Fraction) -> tuple[ExactSampler, int]:
    """Return a sampler, and the number of its draws that add up to a variance."""
    exact = _exact(variance)
    parts = math.ceil(exact / LARGEST_PART)
    return ExactSampler(SkellamCurve(exact / parts)), parts


def _exact(variance: float | Fraction) -> Fraction:
    return rational_parameter("variance", variance, low=2 * LEAST_RATE, high=2 * LARGEST_RATE)


def sample_poisson(rate: float | Fraction, size: int | tuple[int, ...], random_words: WordsLike) -> IntegerArray:
    """Draw Poisson numbers, exactly.

    Parameters
    ----------
    rate : float, int or Fraction
        Mean and variance, 1e-10 to 1e10; a float counts as the binary fraction that it is. Time grows with it from 2**26 on.
    size : int or tuple of int
        Number of samples, or the shape of the result.
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it, for experiments.

    Examples
    --------
    >>> import numpy as np
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> draws = sample_poisson(2.5, 100_000, seeded_words(np.random.default_rng(0)))
    >>> round(float(draws.mean()), 1), round(float(draws.var()), 1)
    (2.5, 2.5)
    """
    random_words = word_source(random_words)
    exact = rational_parameter("rate", rate, low=LEAST_POISSON_RATE, high=LARGEST_RATE)
    parts = math.ceil(exact / LARGEST_PART)
    total = np.zeros(sample_shape(size), dtype=np.int64)
    for _ in range(parts):
        _poisson_sampler(exact / parts).add(total.reshape(-1), random_words)
    return total


@lru_cache(maxsize=SAMPLERS)
def _poisson_sampler(rate: Fraction) -> ExactSampler:
    numerator, denominator = rate.as_integer_ratio()
    # f(x + 1) / f(x) = rate / (x + 1).
    return ExactSampler(RatioCurve(math.floor(rate), math.sqrt(rate), lambda point: (numerator, denominator * (point + 1))))
