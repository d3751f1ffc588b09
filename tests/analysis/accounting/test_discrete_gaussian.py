"""The distributed discrete Gaussian: its bound against exact sums of noise, its formulas in fifty digits, and its calibration."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon

from quietbits.analysis.accounting.discrete_gaussian import (
    calibrate_discrete_gaussian,
    discrete_gaussian_accounting,
    discrete_gaussian_details,
    discrete_gaussian_error,
)
from quietbits.analysis.accounting.mechanism_accounting import gaussian_accounting
from quietbits.analysis.accounting.subsampling import FixedSizeSampling, PoissonSampling
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.divergences.discrete_gaussian_divergence import (
    discrete_gaussian_tau,
    granularity_for_bits,
    rounded_norm,
    summed_discrete_gaussian_losses,
)


def formula(clients: int, dimension: int, clip: float, sigma: float, granularity: float, delta: float) -> float:
    """Return epsilon from the formulas as they are printed: where noise has half a step or more, and tau is 2.4 to 2.5 times ours."""
    beta = math.exp(-0.5)
    root = math.sqrt(dimension)
    likely = clip**2 + granularity**2 * dimension / 4 + math.sqrt(2 * math.log(1 / beta)) * granularity * (clip + granularity * root / 2)
    delta2 = math.sqrt(min(likely, (clip + granularity * root) ** 2))
    delta1 = delta2 * min(root, delta2 / granularity)
    steps = np.arange(1, clients)
    tau = 10 * float(np.exp(-2 * math.pi**2 * (sigma / granularity) ** 2 * steps / (steps + 1)).sum())
    r1, r2 = (distance / (math.sqrt(clients) * sigma) for distance in (delta1, delta2))
    orders = np.array(DEFAULT_ORDERS[:-1])
    curve = np.minimum(orders / 2 * r2**2 + tau * dimension, orders / 2 * (r2**2 + 2 * r1 * tau + tau**2 * dimension))
    curve = np.minimum(curve, orders / 2 * (r2 + tau * root) ** 2)
    return float(compute_epsilon(orders, curve, delta)[0])


@pytest.mark.parametrize(
    ("clients", "dimension", "clip", "sigma", "granularity", "share"),
    [(100, 1024, 1.0, 0.5, 0.01, 1.0), (50, 64, 3.0, 0.2, 0.4, 0.42), (50, 64, 3.0, 0.4, 0.4, 0.998)],
)
def test_the_account_is_the_formula_or_less(
    clients: int, dimension: int, clip: float, sigma: float, granularity: float, share: float
) -> None:
    account = discrete_gaussian_accounting(clients, dimension, clip, sigma, granularity).account(delta=1e-5)
    published = formula(clients, dimension, clip, sigma, granularity, 1e-5)
    assert account.epsilon_rdp is not None
    assert account.epsilon_rdp <= published * (1 + 1e-12)
    assert account.epsilon_rdp / published == pytest.approx(share, rel=1e-2 if share < 1 else 1e-12)
    assert account.epsilon == min(account.epsilon_rdp, account.epsilon_pld)
    assert (account.adjacency, account.trust_model, account.pure_epsilon) == ("add-or-remove-one", "secure-sum", None)


@pytest.mark.parametrize("sigma", [0.1, 0.15, 0.25, 0.4])
def test_noise_below_half_a_step_by_the_exact_sum(sigma: float) -> None:
    # The bound on the norm of a rounded vector is 2.6 here, so that whole numbers up to 2 go through.
    account = discrete_gaussian_accounting(6, 1, 2.0, sigma, 1.0).account(delta=1e-5)
    exact = max(summed_discrete_gaussian_losses(6, sigma, shift).epsilon(1e-5) for shift in (1, 2))
    assert exact <= account.epsilon <= 3 * exact


def test_replacing_one_doubles_the_sensitivity() -> None:
    added = discrete_gaussian_accounting(100, 16, 1.0, 0.5, 1e-4).curve
    replaced = discrete_gaussian_accounting(100, 16, 1.0, 0.5, 1e-4, adjacency="replace-one").curve
    np.testing.assert_allclose(replaced.divergences, 4 * added.divergences, rtol=1e-12)


@pytest.mark.parametrize(
    ("clients", "dimension", "clip", "bits", "epsilon", "delta"),
    [(1000, 65536, 1.0, 16, 1.0, 1e-5), (100, 2048, 10.0, 12, 4.0, 1e-6), (1, 1, 1.0, 10, 0.5, 1e-6), (500, 128, 0.1, 32, 30.0, 1e-3)],
)
def test_calibration_ends_on_the_safe_side(clients: int, dimension: int, clip: float, bits: int, epsilon: float, delta: float) -> None:
    found = calibrate_discrete_gaussian(clients, dimension, clip, bits, epsilon, delta)
    sigma, granularity = dict(found.parameters)["local_sigma"], dict(found.parameters)["granularity"]
    assert 0 <= epsilon - found.account.epsilon <= 1e-6
    assert found.account.epsilon_rdp == pytest.approx(formula(clients, dimension, clip, sigma, granularity, delta), rel=1e-11)
    assert granularity == granularity_for_bits(clients, dimension, clip, sigma, bits)


def test_calibration_over_rounds_and_for_replacing() -> None:
    found = calibrate_discrete_gaussian(1000, 256, 1.0, 18, 2.0, 1e-6, 20, adjacency="replace-one", deviations=5.0)
    sigma, granularity = (value for _, value in found.parameters)
    account = discrete_gaussian_accounting(1000, 256, 1.0, sigma, granularity, adjacency="replace-one").account(20, 1e-6)
    assert account == found.account
    assert 0 <= 2.0 - account.epsilon <= 1e-6


def test_fine_granularity_is_central_gaussian_noise() -> None:
    found = calibrate_discrete_gaussian(1000, 1024, 1.0, 40, 1.0, 1e-5)
    multiplier = dict(found.parameters)["local_sigma"] * math.sqrt(1000)
    assert 1 <= multiplier / gaussian_noise_multiplier(1.0, 1e-5) <= 1 + 1e-5


def test_sampling_amplifies_as_it_does_for_gaussian_noise() -> None:
    sigma, granularity = 0.1, 1e-4
    poisson = discrete_gaussian_accounting(400, 16, 1.0, sigma, granularity, sampling=PoissonSampling(0.01))
    fixed = discrete_gaussian_accounting(400, 16, 1.0, sigma, granularity, sampling=FixedSizeSampling(400, 4))
    assert (poisson.adjacency, fixed.adjacency) == ("add-or-remove-one", "replace-one")
    assert poisson.trust_model == fixed.trust_model == "secure-sum"
    # The rounded norm is 1 + 2e-5 or so of the clip norm.
    for one, sampling, sensitivity in [(poisson, PoissonSampling(0.01), 1.0), (fixed, FixedSizeSampling(400, 4), 2.0)]:
        gaussian = gaussian_accounting(20 * sigma / sensitivity, sampling=sampling)
        assert 1 <= one.account(100, 1e-6).epsilon / gaussian.account(100, 1e-6).epsilon <= 1.001
    everyone = discrete_gaussian_accounting(400, 16, 1.0, sigma, granularity)
    assert poisson.account(100, 1e-6).epsilon < everyone.account(100, 1e-6).epsilon / 10


def test_a_sampled_round_by_enumeration() -> None:
    # One coordinate, one client in two clients' noise: the mixture with the shifted noise against the noise, both ways.
    clients, sigma, probability, delta = 2, 2.5, 0.3, 1e-4
    account = discrete_gaussian_accounting(clients, 1, 1.0, sigma, 1.0, sampling=PoissonSampling(probability)).account(1, delta)
    value = np.arange(-120, 121)
    one = np.exp(-(value**2) / (2 * sigma**2))
    noise = np.convolve(one / one.sum(), one / one.sum())
    # The bound on the norm of a rounded vector of norm 1 in one dimension, sqrt(2.47), lets through the whole number 1 alone.
    mixed = (1 - probability) * noise + probability * np.roll(noise, 1)
    true = max((a - math.exp(account.epsilon) * b)[a > math.exp(account.epsilon) * b].sum() for a, b in [(mixed, noise), (noise, mixed)])
    assert 0 < true <= delta


@pytest.mark.parametrize("bits", [3, 6, 9, 11])
def test_too_few_bits_say_how_many_would_do(bits: int) -> None:
    with pytest.raises(InfeasibleError, match=rf"bits must be at least 12 for 1000 clients to reach epsilon = 1 .*, got {bits}$"):
        calibrate_discrete_gaussian(1000, 65536, 1.0, bits, 1.0, 1e-5)
    assert calibrate_discrete_gaussian(1000, 65536, 1.0, 12, 1.0, 1e-5).account.epsilon <= 1.0


def test_no_number_of_bits_for_a_delta_too_small() -> None:
    with pytest.raises(InfeasibleError, match="epsilon or delta must be larger: no number of bits up to 62 would be enough for 10 clients"):
        calibrate_discrete_gaussian(10, 2**40, 1.0, 16, 1e-5, 1e-200)


def test_predicted_error() -> None:
    error = discrete_gaussian_error(50, 16, 0.4, 0.1)
    assert error.total == error.noise + error.rounding == pytest.approx(16 * (0.16 + 0.01 / 4) / 50)
    details = discrete_gaussian_details(50, 16, 1.0, 0.4, 0.1)
    assert details["squared_error"] == error.total
    assert details["rounded_norm"] == rounded_norm(1.0, 0.1, 16)
    assert details["tau"] == discrete_gaussian_tau(50, 0.4 / 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: discrete_gaussian_accounting(2, 1, 1.0, 1.0, 1.0, adjacency="both"), "adjacency must be one of replace-one"),
        (lambda: discrete_gaussian_accounting(2, 1, 1.0, 1e-9, 1.0), "local_sigma in steps of the granularity must be a number from"),
        (lambda: discrete_gaussian_error(2, 1, 0.0, 1.0), "local_sigma must be a number from"),
        (lambda: calibrate_discrete_gaussian(2, 1, 1.0, 8, 0.0, 0.1), "epsilon must be a number from 1e-05"),
        (lambda: calibrate_discrete_gaussian(2, 1, 1.0, 8, 1.0, 0.0), "delta must be a number above 0 and below 1"),
        (lambda: calibrate_discrete_gaussian(0, 1, 1.0, 8, 1.0, 0.1), "clients must be a whole number from 1"),
        (lambda: calibrate_discrete_gaussian(2, 1, 1.0, 8, 1.0, 0.1, adjacency="both"), "adjacency must be one of replace-one"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
