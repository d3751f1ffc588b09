"""The convex program for given letters: rows, divergences, objective, gradients, and agreement with a conic solver."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.accounting.renyi_divergence import renyi_matrix
from quietbits.solvers.table_search.renyi_budget import RenyiBudget
from quietbits.solvers.table_search.renyi_program import RenyiProgram

INPUTS, DIMENSION, ORDER, SHARE = 8, 20, 8.0, 0.9
BUDGET = RenyiBudget(INPUTS, DIMENSION, 2.0, 1.1, 3.0, 1e-5)
# Of the lower half of the rows, 3, 2, 1 and 0 steps from zero.
PRICES = np.array([9.0, 4.0, 1.0, 0.0]) / 9
REACHES = np.array([18.0, 5.0])


def program(letters: int = 4) -> RenyiProgram:
    return RenyiProgram(INPUTS, letters, ORDER, BUDGET.reach, PRICES, 1 / DIMENSION)


def alphabet(reaches: np.ndarray) -> np.ndarray:
    return (INPUTS - 1) / 2 + np.concatenate([-reaches, reaches[::-1]])


@pytest.mark.parametrize("reaches", [REACHES, np.array([30.0, 18.0, 11.0, 2.0])])
def test_tables_are_mirrored_unbiased_within_their_limits_and_worth_what_is_said(reaches: np.ndarray) -> None:
    limits = BUDGET.limits(ORDER, SHARE)
    solution = program(2 * len(reaches)).solve(reaches, limits)
    table, letters, rows = solution.probabilities, alphabet(reaches), np.arange(INPUTS)
    np.testing.assert_allclose(table, table[::-1, ::-1], atol=1e-15)
    assert table.min() > 0
    assert table.sum(axis=1) == pytest.approx(np.ones(INPUTS), abs=1e-7)
    assert table @ letters == pytest.approx(rows, abs=1e-5)
    distances = np.abs(np.subtract.outer(rows, rows))
    off_diagonal = distances > 0
    divergences = renyi_matrix(table / table.sum(axis=1, keepdims=True), ORDER)
    ratios = divergences[off_diagonal] / limits[distances[off_diagonal]]
    assert 1 - 1e-4 <= ratios.max() <= 1 + 1e-5
    # The worst distribution of rows over a vector's coordinates.
    variances = (table * (rows[:, None] - letters) ** 2).sum(axis=1)[: INPUTS // 2]
    worst = linprog(-variances, A_ub=[PRICES], b_ub=[1 / DIMENSION], A_eq=[np.ones(4)], b_eq=[1.0])
    assert solution.value == pytest.approx(-worst.fun, rel=1e-6)


def test_a_conic_solver_without_symmetry_finds_no_better_table() -> None:
    limits, letters, rows = BUDGET.limits(ORDER, SHARE), alphabet(REACHES), np.arange(INPUTS)
    table, worst, price = cp.Variable((INPUTS, 4), nonneg=True), cp.Variable(), cp.Variable(nonneg=True)
    squares = (rows[:, None] - letters) ** 2 / REACHES[0] ** 2
    # The last row is not a grid point of a vector; its mirror image is.
    prices = np.concatenate([PRICES, PRICES[::-1]])
    constraints = [cp.sum(table, axis=1) == 1, table @ (letters / REACHES[0]) == rows / REACHES[0]]
    constraints += [cp.sum(cp.multiply(squares[row], table[row])) <= worst + prices[row] * price for row in range(INPUTS)]
    for own in rows:
        for other in rows[rows != own]:
            terms = cp.Variable(4)
            constraints += [
                cp.sum(terms) <= np.exp((ORDER - 1) * limits[abs(own - other)]),
                cp.PowCone3D(terms, table[other], table[own], np.full(4, 1 / ORDER)),
            ]
    problem = cp.Problem(cp.Minimize(worst + price / DIMENSION), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert program().solve(REACHES, limits).value == pytest.approx(problem.value * REACHES[0] ** 2, rel=1e-4)


def test_gradients_are_those_of_the_value() -> None:
    limits, solve = BUDGET.limits(ORDER, SHARE), program().solve
    solution = solve(REACHES, limits)
    for letter in range(2):
        step = np.eye(2)[letter] * 1e-3
        difference = (solve(REACHES + step, limits, tolerance=1e-9).value - solve(REACHES - step, limits, tolerance=1e-9).value) / 2e-3
        assert solution.reach_gradient[letter] == pytest.approx(difference, rel=1e-3)
    for distance in range(1, INPUTS):
        step = np.eye(INPUTS)[distance] * limits[distance] * 1e-3
        more, less = (solve(REACHES, limits + sign * step, tolerance=1e-9).value for sign in (1, -1))
        scale = np.abs(solution.limit_gradient).max()
        assert solution.limit_gradient[distance] == pytest.approx((more - less) / 2 / step[distance], rel=1e-2, abs=1e-4 * scale)
    assert np.all(solution.limit_gradient <= 0)


def test_two_letters_leave_no_choice() -> None:
    # Unbiased rows with two letters have the variance (x - a)(b - x): R**2 less the distance from the middle, squared.
    limits = BUDGET.limits(ORDER, SHARE)
    assert program(2).solve(np.array([40.0]), limits).value == pytest.approx(40.0**2 - 0.5**2, rel=1e-6)
    with pytest.raises(ConvergenceError, match="the convex program was not solved"):
        program(2).solve(np.array([8.0]), limits)
    with pytest.raises(InfeasibleError, match=r"reaches must exceed half the grid, 3\.5 steps, for unbiased tables, got 3 at most"):
        program(2).solve(np.array([3.0]), limits)
