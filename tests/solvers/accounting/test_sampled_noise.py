"""Privacy losses of sampled Gaussian noise.

Points under test: results equal dp-accounting's for any noise, without its warnings.

Sums at whole orders agree with the same sums in many digits, with exact sums of dp-accounting, and with the bound without sampling.

The series at fractional orders agrees with the integral in many digits and with neighbouring whole orders.
"""

import itertools
import math
from functools import cache

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.loss_masses import DirectedLosses
from quietbits.solvers.accounting.sampled_noise import (
    SAMPLED_ORDERS,
    WHOLE_ORDERS,
    fixed_size_cumulants,
    gaussian_loss_interval,
    poisson_cumulants,
    sampled_gaussian_cumulants,
    sampled_gaussian_curve,
    sampled_gaussian_loss,
    sampled_laplace_loss,
)
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

FRACTIONAL_ORDERS = (1.05, 2.7, 9.75)

ORDERS = np.array([2, 3, 4, 7, 32, 256])
# Relative amount by which sums are rounded upward.
SLACK = 7.1e-10


@pytest.mark.parametrize(("multiplier", "probability"), [(0.3, 0.9), (1.0, 0.01), (5.0, 1e-6), (80.0, 0.999)])
def test_losses_are_those_of_dp_accounting_to_the_last_bit(multiplier: float, probability: float) -> None:
    interval = gaussian_loss_interval(multiplier, probability)
    theirs = from_gaussian_mechanism(multiplier, sampling_prob=probability, value_discretization_interval=interval)
    ours = sampled_gaussian_loss(multiplier, PoissonSampling(probability), "add-or-remove-one")
    assert isinstance(ours, DirectedLosses)
    for times in (1, 3):
        composed, other = (ours, theirs) if times == 1 else (ours.self_compose(times), theirs.self_compose(times))
        for own, mass in ((composed.removed, other._pmf_remove), (composed.added, other._pmf_add)):
            assert (own.interval, own.first, own.certain) == (interval, mass._lower_loss, mass._infinity_mass)
            np.testing.assert_array_equal(own.masses, mass._probs)
        for delta in (1e-9, 1e-5, 0.1):
            assert composed.get_epsilon_for_delta(delta) == other.get_epsilon_for_delta(delta)


@pytest.mark.parametrize("multiplier", [0.001, 0.03, 1e5])
def test_noise_of_any_size_has_losses(multiplier: float) -> None:
    loss = sampled_gaussian_loss(multiplier, PoissonSampling(0.5), "add-or-remove-one")
    largest = 0.5 / multiplier**2 + 10 / multiplier
    assert 0 <= loss.get_epsilon_for_delta(1e-5) <= largest


def test_what_is_not_accounted_for_is_refused() -> None:
    for sampling, adjacency in (
        (PoissonSampling(0.1), "replace-one"),
        (FixedSizeSampling(10, 1), "replace-one"),
        (FixedSizeSampling(10, 1), "add-or-remove-one"),
    ):
        with pytest.raises(ValueError, match=r"sampling must be Poisson .*: it is not accounted for by privacy loss distributions"):
            sampled_gaussian_loss(1.0, sampling, adjacency)
    for sampling, adjacency in ((PoissonSampling(0.1), "replace-one"), (FixedSizeSampling(10, 1), "add-or-remove-one")):
        with pytest.raises(ValueError, match=r"sampling must be Poisson .*: it is not accounted for by Rényi divergences"):
            sampled_gaussian_curve(1.0, sampling, adjacency)


def test_a_sample_of_everyone_has_the_divergences_of_the_noise() -> None:
    curve = sampled_gaussian_curve(2.0, PoissonSampling(1.0), "add-or-remove-one")
    whole = (curve.orders % 1 == 0) & (curve.orders <= 32)
    assert curve.divergences[whole] == pytest.approx(curve.orders[whole] / 8, rel=1e-9)
    assert np.all(curve.divergences >= curve.orders / 8 * (1 - 1e-12))


