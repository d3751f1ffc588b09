"""Rényi divergences of summed discrete Gaussians, against the sum's exact distribution.

For sums of discrete Gaussians as randomly rounded Gaussian noise: the ratios by quadrature.

`tests/design/secure_sum/test_noisy_sum.py` compares the resulting epsilon with exact sums.
"""

import itertools
import math
from functools import cache

import mpmath
import numpy as np
import pytest

from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.divergences import discrete_gaussian_divergence
from quietbits.solvers.divergences.discrete_gaussian_divergence import (
    DIRECT_TERMS,
    SMOOTHING_VARIANCES,
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    fewest_bits,
    granularity_for_bits,
    rounded_gaussian_epsilon,
    rounded_norm,
    smoothed_sums,
    summed_discrete_gaussian_losses,
    theta_log_ratios,
)

ORDERS = [1.01, 1.1, 1.5, 2.0, 3.0, 4.5, 8.0, 16.0, 32.0, 64.0]
SIGMAS = [0.05, 0.08, 0.12, 0.16, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0]
CLIENTS = [2, 3, 6]
SHIFTS = [1, 2, 3]
# Long double holds logarithms of up to 64 * 10^5 with this rounding error.
ROUNDING = 1e-12


@cache
def log_masses(clients: int, sigma: float) -> np.ndarray:
    """Return log probabilities of a sum of discrete Gaussians, by convolution in log space.

    Sums of order 64 have their weight around 64 shifts: the values extend beyond all 192 shifts. Given a sum, the partial sum of some
    clients has a Gaussian's weights around their share, with a variance of at most 1.5 sigma**2: the mass beyond 15 sigma is exp(-75).
    """
    reach = 200 + math.ceil(40 * sigma)
    value = np.arange(-reach, reach + 1)
    if clients > 1:
        few, others = log_masses(clients // 2, sigma), log_masses(clients - clients // 2, sigma)
        total = np.full(len(value), -np.inf, dtype=np.longdouble)
        span = math.ceil(15 * sigma) + 2
        for own in (value * (clients // 2) // clients + distance for distance in range(-span, span + 1)):
            rest = value - own
            there = (np.abs(own) <= reach) & (np.abs(rest) <= reach)
            total[there] = np.logaddexp(total[there], few[own[there] + reach] + others[rest[there] + reach])
        return total
    logarithms = -(value.astype(np.longdouble) ** 2) / (2 * np.longdouble(sigma) ** 2)
    return logarithms - np.logaddexp.reduce(logarithms)


def exact_divergences(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    orders = np.array(ORDERS, dtype=np.longdouble)[:, None]
    terms = orders * own + (1 - orders) * other
    largest = terms.max(axis=1)
    sums = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
    return np.asarray(sums / (orders[:, 0] - 1), dtype=float)


@cache
def shifted_divergences(clients: int, sigma: float, shift: int) -> np.ndarray:
    """Return the divergence in either direction, which are equal as the sum is symmetric."""
    masses = log_masses(clients, sigma)
    return exact_divergences(masses[shift:], masses[:-shift])


def published_tau(clients: int, sigma: float) -> float:
    """Return tau of Kairouz, Liu, Steinke 2021, theorem 5, as printed."""
    return 10 * sum(math.exp(-2 * math.pi**2 * sigma**2 * k / (k + 1)) for k in range(1, clients))


def published_divergences(clients: int, sigma: float, shift: int) -> np.ndarray:
    """Return the divergences of the same paper, corollary 12, in one dimension."""
    orders, ratio, tau = np.array(ORDERS), shift / (math.sqrt(clients) * sigma), published_tau(clients, sigma)
    return np.minimum(orders / 2 * ratio**2 + tau, orders / 2 * (ratio + tau) ** 2)


def test_the_exact_sum_is_the_gaussian_of_one_client() -> None:
    # At whole orders a discrete Gaussian has the divergence of a Gaussian.
    whole = [ORDERS.index(order) for order in (2.0, 3.0, 8.0, 64.0)]
    for sigma, shift in itertools.product((0.1, 0.5, 1.4), SHIFTS):
        expected = np.array(ORDERS)[whole] / 2 * (shift / sigma) ** 2
        np.testing.assert_allclose(shifted_divergences(1, sigma, shift)[whole], expected, rtol=ROUNDING)


@pytest.mark.parametrize("clients", CLIENTS)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_above_the_exact_sum(clients: int, sigma: float) -> None:
    for shift in SHIFTS:
        claimed = discrete_gaussian_renyi(clients, sigma, float(shift), 1, ORDERS)
        assert np.all(shifted_divergences(clients, sigma, shift) <= claimed * (1 + ROUNDING))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_above_the_exact_sum_in_several_dimensions(sigma: float) -> None:
    # Coordinates are independent, so their divergences add up.
    per_shift = {0: np.zeros(len(ORDERS)), **{shift: shifted_divergences(3, sigma, shift) for shift in SHIFTS}}
    for shifts in [(1, 1), (2, 1), (3, 3), (1, 0, 0, 0), (1, 1, 1, 1), (3, 2, 1, 0), (2, 2, 2, 2)]:
        exact = np.sum([per_shift[shift] for shift in shifts], axis=0)
        claimed = discrete_gaussian_renyi(3, sigma, math.hypot(*shifts), len(shifts), ORDERS)
        assert np.all(exact <= claimed * (1 + ROUNDING))


def test_two_clients_reach_the_bound() -> None:
    # With hardly any noise and a shift by one, tau is tight at order 3.
    for sigma in (0.05, 0.08, 0.12):
        exact = shifted_divergences(2, sigma, 1)[ORDERS.index(3.0)]
        assert discrete_gaussian_renyi(2, sigma, 1.0, 1, [3.0])[0] == pytest.approx(exact, rel=1e-11)


def test_the_published_bound_is_false_with_little_noise() -> None:
    # The claim holds from sigma = 1/2 on, as in theorem 5, and fails with little noise, for example at sigma = 0.16.
    assert published_divergences(2, 0.16, 1)[0] == pytest.approx(17.63, abs=5e-3)
    assert shifted_divergences(2, 0.16, 1)[0] == pytest.approx(18.84, abs=5e-3)
    for clients, sigma in itertools.product(CLIENTS, SIGMAS):
        shares = [published_divergences(clients, sigma, shift) / shifted_divergences(clients, sigma, shift) for shift in SHIFTS]
        if sigma <= 0.12:
            assert np.min(shares) < 0.93
        if sigma >= 0.5:
            assert np.min(shares) >= 1 - ROUNDING


@pytest.mark.parametrize("clients", [2, 3, 10, 1000])
def test_tau_is_below_the_published_one_where_that_holds(clients: int) -> None:
    for sigma in (0.5, 0.6, 1.0, 2.0, 4.0):
        assert 2.4 <= published_tau(clients, sigma) / discrete_gaussian_tau(clients, sigma) <= 2.5 + 1e-9
    assert published_tau(clients, 0.12) < discrete_gaussian_tau(clients, 0.12)


def theta_ratio(variance: mpmath.mpf) -> mpmath.mpf:
    """Return ln(sum rho(x) / sum rho(x + 1/2)) by Jacobi's theta functions."""
    if variance < 0.1:
        nome = mpmath.exp(-1 / (2 * variance))
        return mpmath.log(mpmath.jtheta(3, 0, nome) / mpmath.jtheta(2, 0, nome))
    nome = mpmath.exp(-2 * mpmath.pi**2 * variance)
    return mpmath.log(mpmath.jtheta(3, 0, nome) / mpmath.jtheta(4, 0, nome))


@pytest.mark.parametrize("clients", [2, 7, 40])
@pytest.mark.parametrize("sigma", [0.001, 0.05, 0.3, 0.5641, 0.565, 0.8, 1.0, 3.0, 5.0])
def test_tau_in_fifty_digits(clients: int, sigma: float) -> None:
    with mpmath.workdps(500 if sigma > 2 else 50):
        expected = mpmath.fsum(theta_ratio(mpmath.mpf(sigma) ** 2 * k / (k + 1)) for k in range(1, clients))
        assert expected <= discrete_gaussian_tau(clients, sigma) <= expected * (1 + mpmath.mpf(3) / 10**12)


def test_tau_of_many_clients() -> None:
    # The terms fall, so beyond the directly summed terms the sum lies between its bounds by the first and the last term.
    clients, sigma = 3 * DIRECT_TERMS, 0.7
    with mpmath.workdps(30):
        first = discrete_gaussian_tau(DIRECT_TERMS + 1, sigma)
        last = theta_ratio(mpmath.mpf(sigma) ** 2 * (clients - 1) / clients)
        ending = theta_ratio(mpmath.mpf(sigma) ** 2 * DIRECT_TERMS / (DIRECT_TERMS + 1))
    beyond = clients - 1 - DIRECT_TERMS
    assert first * (1 - 2e-12) + beyond * last <= discrete_gaussian_tau(clients, sigma) <= (first + beyond * ending) * (1 + 2e-12)


def test_more_noise_never_costs_more() -> None:
    for clients in (1, 2, 50, 1000):
        divergences = [discrete_gaussian_renyi(clients, sigma, 3.0, 4, ORDERS) for sigma in np.geomspace(0.01, 3, 200).tolist()]
        assert np.all(np.diff(divergences, axis=0) < 0)


@pytest.mark.parametrize(("clients", "sigma", "l2", "dimension"), [(10, 0.6, 3.0, 1), (100, 0.8, 50.0, 1000), (5, 3.0, 2.5, 4)])
def test_divergences_are_the_smallest_of_three(clients: int, sigma: float, l2: float, dimension: int) -> None:
    tau = discrete_gaussian_tau(clients, sigma)
    r2 = l2 / (math.sqrt(clients) * sigma)
    r1 = l2 * min(math.sqrt(dimension), l2) / (math.sqrt(clients) * sigma)
    orders = np.array([1.5, 2.0, 30.0])
    three = [
        orders / 2 * r2**2 + tau * dimension,
        orders / 2 * (r2**2 + 2 * r1 * tau + tau**2 * dimension),
        orders / 2 * (r2 + tau * math.sqrt(dimension)) ** 2,
    ]
    np.testing.assert_allclose(discrete_gaussian_renyi(clients, sigma, l2, dimension, orders), np.min(three, axis=0), rtol=1e-13)


def test_no_sensitivity_no_divergence() -> None:
    assert discrete_gaussian_renyi(10, 0.5, 0.0, 3, [2.0]).tolist() == [0.0]


def test_one_discrete_gaussian_in_fifty_digits() -> None:
    sigma, shift, order = 0.8, 1, 2.5
    with mpmath.workdps(50):
        weights = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for x in range(-60, 61)}
        norm = mpmath.fsum(weights.values())
        total = mpmath.fsum(weights[x] ** order * weights[x - shift] ** (1 - order) for x in range(-59, 61)) / norm
        expected = float(mpmath.log(total) / (order - 1))
    assert summed_discrete_gaussian_losses(1, sigma, shift).renyi_divergences([order])[0] == pytest.approx(expected, rel=1e-11)


def test_a_sum_of_three_by_enumeration() -> None:
    sigma, order = 0.6, 2.0
    value = np.arange(-12, 13)
    weights = np.exp(-(value**2) / (2 * sigma**2))
    weights /= weights.sum()
    total = np.zeros(73)
    for a, first in zip(value, weights, strict=True):
        for b, second in zip(value, weights, strict=True):
            total[a + b + 24 : a + b + 49] += first * second * weights
    kept = total > 1e-40
    own = total[kept]
    expected = math.log(float((own[1:] ** order * own[:-1] ** (1 - order)).sum())) / (order - 1)
    assert summed_discrete_gaussian_losses(3, sigma, 1).renyi_divergences([order])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("clients", [1, 2, 5, 50])
@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.8, 2.0])
@pytest.mark.parametrize("shift", [1, 4])
def test_the_bound_is_above_the_truth(clients: int, sigma: float, shift: int) -> None:
    orders = [1.5, 2.0, 3.0, 8.0]
    exact = summed_discrete_gaussian_losses(clients, sigma, shift).renyi_divergences(orders)
    bound = discrete_gaussian_renyi(clients, sigma, float(shift), 1, orders)
    assert np.all(exact <= bound * (1 + 1e-9))


def test_tau_overstates_what_is_lost() -> None:
    # Coarse noise reveals more than a Gaussian of the same variance, by far less than tau; fine noise is like the Gaussian.
    coarse = summed_discrete_gaussian_losses(50, 0.5, 1).renyi_divergences([2.0])[0]
    gaussian = 2.0 / (2 * 50 * 0.5**2)
    assert gaussian * 1.1 < coarse < gaussian * 1.2
    # The bound counts the noise of the best number of clients.
    divergences = discrete_gaussian_renyi(50, 0.5, 1.0, 1, [2.0])[0]
    of_some = [(2 / math.sqrt(some), discrete_gaussian_tau(some, 0.5)) for some in range(1, 51)]
    assert divergences == pytest.approx(min(min(ratio**2 + tau, (ratio + tau) ** 2) for ratio, tau in of_some), rel=1e-12)
    assert divergences > 16 * gaussian
    assert divergences < 1 / (50 * 0.5**2) + discrete_gaussian_tau(50, 0.5)
    fine = summed_discrete_gaussian_losses(50, 2.0, 1).renyi_divergences([2.0])[0]
    assert fine == pytest.approx(2.0 / (2 * 50 * 4), rel=1e-9)


# Tests of norms and granularity


def test_rounded_norm_is_the_smaller_of_two() -> None:
    c, g, d, beta = 2.0, 0.1, 400, 0.3
    likely = c**2 + g**2 * d / 4 + math.sqrt(2 * math.log(1 / beta)) * g * (c + g * math.sqrt(d) / 2)
    assert rounded_norm(c, g, d, beta) == pytest.approx(math.sqrt(likely))
    assert rounded_norm(c, g, d, 1e-300) == pytest.approx(c + g * math.sqrt(d))


def test_stochastic_rounding_stays_below_the_norm_as_often_as_promised() -> None:
    # beta = exp(-1/2) is the largest share of repetitions; with 4000 draws five standard errors are 0.04.
    rng = np.random.default_rng(5)
    vector = rng.normal(size=64)
    vector *= 1.0 / np.linalg.norm(vector)
    for granularity in (0.05, 0.3, 1.0):
        bound = rounded_norm(1.0, granularity, 64)
        rounded = granularity * np.floor(vector / granularity + rng.random((4000, 64)))
        assert float((np.linalg.norm(rounded, axis=1) > bound).mean()) <= math.exp(-0.5) + 0.04


@pytest.mark.parametrize("flatness", [0.0, 1.0, 40.0])
@pytest.mark.parametrize(("clients", "bits"), [(1, 3), (100, 12), (10**6, 20)])
def test_granularity_fills_half_the_modulus(clients: int, bits: int, flatness: float) -> None:
    dimension, clip, sigma, deviations = 256, 2.0, 0.3, 3.5
    granularity = granularity_for_bits(clients, dimension, clip, sigma, bits, deviations=deviations, flatness=flatness)
    # A coordinate of the sum has signal, noise and rounding; rounding has at most a quarter of a squared step per client.
    variance = flatness * (clip * clients) ** 2 / dimension + clients * sigma**2 + clients * granularity**2 / 4
    assert deviations * math.sqrt(variance) == pytest.approx(granularity * 2.0 ** (bits - 1), rel=1e-9)


@pytest.mark.parametrize(("clients", "deviations"), [(1, 4.0), (1000, 4.0), (16, 1.0), (10**6, 2.0), (4, 1.0), (100, 1.0)])
def test_fewest_bits(clients: int, deviations: float) -> None:
    bits = fewest_bits(clients, deviations)
    assert bits == max(1, math.floor(math.log2(clients * deviations**2) / 2) + 1)
    assert granularity_for_bits(clients, 16, 1.0, 1.0, bits, deviations=deviations) > 0
    if bits > 1:
        with pytest.raises(InfeasibleError, match=f"bits must be at least {bits} to hold {deviations:g} deviations of {clients} clients'"):
            granularity_for_bits(clients, 16, 1.0, 1.0, bits - 1, deviations=deviations)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: discrete_gaussian_tau(0, 1.0), "clients must be a whole number from 1"),
        (lambda: discrete_gaussian_tau(2, 0.0), "sigma must be a number from 0.001"),
        (lambda: discrete_gaussian_renyi(2, 1.0, -1.0, 1, [2.0]), "l2_sensitivity must be a number from 0"),
        (lambda: discrete_gaussian_renyi(2, 1.0, 1.0, 0, [2.0]), "dimension must be a whole number from 1"),
        (lambda: discrete_gaussian_renyi(2, 1.0, 1.0, 1, [1.0]), "orders must be above 1"),
        (lambda: rounded_norm(0.0, 1.0, 1), "clip_norm must be a number from"),
        (lambda: rounded_norm(1.0, 0.0, 1), "granularity must be a number from"),
        (lambda: rounded_norm(1.0, 1.0, 1, 1.0), "beta must be a number from"),
        (lambda: granularity_for_bits(2, 1, 1.0, 1.0, 63), "bits must be a whole number from 1 to 62, got 63"),
        (lambda: granularity_for_bits(2, 1, 1.0, 1.0, 8, deviations=0.0), "deviations must be a number from 0.1"),
        (lambda: granularity_for_bits(2, 1, 1.0, 1.0, 8, flatness=2.0), "flatness must be a number from 0 to 1, got 2.0"),
        (lambda: summed_discrete_gaussian_losses(1001, 1.0, 1), "clients must be a whole number from 1 to 1000"),
        (lambda: summed_discrete_gaussian_losses(1000, 1000.0, 1), "clients and sigma must be smaller"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("clients", [1, 7, DIRECT_TERMS, DIRECT_TERMS + 1, DIRECT_TERMS + 2, 250_001, 10**7])
def test_numbers_of_clients_that_are_tried_are_whole_and_the_last_is_all_of_them(clients: int) -> None:
    counts = discrete_gaussian_divergence._counts(clients)
    assert counts[0] == 1
    assert counts[-1] == clients
    assert (counts == np.floor(counts)).all()
    assert (np.diff(counts) > 0).all()


@pytest.mark.parametrize("sigma", [10.0, 40.0])
def test_the_exact_loss_of_wide_noise_reaches_as_far_as_that_of_narrow_noise(sigma: float) -> None:
    # At whole orders a discrete Gaussian has the divergence a k^2 / (2 s^2) of a Gaussian.
    exact = summed_discrete_gaussian_losses(1, sigma, 3).renyi_divergences([2.0, 5.0])
    np.testing.assert_allclose(exact, np.array([2.0, 5.0]) / 2 * (3 / sigma) ** 2, rtol=1e-12)


def test_wide_noise_and_equal_neighbours_lose_nothing() -> None:
    # The ratio of wide noise is below 1e-300.
    assert theta_log_ratios(np.array([50.0, 1e6])).tolist() == [0.0, 0.0]
    assert discrete_gaussian_renyi(3, 0.3, 0.0, 5, [2.0, 8.0, math.inf]).tolist() == [0.0, 0.0, 0.0]


def test_theta_ratios_between_both_series_in_fifty_digits() -> None:
    # Sums in x would lose digits of these ratios, which are differences of numbers near 1.
    variances = np.linspace(0.4, 0.499, 34)
    with mpmath.workdps(50):
        expected = np.array([float(theta_ratio(mpmath.mpf(variance))) for variance in variances.tolist()])
    np.testing.assert_allclose(theta_log_ratios(variances), expected, rtol=5e-15)


def test_ratios_of_probabilities_are_as_stated() -> None:
    # The test compares the sum with the discrete Gaussian of its variance, and that with a randomly rounded Gaussian, by quadrature.
    clients, sigma = 3, 0.6
    value = np.arange(-30, 31)
    weights = np.exp(-(value**2) / (2 * sigma**2))
    weights /= weights.sum()
    total = np.convolve(np.convolve(weights, weights), weights)[60:121]
    variance = clients * sigma**2
    nearest = np.exp(-(value**2) / (2 * variance))
    nearest /= nearest.sum()
    largest = float(np.abs(np.log(total / nearest))[20:41].max())
    log_ratio = smoothed_sums(clients, sigma)[0].log_ratio
    square = SMOOTHING_VARIANCES[0]
    point = np.linspace(-12, 12, 24_001)
    around = np.exp(-((value[:, None] - point) ** 2) / (2 * square))
    around /= around.sum(axis=0)
    rounded = around @ np.exp(-(point**2) / (2 * (variance - square)))
    rounded /= rounded.sum()
    second = float(np.abs(np.log(nearest / rounded))[25:36].max())
    # Averaging over the rounded Gaussian makes the second ratio far smaller than its bound.
    assert 1e-8 < second < 4 * math.exp(-2 * math.pi**2 * square)
    assert 1e-3 < largest < log_ratio
    assert float(np.abs(np.log(total / rounded))[25:36].max()) <= log_ratio


def test_the_sum_must_have_noise() -> None:
    assert smoothed_sums(10, 0.2) == []


@pytest.mark.parametrize(("clients", "sigma"), [(1, 2.5), (3, 0.6), (40, 1.1)])
def test_both_ratios_count_and_what_is_taken_for_rounding_is_gone(clients: int, sigma: float) -> None:
    variance = clients * sigma**2
    choices = smoothed_sums(clients, sigma)
    squares = [square for square in SMOOTHING_VARIANCES if square < variance]
    assert len(choices) == len(squares)
    for square, choice in zip(squares, choices, strict=True):
        with mpmath.workdps(50):
            # Jacobi's theta function at 0 and 1/2 gives the largest and the smallest sum of the bell curve over whole numbers.
            nome = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(square))
            theta = mpmath.log(mpmath.jtheta(3, 0, nome) / mpmath.jtheta(4, 0, nome))
            remaining = mpmath.sqrt(clients * mpmath.mpf(sigma) ** 2 - mpmath.mpf(square))
        together = float(theta) + discrete_gaussian_tau(clients, sigma)
        assert together <= choice.log_ratio <= together * (1 + 2e-9) + 2e-15
        assert remaining * (1 - mpmath.mpf(10) ** -13) < choice.sigma < remaining


