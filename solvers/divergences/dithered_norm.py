"""Certain and probable bounds on the growth of a vector's norm by rounding to whole numbers.

Lengths are in grid steps. A coordinate at distance x from zero is rounded to floor(x) or ceil(x), with mean x; on average its p-th power
becomes the chord (1 - f) floor(x)**p + f ceil(x)**p, with f the fractional part, and differs from the chord by (b - f) w, where b is 1 if
it is rounded up and w = (floor(x) + 1)**p - floor(x)**p.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...arguments import LARGEST_DIMENSION, check_integer, check_norm, check_real
from ...arrays import FloatArray
from ..numerics.bisection import bisect
from ..numerics.concave_envelope import concave_envelope
from ..numerics.rounding import UNIT
from ..numerics.separable_budget import UPWARD, largest_piecewise_sum
from .vector_composition import LARGEST_NORM

LARGEST_RADIUS = 2.0**20
# Largest whole number that stays distinct after rounding upward by UPWARD.
EXACT_INTEGERS = 1e10
HALVINGS = 40


def rounded_norm_bound(dimension: int, norm: float, radius: float) -> float:
    """Return a norm that no vector of a ball exceeds after systematic rounding.

    The bound holds for all random numbers. Systematic rounding (`vector_dithering.systematic_rounding`) keeps every running sum of b - f,
    taken in the order of falling w, below 1. Summation by parts then gives sum w (b - f) < the largest w, hence

        ``||v||_p^p`` < sum of chords + largest w <= d E(radius**p / d) + ceil(radius)**p - (ceil(radius) - 1)**p

    with E the concave envelope of the chord as a function of x**p. For p = 1 the chord is x and w is 1: the bound is ceil(radius), which
    equals the radius if that is a whole number. For p = 2, E(u) <= u + 1/4, and E(u) = sqrt(u) up to u = 1/4.

    Parameters
    ----------
    dimension : int
        Number of coordinates.
    norm : float
        Order p of the L_p norm, from 1 to 64, or infinity.
    radius : float
        Largest L_p norm before rounding, in steps, from 0 to 2**20.

    Returns
    -------
    float
        Upper bound on the L_p norm after rounding, in steps. For p = 1 and 2 the p-th power of the bound is the largest whole number below
        the right-hand side (p = 2: rounded up by one unit in the last place of its root).

    Examples
    --------
    >>> rounded_norm_bound(128, 1.0, 255), round(rounded_norm_bound(128, 2.0, 15) ** 2, 9)
    (255.0, 285.0)
    """
    dimension, norm, radius = _checked(dimension, norm, radius)
    top = math.ceil(radius)
    if norm == 1 or math.isinf(norm) or radius == 0:
        return float(top)
    everything_up = dimension * float(top) ** norm
    if norm == 2:
        # In whole numbers, a sum of squares below a number is at most the next whole number below it.
        squared = Fraction(radius) ** 2
        chords = squared + Fraction(dimension, 4) if 4 * squared >= dimension else math.isqrt(math.ceil(dimension * squared) - 1) + 1
        power = float(min(dimension * top**2, math.ceil(chords + 2 * top - 1) - 1))
    else:
        power = _chords(dimension, norm, radius) * float(top) ** norm + _weights(norm, top)[-1] * float(top) ** norm
        power *= 1 + UPWARD
        if norm == round(norm) and power < EXACT_INTEGERS:
            power = float(math.ceil(power) - 1)
        power = min(power, everything_up * (1 + UPWARD))
    # The logarithm of a root is at most 37, so the rounded exponent and the power add a relative error below 64 units.
    return math.nextafter(math.sqrt(power), math.inf) if norm == 2 else power ** (1 / norm) * (1 + 64 * UNIT)


def rounded_norm_quantile(dimension: int, norm: float, radius: float, failure_probability: float) -> float:
    """Return a norm that independent rounding exceeds with at most a given probability.

    The vectors are those of a ball. ``||v||_p^p`` is the sum of chords plus a sum of independent w (b - f), of mean zero and ranges w, so
    that Hoeffding's inequality gives

        P( ``||v||_p^p`` >= sum of chords + t ) <= exp(-2 t**2 / sum w**2)

    Concave envelopes bound both sums over the ball. For p = 2 and with q the probability, the inequality reads

        ``||v||^2`` <= radius**2 + d/4 + (2 radius + sqrt(d)) sqrt(ln(1/q) / 2)

    The bound replaces lemma 10 of Chaudhuri, Guo, Rabbat 2022, whose printed constants mix powers of the grid step. Parameters are those of
    `rounded_norm_bound`, p being finite, as an upper bound.

    Examples
    --------
    >>> round(rounded_norm_quantile(128, 1.0, 100, 0.05), 4)
    113.8465
    """
    dimension, norm, radius = _checked(dimension, check_real("norm", norm, low=1.0, high=LARGEST_NORM), radius)
    failure_probability = check_real("failure_probability", failure_probability, low=1e-300, high=1 - 1e-9)
    if radius == 0:
        return 0.0
    top = math.ceil(radius)
    deviations = math.sqrt(-math.log(failure_probability) / 2)
    if norm == 1:
        return (radius + math.sqrt(dimension) * deviations) * (1 + UPWARD)
    if norm == 2:
        chords = radius**2 + dimension / 4 if 4 * radius**2 >= dimension else math.sqrt(dimension) * radius
        return math.sqrt(chords + (2 * radius + math.sqrt(dimension)) * deviations) * (1 + UPWARD)
    prices = (np.arange(top) / top) ** norm
    squares = dimension * float(concave_envelope(prices, _weights(norm, top) ** 2).value((radius / top) ** norm / dimension))
    power = _chords(dimension, norm, radius) + math.sqrt(squares) * deviations
    return float(top * power ** (1 / norm) * (1 + UPWARD))


@lru_cache(maxsize=64)
def shrinkage(dimension: int, norm: float, radius: float, failure_probability: float) -> float:
    """Return the factor that keeps most vectors of a ball in it after independent rounding.

    The result multiplies vectors. It is the largest factor up to 1 for which `rounded_norm_quantile` proves that they leave the ball with
    at most the given probability; a lower bound on that factor, and 0.0 without such a factor.
    """
    return bisect(
        lambda factor: rounded_norm_quantile(dimension, norm, factor * radius, failure_probability) <= radius, 0.0, 1.0, HALVINGS
    ).holds


def least_shrinkable_radius(dimension: int, norm: float, failure_probability: float) -> float:
    """Return the radius, in steps, above which `shrinkage` is above 0.

    The radius is (d ln(1/q) / 2)**(1 / (2 p)). Each coordinate of a vector, however small, may be rounded up by one step: the sum of w**2
    is d.
    """
    dimension, norm, _ = _checked(dimension, norm, 1.0)
    failure_probability = check_real("failure_probability", failure_probability, low=1e-300, high=1 - 1e-9)
    return math.pow(-dimension * math.log(failure_probability) / 2, 1 / (2 * norm))


def _checked(dimension: int, norm: float, radius: float) -> tuple[int, float, float]:
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    return dimension, check_norm(norm, high=LARGEST_NORM), check_real("radius", radius, low=0.0, high=LARGEST_RADIUS)


def _weights(norm: float, top: int) -> FloatArray:
    """Return w of every cell up to the top, over top**p.

    The p-th powers of many steps would overflow, and their differences cancel.
    """
    left = np.arange(1, top)
    return np.append(top**-norm, (left / top) ** norm * np.expm1(norm * np.log1p(1 / left)))


def _chords(dimension: int, norm: float, radius: float) -> float:
    """Return a bound on the sum of chords over the ball, over ceil(radius)**p."""
    top = math.ceil(radius)
    lefts = np.arange(top, dtype=float)
    return largest_piecewise_sum(lefts, (lefts / top) ** norm, _weights(norm, top), np.zeros(top), dimension, norm, radius)
