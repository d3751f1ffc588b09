"""The best probability table for given letters, by a linear program.

The program also gives the exact gradient of its value in the letters.
"""

import math
from copy import copy
from dataclasses import dataclass, replace

import highspy
import numpy as np
import scipy
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ..bounds.privacy_constraint import RatioConstraint, typical_variance
from ..numerics.highs_program import LinearOptimum, new_highs, run_highs


@dataclass(frozen=True)
class TableProgramSolution:
    """The best table for given letters.

    Attributes
    ----------
    probabilities : ndarray of shape (inputs, letters)
        The table: rows sum to 1, are unbiased and keep the ratio constraint, all up to the solver's rounding.
    value : float
        Weighted sum of the rows' variances, or the largest variance for the worst-case objective.
    alphabet_gradient : ndarray of shape (letters,)
        Derivative of `value` in each letter (envelope theorem, from the dual values); at a kink, a number between the one-sided
        derivatives.
    """

    probabilities: FloatArray
    value: float
    alphabet_gradient: FloatArray


@dataclass(frozen=True, eq=False)
class _Start:
    """An optimal basis, with its letters and its value."""

    alphabet: FloatArray
    value: float
    basis: highspy.HighsBasis


class TableProgram:
    """The linear program for a grid, constraint and objective, for many alphabets.

    Each solve starts from the basis of the previous solve, or from the best basis (`on_its_own`), so that a small move of the letters costs
    few simplex steps. With the best basis kept, a line search that stepped too far returns to the basis where it began.

    Notes
    -----
    Local privacy: with top_j the largest entry that column j may have, P[i, j] = exp(-eps) top_j + s[i, j] and
    0 <= s[i, j] <= (1 - exp(-eps)) top_j. The lower end is then a bound on a variable, which the simplex method keeps exactly; a row
    would keep it only to an absolute tolerance, which says nothing about a ratio. Metric privacy: the inequalities between neighbours,
    divided by the step's log ratio for the same reason. Bias rows are centred at their own input, so that dual values are of the size
    of the variances even where the letters lie far outside the unit interval.
    """

    def __init__(self, inputs: FloatArray, letters: int, constraint: RatioConstraint, input_weights: FloatArray | None) -> None:
        self.inputs = np.asarray(inputs, dtype=float)
        self.letters = letters
        self.input_weights = input_weights
        self._constraint = constraint
        self._scale = typical_variance(constraint, len(self.inputs))
        table_of_variables, privacy_rows = _privacy_parts(len(self.inputs), letters, constraint)
        self._layout = _layout(table_of_variables, privacy_rows, len(self.inputs), worst=input_weights is None)
        # Under weak privacy, the rows of the largest variance are far smaller than other rows.
        self._highs = _new_highs(scaled=input_weights is None)
        self._starts: list[_Start] = []
        self._keeps_best = False

    def on_its_own(self, *, keeps_best: bool = False) -> "TableProgram":
        """Return the same program with a separate solver.

        The new program's first solve starts from this program's basis. A program that keeps its best basis starts from that of the least
        value if its letters are nearer than those of the previous solve.
        """
        twin = copy(self)
        twin._keeps_best = keeps_best
        twin._highs = _new_highs(scaled=self.input_weights is None)
        return twin

    def start_from(self, other: "TableProgram | None") -> None:
        """Start the next solve from another program's basis of the least value.

        The call has no effect unless the other program has a basis and as many letters; its grid must be the same or a coarser grid.
        """
        if other is not None and other.letters == self.letters and other._starts:
            before, after, neighbours_only = len(other.inputs), len(self.inputs), self._constraint.neighbours_only
            best = min(other._starts, key=lambda start: start.value)
            if before != after:
                best = replace(best, basis=_refined(best.basis, before, after, self.letters, neighbours_only=neighbours_only))
            self._starts = [best]

    def solve(self, alphabet: FloatArray) -> TableProgramSolution:
        """Return the best table for letters in any order, its value, and the value's gradient.

        Raises
        ------
        InfeasibleError
            If no table with these letters is both unbiased and private: the letters must reach farther out.
        ConvergenceError
            If the linear program's solver fails.
        """
        count = len(self.inputs)
        offsets = alphabet[None, :] - self.inputs[:, None]
        reach = np.abs(offsets).max()
        squares = offsets**2 / self._scale
        blocks = [self._layout.constants, self._layout.coefficients * (offsets / reach).ravel()[self._layout.entries]]
        if self.input_weights is None:
            blocks.append(self._layout.coefficients * squares.ravel()[self._layout.entries])
            cost = np.zeros(self._layout.columns)
            cost[-1] = 1.0
        else:
            cost = self._costs_of_variables(squares * self.input_weights[:, None])
        optimum = self._run(alphabet, cost, np.concatenate(blocks)[self._layout.order])
        duals = optimum.row_duals
        table = self._table_of_variables(optimum.variables)
        weights = self.input_weights if self.input_weights is not None else -duals[-count:]
        bias_price = duals[count : 2 * count] * self._scale / reach
        gradient = (table * (2 * weights[:, None] * offsets - bias_price[:, None])).sum(axis=0)
        return TableProgramSolution(table, optimum.value * self._scale, gradient)

    def _costs_of_variables(self, costs: FloatArray) -> FloatArray:
        if self._constraint.neighbours_only:
            return costs.ravel()
        return np.concatenate([costs.ravel(), math.exp(-self._constraint.log_ratio) * costs.sum(axis=0)])

    def _table_of_variables(self, variables: FloatArray) -> FloatArray:
        size = len(self.inputs) * self.letters
        table = variables[:size].reshape(len(self.inputs), self.letters)
        if self._constraint.neighbours_only:
            return table
        return table + math.exp(-self._constraint.log_ratio) * variables[size : size + self.letters]

    def _run(self, alphabet: FloatArray, cost: FloatArray, data: FloatArray) -> LinearOptimum:
        if self._layout.pass_to(self._highs, cost, data) == highspy.HighsStatus.kError:
            raise ConvergenceError("the linear program for a table was refused by the solver")
        if self._starts:
            nearest = self._starts[-1]
            if len(self._starts) > 1:
                nearest = min(self._starts, key=lambda start: float(np.abs(start.alphabet - alphabet).max()))
            self._highs.setBasis(nearest.basis)
        try:
            optimum = run_highs(self._highs, "the linear program for a table with given letters")
        except InfeasibleError:
            raise InfeasibleError(
                "no unbiased table with these letters meets the privacy constraint: the letters must reach farther out"
            ) from None
        lowest = [min(self._starts, key=lambda start: start.value)] if self._starts and self._keeps_best else []
        self._starts = [*lowest, _Start(alphabet, optimum.value, self._highs.getBasis())]
        return optimum


