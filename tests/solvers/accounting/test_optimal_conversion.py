"""The optimal conversion of Rényi divergences agrees with dp-accounting's."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon
from hypothesis import given
from hypothesis import strategies as st

from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve

ORDERS = np.array(DEFAULT_ORDERS[:-1])


@given(
    # Both conversions skip orders below 1.01.
    orders=st.lists(
        st.one_of(st.floats(1.0001, 1.02), st.floats(1.02, 100.0), st.floats(100.0, 1e6)), min_size=1, max_size=12, unique=True
    ),
    scale=st.floats(-12, 4),
    slope=st.floats(0, 1.5),
    delta=st.one_of(st.floats(1e-300, 1e-3), st.floats(1e-3, 0.999)),
)
def test_it_is_the_one_of_dp_accounting(orders: list[float], scale: float, slope: float, delta: float) -> None:
    array = np.array(orders)
    divergences = 10.0**scale * array**slope
    result = RenyiCurve(array, divergences).epsilon(delta)
    expected, order = compute_epsilon(array, divergences, delta)
    if math.isinf(expected):
        # No order is above 1.01, so no epsilon is proven.
        assert math.isinf(result.epsilon)
    else:
        assert result.epsilon == pytest.approx(expected, rel=1e-15, abs=1e-300)
        # If several orders prove the same epsilon, each of them is right.
        assert result.order == order or result.epsilon == RenyiCurve([order], divergences[array == order]).epsilon(delta).epsilon


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("multiplier", [0.01, 1.0, 30.0, 1e4, 1e9])
def test_also_for_gaussian_noise_and_next_to_nothing(multiplier: float, delta: float) -> None:
    divergences = ORDERS / (2 * multiplier**2)
    result = RenyiCurve(ORDERS, divergences).epsilon(delta)
    assert (result.epsilon, result.order) == compute_epsilon(ORDERS, divergences, delta)


def test_no_divergence_is_no_epsilon() -> None:
    assert RenyiCurve(ORDERS, np.zeros(len(ORDERS))).epsilon(1e-9).epsilon == 0 == compute_epsilon(ORDERS, np.zeros(len(ORDERS)), 1e-9)[0]
