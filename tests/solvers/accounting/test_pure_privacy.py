"""Rényi divergences implied by pure privacy, against randomised response in many digits."""

import math

import mpmath
import pytest

from quietbits.solvers.accounting.pure_privacy import check_orders, pure_renyi_divergences


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.01, 1.0, 9.0, 100.0, 5000.0])
def test_divergences_are_those_of_randomised_response(epsilon: float) -> None:
    orders = [1 + 1e-6, 1.5, 2.0, 30.0, 1e4]
    for order, computed in zip(orders, pure_renyi_divergences(epsilon, orders).tolist(), strict=True):
        with mpmath.workdps(60):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            high, low = 1 / (1 + mpmath.exp(-e)), mpmath.exp(-e) / (1 + mpmath.exp(-e))
            exact = mpmath.log(high**a * low ** (1 - a) + low**a * high ** (1 - a)) / (a - 1)
        assert computed == pytest.approx(float(exact), rel=1e-9, abs=1e-300)
    assert pure_renyi_divergences(epsilon, [math.inf]).tolist() == [epsilon]


@pytest.mark.parametrize("orders", [[], [[2.0]], [1.0], [2.0, 0.5], [math.nan]])
def test_orders_are_numbers_above_one(orders: list[float]) -> None:
    with pytest.raises(ValueError, match="orders must be"):
        check_orders(orders)
