"""The MVU paper's interior-point solver: table and letters in a single nonlinear program.

Chaudhuri, Guo, Rabbat, "Privacy-Aware Compression for Federated Data Analysis" (2022), section 3: minimise eq. 2 over the table P and the
letters a at once, by a trust-region method. The objective is cubic and the unbiasedness constraint bilinear, so that the result is a local
optimum.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint, OptimizeResult, minimize
from scipy.sparse import block_array, csr_array, eye_array, kron, vstack

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...progress import OnStep, silent
from ..bounds.privacy_constraint import RatioConstraint
from ..bounds.two_letters import least_reach
from .multistart import SearchedTable, best_of_starts
from .table_program import TableProgram, TableProgramSolution

# Largest share of the uniform table in the starting table: an interior-point method is slow from a vertex.
UNIFORM_SHARE = 0.5
# Share of the objective at which a run ends: the barrier adds less than the share, and the gradient is below the share.
RELATIVE_TOLERANCE = 1e-6
# Largest number of iterations of a run. With two letters at the same place the last digits converge too slowly, so a result within these
# limits is accepted: the final linear program removes its errors.
MAX_ITERATIONS = 1000
LARGEST_VIOLATION = 1e-6
LARGEST_GRADIENT = 1e-3


class NonlinearTableProgram:
    """A nonlinear program over a vector of the table, the scaled letters, and bounds.

    The bounds are a largest entry per column, for local privacy, and the largest variance, for the worst-case objective. A letter a is
    stored as (a - 1/2) / `unit`, with `unit` the least distance of the outermost letters from 1/2; variances are in units of `scale`, near
    the expected variances.
    """

    def __init__(
        self, inputs: FloatArray, letters: int, constraint: RatioConstraint, input_weights: FloatArray | None, scale: float
    ) -> None:
        self.inputs = inputs
        self.letters = letters
        self.input_weights = input_weights
        self.scale = scale
        self.unit = 0.5 + least_reach(len(inputs), constraint)
        count, size = len(inputs), len(inputs) * letters
        self._decay = np.exp(-constraint.log_ratio)
        self._tops = 0 if constraint.neighbours_only else letters
        self.variables = size + letters + self._tops + (input_weights is None)
        self._letter_of_entry = size + np.tile(np.arange(letters), count)
        self._linear = [
            LinearConstraint(self._padded(kron(eye_array(count), np.ones((1, letters)))), 1.0, 1.0),
            LinearConstraint(self._privacy_rows(constraint), 0.0, np.inf),
            # Bound on starts; without it the early, infeasible iterates sometimes run off to infinity.
            LinearConstraint(eye_array(self.variables, format="csr")[size : size + letters], -float(letters), float(letters)),
        ]

    def objective(self, variables: FloatArray) -> float:
        """Return the objective: the weighted sum of the variances, or their bound.

        The objective is in units of `scale`.
        """
        if self.input_weights is None:
            return float(variables[-1])
        return float(self.input_weights @ self.variances(variables))

    def objective_gradient(self, variables: FloatArray) -> FloatArray:
        """Return the gradient of `objective`, shape (variables,)."""
        if self.input_weights is None:
            return np.append(np.zeros(self.variables - 1), 1.0)
        return np.asarray(self.input_weights @ self.variances_jacobian(variables))

    def objective_hessian(self, variables: FloatArray) -> csr_array:
        """Return the matrix of second derivatives of `objective`, shape (variables, variables)."""
        weights = np.zeros(len(self.inputs)) if self.input_weights is None else self.input_weights
        return self.variances_hessian(variables, weights)

    def variances(self, variables: FloatArray) -> FloatArray:
        """Return each row's mean squared error, in units of `scale`, shape (inputs,).

        The error of row i is sum_j P[i, j] (a_j - x_i)**2.
        """
        table, offsets = self._table_and_offsets(variables)
        return np.asarray((table * offsets**2).sum(axis=1) / self.scale)

    def variances_jacobian(self, variables: FloatArray) -> csr_array:
        """Return the derivatives of `variances`, shape (inputs, variables)."""
        table, offsets = self._table_and_offsets(variables)
        return self._jacobian(offsets**2 / self.scale, table * offsets * (2 * self.unit / self.scale))

    def variances_hessian(self, variables: FloatArray, weights: FloatArray) -> csr_array:
        """Return the second derivatives of weights . `variances`, shape (variables, variables)."""
        table, offsets = self._table_and_offsets(variables)
        return self._hessian(weights[:, None] * offsets * (2 * self.unit / self.scale), weights @ table * (2 * self.unit**2 / self.scale))

    def biases(self, variables: FloatArray) -> FloatArray:
        """Return the bias sum_j P[i, j] (a_j - x_i) of each row, in units of `unit`.

        The shape is (inputs,).
        """
        table, offsets = self._table_and_offsets(variables)
        return np.asarray((table * offsets).sum(axis=1) / self.unit)

    def biases_jacobian(self, variables: FloatArray) -> csr_array:
        """Return the derivatives of `biases`, shape (inputs, variables)."""
        table, offsets = self._table_and_offsets(variables)
        return self._jacobian(offsets / self.unit, table)

    def biases_hessian(self, _: FloatArray, weights: FloatArray) -> csr_array:
        """Return the second derivatives of weights . `biases`.

        The second derivatives do not depend on the variables.
        """
        return self._hessian(np.repeat(weights[:, None], self.letters, axis=1), np.zeros(self.letters))

    def minimise(self, table: FloatArray, alphabet: FloatArray, report: Callable[[int], None] = lambda _: None) -> FloatArray:
        """Return the letters of a local optimum, in any order, from a table and letters.

        The table should lie in the interior of the constraints. `report` is called with the number of iterations after each of them.

        Raises
        ------
        ConvergenceError
            If the iterations run out, or the method stops where the constraints do not hold.
        """
        tops = np.sqrt(table.max(axis=0) * table.min(axis=0) / self._decay)[: self._tops]
        start = np.concatenate([table.ravel(), (alphabet - 0.5) / self.unit, tops])
        constraints = [*self._linear, NonlinearConstraint(self.biases, 0.0, 0.0, self.biases_jacobian, self.biases_hessian)]
        if self.input_weights is None:
            start = np.append(start, 1.5 * self.variances(np.append(start, 0.0)).max())
            largest = csr_array(np.outer(np.ones(len(self.inputs)), self.objective_gradient(start)))
            constraints.append(
                NonlinearConstraint(
                    lambda variables: variables[-1] - self.variances(variables),
                    0.0,
                    np.inf,
                    lambda variables: largest - self.variances_jacobian(variables),
                    lambda variables, prices: -self.variances_hessian(variables, prices),
                )
            )

        def is_done(_: FloatArray, state: OptimizeResult) -> bool:
            report(state.nit)
            return self._is_done(state)

        try:
            with np.errstate(over="raise", invalid="raise"):
                end = minimize(
                    self.objective,
                    start,
                    jac=self.objective_gradient,
                    hess=self.objective_hessian,
                    method="trust-constr",
                    constraints=constraints,
                    callback=is_done,
                    options={"gtol": 0.0, "xtol": 1e-12, "barrier_tol": 0.0, "maxiter": MAX_ITERATIONS},
                )
        except FloatingPointError as fault:
            raise ConvergenceError(f"the trust-region method broke down: {fault}") from fault
        if not (end.constr_violation <= LARGEST_VIOLATION and end.optimality <= LARGEST_GRADIENT):
            raise ConvergenceError(
                f"the trust-region method stopped after {end.nit} iterations with constraints violated by {end.constr_violation:.1e}"
                f" and a gradient of {end.optimality:.1e}: {end.message}"
            )
        size = len(self.inputs) * self.letters
        return np.asarray(0.5 + self.unit * end.x[size : size + self.letters])

    def _is_done(self, state: OptimizeResult) -> bool:
        """Return whether the possible gain is a negligible share of the objective."""
        barrier = state.barrier_parameter * self._linear[1].A.shape[0]
        return bool(state.constr_violation <= 1e-8 and max(barrier, state.optimality) <= RELATIVE_TOLERANCE * min(abs(state.fun), 1.0))

    def _table_and_offsets(self, variables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P and a_j - x_i, both of shape (inputs, letters)."""
        size = len(self.inputs) * self.letters
        table = variables[:size].reshape(len(self.inputs), self.letters)
        return table, 0.5 + self.unit * variables[None, size : size + self.letters] - self.inputs[:, None]

    def _jacobian(self, by_entry: FloatArray, by_letter: FloatArray) -> csr_array:
        """Return the derivatives of a function per row, by the row's entries and the letters."""
        rows = np.repeat(np.arange(len(self.inputs)), self.letters)
        values = np.concatenate([by_entry.ravel(), by_letter.ravel()])
        columns = np.concatenate([np.arange(by_entry.size), self._letter_of_entry])
        return csr_array((values, (np.tile(rows, 2), columns)), shape=(len(self.inputs), self.variables))

    def _hessian(self, entry_and_letter: FloatArray, letter_twice: FloatArray) -> csr_array:
        """Return symmetric second derivatives.

        The arguments hold the derivatives by P[i, j] and a_j, and the second derivatives by a_j; all others are zero.
        """
        mixed, entries = entry_and_letter.ravel(), np.arange(entry_and_letter.size)
        diagonal = self._letter_of_entry[: self.letters]
        rows = np.concatenate([entries, self._letter_of_entry, diagonal])
        columns = np.concatenate([self._letter_of_entry, entries, diagonal])
        return csr_array((np.concatenate([mixed, mixed, letter_twice]), (rows, columns)), shape=(self.variables, self.variables))

    def _privacy_rows(self, constraint: RatioConstraint) -> csr_array:
        """Return G of G @ variables >= 0, in the method's scale of slacks.

        The rows of a uniform table are of order 1.
        """
        decay = np.exp(-constraint.log_ratio)
        entries = eye_array(len(self.inputs) * self.letters, format="csr")
        if constraint.neighbours_only:
            before, after = entries[: -self.letters], entries[self.letters :]
            rows = vstack([after - decay * before, before - decay * after]) / min(constraint.log_ratio, 1.0)
            return self._padded(rows * self.letters)
        letters = csr_array((entries.shape[0], self.letters))
        tops = kron(np.ones((len(self.inputs), 1)), eye_array(self.letters))
        return self._padded(block_array([[-entries, letters, tops], [entries, letters, -decay * tops]]) * self.letters)

    def _padded(self, rows: csr_array) -> csr_array:
        """Return rows over the first variables as rows over all variables."""
        padded = csr_array(rows)
        padded.resize(rows.shape[0], self.variables)
        return padded


