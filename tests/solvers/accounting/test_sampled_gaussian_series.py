"""The series at orders that are not whole, against the integral in many digits and against whole orders beside them."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant

from quietbits.solvers.accounting.sampled_gaussian_series import sampled_gaussian_cumulants

ORDERS = (1.05, 2.7, 9.75)


def integral(noise_multiplier: float, probability: float, order: float) -> mpmath.mpf:
    """Return the cumulant by the trapezoidal rule for its definition: errors are below 1e-20 of it.

    The integrand is analytic up to pi deviation**2 away from the line, so that the rule is off by a share of exp(-59) with this step;
    beyond twelve deviations lies exp(-72).
    """
    with mpmath.workdps(25):
        deviation, rate, power = (mpmath.mpf(value) for value in (noise_multiplier, probability, order))
        half, norm = -1 / (2 * deviation**2), deviation * mpmath.sqrt(2 * mpmath.pi)
        step = min(deviation / 3, deviation**2 / 3)

        def integrand(point: mpmath.mpf) -> mpmath.mpf:
            ratio = mpmath.exp(half * (1 - 2 * point))
            return mpmath.exp(half * point**2) * (1 - rate + rate * ratio) ** power

        places = range(math.floor(-12 * deviation / step), math.ceil((power + 12 * deviation) / step) + 1)
        return mpmath.log(mpmath.fsum(integrand(place * step) for place in places) * step / norm)


@pytest.mark.parametrize(
    ("noise_multiplier", "probability", "looseness"),
    [
        (0.1, 1e-3, (1e-8, 1e-12, 1e-12)),
        (0.3, 0.9, (4e-4, 1e-12, 1e-12)),
        (0.5, 1000 / 342_477, (0.25, 0.003, 1e-12)),
        (1.0, 0.01, (0.08, 8e-4, 1e-7)),
        (5.0, 0.3, (12.0, 0.16, 3e-6)),
    ],
)
def test_it_is_close_to_the_integral_and_errs_upward(noise_multiplier: float, probability: float, looseness: tuple[float, ...]) -> None:
    found = sampled_gaussian_cumulants(noise_multiplier, probability, np.array(ORDERS))
    for order, cumulant, most in zip(ORDERS, found.tolist(), looseness, strict=True):
        exact = float(integral(noise_multiplier, probability, order))
        assert exact * (1 - 1e-15) <= cumulant <= exact * (1 + most)


@pytest.mark.parametrize(("noise_multiplier", "probability"), [(1e-3, 1e-9), (1e-3, 0.999), (1e3, 1e-9), (1e3, 0.999)])
def test_extremes_are_finite(noise_multiplier: float, probability: float) -> None:
    found = sampled_gaussian_cumulants(noise_multiplier, probability, np.array(ORDERS))
    assert np.all(np.isfinite(found))
    assert np.all(found >= 0)
    # Less than what a round with everyone reveals, up to the slack for rounding and what counting magnitudes adds.
    assert np.all(found <= (np.array(ORDERS) - 1) * np.array(ORDERS) / 2 / noise_multiplier**2 * (1 + 1e-9) + 1e-6)


@pytest.mark.parametrize("order", [1.5, 2.7, 9.75])
def test_it_agrees_with_dp_accounting_where_that_converges(order: float) -> None:
    theirs = RdpAccountant([order]).compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))).rdp[0]
    assert sampled_gaussian_cumulants(1.0, 0.01, np.array([order]))[0] / (order - 1) == pytest.approx(theirs, rel=1e-7)


def test_many_rounds_of_small_noise_have_their_best_order_between_two_and_three() -> None:
    # n = 1000 of 342 477, 1500 rounds, z = 0.5: whole orders alone say 9.47.
    order = np.array([2.7])
    divergence = 1500 * float(sampled_gaussian_cumulants(0.5, 1000 / 342_477, order)[0]) / 1.7
    assert round(divergence + math.log1p(-1 / 2.7) + math.log(342_477 / 2.7) / 1.7, 2) == 8.35
