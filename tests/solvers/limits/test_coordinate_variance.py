"""The Cramér-Rao limit of coordinates.

Points under test: the divergence inequality holds, and no table is below the limit.
"""

import math

import numpy as np
import pytest

from quietbits.solvers.accounting.renyi_divergence import renyi_matrix
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.limits.coordinate_variance import chi_squared_bound, least_coordinate_variance
from quietbits.solvers.table_search.renyi_budget import RenyiBudget


def chi_squared(first: np.ndarray, second: np.ndarray) -> float:
    return float(((first - second) ** 2 / second).sum())


@pytest.mark.parametrize("order", [2.0, 2.5, 4.0, 17.0, math.inf])
@pytest.mark.parametrize("letters", [2, 3, 8])
def test_chi_squared_is_bounded_by_the_divergence_both_ways(order: float, letters: int) -> None:
    rng = np.random.default_rng(letters)
    for concentration in (0.3, 3.0, 300.0):
        for _ in range(15):
            pair = rng.dirichlet(np.full(letters, concentration), 2)
            if pair.min() < 1e-12:
                continue
            divergence = renyi_matrix(pair, order).max()
            assert chi_squared(*pair) <= chi_squared_bound(order, np.array(divergence)) * (1 + 1e-9)


def test_the_bound_is_met_at_order_two_and_at_infinity_and_by_small_divergences() -> None:
    pair = np.array([[0.6, 0.4], [0.4, 0.6]])
    assert chi_squared_bound(2.0, renyi_matrix(pair, 2.0)[0, 1]) == pytest.approx(chi_squared(*pair), rel=1e-9)
    # The log-ratios are 1 and -1.
    share = 1 / (1 + math.e)
    extreme = np.array([[1 - share, share], [share, 1 - share]])
    assert chi_squared_bound(math.inf, np.array(1.0)) == pytest.approx(chi_squared(*extreme), rel=1e-9)
    near = np.array([[0.5001, 0.4999], [0.4999, 0.5001]])
    assert chi_squared_bound(9.0, renyi_matrix(near, 9.0)[0, 1]) == pytest.approx(chi_squared(*near), rel=1e-5)


@pytest.mark.parametrize(("dimension", "norm"), [(1, 2.0), (8, 1.0), (8, 2.0), (128, 2.0), (300, 3.0)])
def test_no_unbiased_table_has_less_variance(dimension: int, norm: float) -> None:
    # The tables are linear in the input. Letters are unbiased, so sum_j slope_j a_j = 1 and sum_j mean_j a_j = middle.
    rng = np.random.default_rng(0)
    means, inputs = rng.dirichlet(np.full(6, 3.0)), np.arange(16)
    slopes = rng.normal(size=6) * means
    slopes -= means * slopes.sum()
    slopes *= 0.9 * means.min() / (8 * np.abs(slopes).max()) / math.sqrt(dimension)
    table = means + (inputs - 7.5)[:, None] * slopes
    # The letters of least variance in the middle attain the Cramér-Rao bound in the middle.
    information = float((slopes**2 / means).sum())
    letters = 7.5 + slopes / means / information
    assert table @ letters == pytest.approx(inputs, abs=1e-9)
    variances = (table * (inputs[:, None] - letters) ** 2).sum(axis=1)
    # The table meets this budget exactly at its best order.
    trial = RenyiBudget(16, dimension, norm, 1.2, 1.0, 1e-4)
    epsilon = min(
        1.0 - trial.divergence(order) + float(vector_divergences(table, [order], dimension, norm, 1.2)[0])
        for order in (2.0, 4.0, 8.0, 16.0, 32.0)
    )
    bound = least_coordinate_variance(RenyiBudget(16, dimension, norm, 1.2, epsilon, 1e-4))
    assert 0 < bound <= variances.min()


def test_it_is_close_to_gaussian_noise_in_many_dimensions_and_below_the_least_over_lines() -> None:
    budget = RenyiBudget(32, 2000, 2.0, 1.0, 1.0, 1e-5)
    gaussian = min(order * 31**2 / 2 / budget.divergence(order) for order in budget.orders())
    assert 0.98 * gaussian <= least_coordinate_variance(budget) <= gaussian


def test_rounds_and_dimensions_cost_what_they_cost() -> None:
    once = RenyiBudget(16, 64, 2.0, 1.0, 1.0, 1e-5)
    often = RenyiBudget(16, 64, 2.0, 1.0, 1.0, 1e-5, rounds=10)
    # Ten rounds take ten times the variance; the proven bound for one round is slightly closer, as small divergences are.
    assert 1 <= least_coordinate_variance(often) / least_coordinate_variance(once) / 10 <= 1.1


def test_nothing_is_said_where_small_orders_can_prove_the_budget() -> None:
    assert least_coordinate_variance(RenyiBudget(16, 64, 2.0, 1.0, 40.0, 1e-5)) == 0.0
