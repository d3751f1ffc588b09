"""All histograms with given sums, by branch and bound: linear programs by HiGHS, every closed branch proven in exact integers.

A branch is a box of counts. HiGHS finds the real point of the box that breaks the equations least. Where they are broken, the multipliers w
of that program, rounded to whole numbers, show that no point of the box meets them: the least of (w^T A) mu over the box is above w^T b.
That alone closes a branch. The numbers are whole and below 2^53, so that neither the solver's tolerances nor rounding can close one that
has a solution.
"""

import time
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IndexArray, IntegerArray
from ...errors import ConvergenceError
from ..numerics.highs_program import new_highs
from ..numerics.modular_rank import modular_rank
from .histogram_problem import HistogramProblem

# Multipliers are rounded to whole numbers up to these; the next one is tried where rounding cost the proof.
LARGEST_MULTIPLIERS = (2**20, 2**30)
LARGEST_EXACT = 2**52
LARGEST_SUM = 2.0**62
INTEGRAL = 1e-6
# Columns that enter a linear program at a time, and at its start for each row.
COLUMNS_AT_A_TIME = 64
COLUMNS_PER_ROW = 2
ROUNDS_OF_COLUMNS = 10_000
# Violations of all equations together that count as none: the point is checked, or the branch is halved.
FEASIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class Branch:
    """A box of counts; `others` says that only solutions with an item that the known one lacks are sought."""

    lower: IntegerArray
    upper: IntegerArray
    others: bool


