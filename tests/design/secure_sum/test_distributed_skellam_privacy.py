"""The distributed Skellam mechanism.

Points under test: its account by the printed formulas, its calibration, and its predicted error.
"""

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon

from quietbits.analysis.catalogue.accounts import account
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism, distributed_skellam_privacy
from quietbits.design.secure_sum.shared_noise import calibrate_distributed_skellam
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.divergences.discrete_gaussian_divergence import granularity_for_bits


def formula(clients: int, dimension: int, clip: float, variance: float, granularity: float, delta: float, neighbours: int = 1) -> float:
    """Return epsilon by the printed formulas; `neighbours` is 2 for replace-one adjacency."""
    radius, root = clip / granularity, math.sqrt(dimension)
    squared = min(radius**2 + dimension / 4 + radius + root / 2, (radius + root) ** 2)
    l2, l1 = neighbours * math.sqrt(squared), neighbours * min(math.sqrt(dimension * squared), squared)
    mu = clients * variance / granularity**2
    orders = np.array(DEFAULT_ORDERS[:-1])
    whole = np.ceil(orders)
    curve = whole * l2**2 / (2 * mu) + np.minimum(((2 * whole - 1) * l2**2 + 6 * l1) / (4 * mu**2), 3 * l1 / (2 * mu))
    return float(compute_epsilon(orders, curve, delta)[0])


@pytest.mark.parametrize(
    ("clients", "dimension", "clip", "variance", "granularity"),
    [(100, 1024, 1.0, 0.25, 0.01), (50, 64, 3.0, 4.0, 0.3), (5000, 1, 1.0, 9.0, 1.0)],
)
def test_the_account_of_much_noise_is_the_formula(clients: int, dimension: int, clip: float, variance: float, granularity: float) -> None:
    report = distributed_skellam_privacy(clients, dimension, clip, variance, granularity).report(1e-5)
    assert report.epsilon_by("rdp") == pytest.approx(formula(clients, dimension, clip, variance, granularity, 1e-5), rel=1e-12)
    assert (report.adjacency, report.trust_model) == ("add-or-remove-one", "secure-sum")


def test_replacing_one_doubles_both_sensitivities() -> None:
    # Two vectors of whole numbers with squared norms of at most S differ by at most 2 S in L1 norm, not by 4 S.
    report = distributed_skellam_privacy(50, 64, 3.0, 100.0, 1.5, adjacency="replace-one").report(1e-5)
    assert report.adjacency == "replace-one"
    assert report.epsilon_by("rdp") == pytest.approx(formula(50, 64, 3.0, 100.0, 1.5, 1e-5, neighbours=2), rel=1e-12)


@pytest.mark.parametrize(("variance", "granularity"), [(0.04, 1.5), (0.04, 0.4), (1.0, 1.0), (9.0, 1.0)])
def test_little_noise_has_less_epsilon_than_the_formula(variance: float, granularity: float) -> None:
    epsilons = []
    for rounds in (1, 2, 5, 100):
        report = distributed_skellam_privacy(50, 64, 3.0, variance, granularity).report(1e-5, rounds=rounds)
        epsilons.append(report.epsilon)
        assert report.best is not None
        assert report.best.name == "rdp"
    assert epsilons[0] < formula(50, 64, 3.0, variance, granularity, 1e-5)
    assert epsilons == sorted(epsilons)


