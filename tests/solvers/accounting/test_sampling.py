"""Sampled rounds: the number of rounds of a client, and Rényi divergences.

The published bounds on the divergences are compared with enumeration and with dp-accounting.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.sampling import (
    FixedSizeSampling,
    PoissonSampling,
    Sampling,
    amplified_epsilon,
    delta_of_everyone,
    fixed_size_sampled_curve,
    likely_participations,
    log_binomials,
    log_expm1,
    poisson_sampled_curve,
    sampled_share,
)

ORDERS = np.arange(2.0, 41.0)


@pytest.mark.parametrize("probability", [1e-6, 0.01, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("rounds", [1, 7, 400])
@pytest.mark.parametrize("failure", [0.3, 1e-3, 1e-12])
def test_more_participations_are_as_rare_as_asked_and_one_less_is_not(probability: float, rounds: int, failure: float) -> None:
    participations = likely_participations(probability, rounds, failure)
    terms = [math.comb(rounds, k) * probability**k * (1 - probability) ** (rounds - k) for k in range(rounds + 1)]
    assert math.fsum(terms[participations + 1 :]) <= failure
    assert participations == 0 or math.fsum(terms[participations:]) > failure * (1 - 1e-6)


def test_nothing_is_left_out_without_a_failure_probability() -> None:
    assert likely_participations(1e-9, 5, 0.0) == 5


def test_rounds_without_number() -> None:
    mean, deviation = 10**10, math.sqrt(0.99 * 10**10)
    participations = likely_participations(0.01, 10**12, 1e-6)
    assert mean + 4.7 * deviation < participations < mean + 4.8 * deviation


def test_more_rounds_and_less_failure_never_mean_fewer() -> None:
    by_rounds = [likely_participations(0.1, rounds, 1e-5) for rounds in range(1, 200)]
    by_failure = [likely_participations(0.1, 100, failure) for failure in np.geomspace(1e-12, 0.5, 60)]
    assert by_rounds == sorted(by_rounds)
    assert by_failure == sorted(by_failure, reverse=True)


@pytest.mark.parametrize("epsilon", [1e-12, 0.3, 1.0, 1.0000001, 30.0, 800.0])
@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.5, 1.0])
def test_amplified_epsilon_is_that_of_the_mixture(epsilon: float, probability: float) -> None:
    with mpmath.workdps(50):
        exact = mpmath.log1p(mpmath.mpf(probability) * mpmath.expm1(mpmath.mpf(epsilon)))
    assert amplified_epsilon(epsilon, probability) == pytest.approx(float(exact), rel=1e-13, abs=0)


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.3])
@pytest.mark.parametrize("share", [1e-9, 0.1, 0.7, 1.0])
def test_a_sample_has_at_most_the_delta_that_is_asked_for(delta: float, share: float) -> None:
    everyone = delta_of_everyone(delta, share)
    assert 0 < everyone < 1
    assert Fraction(everyone) * Fraction(share) <= Fraction(delta)
    assert everyone >= min(delta / share, 1.0) * (1 - 1e-14)


@pytest.mark.parametrize(
    ("sampling", "adjacency", "share"),
    [(PoissonSampling(0.25), "add-or-remove-one", 0.25), (FixedSizeSampling(200, 30), "replace-one", 0.15)],
)
def test_amplification_is_for_one_adjacency(sampling: Sampling, adjacency: str, share: float) -> None:
    assert sampled_share(sampling, adjacency) == sampling.share == share
    (other,) = {"replace-one", "add-or-remove-one"} - {adjacency}
    with pytest.raises(ValueError, match=f"sampling must be for {other} adjacency, got .*, which is for {adjacency}"):
        sampled_share(sampling, other)


@pytest.mark.parametrize("call", [lambda: PoissonSampling(0.0), lambda: PoissonSampling(1.1), lambda: FixedSizeSampling(3, 4)])
def test_samples_are_of_the_population(call: object) -> None:
    with pytest.raises(ValueError, match=r"must be a (whole )?number from"):
        call()  # type: ignore[operator]


def divergence(own: np.ndarray, other: np.ndarray, order: float) -> float:
    if math.isinf(order):
        return float(np.log(own / other).max())
    return math.log(float((own**order * other ** (1 - order)).sum())) / (order - 1)


def curve_of(pairs: list[tuple[np.ndarray, np.ndarray]]) -> RenyiCurve:
    """Return the pairs' largest divergence in either direction, at whole orders and infinity."""
    both = pairs + [(other, own) for own, other in pairs]
    orders = [*ORDERS, math.inf]
    return RenyiCurve(np.array(orders), np.array([max(max(divergence(*pair, order), 0.0) for pair in both) for order in orders]))


