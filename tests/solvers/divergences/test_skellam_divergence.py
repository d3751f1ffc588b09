"""Tests of Skellam noise.

Points under test: the theorem agrees with whole fractions and exceeds the exact Rényi divergence; the least variance; Chernoff's tail.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ive

from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.divergences.skellam_divergence import (
    LEAST_VARIANCE,
    skellam_renyi_divergences,
    skellam_tail,
    skellam_variance,
)


def theorem(variance: Fraction, l1: int, l2_squared: int, order: int) -> Fraction:
    """Return the bound of theorem 3.5 of Agarwal, Kairouz, Liu 2021, at scale 1, as printed."""
    correction = min(((2 * order - 1) * l2_squared + 6 * l1) / (4 * variance**2), 3 * l1 / (2 * variance))
    return order * l2_squared / (2 * variance) + correction


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(3), Fraction(50)])
@pytest.mark.parametrize(("l1", "l2_squared"), [(1, 1), (3, 3), (4, 16), (12, 16), (7, 9)])
def test_the_theorem_in_whole_fractions(variance: Fraction, l1: int, l2_squared: int) -> None:
    orders = (2, 3, 7, 64)
    computed = skellam_renyi_divergences(float(variance), l1, math.sqrt(l2_squared), orders)
    expected = [float(theorem(variance, l1, l2_squared, order)) for order in orders]
    assert computed.tolist() == pytest.approx(expected, rel=1e-13)


def test_either_correction_is_the_smaller_somewhere() -> None:
    # With little noise the term in 1 / mu is the smaller term; the second case has much noise.
    for variance, expected in ((Fraction(1, 4), Fraction(6)), (Fraction(50), Fraction(3 + 6, 4 * 2500))):
        assert theorem(variance, 1, 1, 2) - 1 / variance == expected


@pytest.mark.parametrize("variance", [0.7, 4.0, 30.0])
@pytest.mark.parametrize("shifts", [(1,), (3,), (1, 1, 1), (2, 1)])
def test_the_divergence_of_shifted_noise_is_below(variance: float, shifts: tuple[int, ...]) -> None:
    orders = (2, 3, 5, 12)
    values = np.arange(-600, 601)
    bound = skellam_renyi_divergences(variance, sum(shifts), math.hypot(*shifts), orders)
    for order, most in zip(orders, bound, strict=True):
        exact = 0.0
        for shift in shifts:
            masses = [ive(np.abs(values - moved), variance) for moved in (0, shift)]
            here = (masses[0] > 1e-250) & (masses[1] > 1e-250)
            powers = order * np.log(masses[0][here]) + (1 - order) * np.log(masses[1][here])
            exact += float(np.logaddexp.reduce(powers)) / (order - 1)
        assert 0 < exact <= most


def test_other_orders_have_the_bound_of_the_next_whole_one() -> None:
    computed = skellam_renyi_divergences(10.0, 3.0, 2.0, [1.01, 2.0, 2.01, 3.0, 6.5, 7.0])
    assert computed[[0, 2, 4]].tolist() == computed[[1, 3, 5]].tolist()
    assert computed[1] < computed[3] < computed[5]


def test_there_is_no_pure_privacy_unless_nothing_moves() -> None:
    assert skellam_renyi_divergences(10.0, 1.0, 1.0, [math.inf]).tolist() == [math.inf]
    assert skellam_renyi_divergences(10.0, 0.0, 0.0, [2.0, 2.5, math.inf]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.001, 1e-3), (0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-9), (300.0, 1e-5), (0.001, 0.5)])
@pytest.mark.parametrize(("l1", "l2"), [(1.0, 1.0), (20.0, 5.0), (1e6, 1e4)])
@pytest.mark.parametrize("orders", [DEFAULT_ORDERS, (2.5, 64.0, math.inf)], ids=["usual", "two"])
def test_the_smallest_variance_that_proves_the_budget(
    epsilon: float, delta: float, l1: float, l2: float, orders: tuple[float, ...]
) -> None:
    finite = np.array([order for order in orders if math.isfinite(order)])

    def epsilon_of(variance: float) -> float:
        return RenyiCurve(finite, skellam_renyi_divergences(variance, l1, l2, finite)).epsilon(delta).epsilon

    computed = skellam_variance(epsilon, delta, l1, l2, orders)
    assert epsilon_of(computed) <= epsilon < epsilon_of(computed * (1 - 1e-9))


def test_orders_that_prove_nothing_are_named() -> None:
    with pytest.raises(InfeasibleError, match=r"epsilon must be larger, or delta, .* up to 2 proves epsilon = 0\.001 at delta = 1e-200"):
        skellam_variance(0.001, 1e-200, 1.0, 1.0, [2.0])
    assert skellam_variance(1000.0, 0.5, 1e-9, 1e-9) == LEAST_VARIANCE


@pytest.mark.parametrize(("variance", "threshold"), [(0.5, 3.0), (4.0, 4.0), (100.0, 60.0), (1e6, 5000.0), (1e6, 1.0)])
def test_the_tail_is_the_least_of_chernoffs_bounds_and_above_the_truth(variance: float, threshold: float) -> None:
    computed = skellam_tail(variance, threshold)
    with mpmath.workdps(40):
        mu, least = mpmath.mpf(variance), mpmath.asinh(mpmath.mpf(threshold) / mpmath.mpf(variance))
        bounds = [mpmath.exp(mu * (mpmath.cosh(t) - 1) - t * threshold) for t in (least, 0.9 * least, 1.1 * least)]
    assert computed == pytest.approx(float(bounds[0]), rel=1e-9)
    assert bounds[0] < min(bounds[1:])
    if variance <= 100:
        assert float(ive(np.arange(threshold, threshold + 400), variance).sum()) < computed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: skellam_renyi_divergences(0.0, 1.0, 1.0, [2.0]), "variance must be a number from 1e-06"),
        (lambda: skellam_renyi_divergences(1.0, -1.0, 1.0, [2.0]), "l1_sensitivity must be a number from 0"),
        (lambda: skellam_renyi_divergences(1.0, 1.0, -1.0, [2.0]), "l2_sensitivity must be a number from 0"),
        (lambda: skellam_renyi_divergences(1.0, 1.0, 1.0, [1.0]), "orders must be"),
        (lambda: skellam_variance(1e-4, 1e-5, 1.0, 1.0), r"epsilon must be a number from 0\.001"),
        (lambda: skellam_variance(1.0, 0.0, 1.0, 1.0), "delta must be a number above 0 and below 1"),
        (lambda: skellam_variance(1.0, 1e-5, 1.0, 0.0), "l2_sensitivity must be a number from 1e-09"),
        (lambda: skellam_tail(-1.0, 1.0), "variance must be a number from 1e-06"),
        (lambda: skellam_tail(1.0, -1.0), "threshold must be a number from 0"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
