"""The search for letters, order and line.

Points under test: no step away from the result is better, and the result uses the whole budget.

Points under test of the convex program of given letters: rows, divergences, objective, gradients, and agreement with a conic solver.

The interior point method runs on programs with known solutions, and on an infeasible program.
"""

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.accounting.renyi_divergence import renyi_matrix
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.limits.coordinate_variance import least_coordinate_variance
from quietbits.solvers.table_search.renyi_budget import RenyiBudget
from quietbits.solvers.table_search.renyi_search import (
    Curved,
    RenyiDesign,
    RenyiProgram,
    RenyiStart,
    first_reaches,
    minimise_convex,
    search_renyi_table,
)

NO_ROWS = np.zeros((0, 2))

INPUTS, DIMENSION, ORDER, SHARE = 8, 20, 8.0, 0.9
RENYI_PROGRAM_BUDGET = RenyiBudget(INPUTS, DIMENSION, 2.0, 1.1, 3.0, 1e-5)
# The lower half of the rows are 3, 2, 1 and 0 steps from zero.
RENYI_PROGRAM_PRICES = np.array([9.0, 4.0, 1.0, 0.0]) / 9
REACHES = np.array([18.0, 5.0])

BUDGET = RenyiBudget(inputs=8, dimension=64, norm=2.0, distance=1.3, epsilon=3.0, delta=1e-5)
PRICES, SPENDING = np.array([9.0, 4.0, 1.0, 0.0]) / 9, 1 / 64
# No account has this order, so the search has only the guess as a start.
NOWHERE = RenyiStart(math.inf, 1.0, np.ones(2))


@pytest.fixture(scope="module")
def design() -> RenyiDesign:
    return search_renyi_table(BUDGET, 4, PRICES, SPENDING, NOWHERE)


def test_it_uses_the_budget(design: RenyiDesign) -> None:
    table = design.solution.probabilities
    curve = RenyiCurve(DEFAULT_ORDERS, vector_divergences(table / table.sum(axis=1, keepdims=True), DEFAULT_ORDERS, 64, 2.0, 1.3))
    result = curve.epsilon(1e-5)
    assert result.epsilon == pytest.approx(3.0, abs=1e-3)
    assert result.order == pytest.approx(design.order, abs=1.0)


def test_no_step_away_is_better(design: RenyiDesign) -> None:
    def value(order: float, share: float, reaches: np.ndarray) -> float:
        program = RenyiProgram(8, 4, order, BUDGET.reach, PRICES, SPENDING)
        return program.solve(reaches, BUDGET.limits(order, share), tolerance=1e-7).value

    best = value(design.order, design.share, design.reaches)
    assert design.solution.value == pytest.approx(best, rel=1e-5)
    for step in (-0.02, 0.02):
        assert value(design.order, design.share + step, design.reaches) >= best * (1 - 1e-6)
        assert value(design.order, design.share, design.reaches * (1 + step * np.array([1, 0]))) >= best * (1 - 1e-6)
        assert value(design.order, design.share, design.reaches * (1 + step * np.array([0, 1]))) >= best * (1 - 1e-6)
    place = DEFAULT_ORDERS.index(design.order)
    for order in (DEFAULT_ORDERS[place - 1], DEFAULT_ORDERS[place + 1]):
        assert value(order, design.share, design.reaches) >= best * (1 - 1e-6)


def test_a_start_away_from_the_guess_leads_to_the_same(design: RenyiDesign) -> None:
    start = RenyiStart(design.order, 0.5, design.reaches * [1.5, 0.7])
    assert search_renyi_table(BUDGET, 4, PRICES, SPENDING, start).solution.value == pytest.approx(design.solution.value, rel=1e-3)


def test_in_many_dimensions_it_is_close_to_the_cramer_rao_limit(design: RenyiDesign) -> None:
    assert design.solution.value >= least_coordinate_variance(BUDGET)
    many = replace(BUDGET, dimension=5000)
    result = search_renyi_table(many, 4, PRICES, 1 / 5000, NOWHERE)
    assert 1 <= result.solution.value / least_coordinate_variance(many) <= 1.1


def test_the_guess_reaches_beyond_the_grid() -> None:
    for epsilon in (0.1, 1.0, 30.0):
        budget = RenyiBudget(8, 40, 2.0, 1.3, epsilon, 1e-3)
        reaches = first_reaches(budget, budget.orders()[-1], 6)
        assert reaches[0] > 3.5
        assert np.all(np.diff(reaches) < 0)
        assert reaches[-1] > 0


def test_budgets_without_an_order_are_refused() -> None:
    budget = RenyiBudget(8, 40, 2.0, 1.3, 0.01, 1e-5)
    with pytest.raises(InfeasibleError, match=r"delta must be larger, or epsilon, .* no order proves epsilon 0\.01 at delta 1e-05"):
        search_renyi_table(budget, 4, PRICES, SPENDING, NOWHERE)


