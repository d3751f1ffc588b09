"""Lines of a budget.

Points under test: exactly the divergences within a line keep a vector's guarantee.
"""

import numpy as np
import pytest

from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.renyi_divergence import divergence_by_distance
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.table_search.renyi_budget import RenyiBudget

BUDGET = RenyiBudget(inputs=8, dimension=6, norm=2.0, distance=0.9, epsilon=1.5, delta=1e-5, rounds=3)


@pytest.mark.parametrize("order", [8.0, 12.0, 40.0])
def test_the_divergence_of_an_order_is_what_the_conversion_allows(order: float) -> None:
    assert RenyiCurve(np.array([order]), np.array([3 * BUDGET.divergence(order)])).epsilon(1e-5).epsilon == pytest.approx(1.5, rel=1e-12)


def test_orders_are_those_that_can_prove_the_budget() -> None:
    orders = BUDGET.orders()
    assert all(BUDGET.divergence(order) > 0 for order in orders)
    assert BUDGET.divergence(min(orders) - 0.25) < 0
    assert orders == sorted(orders)
    assert max(orders) <= 256


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("dimension", "norm"), [(1, 2.0), (6, 2.0), (40, 1.0), (300, 3.0)])
def test_a_table_keeps_the_budget_if_and_only_if_it_is_below_a_line(seed: int, dimension: int, norm: float) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(4, 5.0), 8)
    budget = RenyiBudget(8, dimension, norm, 0.9, 2.0, 1e-5)
    divergences = divergence_by_distance(weights, [3.0])[0]
    whole = float(vector_divergences(weights, [3.0], dimension, norm, 0.9)[0])
    # The line touches the envelope, for a budget that the table just meets and a budget that it just exceeds.
    share = budget.share(divergences)
    assert 0 <= share <= 1
    line = budget.limits(3.0, share) * whole / budget.divergence(3.0)
    reachable = np.arange(1, budget.reach + 1)
    assert np.all(divergences[reachable] <= line[reachable] * (1 + 1e-9))
    for other in np.linspace(0, 1, 101):
        lower = budget.limits(3.0, other) * whole / budget.divergence(3.0) * (1 - 1e-6)
        assert np.any(divergences[reachable] > lower[reachable])


def test_limits_change_with_the_share_as_stated() -> None:
    np.testing.assert_allclose(BUDGET.limits(12.0, 0.7) - BUDGET.limits(12.0, 0.2), 0.5 * BUDGET.slopes(12.0), rtol=1e-12)