@pytest.mark.parametrize(("multiplier", "probability"), [(0.6, 0.01), (1.0, 0.2), (4.0, 0.5)])
def test_between_whole_orders_the_lower_of_chord_and_series_is_above_the_integral(multiplier: float, probability: float) -> None:
    curve = sampled_gaussian_curve(multiplier, PoissonSampling(probability), "add-or-remove-one")
    assert curve.orders.tolist() == list(SAMPLED_ORDERS)
    whole = poisson_cumulants(multiplier, probability, np.array(WHOLE_ORDERS))
    step = multiplier / 40
    # The integration ends before e^(a x / z^2) overflows: the integrand's peak is at x = a at most.
    points = np.arange(-14 * multiplier, 12 + 14 * multiplier, step)
    density = np.exp(-(points**2) / (2 * multiplier**2)) / math.sqrt(2 * math.pi) / multiplier * step
    ratios = 1 - probability + probability * np.exp((2 * points - 1) / (2 * multiplier**2))
    for order in (1.05, 1.5, 2.35, 3.0, 6.5, 9.9):
        position = SAMPLED_ORDERS.index(order) if order in SAMPLED_ORDERS else int(np.argmin(np.abs(curve.orders - order)))
        order = SAMPLED_ORDERS[position]
        cumulant = float(curve.divergences[position]) * (order - 1)
        exact = math.log1p(float(density @ (ratios**order - 1 - order * (ratios - 1))))
        chord = float(np.interp(order, [1, *WHOLE_ORDERS], [0.0, *whole]))
        lower = min(chord, float(sampled_gaussian_cumulants(multiplier, probability, np.array([order]))[0])) if order % 1 else chord
        assert exact * (1 - 1e-7) <= cumulant == pytest.approx(lower, rel=1e-12)


def test_laplace_noise_has_a_grid_of_a_thousandth_of_its_largest_loss() -> None:
    for scale in (0.5, 4.0):
        sampling = PoissonSampling(0.2)
        loss = sampled_laplace_loss(scale, sampling, "add-or-remove-one")
        largest = math.log1p(0.2 * math.expm1(1 / scale))
        assert loss._pmf_remove._discretization == pytest.approx(largest / 1000, rel=1e-12)
        assert largest <= loss.get_epsilon_for_delta(0.0) <= largest * 1.0011