@pytest.mark.parametrize(
    ("clients", "dimension", "clip", "bits", "epsilon", "delta"),
    [(1000, 65536, 1.0, 16, 1.0, 1e-5), (100, 2048, 10.0, 12, 4.0, 1e-6), (1, 1, 1.0, 10, 0.5, 1e-6), (500, 128, 0.1, 24, 30.0, 1e-3)],
)
def test_calibration_ends_on_the_safe_side(clients: int, dimension: int, clip: float, bits: int, epsilon: float, delta: float) -> None:
    calibrated = calibrate_distributed_skellam(clients, dimension, clip, bits, Budget(epsilon, delta, "add-or-remove-one"))
    variance, granularity = calibrated["local_variance"], calibrated["granularity"]
    report = distributed_skellam_privacy(clients, dimension, clip, variance, granularity).report(delta)
    assert 0 <= epsilon - report.epsilon <= 1e-6
    assert report.epsilon_by("rdp") <= formula(clients, dimension, clip, variance, granularity, delta) * (1 + 1e-11)
    assert granularity == pytest.approx(granularity_for_bits(clients, dimension, clip, math.sqrt(variance), bits), rel=1e-12)
    # The mechanism of these parameters states the same epsilon.
    power_of_two = DistributedSkellamMechanism(NormBall(dimension, 2.0, clip), clients, bits, granularity, variance, delta)
    assert power_of_two.guarantee.epsilon == report.epsilon


def test_calibration_over_rounds_and_for_replacing() -> None:
    calibrated = calibrate_distributed_skellam(1000, 256, 1.0, 18, Budget(2.0, 1e-6, "replace-one", 20), deviations=5.0)
    variance, granularity = calibrated["local_variance"], calibrated["granularity"]
    privacy = distributed_skellam_privacy(1000, 256, 1.0, variance, granularity, adjacency="replace-one")
    assert 0 <= 2.0 - privacy.epsilon(1e-6, rounds=20) <= 1e-6
    assert granularity == pytest.approx(granularity_for_bits(1000, 256, 1.0, math.sqrt(variance), 18, deviations=5.0), rel=1e-12)


def test_many_bits_are_central_gaussian_noise_in_steps_that_can_be_sampled() -> None:
    parameters = calibrate_distributed_skellam(1000, 1024, 1.0, 40, Budget(1.0, 1e-5, "add-or-remove-one"))
    assert 1.99e10 < parameters["local_variance"] / parameters["granularity"] ** 2 <= 2e10
    multiplier = math.sqrt(1000 * parameters["local_variance"])
    assert 1 <= multiplier / gaussian_noise_multiplier(1.0, 1e-5) <= 1 + 1e-4
    # The account uses Rényi divergences, which are stated at whole orders.
    orders = np.array(DEFAULT_ORDERS[:-1])
    divergences = np.ceil(orders) / (2 * multiplier**2)
    by_divergences = distributed_skellam_privacy(1000, 1024, 1.0, **parameters).report(1e-5).epsilon_by("rdp")
    assert compute_epsilon(orders, divergences, 1e-5)[0] == pytest.approx(by_divergences, abs=1e-5)


def test_a_billion_clients_have_noise_of_a_thousandth_of_a_step_each() -> None:
    calibrated = calibrate_distributed_skellam(10**9, 1024, 1.0, 24, Budget(1.0, 1e-5, "add-or-remove-one"))
    assert 2e-6 < calibrated["local_variance"] / calibrated["granularity"] ** 2 < 1e-5
    assert 0 <= 1.0 - distributed_skellam_privacy(10**9, 1024, 1.0, **calibrated).epsilon(1e-5) <= 1e-6


@pytest.mark.parametrize("bits", [3, 6, 9, 11])
def test_too_few_bits_say_how_many_would_do(bits: int) -> None:
    with pytest.raises(InfeasibleError, match=rf"bits must be at least 12 for 1000 clients to reach epsilon = 1 .*, got {bits}$"):
        calibrate_distributed_skellam(1000, 65536, 1.0, bits, Budget(1.0, 1e-5, "add-or-remove-one"))
    enough = calibrate_distributed_skellam(1000, 65536, 1.0, 12, Budget(1.0, 1e-5, "add-or-remove-one"))
    assert distributed_skellam_privacy(1000, 65536, 1.0, **enough).epsilon(1e-5) <= 1.0


def test_no_number_of_bits_for_a_delta_too_small() -> None:
    with pytest.raises(InfeasibleError, match="epsilon or delta must be larger: no number of bits up to 62 would be enough for 10 clients"):
        calibrate_distributed_skellam(10, 4, 1.0, 16, Budget(1e-5, 1e-30, "add-or-remove-one"))


