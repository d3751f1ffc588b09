"""Quasi-Newton minimisation of a function with kinks (Lewis and Overton, 2013).

The function is smooth almost everywhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...progress import AtMost, Evaluations

# Largest number of evaluations that a descent may still take to reach its goal, as a multiple of those over which its pace is measured.
MOST_TO_GO = 10
# Longest first step.
FIRST_STEP = 0.1
# Least and largest share of the way between two points of a line search for the next one; factor by which it goes beyond a kink. A descent
# that stops at kinks themselves sees one side of each, and may end above the minimum where they cross.
LEAST_SHARE, LARGEST_SHARE, BEYOND = 0.1, 0.5, 1.1
# Largest number of evaluations of a line search; the last line search may exceed the limit of the descent.
MOST_TRIALS = 40

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True)
class Minimum:
    """End of a descent.

    Attributes
    ----------
    point : ndarray of shape (variables,)
        Point where the descent ended.
    value : float
        Objective at the point.
    evaluations : int
        Number of evaluations of the objective.
    """

    point: FloatArray
    value: float
    evaluations: int


def minimise_nonsmooth(
    objective: Objective,
    start: FloatArray,
    *,
    tolerance: float = 1e-9,
    max_evaluations: int = 1000,
    goal: float = math.inf,
    pace: int = 10,
    first_decrease: float = math.inf,
    tangents: bool = False,
) -> Minimum:
    """Descend by BFGS with a line search for the weak Wolfe conditions.

    Kinks do not break these conditions.

    Parameters
    ----------
    objective : callable
        Function from a point to the value and the gradient there; an infinite value marks points outside the domain.
    start : ndarray of shape (variables,)
        Point where the descent starts; of order one, and inside the domain.
    tolerance : float
        Relative tolerance: the descent stops when the predicted decrease, or the decrease of two steps in a row, is below this share of the
        value.
    max_evaluations : int
        Largest number of evaluations.
    goal : float
        Value to reach: the descent ends if its pace would need ten times `pace` more evaluations to reach it.
    pace : int
        Number of last evaluations over which the pace is measured.
    first_decrease : float
        Largest share of the value that the first step is predicted to gain, in addition to a largest length.
    tangents : bool
        Whether line searches go to where tangents meet, and end where no decrease above the tolerance is left. Otherwise they bisect, which
        takes more evaluations and ends closer to a minimum.
    """
    counted = Evaluations(objective, AtMost(max_evaluations + MOST_TRIALS), "a minimum")
    next_length = _beyond_kink if tangents else _half_way
    point = start
    value, gradient = counted(point)
    evaluations = 1
    steepness = max(float(np.linalg.norm(gradient)), 1e-300)
    inverse = np.eye(len(point)) * (min(FIRST_STEP, first_decrease * abs(value) / steepness) / steepness)
    small_steps = 0
    values = [value]
    while evaluations < max_evaluations and small_steps < 2:
        values += [value] * (evaluations - len(values))
        if evaluations > pace and values[-pace - 1] - value < (value - goal) / MOST_TO_GO:
            break
        direction = -inverse @ gradient
        slope = float(direction @ gradient)
        if not slope < 0 or -slope <= tolerance * abs(value):
            break
        low, high = _Trial(0.0, value, slope), _Trial(math.inf, math.inf, math.inf)
        length = 1.0
        accepted: tuple[FloatArray, float, FloatArray] | None = None
        for _ in range(MOST_TRIALS):
            trial = point + length * direction
            trial_value, trial_gradient = counted(trial)
            evaluations += 1
            tried = _Trial(length, trial_value, float(trial_gradient @ direction))
            if not trial_value <= value + 1e-4 * length * slope:
                high = tried
            else:
                accepted = trial, trial_value, trial_gradient
                if tried.slope >= 0.5 * slope:
                    break
                low = tried
            if tangents and accepted is None and -slope * high.length <= tolerance * abs(value):
                break
            if high.length - low.length < 1e-12 * high.length:
                break
            length = 2 * low.length if high.length == math.inf else next_length(low, high)
        if accepted is None:
            break
        small_steps = small_steps + 1 if value - accepted[1] <= tolerance * abs(value) else 0
        step, change = accepted[0] - point, accepted[2] - gradient
        point, value, gradient = accepted
        curvature = float(step @ change)
        if curvature > 1e-14 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            left = np.eye(len(point)) - np.outer(step, change) / curvature
            inverse = left @ inverse @ left.T + np.outer(step, step) / curvature
    return Minimum(point, value, evaluations)


@dataclass(frozen=True)
class _Trial:
    """A point of a line search: its length, and the objective's value and slope there."""

    length: float
    value: float
    slope: float


def _half_way(low: _Trial, high: _Trial) -> float:
    return (low.length + high.length) / 2


def _beyond_kink(low: _Trial, high: _Trial) -> float:
    """Return the next length of a line search between two others.

    The tangents at the two points meet at the kink, if there is one between them. The length is a little beyond, between the least and the
    largest share of the way.
    """
    width = high.length - low.length
    share = LARGEST_SHARE
    if high.value < math.inf and high.slope > low.slope:
        share = BEYOND * (low.value - high.value + high.slope * width) / ((high.slope - low.slope) * width)
    return low.length + width * min(max(share, LEAST_SHARE), LARGEST_SHARE)