def rows(seed: int, number: int, contrast: float) -> list[np.ndarray]:
    weights = np.exp(contrast * np.random.default_rng(seed).normal(size=(number, 4)))
    return list(weights / weights.sum(axis=1, keepdims=True))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), contrast=st.sampled_from([0.01, 0.3, 1.0, 3.0]), rate=st.sampled_from([0.001, 0.05, 0.4, 0.95]))
def test_poisson_sampling_by_enumeration(seed: int, contrast: float, rate: float) -> None:
    without, with_it = rows(seed, 2, contrast)
    bound = poisson_sampled_curve(curve_of([(without, with_it)]), rate)
    mixed = (1 - rate) * without + rate * with_it
    for order, result in zip(bound.orders, bound.divergences, strict=True):
        truth = max(divergence(mixed, without, order), divergence(without, mixed, order))
        assert truth <= result * (1 + 1e-9) + 1e-14


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), contrast=st.sampled_from([0.01, 0.3, 1.0, 3.0]), size=st.sampled_from([2, 3, 10]))
def test_sampling_one_of_several_by_enumeration(seed: int, contrast: float, size: int) -> None:
    table = rows(seed, 3, contrast)
    bound = fixed_size_sampled_curve(curve_of(list(itertools.combinations(table, 2))), 1 / size)
    # The other clients may hold any values in any order; in this test all are equal, or a mixture of three values.
    for others in [*([row] * (size - 1) for row in table), [table[k % 3] for k in range(size - 1)]]:
        for own, other in itertools.permutations(table, 2):
            first, second = (np.mean([*others, last], axis=0) for last in (own, other))
            for order, result in zip(bound.orders, bound.divergences, strict=True):
                assert divergence(first, second, order) <= result * (1 + 1e-9) + 1e-14


def test_for_gaussian_noise_the_bound_is_above_dp_accountings() -> None:
    curve = RenyiCurve(np.arange(2.0, 257.0), np.arange(2.0, 257.0) / 8)
    bound = poisson_sampled_curve(curve, 0.01)
    accountant = RdpAccountant(bound.orders.tolist())
    accountant.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)))
    ratio = bound.divergences / accountant.rdp
    # At order 2 both bounds are ln(1 + q^2 (e^r(2) - 1)).
    assert ratio[0] == pytest.approx(1.0, abs=1e-9)
    assert np.all(ratio >= 1 - 1e-9)
    assert ratio[-1] < 1.01


def test_a_bound_is_never_above_the_curve_of_everyone() -> None:
    curve = RenyiCurve(np.array([2.0, 2.5, 8.0]), np.array([1.0, 1.2, 1.5]))
    for sampled in (poisson_sampled_curve(curve, 0.9), fixed_size_sampled_curve(curve, 0.9)):
        assert sampled.orders.tolist() == [2, 3, 4, 5, 6, 7, 8]
        # Chords give the cumulants between orders: 5 lies 2.5 of 5.5 of the way from 2.5 to 8.
        assert sampled.divergences[3] <= (1.8 + 2.5 / 5.5 * (10.5 - 1.8)) / 4 + 1e-12
    assert poisson_sampled_curve(curve, 1.0) is curve
    assert fixed_size_sampled_curve(curve, 1.0) is curve


def test_orders_below_the_first_of_a_curve_have_a_chord_from_order_1() -> None:
    # Gaussian noise of multiplier 2 is known only at order 3, with cumulant 3/4. At order 2 the cumulant is at most half of that, and in
    # truth 1/4.
    curve, rate = RenyiCurve(np.array([3.0]), np.array([0.375])), 0.3
    poisson, fixed = (sampled_of(curve, rate).divergences[0] for sampled_of in (poisson_sampled_curve, fixed_size_sampled_curve))
    assert poisson == pytest.approx(math.log1p(rate**2 * math.expm1(0.375)), rel=1e-9)
    assert fixed == pytest.approx(math.log1p(rate**2 * min(4 * math.expm1(0.375), 2 * math.exp(0.375))), rel=1e-9)
    assert poisson > math.log1p(rate**2 * math.expm1(0.25))


