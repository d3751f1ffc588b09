"""Bisection: the point where a condition changes, exact for whole numbers.

For real numbers the result is a bracket.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...progress import AtMost, Evaluations

# The initial guess is assumed to have a relative error of 1 over this constant.
GUESSED = 128


@dataclass(frozen=True)
class Bracket:
    """Two numbers between which a condition changes.

    Attributes
    ----------
    holds, fails : float
        Ends at which the condition holds and fails.
    """

    holds: float
    fails: float


@dataclass(frozen=True, eq=False)
class Brackets:
    """Pairs of numbers between which a condition changes, one pair per entry of an array.

    Attributes
    ----------
    holds, fails : ndarray
        Ends at which the condition holds and fails.
    """

    holds: FloatArray
    fails: FloatArray


def first_true(low: int, high: int, holds: Callable[[int], bool], *, growth: int = 2, start: int | None = None) -> int:
    """Return the first whole number from `low` on at which a monotone condition holds.

    Once the condition holds, it holds for all larger numbers; the result is `high` if it holds at no number below. The search starts from
    `low`, or goes either way from a guess, `start`, with strides that grow by a factor each time. The strides suit conditions whose cost
    grows with the number, or with the distance from the guess. The function never tries the condition at `high`.

    Examples
    --------
    >>> first_true(1, 100, lambda number: number**2 >= 50), first_true(1, 5, lambda number: number**2 >= 50)
    (8, 5)
    """
    # Strides grow by a factor, so their number is that of the range's digits in this base; halvings are as many as its binary digits.
    strides = math.ceil(math.log(max(high - low, 2), growth))
    tried = Evaluations(holds, AtMost(1 + strides + (high - low).bit_length()), "a whole number")
    above = low if start is None else max(min(start, high), low)
    below, stride = above - 1, 1 + (above - low) // GUESSED
    if above >= high or tried(above):
        while below >= low and tried(below):
            stride *= growth
            below, above = max(low - 1, below + 1 - stride), below
    else:
        origin, reached = below, False
        while not reached:
            stride *= growth
            below, above = above, min(high, origin + stride)
            reached = above == high or tried(above)
    tried.expect((above - below - 1).bit_length())
    return below + 1 + bisect_left(range(below + 1, above), True, key=tried)


def least_up_to(most: int, function: Callable[[int, float], float]) -> float:
    """Return the least value of a function over the whole numbers from 1 to `most`.

    The function also takes a bound, above which it may return infinity.

    The result is exact if the function is infinite, then falls and then rises between the powers of two next to the best power.

    Examples
    --------
    >>> least_up_to(1000, lambda number, _: (number - 77) ** 2), least_up_to(50, lambda number, _: (number - 77) ** 2)
    (0, 729)
    """
    tried = [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
    least, best = math.inf, 0
    # The search starts from the rising end, where most values are above the least value.
    for position, number in reversed([*enumerate(tried)]):
        value = function(number, least)
        if value < least:
            least, best = value, position
    low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]

    def rises(number: int) -> bool:
        value = function(number, math.inf)
        return math.inf > value <= function(number + 1, value)

    turn = low + bisect_left(range(low, high), True, key=rises)
    return min(least, function(turn, least))


def bisect(holds: Callable[[float], bool], low: float, high: float, halvings: int, *, geometric: bool = False) -> Bracket:
    """Return the bracket in which a condition changes; it holds at `low` and fails at `high`.

    Either end may be the larger. The function tries the condition at neither end. Halvings end early if no number is left between the ends.
    With `geometric`, they halve the ratio of positive ends.

    Examples
    --------
    >>> bracket = bisect(lambda number: number**2 <= 2, 1.0, 2.0, 100)
    >>> bracket.holds, bracket.fails
    (1.414213562373095, 1.4142135623730951)
    """
    tried = Evaluations(holds, AtMost(halvings), "a number by halves")
    for _ in range(halvings):
        middle = math.sqrt(low * high) if geometric else (low + high) / 2
        if middle in (low, high):
            break
        if tried(middle):
            low = middle
        else:
            high = middle
    return Bracket(low, high)


def bisect_each(holds: Callable[[FloatArray], NDArray[np.bool_]], low: FloatArray, high: FloatArray, halvings: int) -> Brackets:
    """Return the brackets where a condition changes, for each entry of an array.

    The condition holds at `low` and fails at `high`.
    """
    tried = Evaluations(holds, AtMost(halvings), "numbers by halves")
    for _ in range(halvings):
        middle = (low + high) / 2
        holding = tried(middle)
        low, high = np.where(holding, middle, low), np.where(holding, high, middle)
    return Brackets(low, high)
