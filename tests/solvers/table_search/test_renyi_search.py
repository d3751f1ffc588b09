"""The search for letters, order and line: no step away from what it finds is better, and it uses the whole budget."""

import math
from dataclasses import replace

import numpy as np
import pytest

from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.limits.coordinate_variance import least_coordinate_variance
from quietbits.solvers.table_search.renyi_budget import RenyiBudget
from quietbits.solvers.table_search.renyi_program import RenyiProgram
from quietbits.solvers.table_search.renyi_search import RenyiDesign, RenyiStart, first_reaches, search_renyi_table

BUDGET = RenyiBudget(inputs=8, dimension=64, norm=2.0, distance=1.3, epsilon=3.0, delta=1e-5)
PRICES, SPENDING = np.array([9.0, 4.0, 1.0, 0.0]) / 9, 1 / 64
# An order of no account: only the guess is a start.
NOWHERE = RenyiStart(math.inf, 1.0, np.ones(2))


@pytest.fixture(scope="module")
def design() -> RenyiDesign:
    return search_renyi_table(BUDGET, 4, PRICES, SPENDING, NOWHERE)


def test_it_uses_the_budget(design: RenyiDesign) -> None:
    table = design.solution.probabilities
    curve = RenyiCurve(DEFAULT_ORDERS, vector_divergences(table / table.sum(axis=1, keepdims=True), DEFAULT_ORDERS, 64, 2.0, 1.3))
    found = curve.epsilon(1e-5)
    assert found.epsilon == pytest.approx(3.0, abs=1e-3)
    assert found.order == pytest.approx(design.order, abs=1.0)


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
    found = search_renyi_table(many, 4, PRICES, 1 / 5000, NOWHERE)
    assert 1 <= found.solution.value / least_coordinate_variance(many) <= 1.1


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
