"""The distributed discrete Gaussian against exact sums of noise, and its calibration."""

import functools
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon

from quietbits.analysis.catalogue.accounts import account, calibrate
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from quietbits.design.secure_sum.shared_noise import calibrate_discrete_gaussian
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling
from quietbits.solvers.divergences.discrete_gaussian_divergence import (
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    granularity_for_bits,
    rounded_norm,
    summed_discrete_gaussian_losses,
)


def formula(clients: int, dimension: int, clip: float, sigma: float, granularity: float, delta: float) -> float:
    """Return epsilon by the printed formulas, for noise of at least half a step."""
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
    [(100, 1024, 1.0, 0.5, 0.01, 1.0), (50, 64, 3.0, 0.2, 0.4, 0.265), (50, 64, 3.0, 0.4, 0.4, 0.998)],
)
def test_the_account_is_the_formula_or_less(
    clients: int, dimension: int, clip: float, sigma: float, granularity: float, share: float
) -> None:
    report = discrete_gaussian_privacy(clients, dimension, clip, sigma, granularity).report(1e-5)
    published, result = formula(clients, dimension, clip, sigma, granularity, 1e-5), report.epsilon_by("rdp")
    assert result <= published * (1 + 1e-12)
    assert result / published == pytest.approx(share, rel=1e-2 if share < 1 else 1e-12)
    assert report.epsilon == min(result, report.epsilon_by("near-gaussian"))
    assert (report.adjacency, report.trust_model) == ("add-or-remove-one", "secure-sum")


@pytest.mark.parametrize("sigma", [0.1, 0.15, 0.25, 0.4])
def test_noise_below_half_a_step_by_the_exact_sum(sigma: float) -> None:
    # The bound on the norm of a rounded vector is 2.6, which permits whole numbers up to 2.
    epsilon = discrete_gaussian_privacy(6, 1, 2.0, sigma, 1.0).epsilon(1e-5)
    exact = max(summed_discrete_gaussian_losses(6, sigma, shift).epsilon(1e-5) for shift in (1, 2))
    assert exact <= epsilon <= 3 * exact


def test_next_to_no_noise_by_enumeration() -> None:
    # The noise is a twentieth of a step. A whole number 2 looks like 0 only if two of six clients draw a 1 each.
    value = np.arange(-4, 5)
    density = np.exp(-(value**2) / (2 * 0.05**2))
    total = functools.reduce(np.convolve, [density / density.sum()] * 6)
    middle = len(total) // 2
    exact = math.log((total[middle] - 1e-5) / total[middle + 2])
    assert exact == pytest.approx(400 - math.log(15), abs=1e-4)
    assert discrete_gaussian_privacy(6, 1, 2.0, 0.05, 1.0).epsilon(1e-5) >= exact > 397.29


def test_replacing_one_doubles_the_sensitivity() -> None:
    orders = np.array(DEFAULT_ORDERS[:-1])
    # With such fine steps, the divergences are those of Gaussian noise.
    divergences = discrete_gaussian_renyi(100, 0.5 / 1e-4, rounded_norm(1.0, 1e-4, 16) / 1e-4, 16, orders)
    for adjacency, factor in (("add-or-remove-one", 1), ("replace-one", 4)):
        report = discrete_gaussian_privacy(100, 16, 1.0, 0.5, 1e-4, adjacency).report(1e-5)
        assert report.epsilon_by("rdp") == pytest.approx(RenyiCurve(orders, factor * divergences).epsilon(1e-5).epsilon, rel=1e-12)


@pytest.mark.parametrize(
    ("clients", "dimension", "clip", "bits", "epsilon", "delta"),
    [(1000, 65536, 1.0, 16, 1.0, 1e-5), (100, 2048, 10.0, 12, 4.0, 1e-6), (1, 1, 1.0, 10, 0.5, 1e-6), (500, 128, 0.1, 32, 30.0, 1e-3)],
)
def test_calibration_ends_on_the_safe_side(clients: int, dimension: int, clip: float, bits: int, epsilon: float, delta: float) -> None:
    calibrated = calibrate_discrete_gaussian(clients, dimension, clip, bits, Budget(epsilon, delta, "add-or-remove-one"))
    sigma, granularity = calibrated["local_sigma"], calibrated["granularity"]
    report = discrete_gaussian_privacy(clients, dimension, clip, sigma, granularity).report(delta)
    assert 0 <= epsilon - report.epsilon <= 1e-6
    assert report.epsilon_by("rdp") == pytest.approx(formula(clients, dimension, clip, sigma, granularity, delta), rel=1e-11)
    assert granularity == granularity_for_bits(clients, dimension, clip, sigma, bits)


