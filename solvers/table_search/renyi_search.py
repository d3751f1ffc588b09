"""The search for the letters, order and budget line of the best table for a Rényi budget.

The search descends on the convex program's value. `RenyiProgram` is the best table for given letters whose rows' Rényi divergences, at one
order, are bounded by their distance: a convex program of few variables with many smooth constraints. `minimise_convex` solves such programs
by a primal-dual interior point method.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from ...arrays import FloatArray, IndexArray
from ...errors import ConvergenceError, InfeasibleError
from ..numerics.nonsmooth_bfgs import minimise_nonsmooth
from .renyi_budget import RenyiBudget

# Largest share of the way to the boundary of the positive numbers that a step may take.
TO_BOUNDARY = 0.99
# A step aims at this share of the average product of slack and multiplier.
CENTRING = 0.2
# Factor of growing residuals from which a step is halved; Newton's steps need not lower residuals at first.
TOLERATED_GROWTH = 10.0
HALVINGS = 30
MOST_STEPS = 100
# Largest ratio of residuals, relative to their terms, to the gap's tolerance.
RESIDUAL_SHARE = 100.0
# The equations' block of the Newton system is not quite zero, so that redundant equations do not make it singular.
REGULARISATION = 1e-14

# Number of Newton steps for the rows of exponential tilts at the method's start.
TILTING_STEPS = 50
# Smallest entry of the table at the start.
SMALLEST_ENTRY = 1e-8

# Share of the budget that the first descent gives to distances, which is near the optimum in many dimensions.
FIRST_SHARE = 0.97
# Number of places up and down the list of the orders that the search tries first; then it tries orders half as many places away.
FIRST_STRIDE = 4
# Relative error of the search's programs; relative decrease at which its descents, and the last descent, stop; and most programs.
PROGRAM_TOLERANCE, TOLERANCE, LAST_TOLERANCE = 1e-6, 1e-4, 1e-6
EVALUATIONS = 60
# Least reach of the first guess's outermost letters beyond the grid, relative to half of the grid.
REACH_SLACK = 0.05


@dataclass(frozen=True, eq=False)
class RenyiStart:
    """A starting point of the search: an order, a share and reaches as in `RenyiDesign`."""

    order: float
    share: float
    reaches: FloatArray


@dataclass(frozen=True, eq=False)
class RenyiProgramSolution:
    """The best table for given letters.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table; rows sum to 1 and are unbiased, and divergences are within their limits, all up to the solver's tolerance.
    value : float
        Largest average variance of a vector's coordinates, in squared grid steps.
    reach_gradient : ndarray of shape (letters / 2,)
        Derivative of `value` in each reach of the letters (envelope theorem).
    limit_gradient : ndarray of shape (inputs,)
        Derivative of `value` in the allowed divergence at each distance.
    """

    probabilities: FloatArray
    value: float
    reach_gradient: FloatArray
    limit_gradient: FloatArray


@dataclass(frozen=True, eq=False)
class RenyiDesign:
    """Best table of the search.

    Attributes
    ----------
    order : float
        Rényi order of the bounds on its divergences.
    share : float
        Share of the budget's line that bounds them (`RenyiBudget.limits`).
    reaches : ndarray of shape (letters / 2,)
        Distances of its letters from the middle of the grid, in steps.
    solution : RenyiProgramSolution
        Table and value.
    """

    order: float
    share: float
    reaches: FloatArray
    solution: RenyiProgramSolution


def search_renyi_table(budget: RenyiBudget, letters: int, prices: FloatArray, spending: float, start: RenyiStart) -> RenyiDesign:
    """Return the mirrored table of least variance that a budget allows.

    The objective is the variance of the worst vector. For given letters, order and share the table is the optimum of a convex program; the
    search over letters, order and share is local, and need not reach the least variance.

    Parameters
    ----------
    budget : RenyiBudget
        Privacy budget of the table.
    letters : int
        Number of letters, even, 4 or more.
    prices, spending
        Prices and budget of the program, as in `RenyiProgram.prices` and `RenyiProgram.budget`.
    start : RenyiStart
        Further starting point beside the search's own guess. The search ignores a start whose order is not an order of the accounts, or
        proves nothing.

    Raises
    ------
    InfeasibleError
        If no order of the accounts can prove the budget.
    ConvergenceError
        If no program is solved.
    """
    orders = budget.orders()
    if not orders:
        raise InfeasibleError(
            f"delta must be larger, or epsilon, for accounts by Rényi divergence: no order proves epsilon {budget.epsilon:g} at "
            f"delta {budget.delta:g}"
        )
    search = _Search(budget, letters, prices, spending)
    # At this order Gaussian noise that keeps the budget has the least variance.
    gaussian = min(range(len(orders)), key=lambda place: orders[place] / budget.divergence(orders[place]))
    begins = [(gaussian, search.descend(orders[gaussian], first_reaches(budget, orders[gaussian], letters), FIRST_SHARE))]
    if start.order in orders:
        begins.append((orders.index(start.order), search.descend(start.order, start.reaches, start.share)))
    best_order, first = min(begins, key=lambda begin: _value(begin[1]))
    designs = {best_order: first}
    stride = FIRST_STRIDE
    while stride:
        middle, best = best_order, designs[best_order]
        for place in (middle + stride, middle - stride):
            if 0 <= place < len(orders):
                if place not in designs:
                    designs[place] = search.descend(orders[place], best.reaches, best.share)
                if _value(designs[place]) < _value(designs[best_order]):
                    best_order = place
        if best_order == middle:
            stride //= 2
    best = designs[best_order]
    if math.isinf(_value(best)):
        raise ConvergenceError(f"no program for a table with {letters} letters was solved, whatever the letters and the order")
    return min((best, search.descend(best.order, best.reaches, best.share, LAST_TOLERANCE)), key=_value)


def first_reaches(budget: RenyiBudget, order: float, letters: int) -> FloatArray:
    """Return letters spread over two standard deviations of Gaussian noise, outermost first.

    The noise is the least that the budget allows.
    """
    steps = np.arange(1, budget.reach + 1)
    deviation = math.sqrt(float((order * steps**2 / (2 * budget.limits(order, FIRST_SHARE)[steps])).max()))
    middle, pairs = (budget.inputs - 1) / 2, letters // 2
    outermost = max(2 * deviation + middle / 2, (1 + REACH_SLACK) * middle)
    return outermost * np.arange(2 * pairs - 1, 0, -2) / (2 * pairs - 1)


_UNSOLVED = RenyiProgramSolution(np.empty((0, 0)), math.inf, np.empty(0), np.empty(0))


def _value(design: RenyiDesign) -> float:
    return design.solution.value


@dataclass(frozen=True, eq=False)
class _Search:
    budget: RenyiBudget
    letters: int
    prices: FloatArray
    spending: float

    def descend(self, order: float, reaches: FloatArray, share: float, tolerance: float = TOLERANCE) -> RenyiDesign:
        """Return the best table that a descent over letters and share meets.

        The descent's value is infinite if the descent meets no table.
        """
        program = RenyiProgram(self.budget.inputs, self.letters, order, self.budget.reach, self.prices, self.spending)
        slopes = self.budget.slopes(order)
        best = RenyiDesign(order, share, reaches, _UNSOLVED)

        def objective(point: FloatArray) -> tuple[float, FloatArray]:
            nonlocal best
            logarithms, line = point[:-1], float(point[-1])
            if not 0 <= line <= 1:
                return math.inf, point
            try:
                solution = program.solve(np.exp(logarithms), self.budget.limits(order, line), tolerance=PROGRAM_TOLERANCE)
            except (ConvergenceError, InfeasibleError):
                return math.inf, point
            if solution.value < best.solution.value:
                best = replace(best, share=line, reaches=np.exp(logarithms), solution=solution)
            gradient = np.append(solution.reach_gradient * np.exp(logarithms), solution.limit_gradient @ slopes)
            return solution.value, gradient

        start = np.append(np.log(reaches), share)
        if math.isfinite(objective(start)[0]):
            minimise_nonsmooth(objective, start, tolerance=tolerance, max_evaluations=EVALUATIONS)
        return best


@dataclass(frozen=True, eq=False)
class Curved:
    """Values of the smooth constraints at a point, with their derivatives.

    Attributes
    ----------
    values : ndarray of shape (constraints,)
        Values of the constraints, at most 0 where they hold.
    jacobian : ndarray of shape (constraints, variables)
        First derivatives.
    hessian : callable
        Function from a weight for each constraint to the weighted sum of second derivatives, shape (variables, variables).
    """

    values: FloatArray
    jacobian: FloatArray
    hessian: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class RenyiProgram:
    """Mirrored tables of least variance under bounds on their rows' Rényi divergences.

    The variance is that of the worst vector. Rows are at x_i = i steps, letters at ``middle - r`` and ``middle + r`` steps for each reach
    r, and P[i, j] = P[B-1-i, M-1-j]. With V_i the variance of row i, the objective is the largest average of V over coordinates whose
    average price is at most a budget: by linear duality the least ``m + budget * q`` with ``V_i <= m + price_i q``. For order a, with
    phi(r) = (r**a - a r + a - 1)/(a - 1), the divergence of row i from row k is at most D if and only if

        sum_j P[k, j] phi(P[i, j] / P[k, j])  <=  (exp((a - 1) D) - 1)/(a - 1)

    whose left-hand side is jointly convex in the two rows (an f-divergence). As the problem is convex and mirrored, mirrored tables are as
    good as others for mirrored letters and prices.

    Attributes
    ----------
    inputs, letters : int
        Numbers B and M, even.
    order : float
        Order a, above 1 and finite.
    furthest : int
        Largest number of steps between two rows whose divergence is bounded, at least 1.
    prices : ndarray of shape (inputs / 2,)
        Costs of the lower half of the rows to a vector.
    budget : float
        Average budget of the vector's coordinates.
    """

    inputs: int
    letters: int
    order: float
    furthest: int
    prices: FloatArray
    budget: float

    def solve(self, reaches: FloatArray, limits: FloatArray, *, tolerance: float = 1e-8) -> RenyiProgramSolution:
        """Return the best table for letters with these reaches, in any order.

        Parameters
        ----------
        reaches : ndarray of shape (letters / 2,)
            Distances of the letters from the middle of the grid, in steps, on either side; positive.
        limits : ndarray of shape (inputs,)
            Largest divergence of rows 0, 1, ... steps apart, in nats.
        tolerance : float
            Relative error of the value; divergences are within their limits to 100 times that share.

        Raises
        ------
        InfeasibleError
            If no letter reaches beyond the grid.
        ConvergenceError
            If the solver fails: the letters may reach too little for the limits.
        """
        half, count, middle = self.inputs // 2, self.inputs * self.letters // 2, (self.inputs - 1) / 2
        outermost = float(reaches.max())
        if not outermost > middle:
            raise InfeasibleError(f"reaches must exceed half the grid, {middle:g} steps, for unbiased tables, got {outermost:g} at most")
        outward = np.concatenate([-reaches, reaches[::-1]])
        offsets = middle + outward - np.arange(half)[:, None]
        scale = outermost**2
        equations = np.zeros((2 * half, count + 2))
        np.put_along_axis(equations[:half], self._cells[:half], 1.0, axis=1)
        np.put_along_axis(equations[half:], self._cells[:half], offsets / outermost, axis=1)
        right = np.concatenate([np.ones(half), np.zeros(half)])
        rows = np.zeros((half, count + 2))
        np.put_along_axis(rows, self._cells[:half], offsets**2 / scale, axis=1)
        rows[:, count], rows[:, count + 1] = -1.0, -self.prices
        cost = np.zeros(count + 2)
        cost[count], cost[count + 1] = 1.0, self.budget
        bounds = np.expm1((self.order - 1) * limits[self._distances]) / (self.order - 1)
        start = np.concatenate([np.maximum(_tilted(outward, np.arange(half, dtype=float) - middle), SMALLEST_ENTRY).ravel(), [1.0, 0.1]])
        start[count] = 1.1 * float((rows[:, :count] @ start[:count]).max())
        optimum = minimise_convex(cost, equations, right, rows, lambda point: self._divergences(point, bounds), start, tolerance=tolerance)
        table = optimum.point[:count].reshape(half, self.letters)
        by_letter = (optimum.row_duals[:, None] * 2 * offsets * table).sum(axis=0)
        by_letter += scale / outermost * (optimum.equation_duals[half:, None] * table).sum(axis=0)
        growths = np.exp((self.order - 1) * limits[self._distances]) / bounds
        by_limit = -scale * np.bincount(self._distances, optimum.curved_duals * growths, minlength=self.inputs)
        return RenyiProgramSolution(
            np.concatenate([table, table[::-1, ::-1]]),
            scale * float(cost @ optimum.point),
            np.asarray(by_letter[::-1][: len(reaches)] - by_letter[: len(reaches)], dtype=float),
            np.asarray(by_limit, dtype=float),
        )

    @cached_property
    def _cells(self) -> IndexArray:
        """Index of the variable of each entry of the whole table, shape (inputs, letters)."""
        own = np.arange(self.inputs * self.letters // 2).reshape(-1, self.letters)
        return np.concatenate([own, own[::-1, ::-1]])

    @cached_property
    def _pairs(self) -> IndexArray:
        """Ordered pairs of rows within reach, one of each two mirrored pairs; shape (2, pairs)."""
        own, other = np.indices((self.inputs // 2, self.inputs)).reshape(2, -1)
        distances = np.abs(own - other)
        return np.stack([own, other])[:, (distances > 0) & (distances <= self.furthest)]

    @cached_property
    def _distances(self) -> IndexArray:
        return np.asarray(np.abs(self._pairs[0] - self._pairs[1]))

    def _divergences(self, point: FloatArray, bounds: FloatArray) -> Curved:
        """Return the divergences over their bounds, less one."""
        size = len(point)
        cells, other_cells = self._cells[self._pairs[0]], self._cells[self._pairs[1]]
        own, other = point[cells], point[other_cells]
        log_ratio = np.log(own / other)
        ratio = own / other
        power = np.expm1((self.order - 1) * log_ratio) / (self.order - 1)
        values = (other * (ratio * power - (ratio - 1))).sum(axis=1) / bounds - 1
        jacobian = np.zeros((len(bounds), size))
        pairs = np.arange(len(bounds))[:, None]
        # Mirrored rows share variables, so their derivatives are added in turn.
        jacobian[pairs, cells] += self.order * power / bounds[:, None]
        jacobian[pairs, other_cells] -= np.expm1(self.order * log_ratio) / bounds[:, None]
        curvature = self.order * np.exp((self.order - 2) * log_ratio) / other / bounds[:, None]

        def hessian(weights: FloatArray) -> FloatArray:
            weighted = weights[:, None] * curvature
            crossed = np.bincount((cells * size + other_cells).ravel(), (-weighted * ratio).ravel(), minlength=size**2)
            straight = np.bincount(cells.ravel(), weighted.ravel(), minlength=size)
            straight += np.bincount(other_cells.ravel(), (weighted * ratio**2).ravel(), minlength=size)
            mixed = crossed.reshape(size, size)
            return np.asarray(mixed + mixed.T + np.diag(straight))

        return Curved(values, jacobian, hessian)


def _tilted(letters: FloatArray, means: FloatArray) -> FloatArray:
    """Return positive rows with P[i, j] proportional to exp(b_i a_j) and the given means."""
    tilts, widest = np.zeros((len(means), 1)), 1 / float(np.abs(letters).max())
    for _ in range(TILTING_STEPS):
        exponents = tilts * letters
        rows = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        rows /= rows.sum(axis=1, keepdims=True)
        excess = rows @ letters - means
        spread = rows @ letters**2 - (rows @ letters) ** 2
        tilts -= np.clip(excess / np.maximum(spread, 1e-300), -widest, widest)[:, None]
    return np.asarray(rows)


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
        Multipliers of the equations, of the linear inequalities (at least 0) and of the smooth inequalities (at least 0).
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
    """Minimise ``cost @ x`` over positive x under linear and smooth convex constraints.

    The linear constraints are ``equations @ x = right`` and ``rows @ x <= 0``.

    Parameters
    ----------
    cost, equations, right, rows
        Dense arrays of the linear program; values of the order of one.
    curved : callable
        The smooth constraints; values of the order of one.
    start : ndarray of shape (variables,)
        Positive starting point; it need not meet any other constraint.
    tolerance : float
        Largest gap between the value and its dual bound, relative to the value; constraints are met to 100 times that.

    Raises
    ------
    ConvergenceError
        If the tolerance is not reached in 100 steps: there may be no solution.
    """
    # A step that is too long may overflow, and is halved then.
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
    # Positive variables are linear inequalities as well: the variable is its own slack.
    linear = np.concatenate([rows, -np.eye(len(start))])
    # Slacks of the inequalities turn any positive point into a start.
    values = _values(linear, at_point, point)
    slacks = np.maximum(-values, 0.01)
    slacks[len(rows) : len(linear)] = point
    multipliers = np.minimum(1 / (len(slacks) * slacks), 1e3)
    duals = np.zeros(len(right))
    jacobian = np.concatenate([linear, at_point.jacobian])
    residuals = _Residuals(cost + equations.T @ duals + jacobian.T @ multipliers, equations @ point - right, values + slacks)
    # Only the first block of Newton's system changes.
    system = np.block([[np.zeros((len(point), len(point))), equations.T], [equations, -REGULARISATION * np.eye(len(right))]])
    for _ in range(MOST_STEPS):
        gap = float(multipliers @ slacks)
        value = abs(float(cost @ point))
        # A multiplier's error matters as much as its variable.
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
        # The slack of a constraint that holds is free: its residual is zero.
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