@pytest.mark.parametrize("log_ratio", [0.0, 0.1, 2.0])
def test_a_ratio_costs_twice_itself_and_its_share_of_delta(log_ratio: float) -> None:
    multiplier, delta = 1.5, 1e-3
    computed = rounded_gaussian_epsilon(multiplier, log_ratio, delta)
    assert computed is not None
    exact = gaussian_epsilon(multiplier, delta * math.exp(-log_ratio)) + 2 * log_ratio
    assert exact <= computed * (1 + 1e-9) <= exact * (1 + 1e-6)
    # The function returns no epsilon above the given limit.
    assert rounded_gaussian_epsilon(multiplier, log_ratio, delta, computed * (1 + 1e-6)) == computed
    assert rounded_gaussian_epsilon(multiplier, log_ratio, delta, computed * (1 - 1e-6)) is None


@pytest.mark.parametrize("clients", [41, 42, 43, 100])
@pytest.mark.parametrize("sigma", [0.4, 0.7])
def test_every_client_beyond_the_direct_terms_has_a_term(monkeypatch: pytest.MonkeyPatch, clients: int, sigma: float) -> None:
    exact = discrete_gaussian_tau(clients, sigma)
    fortieth = discrete_gaussian_tau(41, sigma) - discrete_gaussian_tau(40, sigma)
    monkeypatch.setattr(discrete_gaussian_divergence, "DIRECT_TERMS", 40)
    # Terms fall, so the fortieth term bounds all later terms.
    assert exact * (1 - 1e-9) <= discrete_gaussian_tau(clients, sigma) <= (exact + (clients - 41) * fortieth) * (1 + 1e-9)


def test_a_shift_beyond_the_values_is_certain() -> None:
    loss = summed_discrete_gaussian_losses(1, 0.5, 1000)
    assert (loss.certain, loss.unseen, len(loss.losses), len(loss.log_masses)) == (1.0, 1.0, 0, 0)