def test_samples_of_a_fixed_size_have_their_share() -> None:
    curve = sampled_gaussian_curve(1.3, FixedSizeSampling(5000, 40), "replace-one")
    whole = fixed_size_cumulants(1.3, 40 / 5000, np.array(WHOLE_ORDERS))
    expected = np.interp(curve.orders, [1, *WHOLE_ORDERS], [0.0, *whole]) / (curve.orders - 1)
    np.testing.assert_allclose(curve.divergences, expected, rtol=1e-12)
    # Wang, Balle, Kasiviswanathan 2019 bound the second moment of the difference by 4 (e^(1/z^2) - 1).
    two = curve.orders.tolist().index(2.0)
    assert curve.divergences[two] == pytest.approx(math.log1p(4 * (40 / 5000) ** 2 * math.expm1(1 / 1.3**2)), rel=1e-6)


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
    expected, cancelled = moments(noise_multiplier), differences(noise_multiplier)
    total = 1 + math.comb(order, 2) * mpmath.mpf(share) ** 2 * min(4 * (expected[2] - 1), 2 * expected[2])
    for i in range(3, order + 1):
        mean = mpmath.sqrt(cancelled[i // 2 * 2] * cancelled[(i + 1) // 2 * 2])
        total += math.comb(order, i) * mpmath.mpf(share) ** i * min(4 * mean, 2 * expected[i])
    return mpmath.log(total)


@pytest.mark.parametrize(("noise_multiplier", "rate"), [(0.05, 0.5), (0.7, 1e-6), (3.0, 0.03), (20.0, 0.5), (1e4, 0.9)])
def test_they_are_the_sums_rounded_upward(noise_multiplier: float, rate: float) -> None:
    everyone = ORDERS * (ORDERS - 1) / 2 / noise_multiplier**2
    # The 256th difference is about 1e250 / noise_multiplier**256 for large noise.
    with mpmath.workdps(100 + max(0, round(256 * math.log10(noise_multiplier)))):
        for own, exact in ((poisson_cumulants, poisson), (fixed_size_cumulants, fixed_size)):
            result = own(noise_multiplier, rate, ORDERS)
            for order, cumulant, most in zip(ORDERS.tolist(), result.tolist(), everyone.tolist(), strict=True):
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
    result = fixed_size_cumulants(noise_multiplier, sampled / 1000, orders) / (orders - 1)
    np.testing.assert_allclose(result, np.minimum(theirs, orders / 2 / noise_multiplier**2), rtol=1e-9)


def test_differences_that_cancel_are_not_taken_for_losses() -> None:
    # dp-accounting's divergence is 7 times the exact sum.
    theirs = (
        RdpAccountant([64], NeighboringRelation.REPLACE_ONE).compose(SampledWithoutReplacementDpEvent(2, 1, GaussianDpEvent(20.0))).rdp[0]
    )
    result = fixed_size_cumulants(20.0, 0.5, np.array([64]))[0] / 63
    assert result < theirs / 2


@pytest.mark.parametrize("noise_multiplier", [1e-3, 1e-1, 1.0, 1e3, 1e6])
def test_extremes_are_finite_and_rise_with_the_order_and_the_rate(noise_multiplier: float) -> None:
    orders = np.array([2, 255, 256, 257, 4096])
    for own in (poisson_cumulants, fixed_size_cumulants):
        result = np.array([own(noise_multiplier, rate, orders) for rate in (1e-9, 1e-3, 0.5, 0.999, 1.0)])
        assert np.all(np.isfinite(result))
        assert np.all(result >= 0)
        assert np.all(np.diff(result, axis=0) >= -SLACK * result[:-1])
        # Orders beyond 256 prove less.
        assert np.all(np.diff(result / (orders - 1), axis=1) >= -SLACK)


def test_with_everyone_it_is_gaussian_noise() -> None:
    orders = np.array([2, 3, 10])
    np.testing.assert_allclose(poisson_cumulants(3.0, 1.0, orders), [2 / 18, 6 / 18, 90 / 18], rtol=1e-15)


def integral(noise_multiplier: float, probability: float, order: float) -> mpmath.mpf:
    """Return the cumulant by the trapezoidal rule, with relative errors below 1e-20.

    The integrand is analytic up to pi deviation**2 away from the line, so the rule has a relative error of exp(-59) at this step; the part
    beyond twelve deviations is exp(-72).
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
    cumulants = sampled_gaussian_cumulants(noise_multiplier, probability, np.array(FRACTIONAL_ORDERS))
    for order, cumulant, most in zip(FRACTIONAL_ORDERS, cumulants.tolist(), looseness, strict=True):
        exact = float(integral(noise_multiplier, probability, order))
        assert exact * (1 - 1e-15) <= cumulant <= exact * (1 + most)


@pytest.mark.parametrize(("noise_multiplier", "probability"), [(1e-3, 1e-9), (1e-3, 0.999), (1e3, 1e-9), (1e3, 0.999)])
def test_extremes_are_finite(noise_multiplier: float, probability: float) -> None:
    cumulants = sampled_gaussian_cumulants(noise_multiplier, probability, np.array(FRACTIONAL_ORDERS))
    assert np.all(np.isfinite(cumulants))
    assert np.all(cumulants >= 0)
    # The cumulants are below those of a round with all clients, up to the slack for rounding and absolute values.
    assert np.all(
        cumulants <= (np.array(FRACTIONAL_ORDERS) - 1) * np.array(FRACTIONAL_ORDERS) / 2 / noise_multiplier**2 * (1 + 1e-9) + 1e-6
    )


@pytest.mark.parametrize("order", [1.5, 2.7, 9.75])
def test_it_agrees_with_dp_accounting_where_that_converges(order: float) -> None:
    theirs = RdpAccountant([order]).compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))).rdp[0]
    assert sampled_gaussian_cumulants(1.0, 0.01, np.array([order]))[0] / (order - 1) == pytest.approx(theirs, rel=1e-7)


def test_many_rounds_of_small_noise_have_their_best_order_between_two_and_three() -> None:
    # The setting is n = 1000 of 342 477, 1500 rounds, z = 0.5: whole orders alone give epsilon = 9.47.
    order = np.array([2.7])
    divergence = 1500 * float(sampled_gaussian_cumulants(0.5, 1000 / 342_477, order)[0]) / 1.7
    assert round(divergence + math.log1p(-1 / 2.7) + math.log(342_477 / 2.7) / 1.7, 2) == 8.35


@pytest.mark.parametrize("multiplier", [0.5, 2.0])
def test_losses_of_a_sample_of_everyone_are_those_of_the_noise(multiplier: float) -> None:
    loss = sampled_gaussian_loss(multiplier, PoissonSampling(1.0), "add-or-remove-one")
    for delta in (1e-3, 1e-8):
        assert 1 - 1e-9 <= loss.get_epsilon_for_delta(delta) / gaussian_epsilon(multiplier, delta) < 1.001