def _new_highs(*, scaled: bool) -> highspy.Highs:
    """Return a solver for small programs that are solved many times.

    The solver's edge weights are not exact each time (Devex).
    """
    highs = new_highs()
    highs.setOptionValue("simplex_dual_edge_weight_strategy", 1)
    if not scaled:
        highs.setOptionValue("simplex_scale_strategy", 0)
    return highs


def _refined(coarse: highspy.HighsBasis, before: int, after: int, letters: int, *, neighbours_only: bool) -> highspy.HighsBasis:
    """Carry a basis to a finer grid.

    Variables that are basic at an input, or between two inputs, are basic at all inputs in their place.
    """
    entries = np.arange(before * letters).reshape(before, letters)
    inputs, pairs = np.arange(after) * before // after, np.arange(after - 1) * (before - 1) // (after - 1)
    columns, rows = np.array(coarse.col_status), np.array(coarse.row_status)
    private = 2 * before
    blocks = [inputs, before + inputs]
    if neighbours_only:
        blocks += [private + entries[pairs].ravel(), private + entries.size - letters + entries[pairs].ravel()]
        private += 2 * (entries.size - letters)
    else:
        blocks.append(private + entries[inputs].ravel())
        private += entries.size
    if len(rows) > private:
        blocks.append(private + inputs)
    basis = highspy.HighsBasis()
    basis.col_status = [*columns[entries[inputs].ravel()], *columns[entries.size :]]
    basis.row_status = rows[np.concatenate(blocks)].tolist()
    # The basis may have another number of basic variables than rows, and may be singular. The solver completes it.
    basis.valid, basis.alien = True, True
    return basis


