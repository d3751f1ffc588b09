"""Staircase noise on the whole numbers: exact samples, variance, and the best width of its first stair.

The probability of x is proportional to exp(-epsilon l(abs(x))), with the level l(m) = floor((m + D - r) / D), for a sensitivity of D steps
and a first stair of r steps on either side. A shift by at most D steps changes the level by at most 1, so that the noise is epsilon
private. Geng, Viswanath 2014, *The optimal mechanism in differential privacy*, and 2016, *The optimal noise-adding mechanism in
differential privacy*, show that no noise that is private for any number has less error.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from ...arguments import check_integer, check_real
from ...solvers.numerics.rounding import SLACK
from .exact_sampler import MOST_EXTENSIONS, WORD_BITS, exponential_bounds
from .random_words import WordsLike, WordSource, word_source
from .redraws import Redraws

LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 700.0
MOST_STEPS = 2**42
# A level beyond these has a probability below 2**-2000 for the least epsilon.
MOST_LEVELS = 2_000_000_000


def staircase_variance(epsilon: float, steps: int, width: int) -> float:
    """Return the variance of staircase noise, in squared steps; it errs upward.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 1e-6 to 700.
    steps : int
        Sensitivity D, from 1 to 2**42.
    width : int
        Steps r of the first stair on either side, from 1 to D.

    Examples
    --------
    Laplace noise of epsilon 5 has the variance 0.08 of the squared sensitivity:

    >>> round(staircase_variance(5.0, 1000, best_width(5.0, 1000)) / 1000**2, 4)
    0.0297
    """
    epsilon, steps, width = _checked(epsilon, steps, width)
    fall = math.exp(-epsilon)
    rest = -math.expm1(-epsilon)
    # Sums of fall^j, j fall^j and j^2 fall^j.
    none, first, second = 1 / rest, fall / rest**2, fall * (1 + fall) / rest**3
    middle = width + (steps - 1) / 2
    inner = (width - 1) * width * (2 * width - 1) / 6
    outer = steps * fall * (steps**2 * second + 2 * steps * middle * first + (middle**2 + (steps**2 - 1) / 12) * none)
    return 2 * (inner + outer) / (2 * (width + steps * fall / rest) - 1) * (1 + SLACK)


def best_width(epsilon: float, steps: int) -> int:
    """Return the width of the first stair with the least variance.

    The search starts at the optimum for real numbers (Geng, Viswanath 2016, equation 34) and goes downhill.

    Examples
    --------
    >>> best_width(1.0, 1000), best_width(5.0, 1000)
    (417, 145)
    """
    epsilon, steps, _ = _checked(epsilon, steps, 1)
    fall = math.exp(-epsilon)
    rest = -math.expm1(-epsilon)
    # The terms of the closed form cancel for small epsilon, where all widths have nearly the same variance.
    share = 0.5 if epsilon < 1e-3 else (math.cbrt(fall * (1 + fall) * rest**3 / 2) / rest - fall) / rest
    width, stride = min(max(round(share * steps), 1), steps), max(1, steps // 64)
    while stride:
        neighbours = [other for other in (width - stride, width + stride) if 1 <= other <= steps]
        least = min(neighbours, key=lambda other: staircase_variance(epsilon, steps, other), default=width)
        if staircase_variance(epsilon, steps, least) < staircase_variance(epsilon, steps, width):
            width = least
        else:
            stride //= 2
    return width


def sample_staircase(epsilon: float, steps: int, width: int, random_words: WordsLike) -> int:
    """Draw a whole number of staircase noise, exactly.

    Arguments are those of `staircase_variance`, and the source of randomness: ``quietbits.secure_words`` for releases, a generator for
    experiments. A float epsilon counts as the binary fraction that it is.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draws = np.array([sample_staircase(5.0, 8, 2, rng) for _ in range(10_000)])
    >>> round(float(draws.var()), 1), round(staircase_variance(5.0, 8, 2), 1)
    (1.9, 1.9)
    """
    epsilon, steps, width = _checked(epsilon, steps, width)
    random_words, exponent = word_source(random_words), Fraction(epsilon)
    redraws = Redraws()
    while True:
        redraws.another()
        magnitude = _magnitude(exponent, steps, width, random_words)
        negative = bool(random_words(1)[0] & 1)
        # Zero has one sign.
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def _magnitude(epsilon: Fraction, steps: int, width: int, random_words: WordSource) -> int:
    """Draw m with probability proportional to exp(-epsilon l(m)): its level, then its place on the level."""

    def first_stair(bits: int) -> tuple[int, int]:
        # The first stair has the share r (1 - b) / (r (1 - b) + D b), which falls with b = exp(-epsilon).
        low, high = exponential_bounds(epsilon, bits)
        unit = 1 << bits
        below, above = (width * (unit - fall) for fall in (high, low))
        return (below << bits) // (below + steps * high), min(unit, -(-(above << bits) // (above + steps * low)))

    if _coin(first_stair, random_words):
        return int(random_words.integers(width, 1)[0])
    level, levels = 0, Redraws(MOST_LEVELS)
    while _coin(lambda bits: exponential_bounds(epsilon, bits), random_words):
        levels.another()
        level += 1
    return width + level * steps + int(random_words.integers(steps, 1)[0])


def _coin(bounds: Callable[[int], tuple[int, int]], random_words: WordSource) -> bool:
    """Flip a coin of a probability p, given by bounds low <= 2**bits p <= high for any number of bits."""
    bits, uniform, redraws = WORD_BITS, int(random_words(1)[0]), Redraws(MOST_EXTENSIONS)
    while True:
        redraws.another()
        low, high = bounds(bits)
        if uniform < low:
            return True
        if uniform >= high:
            return False
        uniform = (uniform << WORD_BITS) + int(random_words(1)[0])
        bits += WORD_BITS


def _checked(epsilon: float, steps: int, width: int) -> tuple[float, int, int]:
    epsilon = check_real("epsilon", epsilon, low=LEAST_EPSILON, high=LARGEST_EPSILON)
    steps = check_integer("steps", steps, low=1, high=MOST_STEPS)
    return epsilon, steps, check_integer("width", width, low=1, high=steps)