def test_details_have_the_mechanism_s_worst_error() -> None:
    values: dict[str, Any] = {"clients": 50, "dimension": 16, "clip": 1.0, "local_variance": 0.16, "granularity": 0.1}
    details = account("distributed-skellam", **values, delta=1e-5).subject.details
    sizes = {"clients", "dimension", "norm", "padded_dimension", "clip", "bits", "rotation", "rotation_seed"}
    assert details.keys() == sizes | {"local_variance", "granularity", "rounded_norm", "worst_squared_error", "bias_bound", "survivors"}
    # The rounded norm is sqrt(c**2 + g**2 d/4 + g (c + g sqrt(d)/2)), for clip norm c, granularity g and dimension d.
    assert details["rounded_norm"] == pytest.approx(math.sqrt(1 + 0.04 + 0.1 * (1 + 0.2)))
    mechanism = DistributedSkellamMechanism(NormBall(16, 2.0), 50, 20, 0.1, 0.16, 1e-5)
    vectors = np.random.default_rng(0).normal(size=(50, 16))
    assert mechanism.variance(vectors).mean() / 50 <= details["worst_squared_error"] == mechanism.error().of_mean(50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distributed_skellam_privacy(0, 1, 1.0, 1.0, 1.0), "clients must be a whole number from 1"),
        (lambda: distributed_skellam_privacy(2, 0, 1.0, 1.0, 1.0), "dimension must be a whole number from 1"),
        (lambda: distributed_skellam_privacy(2, 1, 0.0, 1.0, 1.0), "clip_norm must be a number from"),
        (lambda: distributed_skellam_privacy(2, 1, 1.0, 1.0, 0.0), "granularity must be a number from"),
        (lambda: distributed_skellam_privacy(2, 1, 1.0, 0.0, 1.0), "local_variance must be a number from"),
        (lambda: distributed_skellam_privacy(2, 1, 1.0, 1e-7, 1.0), "local_variance in squared steps must be a number from 2e-06"),
        (lambda: distributed_skellam_privacy(2, 1, 1.0, 1.0, 1.0, adjacency="both"), "adjacency must be one of replace-one"),
        (
            lambda: calibrate_distributed_skellam(2, 1, 0.0, 8, Budget(1.0, 0.1, "add-or-remove-one")),
            "clip_norm must be a number from 1e-100",
        ),
        (
            lambda: calibrate_distributed_skellam(2, 1, 1.0, 63, Budget(1.0, 0.1, "add-or-remove-one")),
            "bits must be a whole number from 1 to 62, got 63",
        ),
        (lambda: calibrate_distributed_skellam(2, 1, 1.0, 8, Budget(0.0, 0.1, "add-or-remove-one")), "epsilon must be a number from 1e-05"),
        (
            lambda: calibrate_distributed_skellam(2, 1, 1.0, 8, Budget(1.0, 0.0, "add-or-remove-one")),
            "delta must be a number above 0 and below 1",
        ),
        (
            lambda: calibrate_distributed_skellam(2, 1, 1.0, 8, Budget(1.0, 0.1, "add-or-remove-one", 0)),
            "rounds must be a whole number from 1",
        ),
        (
            lambda: calibrate_distributed_skellam(0, 1, 1.0, 8, Budget(1.0, 0.1, "add-or-remove-one")),
            "clients must be a whole number from 1",
        ),
        (
            lambda: calibrate_distributed_skellam(2, 0, 1.0, 8, Budget(1.0, 0.1, "add-or-remove-one")),
            "dimension must be a whole number from 1",
        ),
        (
            lambda: calibrate_distributed_skellam(2, 1, 1.0, 8, Budget(1.0, 0.1, "add-or-remove-one"), deviations=0.0),
            "deviations must be a number from 0.1",
        ),
        (lambda: calibrate_distributed_skellam(2, 1, 1.0, 8, Budget(1.0, 0.1, "both")), "adjacency must be one of replace-one"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
