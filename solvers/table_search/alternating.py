"""The MVU paper's alternating solver: quadratic programs for table and letters in turn.

Unbiasedness is a penalty. Chaudhuri, Guo, Rabbat, "Privacy-Aware Compression for Federated Data Analysis" (2022), section 3: with either
the table P or the letters a fixed, objective (eq. 2) + penalty |P a - x|**2 is a convex quadratic in the other. The penalty grows until the
bias is negligible.
"""

import warnings
from collections.abc import Callable

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.binary_operators import multiply
from cvxpy.atoms.affine.sum import sum as axis_sum
from cvxpy.atoms.sum_squares import sum_squares

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...progress import OnStep, silent
from ..bounds.privacy_constraint import RatioConstraint
from .multistart import SearchedTable, best_of_starts
from .table_program import TableProgram, TableProgramSolution

# The penalty starts at the weight of the objective and grows slowly: each stage lets table and letters move together less than the previous
# stage.
PENALTY_GROWTH = 1.3
MAX_STAGES = 150
MAX_STEPS_PER_STAGE = 30
# Relative change of the penalised objective below which a stage ends.
SMALL_CHANGE = 1e-6
# Share of the standard deviation below which the largest bias ends the search. The linear program at the end removes the remaining bias.
SMALL_BIAS = 1e-4
# Weight that keeps unused letters, which the objective leaves free, in place.
PROXIMITY = 1e-7
# Accuracies of a step: the solver's own, and a sufficient accuracy if rounding, which depends on the processor, prevents the solver's own.
TOLERANCES = (1e-8, 1e-6)


class TableStep:
    """The quadratic program for the table at given letters.

    The program is built once and solved again as letters and penalty change. `scale` is the unit of the variances, near the expected
    variances.
    """

    def __init__(
        self, inputs: FloatArray, letters: int, constraint: RatioConstraint, input_weights: FloatArray | None, scale: float
    ) -> None:
        self.inputs = inputs
        self.input_weights = input_weights
        self.scale = scale
        self._table = cp.Variable((len(inputs), letters))
        self._costs = cp.Parameter((len(inputs), letters), nonneg=True)
        self._letters, self._targets = cp.Parameter(letters), cp.Parameter(len(inputs))
        row_costs = axis_sum(multiply(self._costs, self._table), axis=1)
        penalty = sum_squares(self._table @ self._letters - self._targets)
        rows = [axis_sum(self._table, axis=1) == 1, *_private(self._table, constraint)]
        if input_weights is None:
            largest = cp.Variable()
            self._problem = cp.Problem(cp.Minimize(largest + penalty), [*rows, row_costs <= largest])
        else:
            self._problem = cp.Problem(cp.Minimize(input_weights @ row_costs + penalty), rows)

    def solve(self, alphabet: FloatArray, penalty: float) -> FloatArray:
        """Return the table that minimises the penalised objective for given letters.

        The penalty multiplies the sum of the squared biases. The rows sum to 1 and the table is private up to the solver's rounding, but it
        is biased.
        """
        root = np.sqrt(penalty / self.scale)
        self._costs.value = (self.inputs[:, None] - alphabet) ** 2 / self.scale
        self._letters.value, self._targets.value = root * alphabet, root * self.inputs
        return _solved(self._problem, self._table)


class LetterStep:
    """The program for the letters of a given table.

    The program is a least squares problem, or for the worst-case objective a second-order cone program.
    """

    def __init__(self, inputs: FloatArray, letters: int, input_weights: FloatArray | None, scale: float) -> None:
        self.inputs = inputs
        self.input_weights = input_weights
        self.scale = scale
        shape = len(inputs), letters
        self._moves, largest = cp.Variable(letters), cp.Variable()
        self._roots, self._root_targets = cp.Parameter(shape, nonneg=True), cp.Parameter(shape)
        self._table, self._targets = cp.Parameter(shape), cp.Parameter(len(inputs))
        penalty = sum_squares(self._table @ self._moves - self._targets) + PROXIMITY / scale * sum_squares(self._moves)
        rows = [sum_squares(multiply(self._roots[row], self._moves) - self._root_targets[row]) <= largest for row in range(len(inputs))]
        self._worst_case = cp.Problem(cp.Minimize(largest + penalty), rows)

    def solve(self, table: FloatArray, alphabet: FloatArray, penalty: float) -> FloatArray:
        """Return the letters, in any order, that minimise the penalised objective for a table.

        If there are several solutions, the method returns the nearest.
        """
        if self.input_weights is not None:
            curvature = np.diag(self.input_weights @ table) + penalty * table.T @ table
            slope = table.T @ ((self.input_weights + penalty) * self.inputs) - curvature @ alphabet
            return np.asarray(alphabet + np.linalg.lstsq(curvature, slope)[0])
        roots, root = np.sqrt(np.maximum(table, 0.0) / self.scale), np.sqrt(penalty / self.scale)
        self._roots.value, self._root_targets.value = roots, roots * (self.inputs[:, None] - alphabet)
        self._table.value, self._targets.value = root * table, root * (self.inputs - table @ alphabet)
        return alphabet + _solved(self._worst_case, self._moves)


