"""Pure privacy, Rényi curves and privacy loss distributions.

The tests run against fifty digits, closed forms, and each other.
"""

import math

import mpmath
import numpy as np
import pytest
from privacy_losses import pure_privacy_loss
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.pure_privacy import pure_renyi_divergences
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.accounting.renyi_divergence import renyi_matrix


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("order", [1.0001, 1.1, 2.0, 64.0, 1e4])
def test_pure_privacy_has_the_divergence_of_randomised_response(epsilon: float, order: float) -> None:
    with mpmath.workdps(80):
        a, kept = mpmath.mpf(order), 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        flipped = kept * mpmath.exp(-mpmath.mpf(epsilon))
        expected = mpmath.log(kept**a * flipped ** (1 - a) + flipped**a * kept ** (1 - a)) / (a - 1)
        assert float(pure_renyi_divergences(epsilon, order)[0] / expected - 1) == pytest.approx(0, abs=1e-13)


def test_pure_privacy_dominates_every_table_with_it() -> None:
    table = design_mvu(2.0, 2, 3)
    for order in (1.1, 2.0, 10.0, math.inf):
        assert renyi_matrix(table.weights, order).max() <= pure_renyi_divergences(2.0, order)[0]
    own, pure = dominating_privacy_loss(table.weights), pure_privacy_loss(2.0)
    for rounds in (1, 10):
        assert own.self_compose(rounds).get_epsilon_for_delta(1e-5) < pure.self_compose(rounds).get_epsilon_for_delta(1e-5)
    assert pure_renyi_divergences(0.0, 2.0)[0] == 0


def test_randomised_response_composes_as_the_binomial_says() -> None:
    # After T rounds with k true answers, the loss is (2 k - T) epsilon: delta(e) is a finite sum.
    epsilon, rounds, target = 0.3, 40, 2.0
    kept = 1 / (1 + math.exp(-epsilon))
    k = np.arange(rounds + 1)
    losses = (2 * k - rounds) * epsilon
    exact = (binom.pmf(k, rounds, kept) * np.maximum(0, -np.expm1(target - losses))).sum()
    for loss in (pure_privacy_loss(epsilon), dominating_privacy_loss([[math.exp(epsilon), 1], [1, math.exp(epsilon)]])):
        delta = loss.self_compose(rounds).get_delta_for_epsilon(target)
        assert exact <= delta <= exact * 1.01


def test_every_pair_of_rows_is_dominated() -> None:
    table = design_mvu(1.5, 3, 2, "l1", starts=1)
    for distance, reach in ((1.0, 7), (0.5, 3)):
        loss = dominating_privacy_loss(table.weights, distance)
        for epsilon in (0.0, 0.1, 0.5, 1.0, 1.4):
            probabilities = table.probabilities
            pairs = [(i, k) for i in range(8) for k in range(8) if abs(i - k) <= reach]
            worst = max(np.maximum(probabilities[i] - math.exp(epsilon) * probabilities[k], 0).sum() for i, k in pairs)
            assert worst <= loss.get_delta_for_epsilon(epsilon) * (1 + 1e-9)
            assert loss.get_delta_for_epsilon(epsilon) <= worst * 1.001 + 1e-6


def test_the_loss_and_the_curve_of_a_table_agree() -> None:
    table = generalised_randomised_response(0.5, 2)
    curve = RenyiCurve(DEFAULT_ORDERS, [renyi_matrix(table.weights, order).max() for order in DEFAULT_ORDERS])
    loss = dominating_privacy_loss(table.weights)
    for rounds in (1, 30):
        by_loss, by_curve = loss.self_compose(rounds).get_epsilon_for_delta(1e-6), curve.composed(rounds).epsilon(1e-6).epsilon
        assert by_loss <= by_curve * (1 + 1e-9)
        assert by_curve <= 1.2 * by_loss


def test_identical_rows_lose_nothing_and_a_certain_sign_is_refused() -> None:
    assert dominating_privacy_loss([[1, 2], [1, 2]]).get_epsilon_for_delta(1e-9) == 0
    with pytest.raises(ValueError, match="weights must give no letter that one input sends and another one never does"):
        dominating_privacy_loss([[1, 1], [0, 2]])


def test_the_two_conversions() -> None:
    orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0])
    curve = RenyiCurve(orders, orders / 8)
    delta = 1e-5
    optimal = curve.epsilon(delta)
    assert optimal.epsilon == pytest.approx((orders / 8 + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)).min(), rel=1e-12)
    classic = curve.epsilon(delta, "classic")
    assert classic.epsilon == pytest.approx((orders / 8 + np.log(1 / delta) / (orders - 1)).min(), rel=1e-12)
    assert optimal.epsilon < classic.epsilon
    assert (optimal.order, optimal.at_edge) == (8.0, False)
    assert curve.composed(10**6).epsilon(delta).at_edge
    assert RenyiCurve(orders, orders / 1e6).epsilon(delta).at_edge


def test_the_orders_that_are_tried_cost_next_to_nothing() -> None:
    finite = np.array(DEFAULT_ORDERS[:-1])
    for multiplier in (0.5, 1.0, 5.0, 50.0):
        result = RenyiCurve(finite, finite / (2 * multiplier**2)).epsilon(1e-6).epsilon
        best = minimize_scalar(
            lambda a, z=multiplier: a / (2 * z**2) + math.log1p(-1 / a) - math.log(1e-6 * a) / (a - 1), bounds=(1.01, 1e4), method="bounded"
        )
        assert best.fun <= result <= best.fun * 1.001
        assert gaussian_epsilon(multiplier, 1e-6) <= result


def test_the_pure_guarantee_is_taken_where_it_is_the_better_one() -> None:
    curve = RenyiCurve(DEFAULT_ORDERS, pure_renyi_divergences(0.01, DEFAULT_ORDERS))
    result = curve.epsilon(1e-12)
    assert (result.epsilon, result.order, result.at_edge) == (0.01, math.inf, False)
    assert curve.composed(1000).epsilon(1e-12).epsilon < 10 * 0.01 * math.sqrt(1000)
    assert RenyiCurve([math.inf], [0.3]).epsilon(1e-5).epsilon == 0.3


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan, "small"])
def test_a_delta_outside_its_range_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must be a number above 0 and below 1, got"):
        RenyiCurve([2.0], [0.1]).epsilon(delta)


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(ValueError, match=r"orders must be above 1, got 1\.0"):
        RenyiCurve([2.0, 1.0], [0.1, 0.1])
    with pytest.raises(ValueError, match="divergences must be at least 0, one for each of the 2 orders"):
        RenyiCurve([2.0, 3.0], [0.1])
    with pytest.raises(ValueError, match="divergences must be at least 0, one for each of the 1 orders"):
        RenyiCurve([2.0], [-0.1])
    with pytest.raises(ValueError, match="rounds must be a whole number from 1"):
        RenyiCurve([2.0], [0.1]).composed(0)
    with pytest.raises(ValueError, match="conversion must be one of optimal, classic, got 'old'"):
        RenyiCurve([2.0], [0.1]).epsilon(0.1, "old")
    with pytest.raises(ValueError, match="epsilon must be a number from 0"):
        pure_renyi_divergences(-1.0, 2.0)
    with pytest.raises(ValueError, match="orders must be one or more numbers above 1"):
        pure_renyi_divergences(1.0, [])
