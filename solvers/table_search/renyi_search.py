"""Letters, order and budget line of the best table for a vector's Rényi divergence: descents on the convex program's value."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ..numerics.nonsmooth_bfgs import minimise_nonsmooth
from .renyi_budget import RenyiBudget
from .renyi_program import RenyiProgram, RenyiProgramSolution

# Share of the budget that the first descent gives to distances: near the optimum in many dimensions.
FIRST_SHARE = 0.97
# Orders are tried this many places up and down the list, then half as many.
FIRST_STRIDE = 4
# Relative error of the programs of the search; when its descents stop, and the last one; and after how many programs at the latest.
PROGRAM_TOLERANCE, TOLERANCE, LAST_TOLERANCE = 1e-6, 1e-4, 1e-6
EVALUATIONS = 60
# Outermost letters of the first guess reach this far beyond the grid at least, relative to half of it.
REACH_SLACK = 0.05


@dataclass(frozen=True, eq=False)
class RenyiStart:
    """Where to start: an order, a share and reaches as in `RenyiDesign`."""

    order: float
    share: float
    reaches: FloatArray


@dataclass(frozen=True, eq=False)
class RenyiDesign:
    """The best table that the search finds.

    Attributes
    ----------
    order : float
        Rényi order at which its divergences are bounded.
    share : float
        Which line of the budget bounds them (`RenyiBudget.limits`).
    reaches : ndarray of shape (letters / 2,)
        Distances of its letters from the middle of the grid, in steps.
    solution : RenyiProgramSolution
        The table and its value.
    """

    order: float
    share: float
    reaches: FloatArray
    solution: RenyiProgramSolution


def search_renyi_table(budget: RenyiBudget, letters: int, prices: FloatArray, spending: float, start: RenyiStart) -> RenyiDesign:
    """Return the mirrored table with the least variance for the worst vector that a budget allows, as far as descents find it.

    For given letters, order and share the table is the optimum of a convex program; over these three the search is local.

    Parameters
    ----------
    budget : RenyiBudget
        The privacy that is left to spend.
    letters : int
        Number of letters, even, 4 or more.
    prices, spending
        `RenyiProgram.prices` and `RenyiProgram.budget`.
    start : RenyiStart
        Where to start, beside a guess; an order that the accounts do not have, or that proves nothing, is left out.

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
    # What Gaussian noise of the least variance would take.
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
    """Return letters evenly spread over two standard deviations of the Gaussian noise that the budget allows, outermost first."""
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
        """Return the best table that a descent over letters and share meets; its value is infinite if it meets none."""
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
