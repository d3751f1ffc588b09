"""Tests of Skellam noise.

Points under test: the theorem agrees with whole fractions and exceeds the exact Rényi divergence; the least variance; Chernoff's tail.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.special import ive

from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss, composed_exact_epsilon
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.divergences import skellam_divergence as module
from quietbits.solvers.divergences.skellam_divergence import (
    LEAST_VARIANCE,
    least_skellam_divergences,
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


@cache
def masses_of(variance: float) -> list[mpmath.mpf]:
    with mpmath.workdps(40):
        mu = mpmath.mpf(variance)
        return [mpmath.exp(-mu) * mpmath.besseli(value, mu) for value in range(700)]


@cache
def shift_divergence(variance: float, shift: int, order: float) -> float:
    """Return the Rényi divergence of a shift by mpmath's Bessel functions, value by value."""
    masses = masses_of(variance)
    with mpmath.workdps(40):
        a = mpmath.mpf(order)
        own, other = (lambda x: masses[abs(x)]), (lambda x: masses[abs(x - shift)])
        total = mpmath.fsum(own(x) ** a * other(x) ** (1 - a) for x in range(-600, 601))
        return float(mpmath.log(total) / (a - 1))


@pytest.mark.parametrize("variance", [0.05, 0.7, 9.0, 60.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_one_coordinate_has_its_exact_divergence(variance: float, shift: int) -> None:
    orders = [1.05, 2.0, 2.5, 12.0, 60.0]
    # With a single shift, the L1 bound is exact if larger shifts reveal more per step.
    computed = least_skellam_divergences(variance, float(shift), float(shift), orders)
    for order, bound in zip(orders, computed.tolist(), strict=True):
        exact = shift_divergence(variance, shift, order)
        assert exact <= bound <= exact * 1.3
        if shift == 1:
            assert bound <= exact * (1 + 3e-6)


@pytest.mark.parametrize("variance", [0.3, 3.0, 40.0])
@pytest.mark.parametrize(("dimension", "l2_squared"), [(1, 9), (2, 5), (3, 6)])
def test_every_whole_vector_is_below_the_bound_and_some_are_close(variance: float, dimension: int, l2_squared: int) -> None:
    # The test enumerates all vectors of the ball in a few dimensions.
    orders, largest = [1.5, 4.0, 20.0], math.isqrt(l2_squared)
    of_shift = {shift: np.array([shift_divergence(variance, shift, order) for order in orders]) for shift in range(1, largest + 1)}
    of_shift[0] = np.zeros(len(orders))
    worst = np.zeros(len(orders))
    for vector in product(range(largest + 1), repeat=dimension):
        if sum(step**2 for step in vector) <= l2_squared:
            worst = np.maximum(worst, sum(of_shift[step] for step in vector))
    l1 = min(l2_squared, math.sqrt(dimension * l2_squared))
    bound = least_skellam_divergences(variance, l1, math.sqrt(l2_squared), orders)
    assert (worst <= bound).all()
    assert (bound <= skellam_renyi_divergences(variance, l1, math.sqrt(l2_squared), orders)).all()
    assert (bound <= 1.6 * worst).all()


@pytest.mark.parametrize(("variance", "l2_squared", "gain"), [(0.5, 1, 3.0), (2.0, 4, 1.7), (10.0, 25, 1.1), (900.0, 25, 1.0)])
def test_epsilon_is_within_15_percent_of_the_exact_one(variance: float, l2_squared: int, gain: float) -> None:
    # The exact losses of as many shifts by one as the ball holds, whose sum numpy convolves.
    reach = int(20 * math.sqrt(variance) + 60)
    values = np.arange(-reach, reach + 1)
    own, other = (ive(np.abs(values - moved), variance) for moved in (0, 1))
    kept = (own > 1e-200) & (other > 1e-200)
    loss = ExactPrivacyLoss(np.log(own[kept]), np.log(own[kept] / other[kept]), 0.0, 0.0)
    exact = composed_exact_epsilon(loss, None, l2_squared, 1e-6)
    assert exact is not None
    orders = np.array(DEFAULT_ORDERS[:-1])
    theorem, least = (
        RenyiCurve(orders, function(variance, float(l2_squared), math.sqrt(l2_squared), orders)).epsilon(1e-6).epsilon
        for function in (skellam_renyi_divergences, least_skellam_divergences)
    )
    assert exact <= least <= 1.15 * exact
    assert theorem >= gain * least


def test_shifts_beyond_the_computed_ones_have_the_bound_of_the_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = [1.5, 2.0, 3.0]
    monkeypatch.setattr(module, "LARGEST_SHIFT", 3)
    for l1 in (1e9, 20.0):
        cut, theorem = (function(3.0, l1, 20.0, orders) for function in (least_skellam_divergences, skellam_renyi_divergences))
        assert (cut <= theorem).all()
        monkeypatch.setattr(module, "LARGEST_SHIFT", 64)
        whole = least_skellam_divergences(3.0, l1, 20.0, orders)
        monkeypatch.setattr(module, "LARGEST_SHIFT", 3)
        assert (whole <= cut).all()
        # At so little noise, the theorem is several times the exact divergence.
        assert (cut < 5 * whole).all()
    # A single shift of 20 is one of the vectors.
    assert shift_divergence(3.0, 20, 2.0) <= least_skellam_divergences(3.0, 20.0, 20.0, [2.0])[0]


def test_more_noise_does_not_reveal_more_where_the_theorem_takes_over() -> None:
    largest = module.LARGEST_EXACT_VARIANCE
    bounds = np.array(
        [least_skellam_divergences(largest * factor, 8.0, 3.0, [1.1, 1.5, 8.0, 60.0]) for factor in (0.99, 1.0, 1.0001, 1.3, 1.99, 2.01, 4)]
    )
    assert (np.diff(bounds, axis=0) <= 0).all()


def test_little_is_left_to_the_theorem() -> None:
    # High orders, much noise and equal neighbours.
    assert (
        least_skellam_divergences(1.0, 1.0, 1.0, [600.0, math.inf]).tolist()
        == skellam_renyi_divergences(1.0, 1.0, 1.0, [600.0, math.inf]).tolist()
    )
    assert least_skellam_divergences(2000.0, 2.0, 2.0, [2.0]) == skellam_renyi_divergences(2000.0, 2.0, 2.0, [2.0])
    assert least_skellam_divergences(1.0, 0.0, 0.0, [2.0, math.inf]).tolist() == [0.0, 0.0]


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
