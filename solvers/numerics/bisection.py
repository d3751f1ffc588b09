"""Where a condition that holds on one side only changes: for whole numbers exactly, for others to within a bracket."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...errors import ConvergenceError

# Of Brent's method, and what a number is found to at best, relative to itself.
MOST_STEPS, ROUNDING = 100, 1e-12


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


def first_true(low: int, high: int, holds: Callable[[int], bool], *, growth: int = 2) -> int:
    """Return the first whole number from `low` on at which a condition holds that then holds for all; `high` if at none below.

    Numbers are tried from `low` on with strides that grow by a factor each time, for conditions that cost the more the larger the number
    is. At `high` the condition is never tried.

    Examples
    --------
    >>> first_true(1, 100, lambda number: number**2 >= 50), first_true(1, 5, lambda number: number**2 >= 50)
    (8, 5)
    """
    below, above, stride = low - 1, low, 1
    while above < high and not holds(above):
        stride *= growth
        below, above = above, min(high, low - 1 + stride)
    return below + 1 + bisect_left(range(below + 1, above), True, key=holds)


def least_up_to(most: int, function: Callable[[int], float]) -> float:
    """Return the least value of a function over the whole numbers from 1 to `most`.

    Exact where the function is infinite, then falls and then rises between the powers of two beside the best of them.

    Examples
    --------
    >>> least_up_to(1000, lambda number: (number - 77) ** 2), least_up_to(50, lambda number: (number - 77) ** 2)
    (0, 729)
    """
    tried = [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
    values = [function(number) for number in tried]
    best = values.index(min(values))
    low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    turn = low + bisect_left(range(low, high), True, key=lambda number: math.inf > function(number) <= function(number + 1))
    return min(values[best], function(turn))


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


def brent_root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return where a continuous function changes its sign, to within a tolerance: by the steps of `scipy.optimize.brentq`.

    SciPy's optimisers take half a second to load.

    Raises
    ------
    ConvergenceError
        If a hundred steps were not enough.

    Examples
    --------
    >>> round(brent_root(lambda number: number**2 - 2, 1.0, 2.0, 1e-12), 9)
    1.414213562
    """
    before, best, opposite = low, high, low
    value_before, value, value_opposite = function(low), function(high), math.nan
    if value_before == 0:
        return low
    step_before = step = 0.0
    for _ in range(MOST_STEPS):
        if (value_before < 0) != (value < 0):
            opposite, value_opposite = before, value_before
            step_before = step = best - before
        if abs(value_opposite) < abs(value):
            before, best, opposite = best, opposite, best
            value_before, value, value_opposite = value, value_opposite, value
        half, least = (opposite - best) / 2, (tolerance + ROUNDING * abs(best)) / 2
        if value == 0 or abs(half) < least:
            return best
        interpolated = math.inf
        if abs(step_before) > least and abs(value) < abs(value_before):
            slope = (value_before - value) / (before - best)
            across = (value_opposite - value) / (opposite - best)
            if before == opposite:
                interpolated = -value / slope
            elif slope * across != 0:
                change = value_opposite * across - value_before * slope
                interpolated = -value * change / (slope * across * (value_opposite - value_before))
        if 2 * abs(interpolated) < min(abs(step_before), 3 * abs(half) - least):
            step_before, step = step, interpolated
        else:
            step_before = step = half
        before, value_before = best, value
        best += step if abs(step) > least else math.copysign(least, half)
        value = function(best)
    raise ConvergenceError(f"the root between {low!r} and {high!r} was not found to {tolerance:g} in {MOST_STEPS} steps")
