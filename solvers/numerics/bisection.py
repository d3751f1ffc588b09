"""Where a condition that holds on one side only changes: for whole numbers exactly, for others to within a bracket."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray

# A guess is taken to be off by a share of one over this.
GUESSED = 128


@dataclass(frozen=True)
class Bracket:
    """Two numbers that a condition changes between.

    Attributes
    ----------
    holds, fails : float
        Where it holds, and where it does not.
    """

    holds: float
    fails: float


@dataclass(frozen=True, eq=False)
class Brackets:
    """Pairs of numbers that a condition changes between, one for each entry of an array.

    Attributes
    ----------
    holds, fails : ndarray
        Where it holds, and where it does not.
    """

    holds: FloatArray
    fails: FloatArray


def first_true(low: int, high: int, holds: Callable[[int], bool], *, growth: int = 2, start: int | None = None) -> int:
    """Return the first whole number from `low` on at which a condition holds that then holds for all; `high` if at none below.

    Numbers are tried from `low` on, or either way from a guess, `start`, with strides that grow by a factor each time: for conditions that
    cost the more the larger the number is, or the further it is from the guess. At `high` the condition is never tried.

    Examples
    --------
    >>> first_true(1, 100, lambda number: number**2 >= 50), first_true(1, 5, lambda number: number**2 >= 50)
    (8, 5)
    """
    above = low if start is None else max(min(start, high), low)
    below, stride = above - 1, 1 + (above - low) // GUESSED
    if above >= high or holds(above):
        while below >= low and holds(below):
            stride *= growth
            below, above = max(low - 1, below + 1 - stride), below
    else:
        origin, found = below, False
        while not found:
            stride *= growth
            below, above = above, min(high, origin + stride)
            found = above == high or holds(above)
    return below + 1 + bisect_left(range(below + 1, above), True, key=holds)


def least_up_to(most: int, function: Callable[[int, float], float]) -> float:
    """Return the least value of a function over the whole numbers from 1 to `most`.

    The function is also given a bound, and may return infinity for values above it.

    Exact where the function is infinite, then falls and then rises between the powers of two beside the best of them.

    Examples
    --------
    >>> least_up_to(1000, lambda number, _: (number - 77) ** 2), least_up_to(50, lambda number, _: (number - 77) ** 2)
    (0, 729)
    """
    tried = [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
    least, best = math.inf, 0
    # From the end where it rises: most of what is before its least is above the bound, then.
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
    """Return where a condition changes that holds at `low` and fails at `high`, whichever of the two is larger.

    It is tried at neither end. Halvings end early where no number is left between the two; `geometric` ones are of ratios, of positive
    numbers.

    Examples
    --------
    >>> found = bisect(lambda number: number**2 <= 2, 1.0, 2.0, 100)
    >>> found.holds, found.fails
    (1.414213562373095, 1.4142135623730951)
    """
    for _ in range(halvings):
        middle = math.sqrt(low * high) if geometric else (low + high) / 2
        if middle in (low, high):
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return Bracket(low, high)


def bisect_each(holds: Callable[[FloatArray], NDArray[np.bool_]], low: FloatArray, high: FloatArray, halvings: int) -> Brackets:
    """Return, for each entry of an array, where a condition changes that holds at `low` and fails at `high`."""
    for _ in range(halvings):
        middle = (low + high) / 2
        found = holds(middle)
        low, high = np.where(found, middle, low), np.where(found, high, middle)
    return Brackets(low, high)