def solve_trust_region(
    inputs: FloatArray,
    letters: int,
    constraint: RatioConstraint,
    input_weights: FloatArray | None,
    *,
    starts: int = 5,
    rng: np.random.Generator,
    on_step: OnStep = silent,
) -> SearchedTable:
    """Design a table by the MVU paper's trust-region interior-point method.

    The method has several starts. The table is always the solution of the linear program at the last letters, and so exactly unbiased and
    private up to that program's rounding. The method serves comparisons and small tables: the work grows with inputs * letters, and takes
    about 0.2 s per start at 8 x 8. The best table of all starts is a local optimum.

    The first start is generalised randomised response, the others are random. `on_step` hears of each iteration (`best_of_starts`).

    Raises
    ------
    ConvergenceError
        If every start fails; the message gives each reason.

    References
    ----------
    Chaudhuri, Guo, Rabbat, "Privacy-Aware Compression for Federated Data Analysis", 2022, eq. 2 and section 3.
    """
    inputs = np.asarray(inputs, dtype=float)
    share = min(UNIFORM_SHARE, np.exp(-constraint.log_ratio / 2))

    def search(alphabet: FloatArray, at_start: TableProgramSolution, report: Callable[[int], None]) -> FloatArray:
        joint = NonlinearTableProgram(inputs, letters, constraint, input_weights, at_start.value)
        return joint.minimise((1 - share) * at_start.probabilities + share / letters, alphabet, report)

    program = TableProgram(inputs, letters, constraint, input_weights)
    return best_of_starts(search, program, constraint, starts, rng, steps=MAX_ITERATIONS, on_step=on_step)