@dataclass(frozen=True, eq=False)
class _Layout:
    """Positions of the entries in the program's matrix, of which only the values change."""

    constants: FloatArray
    entries: NDArray[np.intp]
    coefficients: FloatArray
    order: NDArray[np.intp]
    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    columns: int
    lower: FloatArray
    upper: FloatArray

    def pass_to(self, highs: highspy.Highs, cost: FloatArray, data: FloatArray) -> highspy.HighsStatus:
        """Pass the program to a solver, with new costs and new values in its matrix."""
        column_wise, minimise, constant = int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMinimize), 0.0
        least, most, continuous = np.zeros(self.columns), np.full(self.columns, np.inf), np.zeros(self.columns, dtype=np.int32)
        sizes, matrix = (self.columns, len(self.lower), len(data)), (self.starts, self.rows, data)
        return highs.passModel(*sizes, column_wise, minimise, constant, cost, least, most, self.lower, self.upper, *matrix, continuous)


def _layout(table_of_variables: "scipy.sparse.csr_array", privacy_rows: "scipy.sparse.csr_array", count: int, *, worst: bool) -> _Layout:
    """Lay out the rows: sums, bias, privacy, and the variances for the largest variance.

    The largest variance is then the last column. A variable adds to a row of the table through one entry only, so that the bias and
    variance rows have the pattern of the sums: each non-zero is the coefficient of a variable in an entry of the table, times the entry's
    offset or its square.
    """
    table = table_of_variables.tocoo()
    letters = table_of_variables.shape[0] // count
    privacy = privacy_rows.tocoo()
    of_input = table.row // letters
    columns = table_of_variables.shape[1] + worst
    private = len(privacy_rows.indptr) - 1
    # The values have the order of `solve`: constants (sums, privacy, largest variance), bias, variances.
    rows, cols, constants = [of_input, 2 * count + privacy.row], [table.col, privacy.col], [table.data, privacy.data]
    lower = np.concatenate([np.ones(count), np.zeros(count), np.full(private, -np.inf)])
    upper = np.concatenate([np.ones(count), np.zeros(count + private)])
    variance_rows = 2 * count + private
    if worst:
        rows.append(variance_rows + np.arange(count))
        cols.append(np.full(count, columns - 1))
        constants.append(np.full(count, -1.0))
        lower, upper = np.append(lower, np.full(count, -np.inf)), np.append(upper, np.zeros(count))
    for first_row in [count, variance_rows] if worst else [count]:
        rows.append(first_row + of_input)
        cols.append(table.col)
    row, column = np.concatenate(rows), np.concatenate(cols)
    order = np.lexsort((row, column))
    starts = np.searchsorted(column[order], np.arange(columns + 1)).astype(np.int32)
    return _Layout(np.concatenate(constants), table.row, table.data, order, starts, row[order].astype(np.int32), columns, lower, upper)


def _privacy_parts(count: int, letters: int, constraint: RatioConstraint) -> "tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]":
    """Return T and G with the table T @ variables, private if G @ variables <= 0.

    Variables are at least 0.
    """
    size = count * letters
    identity = scipy.sparse.eye_array(size, format="csr")
    if not constraint.neighbours_only:
        tops = scipy.sparse.csr_array(np.tile(np.eye(letters), (count, 1)))
        table = scipy.sparse.hstack([identity, np.exp(-constraint.log_ratio) * tops], format="csr")
        return table, scipy.sparse.hstack([identity, np.expm1(-constraint.log_ratio) * tops], format="csr")
    before, after = identity[:-letters], identity[letters:]
    decay = np.exp(-constraint.log_ratio)
    return identity, scipy.sparse.vstack([decay * after - before, decay * before - after], format="csr") / min(constraint.log_ratio, 1.0)
