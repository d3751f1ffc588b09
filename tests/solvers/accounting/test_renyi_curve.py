"""Rényi curves that compute divergences on demand.

Point under test: few orders give the epsilon of all orders.
"""

import math

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.solvers.accounting.gaussian_privacy import gaussian_delta, gaussian_epsilon
from quietbits.solvers.accounting.renyi_curve import CONVERSIONS, DEFAULT_ORDERS, LazyRenyiCurve, RenyiCurve, check_order


def random_divergences(rng: np.random.Generator) -> FloatArray:
    """Return a random rising curve: Gaussian, stepped or smooth, infinite at some orders."""
    orders = np.array(DEFAULT_ORDERS)
    rising = np.cumsum(rng.exponential(size=len(orders)) ** rng.integers(1, 8))
    rising *= 10 ** rng.uniform(-9, 1) / rising[len(orders) // 2]
    if rng.random() < 0.5:
        rising = np.minimum(np.where(np.isfinite(orders), orders, 1e9) * 10 ** rng.uniform(-8, 0), rising[-1])
    if rng.random() < 0.3:
        rising[rng.integers(1, len(orders)) :] = math.inf
    return rising


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_lazy_curve_says_what_the_whole_one_says_from_fewer_orders(conversion: str) -> None:
    rng = np.random.default_rng(0)
    asked, most = 0, 0
    for _ in range(150):
        divergences = random_divergences(rng)
        reference = dict(zip(DEFAULT_ORDERS, divergences, strict=True))
        computed: list[float] = []

        def at(orders: FloatArray, reference: dict[float, float] = reference, computed: list[float] = computed) -> FloatArray:
            computed.extend(orders)
            return np.array([reference[order] for order in orders])

        rounds, delta = int(rng.integers(1, 1000)), 10 ** -rng.uniform(0.1, 12)
        lazy = LazyRenyiCurve(at).composed(rounds)
        result, expected = (curve.epsilon(delta, conversion) for curve in (lazy, RenyiCurve(DEFAULT_ORDERS, divergences).composed(rounds)))
        assert result.epsilon == expected.epsilon
        if result.epsilon > 0:
            assert reference[result.order] == reference[expected.order]
        assert len(computed) == len(set(computed))
        asked, most = asked + len(computed), most + len(divergences)
    assert asked < most / 3


def test_what_a_lazy_curve_hands_out_is_not_its_own() -> None:
    lazy = LazyRenyiCurve(lambda orders: orders / 8, DEFAULT_ORDERS[:-1])
    before = lazy.epsilon(1e-5)
    whole = lazy.whole()
    whole.orders[:] = 2.0
    whole.divergences[:] = 0.0
    assert lazy.epsilon(1e-5) == before


def test_the_conversion_is_checked_where_no_divergence_is_finite() -> None:
    for curve in (RenyiCurve([2.0], [math.inf]), LazyRenyiCurve(lambda orders: np.full(len(orders), math.inf))):
        assert curve.epsilon(1e-5).epsilon == math.inf
        with pytest.raises(ValueError, match="conversion must be one of optimal, classic, got 'best'"):
            curve.epsilon(1e-5, "best")


def test_uses_of_uses_multiply() -> None:
    for curve in (LazyRenyiCurve(lambda orders: orders / 8, DEFAULT_ORDERS[:-1]), LazyRenyiCurve(lambda orders: orders / 8).whole()):
        computed = [curve.composed(first).composed(second).epsilon(1e-5).epsilon for first, second in ((6, 1), (2, 3), (3, 2), (1, 6))]
        assert computed == [computed[0]] * 4
        assert computed[0] > curve.composed(3).epsilon(1e-5).epsilon


def test_infinite_divergences_prove_nothing() -> None:
    # The lowest orders are finite and the highest are infinite.
    curve = RenyiCurve([2.0, 3.0, math.inf], [1.0, math.inf, math.inf])
    computed = curve.epsilon(1e-5)
    assert computed.epsilon == RenyiCurve([2.0], [1.0]).epsilon(1e-5).epsilon
    assert computed.order == 2.0


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("multiplier", [0.05, 0.5, 2.0, 20.0, 200.0, 2000.0])
def test_no_conversion_is_below_the_exact_epsilon_of_gaussian_noise(multiplier: float, conversion: str) -> None:
    # The test includes deltas just below delta at epsilon = 0, which is 0.4 over the multiplier; divergences are then about the square of
    # delta.
    orders = np.array(DEFAULT_ORDERS[:-1])
    curve = RenyiCurve(orders, orders / (2 * multiplier**2))
    for delta in (*np.geomspace(1e-12, 0.9, 40), 0.99 * gaussian_delta(multiplier, 0.0)):
        assert curve.epsilon(float(delta), conversion).epsilon >= gaussian_epsilon(multiplier, float(delta)) * (1 - 1e-9)


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, math.nan])
def test_an_order_is_above_one(order: float) -> None:
    with pytest.raises(ValueError, match="order must be a number above 1"):
        check_order(order)
    assert [check_order(above) for above in (math.nextafter(1.0, 2.0), 1.5, math.inf)] == [math.nextafter(1.0, 2.0), 1.5, math.inf]


def test_an_edge_is_the_smallest_or_the_largest_order_that_gives_an_epsilon_above_zero() -> None:
    edges = [RenyiCurve([2.0, 3.0, 4.0], divergences).epsilon(1e-3, "classic").at_edge for divergences in ([0, 9, 9], [9, 0, 9], [9, 9, 0])]
    assert edges == [True, False, True]
    nothing = RenyiCurve([2.0, 3.0], [0.0, 0.0]).epsilon(0.5)
    assert (nothing.epsilon, nothing.at_edge) == (0.0, False)


def test_bounds_at_other_orders_are_chords() -> None:
    orders = np.array([1.5, 2.0, 4.0, 9.0])
    curve = RenyiCurve(orders, orders / 2)
    assert curve.at(orders) == pytest.approx(orders / 2, rel=1e-14)
    # The logarithm of the moment of Gaussian noise, a (a - 1) / 2, is convex: the chord lies above it.
    between = np.linspace(1.01, 8.99, 50)
    assert np.all(curve.at(between) >= between / 2)
    assert curve.at([3.0])[0] == pytest.approx((0.5 * 1.0 + 0.5 * 6.0) / 2, rel=1e-12)
    assert curve.at([10.0, math.inf]).tolist() == [math.inf, math.inf]
    pure = RenyiCurve(np.array([2.0, math.inf]), np.array([0.5, 0.6]))
    assert pure.at([10.0, math.inf]).tolist() == [0.6, 0.6]
    assert RenyiCurve(np.array([math.inf]), np.array([0.6])).at([3.0]).tolist() == [0.6]