def penalised_objective(
    table: FloatArray, alphabet: FloatArray, inputs: FloatArray, input_weights: FloatArray | None, penalty: float
) -> float:
    """Return the objective of both steps: the rows' squared errors plus the penalty.

    The errors enter by their weighted sum, or the largest error.
    """
    errors = (table * (inputs[:, None] - alphabet) ** 2).sum(axis=1)
    objective = errors.max() if input_weights is None else input_weights @ errors
    return float(objective + penalty * np.sum((table @ alphabet - inputs) ** 2))


def solve_alternating(
    inputs: FloatArray,
    letters: int,
    constraint: RatioConstraint,
    input_weights: FloatArray | None,
    *,
    starts: int = 5,
    rng: np.random.Generator,
    on_step: OnStep = silent,
) -> SearchedTable:
    """Design a table by the MVU paper's alternating quadratic programs.

    The penalty grows, and the search has several starts. The table is always the solution of the linear program at the last letters, and so
    exactly unbiased and private up to that program's rounding. The method serves comparisons and small tables: it takes about 1 s per start
    at 8 x 8, and twice that for the worst case. The best table of all starts need not be optimal.

    The first start is generalised randomised response, the others are random. `on_step` hears of each stage (`best_of_starts`).

    Raises
    ------
    ConvergenceError
        If every start fails; the message gives each reason.

    References
    ----------
    Chaudhuri, Guo, Rabbat, "Privacy-Aware Compression for Federated Data Analysis", 2022, eq. 2 and section 3.
    """
    inputs = np.asarray(inputs, dtype=float)

    def search(alphabet: FloatArray, at_start: TableProgramSolution, report: Callable[[int], None]) -> FloatArray:
        table_step = TableStep(inputs, letters, constraint, input_weights, at_start.value)
        letter_step = LetterStep(inputs, letters, input_weights, at_start.value)
        return _alternate(table_step, letter_step, alphabet, report)

    program = TableProgram(inputs, letters, constraint, input_weights)
    return best_of_starts(search, program, constraint, starts, rng, steps=MAX_STAGES, on_step=on_step)


def _alternate(table_step: TableStep, letter_step: LetterStep, alphabet: FloatArray, report: Callable[[int], None]) -> FloatArray:
    """Return the letters at which the bias of the alternation is negligible; report each stage."""
    inputs, input_weights = table_step.inputs, table_step.input_weights
    for stage in range(MAX_STAGES):
        penalty = PENALTY_GROWTH**stage
        value = np.inf
        for _ in range(MAX_STEPS_PER_STAGE):
            previous = value
            table = table_step.solve(alphabet, penalty)
            alphabet = letter_step.solve(table, alphabet, penalty)
            value = penalised_objective(table, alphabet, inputs, input_weights, penalty)
            if previous - value <= SMALL_CHANGE * value:
                break
        bias = np.abs(table @ alphabet - inputs).max()
        if bias <= SMALL_BIAS * np.sqrt(value):
            return alphabet
        report(stage + 1)
    raise ConvergenceError(f"the alternation still has a bias of {bias:.1e} at a penalty of {penalty:.1e}")


def _private(table: cp.Variable, constraint: RatioConstraint) -> list[cp.Constraint]:
    """Return the privacy constraints on a table."""
    decay = np.exp(-constraint.log_ratio)
    if constraint.neighbours_only:
        return [table[1:] >= decay * table[:-1], table[:-1] >= decay * table[1:]]
    tops = np.ones((table.shape[0], 1)) @ cp.Variable((1, table.shape[1]))
    return [table <= tops, table >= decay * tops]


def _solved(problem: cp.Problem, variable: cp.Variable) -> FloatArray:
    """Solve and return the variable's value, also from a slightly inaccurate step.

    The linear program at the end removes the inaccuracy.
    """
    solve: Callable[..., object] = problem.solve  # cvxpy declares no types for this method.
    failed: cp.SolverError | None = None
    for tolerance in TOLERANCES:
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # The solver's warning of inaccuracy repeats the status.
                solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
            break
        except cp.SolverError as failure:
            failed = failure
    else:
        raise ConvergenceError(f"a step of the alternation failed: {failed}") from failed
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ConvergenceError(f"a step of the alternation ended with status {problem.status!r}")
    return np.asarray(variable.value)