def test_calibration_over_rounds_and_for_replacing() -> None:
    calibrated = calibrate_discrete_gaussian(1000, 256, 1.0, 18, Budget(2.0, 1e-6, "replace-one", 20), deviations=5.0)
    privacy = discrete_gaussian_privacy(1000, 256, 1.0, **calibrated, adjacency="replace-one")
    assert 0 <= 2.0 - privacy.epsilon(1e-6, rounds=20) <= 1e-6
    assert calibrated["granularity"] == granularity_for_bits(1000, 256, 1.0, calibrated["local_sigma"], 18, deviations=5.0)


def test_fine_granularity_is_central_gaussian_noise() -> None:
    calibrated = calibrate_discrete_gaussian(1000, 1024, 1.0, 40, Budget(1.0, 1e-5, "add-or-remove-one"))
    multiplier = calibrated["local_sigma"] * math.sqrt(1000)
    assert 1 <= multiplier / gaussian_noise_multiplier(1.0, 1e-5) <= 1 + 1e-5


def test_sampling_amplifies_as_it_does_for_gaussian_noise() -> None:
    sigma, granularity = 0.1, 1e-4
    # The rounded norm exceeds the clip norm by a relative 2e-5.
    for sampling, sensitivity in [(PoissonSampling(0.01), 1.0), (FixedSizeSampling(400, 4), 2.0)]:
        adjacency = sampling.adjacency
        privacy = discrete_gaussian_privacy(400, 16, 1.0, sigma, granularity, adjacency)
        gaussian = gaussian_privacy(20 * sigma / sensitivity, adjacency, "secure-sum")
        sampled, reference = (item.report(1e-6, adjacency, 100, sampling) for item in (privacy, gaussian))
        assert (sampled.adjacency, sampled.trust_model, sampled.sampling) == (adjacency, "secure-sum", sampling)
        assert 1 <= sampled.epsilon / reference.epsilon <= 1.001
        assert sampled.epsilon < privacy.epsilon(1e-6, rounds=100) / 10


def test_a_sampled_round_by_enumeration() -> None:
    # There is one coordinate, and noise of two clients. The test compares the mixture with the shifted noise and the noise itself, in both
    # directions.
    clients, sigma, probability, delta = 2, 2.5, 0.3, 1e-4
    epsilon = discrete_gaussian_privacy(clients, 1, 1.0, sigma, 1.0).epsilon(delta, sampling=PoissonSampling(probability))
    value = np.arange(-120, 121)
    density = np.exp(-(value**2) / (2 * sigma**2))
    noise = np.convolve(density / density.sum(), density / density.sum())
    # In one dimension a vector of norm 1 is rounded to a norm of at most sqrt(2.47), which permits only the whole number 1.
    mixed = (1 - probability) * noise + probability * np.roll(noise, 1)
    true = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in [(mixed, noise), (noise, mixed)])
    assert 0 < true <= delta


@pytest.mark.parametrize("bits", [3, 6, 9, 11])
def test_too_few_bits_say_how_many_would_do(bits: int) -> None:
    with pytest.raises(InfeasibleError, match=rf"bits must be at least 12 for 1000 clients to reach epsilon = 1 .*, got {bits}$"):
        calibrate_discrete_gaussian(1000, 65536, 1.0, bits, Budget(1.0, 1e-5, "add-or-remove-one"))
    enough = calibrate_discrete_gaussian(1000, 65536, 1.0, 12, Budget(1.0, 1e-5, "add-or-remove-one"))
    assert discrete_gaussian_privacy(1000, 65536, 1.0, **enough).epsilon(1e-5) <= 1.0


def test_no_number_of_bits_for_a_delta_too_small() -> None:
    with pytest.raises(InfeasibleError, match="epsilon or delta must be larger: no number of bits up to 62 would be enough for 10 clients"):
        calibrate_discrete_gaussian(10, 2**40, 1.0, 16, Budget(1e-5, 1e-200, "add-or-remove-one"))


