"""Convex programs of few variables with many smooth constraints, by a primal-dual interior point method."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError

# Share of the way to the boundary of the positive numbers that a step may go.
TO_BOUNDARY = 0.99
# What a step aims at, as a share of the average of slack times multiplier.
CENTRING = 0.2
# A step is halved as long as it makes the residuals this many times larger: Newton's steps need not lower them at first.
TOLERATED_GROWTH = 10.0
HALVINGS = 30
MOST_STEPS = 100
# Residuals may be this many times the gap's tolerance, relative to what they are compared with.
RESIDUAL_SHARE = 100.0
# The equations' block of the Newton system is not quite zero, so that equations that say the same twice do not make it singular.
REGULARISATION = 1e-14


@dataclass(frozen=True, eq=False)
class Curved:
    """Values of the smooth constraints at a point, and what Newton's method needs.

    Attributes
    ----------
    values : ndarray of shape (constraints,)
        At most 0 where they hold.
    jacobian : ndarray of shape (constraints, variables)
        First derivatives.
    hessian : callable
        From a weight for each constraint to the weighted sum of second derivatives, shape (variables, variables).
    """

    values: FloatArray
    jacobian: FloatArray
    hessian: Callable[[FloatArray], FloatArray]


class Constraints(Protocol):
    """Smooth convex constraints, defined for positive variables."""

    def __call__(self, point: FloatArray) -> Curved:
        """Return the constraints at a point of positive variables."""


@dataclass(frozen=True, eq=False)
class ConvexOptimum:
    """Solution of a convex program.

    Attributes
    ----------
    point : ndarray of shape (variables,)
        The variables.
    equation_duals, row_duals, curved_duals : ndarray
        Multipliers of the equations, of the linear inequalities (at least 0) and of the smooth ones (at least 0).
    """

    point: FloatArray
    equation_duals: FloatArray
    row_duals: FloatArray
    curved_duals: FloatArray


def minimise_convex(
    cost: FloatArray,
    equations: FloatArray,
    right: FloatArray,
    rows: FloatArray,
    curved: Constraints,
    start: FloatArray,
    *,
    tolerance: float = 1e-8,
) -> ConvexOptimum:
    """Minimise ``cost @ x`` over positive x with ``equations @ x = right``, ``rows @ x <= 0`` and smooth convex constraints.

    Parameters
    ----------
    cost, equations, right, rows
        The linear program, dense; values of the order of one.
    curved : callable
        The smooth constraints; values of the order of one.
    start : ndarray of shape (variables,)
        Positive; it need not meet anything else.
    tolerance : float
        Largest gap between the value and its dual bound, relative to the value; constraints are met to 100 times that.

    Raises
    ------
    ConvergenceError
        If the tolerance is not reached in 100 steps: there may be no solution.
    """
    # A step that is too long may overflow; it is halved then.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _minimised(cost, equations, right, rows, curved, start, tolerance)


def _minimised(
    cost: FloatArray,
    equations: FloatArray,
    right: FloatArray,
    rows: FloatArray,
    curved: Constraints,
    start: FloatArray,
    tolerance: float,
) -> ConvexOptimum:
    point, at_point = start, curved(start)
    # Positive variables are linear inequalities as well: their slack is the variable.
    linear = np.concatenate([rows, -np.eye(len(start))])
    # Slacks of the inequalities make any positive point a start.
    values = _values(linear, at_point, point)
    slacks = np.maximum(-values, 0.01)
    slacks[len(rows) : len(linear)] = point
    multipliers = np.minimum(1 / (len(slacks) * slacks), 1e3)
    duals = np.zeros(len(right))
    jacobian = np.concatenate([linear, at_point.jacobian])
    residuals = _Residuals(cost + equations.T @ duals + jacobian.T @ multipliers, equations @ point - right, values + slacks)
    # Of Newton's system only the first block changes.
    system = np.block([[np.zeros((len(point), len(point))), equations.T], [equations, -REGULARISATION * np.eye(len(right))]])
    for _ in range(MOST_STEPS):
        gap = float(multipliers @ slacks)
        value = abs(float(cost @ point))
        # A multiplier's error matters as much as the variable that it belongs to.
        dual_error = float(np.abs(residuals.dual) @ point)
        primal_error = max(float(np.abs(residuals.equations).max(initial=0.0)), float(np.abs(residuals.slacks).max(initial=0.0)))
        if gap <= tolerance * value and max(dual_error / value, primal_error) <= RESIDUAL_SHARE * tolerance:
            return ConvexOptimum(point, duals, multipliers[: len(rows)], multipliers[len(linear) :])
        aim = CENTRING * gap / len(slacks)
        ratio = multipliers / slacks
        system[: len(point), : len(point)] = at_point.hessian(multipliers[len(linear) :]) + (jacobian * ratio[:, None]).T @ jacobian
        towards = (aim - multipliers * slacks + multipliers * residuals.slacks) / slacks
        try:
            step = np.linalg.solve(system, np.concatenate([-residuals.dual - jacobian.T @ towards, -residuals.equations]))
        except np.linalg.LinAlgError:
            break
        move, dual_move = step[: len(point)], step[len(point) :]
        slack_move = -residuals.slacks - jacobian @ move
        multiplier_move = (aim - multipliers * slacks - multipliers * slack_move) / slacks
        length = min(_longest(point, move), _longest(slacks, slack_move), _longest(multipliers, multiplier_move))
        before = residuals.norm(multipliers * slacks - aim)
        for _ in range(HALVINGS):
            new_point, new_slacks = point + length * move, slacks + length * slack_move
            new_multipliers, new_duals = multipliers + length * multiplier_move, duals + length * dual_move
            at_point = curved(new_point)
            values = _values(linear, at_point, new_point)
            jacobian = np.concatenate([linear, at_point.jacobian])
            residuals = _Residuals(
                cost + equations.T @ new_duals + jacobian.T @ new_multipliers, equations @ new_point - right, values + new_slacks
            )
            if residuals.norm(new_multipliers * new_slacks - aim) <= TOLERATED_GROWTH * before:
                break
            length /= 2
        point, duals, multipliers = new_point, new_duals, new_multipliers
        # Where a constraint holds, its slack may be what it is: that residual is gone.
        slacks = np.where(-values > new_slacks / 2, -values, new_slacks)
        residuals = _Residuals(residuals.dual, residuals.equations, values + slacks)
    raise ConvergenceError(f"the convex program was not solved to {tolerance:g} in {MOST_STEPS} steps: its gap is {gap / value:.3g}")


@dataclass(frozen=True, eq=False)
class _Residuals:
    dual: FloatArray
    equations: FloatArray
    slacks: FloatArray

    def norm(self, complementarity: FloatArray) -> float:
        parts = (self.dual, self.equations, self.slacks, complementarity)
        return float(np.sqrt(sum(float(part @ part) for part in parts)))


def _values(linear: FloatArray, at_point: Curved, point: FloatArray) -> FloatArray:
    return np.concatenate([linear @ point, at_point.values])


def _longest(positive: FloatArray, move: FloatArray) -> float:
    falling = move < 0
    return min(1.0, TO_BOUNDARY * float((-positive[falling] / move[falling]).min(initial=1 / TO_BOUNDARY)))
