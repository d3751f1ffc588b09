"""Quasi-Newton minimisation of a function with kinks (Lewis and Overton, 2013).

The function is smooth almost everywhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...progress import AtMost, Evaluations

# Number of evaluations over which the pace of a descent is measured, and largest number of evaluations that it may still take to reach its
# goal.
PACE, MOST_TO_GO = 10, 100
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
    objective: Objective, start: FloatArray, *, tolerance: float = 1e-9, max_evaluations: int = 1000, goal: float = math.inf
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
        Value to reach: the descent ends if the pace of its last ten evaluations would need a hundred more to reach it.
    """
    counted = Evaluations(objective, AtMost(max_evaluations + MOST_TRIALS), "a minimum")
    point = start
    value, gradient = counted(point)
    evaluations = 1
    inverse = np.eye(len(point)) * (0.1 / max(float(np.linalg.norm(gradient)), 1e-300))
    small_steps = 0
    values = [value]
    while evaluations < max_evaluations and small_steps < 2:
        values += [value] * (evaluations - len(values))
        if evaluations > PACE and values[-PACE - 1] - value < (value - goal) * PACE / MOST_TO_GO:
            break
        direction = -inverse @ gradient
        slope = float(direction @ gradient)
        if not slope < 0 or -slope <= tolerance * abs(value):
            break
        low, high, length = 0.0, np.inf, 1.0
        accepted: tuple[FloatArray, float, FloatArray] | None = None
        for _ in range(MOST_TRIALS):
            trial = point + length * direction
            trial_value, trial_gradient = counted(trial)
            evaluations += 1
            if not trial_value <= value + 1e-4 * length * slope:
                high = length
            else:
                accepted = trial, trial_value, trial_gradient
                if trial_gradient @ direction >= 0.5 * slope:
                    break
                low = length
            length = (low + high) / 2 if high < np.inf else 2 * low
            if high - low < 1e-12 * high:
                break
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