@dataclass(eq=False)
class HistogramTree:
    """The search for all solutions, which can be interrupted and taken up again.

    Once a solution is known, others are sought: with an item beyond its support, by the cut "at most n - 1 counts on the support", which
    holds in all open branches; and, unless the support's columns are independent, with a larger count on the support alone, in a branch
    for every item of it.

    Attributes
    ----------
    problem : HistogramProblem
        The problem.
    beliefs : ndarray of float64, shape (dimension,)
        Estimated counts: which columns are tried first. They do not change what is proven.
    solutions : list of ndarray
        Found so far, at most two.
    nodes : int
        Branches looked at.
    """

    problem: HistogramProblem
    beliefs: FloatArray
    solutions: list[IntegerArray] = field(default_factory=list)
    nodes: int = 0

    def __post_init__(self) -> None:
        """Open the box of all counts."""
        measurements, dimension = self.problem.matrix.shape
        lower = np.zeros(dimension, dtype=np.int64)
        self._open: list[Branch] = []
        upper = self.problem.caps(lower, np.full(dimension, self.problem.clients, dtype=np.int64))
        if upper is not None:
            self._open = [Branch(lower, upper, others=False)]
        # Rows: sum, S as signs, and the cut's row, which is filled once a solution is known. Signs keep the columns far from parallel.
        self._rows = np.zeros((measurements + 2, dimension))
        self._rows[0] = 1
        self._rows[1:-1] = np.where(self.problem.matrix, 1, -1)
        self._right = np.concatenate([[self.problem.clients], 2 * self.problem.sums - self.problem.clients, [self.problem.clients]])
        first = min(dimension, COLUMNS_PER_ROW * (measurements + 2))
        self._active: IndexArray = np.argsort(-self.beliefs, kind="stable")[:first]
        self._highs = self._program(self._active)

    @property
    def exhausted(self) -> bool:
        """Whether there are no solutions but those found: proven."""
        return not self._open

    def add(self, solution: IntegerArray) -> None:
        """Enter a solution, which must be one, before or during the search."""
        self.solutions.append(solution)
        if len(self.solutions) > 1:
            return
        support = np.flatnonzero(solution)
        self._rows[-1, support] = 1
        self._right[-1] = self.problem.clients - 1
        self._active = np.concatenate([self._active, np.setdiff1d(support, self._active)])
        self._highs = self._program(self._active)
        self._open = [Branch(branch.lower, branch.upper, others=True) for branch in self._open]
        if modular_rank(self._rows[:-1, support].astype(np.int64)) == len(support):
            # No other real numbers on the support meet the equations.
            return
        only = np.where(solution > 0, self.problem.clients, 0)
        for item in support:
            lower = np.zeros_like(solution)
            lower[item] = solution[item] + 1
            upper = self.problem.caps(lower, only)
            if upper is not None:
                self._open.append(Branch(lower, upper, others=False))

    def search(self, wanted: int, deadline: float, nodes: int | None = None) -> None:
        """Go on until that many solutions are known, all branches are closed, the time is up, or `nodes` more branches were looked at."""
        last = None if nodes is None else self.nodes + nodes
        while self._open and len(self.solutions) < wanted and time.monotonic() < deadline and (last is None or self.nodes < last):
            branch = self._open.pop()
            self.nodes += 1
            try:
                # A solution that is met renews the list of open branches.
                halves = self._split(branch, deadline)
            except _OutOfTimeError:
                halves = [branch]
            self._open += halves

    def _split(self, branch: Branch, deadline: float) -> list[Branch]:
        """Return branches that cover a branch, none if it is closed; a solution that was met has been entered."""
        for _ in range(ROUNDS_OF_COLUMNS):
            values = self._relaxation(branch, deadline)
            if values is None:
                entering = self._entering(branch)
                if entering is None:
                    return []
                if len(entering):
                    self._enter(entering)
                    continue
                # The multipliers prove nothing after rounding: smaller boxes will be closed, and single points are checked.
                return self._halved(branch, np.zeros(len(branch.lower)))
            counts = np.rint(values).astype(np.int64)
            if np.abs(values - counts).max() < INTEGRAL and self.problem.solved_by(counts) and not self._known(counts):
                # What else the branch holds is sought after the branches that entering the solution opens.
                self._open.append(branch)
                self.add(counts)
                return []
            return self._halved(branch, values)
        raise ConvergenceError(f"a linear program of the histogram decoder took more than {ROUNDS_OF_COLUMNS} rounds of columns")

    def _known(self, counts: IntegerArray) -> bool:
        return any(np.array_equal(counts, solution) for solution in self.solutions)

    def _halved(self, branch: Branch, values: FloatArray) -> list[Branch]:
        """Split at the count that is farthest from whole, or, where all are whole, at the widest range."""
        fraction = values - np.floor(values)
        distance = np.minimum(fraction, 1 - fraction)
        item = int(np.argmax(distance))
        below = int(np.floor(values[item]))
        if distance[item] < INTEGRAL:
            ranges = branch.upper - branch.lower
            item = int(np.argmax(ranges))
            if not ranges[item]:
                # A single point, and not a new solution.
                if self.problem.solved_by(branch.lower) and not self._known(branch.lower):
                    self.add(branch.lower)
                return []
            below = int((branch.lower[item] + branch.upper[item]) // 2)
        halves = []
        upper = branch.upper.copy()
        upper[item] = below
        lower = branch.lower.copy()
        lower[item] = below + 1
        for low, high in ((branch.lower, upper), (lower, branch.upper)):
            capped = self.problem.caps(low, high)
            if capped is not None and (low <= capped).all():
                halves.append(Branch(low, capped, branch.others))
        return halves

    def _relaxation(self, branch: Branch, deadline: float) -> FloatArray | None:
        """Return real counts in the box that meet the equations; None, with HiGHS's multipliers at hand, if active columns have none."""
        raised = np.setdiff1d(np.flatnonzero(branch.lower), self._active)
        if len(raised):
            self._enter(raised)
        active, highs = self._active, self._highs
        count = len(active)
        lower, upper = branch.lower[active].astype(np.float64), branch.upper[active].astype(np.float64)
        highs.changeColsBounds(count, self._first_column + np.arange(count, dtype=np.int32), lower, upper)
        cut = float(self._right[-1]) if branch.others else highspy.kHighsInf
        highs.changeRowBounds(len(self._rows) - 1, -highspy.kHighsInf, cut)
        left = deadline - time.monotonic()
        highs.setOptionValue("time_limit", highs.getRunTime() + max(left, 0.0))
        highs.run()
        status = highs.getModelStatus()
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
            # From scratch: a basis of other bounds has been seen to end in numerical trouble.
            highs.clearSolver()
            highs.run()
            status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise _OutOfTimeError
        if status != highspy.HighsModelStatus.kOptimal:
            raise ConvergenceError(f"a linear program of the histogram decoder ended with {highs.modelStatusToString(status)!r}")
        if highs.getInfo().objective_function_value > FEASIBLE:
            return None
        values = np.zeros(len(branch.lower))
        values[active] = np.clip(np.array(highs.getSolution().col_value)[self._first_column :], lower, upper)
        return values

    def _entering(self, branch: Branch) -> IndexArray | None:
        """Return None if the multipliers close the branch, else columns outside the program that undo it, if there are any."""
        # Duals of equations that are broken as little as possible: no larger than 1.
        duals = -np.array(self._highs.getSolution().row_dual)
        # "At most" may be multiplied by what is positive, or 0 where the cut does not hold.
        duals[-1] = max(duals[-1], 0.0) if branch.others else 0.0
        best = np.array([], dtype=np.intp)
        for largest in LARGEST_MULTIPLIERS:
            multipliers = np.rint(duals * largest)
            parts = self._least_parts(branch, multipliers)
            if parts is None:
                continue
            right = self._right_side(multipliers)
            if int(parts.sum()) > right:
                return None
            inactive = np.ones(len(parts), dtype=np.bool_)
            inactive[self._active] = False
            if int(parts[~inactive].sum()) > right:
                # Only columns outside the program keep the multipliers from closing the branch.
                candidates = np.flatnonzero(inactive & (parts < 0))
                best = candidates[np.argsort(parts[candidates], kind="stable")[:COLUMNS_AT_A_TIME]]
        return best

    def _least_parts(self, branch: Branch, multipliers: FloatArray) -> IntegerArray | None:
        """Return the least that each count adds to (w^T A) mu over the box, in whole numbers; None if they could be too large."""
        coefficient_bound = float(np.abs(multipliers).sum())
        if coefficient_bound * (self.problem.clients + 1) * 2 > LARGEST_EXACT:
            return None
        coefficients = (multipliers @ self._rows).astype(np.int64)
        parts = np.where(coefficients > 0, coefficients * branch.lower, coefficients * branch.upper)
        return parts if abs(float(parts.sum(dtype=np.float64))) < LARGEST_SUM else None

    def _right_side(self, multipliers: FloatArray) -> int:
        return sum(int(multiplier) * int(right) for multiplier, right in zip(multipliers, self._right, strict=True))

    def _enter(self, columns: IndexArray) -> None:
        """Add columns to the program, in the same order as to `_active`."""
        self._active = np.concatenate([self._active, columns])
        self._add_columns(columns)

    def _add_columns(self, columns: IndexArray) -> None:
        block = self._rows[:, columns]
        places = [np.flatnonzero(column) for column in block.T]
        starts = np.cumsum([0, *(len(place) for place in places)])[:-1].astype(np.int32)
        self._highs.addCols(
            len(columns),
            np.zeros(len(columns)),
            np.zeros(len(columns)),
            np.full(len(columns), float(self.problem.clients)),
            int(sum(len(place) for place in places)),
            starts,
            np.concatenate(places).astype(np.int32),
            np.concatenate([column[place] for column, place in zip(block.T, places, strict=True)]),
        )

    def _program(self, columns: IndexArray) -> highspy.Highs:
        """Return the program of least violation of the equations, by the given columns; what a violation costs stands before them."""
        highs = new_highs()
        # From one branch to the next little changes.
        highs.setOptionValue("presolve", "off")
        highs.setOptionValue("solver", "simplex")
        model = highspy.HighsLp()
        rows = len(self._rows)
        # Two columns for each equation, and one for the cut, which is an inequality.
        self._first_column = 2 * rows - 1
        model.num_row_, model.num_col_ = rows, self._first_column
        right: NDArray[np.float64] = self._right.astype(np.float64)
        lower = right.copy()
        lower[-1] = -highspy.kHighsInf
        model.row_lower_, model.row_upper_ = lower, right
        model.col_cost_ = np.ones(self._first_column)
        model.col_lower_, model.col_upper_ = np.zeros(self._first_column), np.full(self._first_column, highspy.kHighsInf)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.arange(self._first_column + 1, dtype=np.int32)
        model.a_matrix_.index_ = np.concatenate([np.arange(rows), np.arange(rows - 1)]).astype(np.int32)
        model.a_matrix_.value_ = np.where(np.arange(self._first_column) < rows, -1.0, 1.0)
        if highs.passModel(model) == highspy.HighsStatus.kError:
            raise ConvergenceError("the linear program of the histogram decoder was refused by the solver")
        self._highs = highs
        self._add_columns(columns)
        return highs


class _OutOfTimeError(Exception):
    """The time was up within a linear program."""