def test_large_divergences_do_not_overflow() -> None:
    curve = RenyiCurve(np.array([2.0, 100.0, math.inf]), np.array([500.0, 900.0, 2000.0]))
    for sampled in (poisson_sampled_curve(curve, 0.01), fixed_size_sampled_curve(curve, 0.01)):
        assert np.all(np.isfinite(sampled.divergences))
        assert sampled.divergences[0] == pytest.approx(500 + 2 * math.log(0.01), abs=1.5)


def test_what_is_not_amplified_is_refused() -> None:
    curve = RenyiCurve(np.array([1.5]), np.array([1.0]))
    with pytest.raises(ValueError, match="curve must have finite divergences at order 2 or above"):
        poisson_sampled_curve(curve, 0.1)
    with pytest.raises(ValueError, match=r"probability must be a number from 1e-09 to 1, got 0\.0"):
        poisson_sampled_curve(curve, 0.0)
    with pytest.raises(ValueError, match=r"fraction must be a number from 1e-09 to 1, got 2\.0"):
        fixed_size_sampled_curve(curve, 2.0)


def printed_bound(kind: str, rate: float, order: int, cumulants: list[float], pure: float) -> float:
    """Return the divergence of a sampled round by the sums of both papers, term by term."""
    total = mpmath.mpf(1)
    for chosen in range(2, order + 1):
        moment, weight = mpmath.exp(cumulants[chosen]), mpmath.binomial(order, chosen) * mpmath.mpf(rate) ** chosen
        if kind == "poisson":
            total += weight * (1 - mpmath.mpf(rate)) ** (order - chosen) * (moment - 1 if chosen == 2 else 3 * moment - 1)
        else:
            term = moment * min(2, mpmath.expm1(pure) ** chosen)
            total += weight * (min(4 * (moment - 1), term) if chosen == 2 else term)
    return float(mpmath.log(total) / (order - 1))


@pytest.mark.parametrize("kind", ["poisson", "fixed size"])
@pytest.mark.parametrize("pure", [0.3, math.log(2.15), 5.0])
def test_every_term_of_the_sums_is_in_the_divergence(kind: str, pure: float) -> None:
    # A ratio of 1.15 is below 2 to the second power, but not to the sixth.
    orders, rate = np.arange(2.0, 13.0), 0.05
    divergences = np.minimum(0.15 * orders, pure)
    sampled_of = poisson_sampled_curve if kind == "poisson" else fixed_size_sampled_curve
    sampled = sampled_of(RenyiCurve(np.append(orders, np.inf), np.append(divergences, pure)), rate)
    cumulants = [0.0, 0.0, *((orders - 1) * divergences).tolist()]
    assert sampled.orders.tolist() == orders.tolist()
    for order, computed in zip(orders.tolist(), sampled.divergences.tolist(), strict=True):
        assert computed == pytest.approx(printed_bound(kind, rate, int(order), cumulants, pure), rel=1e-9)


def test_orders_with_infinite_divergences_are_left_out() -> None:
    some = poisson_sampled_curve(RenyiCurve(np.array([2.0, 3.0]), np.array([0.1, 0.2])), 0.1)
    more = poisson_sampled_curve(RenyiCurve(np.array([2.0, 3.0, 4.0]), np.array([0.1, 0.2, np.inf])), 0.1)
    assert more.orders.tolist() == some.orders.tolist() == [2.0, 3.0]
    assert more.divergences.tolist() == some.divergences.tolist()


@pytest.mark.parametrize("order", [2, 7, 300])
def test_logarithms_of_binomial_coefficients(order: int) -> None:
    expected = [math.log(math.comb(order, chosen)) for chosen in range(2, order + 1)]
    np.testing.assert_allclose(log_binomials(order), expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("value", [1e-12, 0.5, 14.0, 20.0, 29.5, 35.0, 60.0, 800.0])
def test_logarithms_of_e_to_a_number_less_one(value: float) -> None:
    with mpmath.workdps(400):
        exact = mpmath.log(mpmath.expm1(mpmath.mpf(value)))
    assert float(log_expm1(np.array(value))) == pytest.approx(float(exact), rel=1e-12)