@pytest.mark.parametrize(
    ("dimension", "clients", "sigma", "granularity", "stated"), [(16, 50, 0.4, 0.1, None), (4, 500, 0.2, 0.5, 1.43e-3)]
)
def test_details_have_the_mechanism_s_worst_error(
    dimension: int, clients: int, sigma: float, granularity: float, stated: float | None
) -> None:
    values: dict[str, Any] = {"clients": clients, "dimension": dimension, "clip": 1.0, "local_sigma": sigma, "granularity": granularity}
    details = account("distributed-discrete-gaussian", **values, delta=1e-5).subject.details
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(dimension, 2.0), clients, 20, granularity, sigma, 1e-5)
    assert details["worst_squared_error"] == mechanism.error().of_mean(clients)
    assert details["bias_bound"] == mechanism.bias_bound > 0
    variance = details["worst_squared_error"] - details["bias_bound"] ** 2
    assert variance == pytest.approx(mechanism.variance_bound / clients)
    assert stated is None or variance == pytest.approx(stated, rel=5e-3)
    assert "squared_error" not in details


def test_details_of_rounded_vectors() -> None:
    values: dict[str, Any] = {"clients": 50, "dimension": 16, "clip": 1.0, "local_sigma": 0.4, "granularity": 0.1}
    details = account("distributed-discrete-gaussian", **values, delta=1e-5).subject.details
    assert details["rounded_norm"] == rounded_norm(1.0, 0.1, 16)
    assert details["tau"] == discrete_gaussian_tau(50, 0.4 / 0.1)


def test_noise_on_the_padding_reveals_and_costs_bits_and_is_no_error() -> None:
    values: dict[str, Any] = {"clients": 50, "clip": 1.0, "local_sigma": 0.4, "granularity": 0.1, "bits": 12}
    own, padded = (account("distributed-discrete-gaussian", **values, dimension=dimension, delta=1e-5) for dimension in (20, 32))
    assert own.epsilon == padded.epsilon
    assert own.subject.bits_per_client == padded.subject.bits_per_client == 12 * 32
    assert (own.subject.details["dimension"], own.subject.details["padded_dimension"]) == (20, 32)
    assert own.subject.details["rounded_norm"] == rounded_norm(1.0, 0.1, 32)
    worst, of_all = (item.subject.details["worst_squared_error"] - item.subject.details["bias_bound"] ** 2 for item in (own, padded))
    assert worst == pytest.approx(of_all * 20 / 32, rel=1e-6)


def test_calibrate_says_which_parameters_it_found() -> None:
    calibrated = calibrate(
        "distributed-discrete-gaussian", epsilon=1.0, delta=1e-5, clients=1000, dimension=256, bits=16, clip=2.0, deviations=4.0
    )
    parameters = calibrate_discrete_gaussian(1000, 256, 2.0, 16, Budget(1.0, 1e-5, "add-or-remove-one"))
    assert {name: calibrated[name] for name in parameters} == parameters
    assert (calibrated["bits"], calibrated["deviations"], calibrated["clip"]) == (16, 4.0, 2.0)
    assert 0 <= 1.0 - calibrated.epsilon <= 1e-6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: discrete_gaussian_privacy(2, 1, 1.0, 1.0, 1.0, adjacency="both"), "adjacency must be one of replace-one"),
        (lambda: discrete_gaussian_privacy(2, 1, 1.0, 1e-9, 1.0), "local_sigma in steps of the granularity must be a number from"),
        (lambda: discrete_gaussian_privacy(2, 1, 1.0, 0.0, 1.0), "local_sigma must be a number from"),
        (lambda: calibrate_discrete_gaussian(2, 1, 1.0, 8, Budget(0.0, 0.1, "add-or-remove-one")), "epsilon must be a number from 1e-05"),
        (
            lambda: calibrate_discrete_gaussian(2, 1, 1.0, 8, Budget(1.0, 0.0, "add-or-remove-one")),
            "delta must be a number above 0 and below 1",
        ),
        (lambda: calibrate_discrete_gaussian(0, 1, 1.0, 8, Budget(1.0, 0.1, "add-or-remove-one")), "clients must be a whole number from 1"),
        (lambda: calibrate_discrete_gaussian(2, 1, 1.0, 8, Budget(1.0, 0.1, "both")), "adjacency must be one of replace-one"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