def program(letters: int = 4) -> RenyiProgram:
    return RenyiProgram(INPUTS, letters, ORDER, RENYI_PROGRAM_BUDGET.reach, RENYI_PROGRAM_PRICES, 1 / DIMENSION)


def alphabet(reaches: np.ndarray) -> np.ndarray:
    return (INPUTS - 1) / 2 + np.concatenate([-reaches, reaches[::-1]])


@pytest.mark.parametrize("reaches", [REACHES, np.array([30.0, 18.0, 11.0, 2.0])])
def test_tables_are_mirrored_unbiased_within_their_limits_and_worth_what_is_said(reaches: np.ndarray) -> None:
    limits = RENYI_PROGRAM_BUDGET.limits(ORDER, SHARE)
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
    # The linear program finds the worst distribution of rows over a vector's coordinates.
    variances = (table * (rows[:, None] - letters) ** 2).sum(axis=1)[: INPUTS // 2]
    worst = linprog(-variances, A_ub=[RENYI_PROGRAM_PRICES], b_ub=[1 / DIMENSION], A_eq=[np.ones(4)], b_eq=[1.0])
    assert solution.value == pytest.approx(-worst.fun, rel=1e-6)


def test_a_conic_solver_without_symmetry_finds_no_better_table() -> None:
    limits, letters, rows = RENYI_PROGRAM_BUDGET.limits(ORDER, SHARE), alphabet(REACHES), np.arange(INPUTS)
    table, worst, price = cp.Variable((INPUTS, 4), nonneg=True), cp.Variable(), cp.Variable(nonneg=True)
    squares = (rows[:, None] - letters) ** 2 / REACHES[0] ** 2
    # The last row is not a grid point of a vector, but the mirror image of a grid point.
    prices = np.concatenate([RENYI_PROGRAM_PRICES, RENYI_PROGRAM_PRICES[::-1]])
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
    limits, solve = RENYI_PROGRAM_BUDGET.limits(ORDER, SHARE), program().solve
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
    # Unbiased rows with two letters have the variance (x - a)(b - x), which is R**2 less the squared distance from the middle.
    limits = RENYI_PROGRAM_BUDGET.limits(ORDER, SHARE)
    assert program(2).solve(np.array([40.0]), limits).value == pytest.approx(40.0**2 - 0.5**2, rel=1e-6)
    with pytest.raises(ConvergenceError, match="the convex program was not solved"):
        program(2).solve(np.array([8.0]), limits)
    with pytest.raises(InfeasibleError, match=r"reaches must exceed half the grid, 3\.5 steps, for unbiased tables, got 3 at most"):
        program(2).solve(np.array([3.0]), limits)


def reciprocals(point: np.ndarray) -> Curved:
    """Return the constraint 1/x + 1/y <= 1 with its derivatives."""
    return Curved(np.array([(1 / point).sum() - 1]), -(1 / point**2)[None, :], lambda weights: np.diag(2 * weights[0] / point**3))


def test_a_smooth_constraint() -> None:
    # x = y = 2 by symmetry; the multiplier solves 1 = lambda / x**2.
    optimum = minimise_convex(np.ones(2), np.zeros((0, 2)), np.zeros(0), NO_ROWS, reciprocals, np.array([1.0, 9.0]))
    assert optimum.point == pytest.approx([2, 2], rel=1e-6)
    assert optimum.curved_duals == pytest.approx([4], rel=1e-6)


def test_an_equation_beside_it() -> None:
    # With x = 2 y, the constraint is 1.5 / y <= 1. Stationarity in x is 1 + nu - lambda / 9 = 0, in y 1 - 2 nu - lambda / 2.25 = 0, so
    # lambda = 4.5.
    optimum = minimise_convex(np.ones(2), np.array([[1.0, -2.0]]), np.zeros(1), NO_ROWS, reciprocals, np.ones(2))
    assert optimum.point == pytest.approx([3, 1.5], rel=1e-6)
    assert optimum.curved_duals == pytest.approx([4.5], rel=1e-5)
    assert optimum.equation_duals == pytest.approx([-0.5], rel=1e-5)


def test_linear_inequalities_beside_it() -> None:
    # With 3 y <= x, the constraint is 4 / (3 y) <= 1.
    optimum = minimise_convex(np.ones(2), np.zeros((0, 2)), np.zeros(0), np.array([[-1.0, 3.0]]), reciprocals, np.ones(2))
    assert optimum.point == pytest.approx([4, 4 / 3], rel=1e-6)
    assert optimum.row_duals == pytest.approx([2 / 3], rel=1e-5)


def test_what_has_no_solution_is_refused() -> None:
    with pytest.raises(ConvergenceError, match="the convex program was not solved to 1e-08"):
        minimise_convex(np.ones(2), np.array([[1.0, 0.0]]), np.array([0.5]), NO_ROWS, reciprocals, np.ones(2))
