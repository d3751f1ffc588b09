"""Sums at whole orders, against the same sums in many digits, dp-accounting's where these are exact, and what a sample cannot exceed."""

import itertools
import math
from functools import cache

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from quietbits.solvers.accounting.sampled_gaussian_orders import fixed_size_cumulants, poisson_cumulants

ORDERS = np.array([2, 3, 4, 7, 32, 256])
# What sums are rounded upward by.
SLACK = 7.1e-10


@cache
def moments(noise_multiplier: float) -> list[mpmath.mpf]:
    """Return exp(power (power - 1) / 2 noise_multiplier**2) for each power."""
    step = mpmath.exp(1 / mpmath.mpf(noise_multiplier) ** 2)
    return list(itertools.accumulate((step**power for power in range(257)), mpmath.fmul, initial=mpmath.mpf(1)))


@cache
def differences(noise_multiplier: float) -> list[mpmath.mpf]:
    row, first = moments(noise_multiplier), []
    while len(row) > 1:
        first.append(row[0])
        row = [after - before for before, after in itertools.pairwise(row)]
    return first


def poisson(noise_multiplier: float, probability: float, order: int) -> mpmath.mpf:
    rate = mpmath.mpf(probability)
    terms = zip(range(order + 1), moments(noise_multiplier), strict=False)
    return mpmath.log(sum(math.comb(order, i) * (1 - rate) ** (order - i) * rate**i * moment for i, moment in terms))


def fixed_size(noise_multiplier: float, share: float, order: int) -> mpmath.mpf:
    known, cancelled = moments(noise_multiplier), differences(noise_multiplier)
    total = 1 + math.comb(order, 2) * mpmath.mpf(share) ** 2 * min(4 * (known[2] - 1), 2 * known[2])
    for i in range(3, order + 1):
        mean = mpmath.sqrt(cancelled[i // 2 * 2] * cancelled[(i + 1) // 2 * 2])
        total += math.comb(order, i) * mpmath.mpf(share) ** i * min(4 * mean, 2 * known[i])
    return mpmath.log(total)


@pytest.mark.parametrize(("noise_multiplier", "rate"), [(0.05, 0.5), (0.7, 1e-6), (3.0, 0.03), (20.0, 0.5), (1e4, 0.9)])
def test_they_are_the_sums_rounded_upward(noise_multiplier: float, rate: float) -> None:
    everyone = ORDERS * (ORDERS - 1) / 2 / noise_multiplier**2
    # The 256th difference is about 1e250 / noise_multiplier**256 where noise is large.
    with mpmath.workdps(100 + max(0, round(256 * math.log10(noise_multiplier)))):
        for own, exact in ((poisson_cumulants, poisson), (fixed_size_cumulants, fixed_size)):
            found = own(noise_multiplier, rate, ORDERS)
            for order, cumulant, most in zip(ORDERS.tolist(), found.tolist(), everyone.tolist(), strict=True):
                expected = float(exact(noise_multiplier, rate, order))
                if own is fixed_size_cumulants and expected > most:
                    assert cumulant == most
                else:
                    assert expected * (1 - 1e-15) <= cumulant <= expected * (1 + SLACK)


@pytest.mark.parametrize(("noise_multiplier", "sampled"), [(0.3, 5), (1.0, 300), (2.0, 10)])
def test_they_are_those_of_dp_accounting_where_noise_is_small(noise_multiplier: float, sampled: int) -> None:
    orders = np.array([2, 5, 100, 300, 4096])
    event = GaussianDpEvent(noise_multiplier)
    theirs = RdpAccountant(orders.tolist()).compose(PoissonSampledDpEvent(sampled / 1000, event)).rdp
    np.testing.assert_allclose(poisson_cumulants(noise_multiplier, sampled / 1000, orders) / (orders - 1), theirs, rtol=1e-9)
    accountant = RdpAccountant(orders.tolist(), NeighboringRelation.REPLACE_ONE)
    theirs = accountant.compose(SampledWithoutReplacementDpEvent(1000, sampled, event)).rdp
    found = fixed_size_cumulants(noise_multiplier, sampled / 1000, orders) / (orders - 1)
    np.testing.assert_allclose(found, np.minimum(theirs, orders / 2 / noise_multiplier**2), rtol=1e-9)


def test_differences_that_cancel_are_not_taken_for_losses() -> None:
    # dp-accounting's figure is 7 times the exact sum here.
    theirs = (
        RdpAccountant([64], NeighboringRelation.REPLACE_ONE).compose(SampledWithoutReplacementDpEvent(2, 1, GaussianDpEvent(20.0))).rdp[0]
    )
    found = fixed_size_cumulants(20.0, 0.5, np.array([64]))[0] / 63
    assert found < theirs / 2


@pytest.mark.parametrize("noise_multiplier", [1e-3, 1e-1, 1.0, 1e3, 1e6])
def test_extremes_are_finite_and_rise_with_the_order_and_the_rate(noise_multiplier: float) -> None:
    orders = np.array([2, 255, 256, 257, 4096])
    for own in (poisson_cumulants, fixed_size_cumulants):
        found = np.array([own(noise_multiplier, rate, orders) for rate in (1e-9, 1e-3, 0.5, 0.999, 1.0)])
        assert np.all(np.isfinite(found))
        assert np.all(found >= 0)
        assert np.all(np.diff(found, axis=0) >= -SLACK * found[:-1])
        # Those beyond order 256 know less.
        assert np.all(np.diff(found / (orders - 1), axis=1) >= -SLACK)


def test_with_everyone_it_is_gaussian_noise() -> None:
    orders = np.array([2, 3, 10])
    np.testing.assert_allclose(poisson_cumulants(3.0, 1.0, orders), [2 / 18, 6 / 18, 90 / 18], rtol=1e-15)
