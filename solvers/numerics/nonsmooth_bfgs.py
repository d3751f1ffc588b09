"""Quasi-Newton minimisation of a function that is smooth almost everywhere, with kinks (Lewis and Overton, 2013)."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray

# Over how many evaluations a descent's pace is measured, and how many more it may take to reach its goal.
PACE, MOST_TO_GO = 10, 100

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True)
class Minimum:
    """Where a descent ended.

    Attributes
    ----------
    point : ndarray of shape (variables,)
        The point.
    value : float
        The objective there.
    evaluations : int
        How often the objective was evaluated.
    """

    point: FloatArray
    value: float
    evaluations: int


def minimise_nonsmooth(
    objective: Objective, start: FloatArray, *, tolerance: float = 1e-9, max_evaluations: int = 1000, goal: float = math.inf
) -> Minimum:
    """Descend by BFGS with a line search for the weak Wolfe conditions, which kinks do not break.

    Parameters
    ----------
    objective : callable
        From a point to the value and the gradient there; an infinite value marks points outside the domain.
    start : ndarray of shape (variables,)
        Where to start; of order one, and inside the domain.
    tolerance : float
        Stop when the predicted decrease, or the decrease of two steps in a row, is below this, relative to the value.
    max_evaluations : int
        Most evaluations.
    goal : float
        A descent that would take a hundred evaluations more to come down to this value, at the pace of its last ten, ends.
    """
    point = start
    value, gradient = objective(point)
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
        for _ in range(40):
            trial = point + length * direction
            trial_value, trial_gradient = objective(trial)
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
