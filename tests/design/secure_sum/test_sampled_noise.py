"""Calibration of noise and tosses that clients share, with sampled clients."""

import pytest

from quietbits.analysis.catalogue.accounts import calibrate
from quietbits.design.contracts.task import Budget
from quietbits.design.secure_sum.distributed_skellam import distributed_skellam_privacy
from quietbits.design.secure_sum.poisson_binomial_mechanism import calibrate_theta, poisson_binomial_privacy
from quietbits.design.secure_sum.shared_noise import calibrate_distributed_skellam
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling


def test_skellam_noise() -> None:
    sampling = PoissonSampling(0.05)
    calibrated = calibrate_distributed_skellam(200, 64, 1.0, 20, Budget(2.0, 1e-5, "add-or-remove-one", 5, sampling=sampling))
    reached = distributed_skellam_privacy(200, 64, 1.0, **calibrated).epsilon(1e-5, rounds=5, sampling=sampling)
    assert 0 <= 2.0 - reached <= 1e-6
    everyone = calibrate_distributed_skellam(200, 64, 1.0, 20, Budget(2.0, 1e-5, "add-or-remove-one", 5))
    assert calibrated["local_variance"] < everyone["local_variance"] / 5


def test_tosses() -> None:
    sampling = FixedSizeSampling(20, 2)
    theta = calibrate_theta(20, 2, 4, Budget(2.0, 1e-5, "replace-one", 5, sampling=sampling))
    assert 0 <= 2.0 - poisson_binomial_privacy(20, 2, theta, 4).epsilon(1e-5, rounds=5, sampling=sampling) <= 1e-6
    assert theta > calibrate_theta(20, 2, 4, Budget(2.0, 1e-5, "replace-one", 5))


def test_discrete_gaussian_noise() -> None:
    # At this epsilon, dp-accounting's bound for samples of a fixed size takes half a second, so the search must need few evaluations.
    sampling = FixedSizeSampling(200, 10)
    calibrated = calibrate("distributed-discrete-gaussian", epsilon=4.0, delta=1e-5, clients=200, dimension=64, bits=20, sampling=sampling)
    assert (calibrated.report.privacy.adjacency, calibrated.report.privacy.sampling) == ("replace-one", sampling)
    assert 0 <= 4.0 - calibrated.epsilon <= 1e-6


@pytest.mark.parametrize("name", ["distributed-discrete-gaussian", "distributed-skellam"])
def test_the_sampling_asks_for_its_adjacency(name: str) -> None:
    calibrated = calibrate(name, epsilon=4.0, delta=1e-5, clients=200, dimension=64, bits=20, sampling=PoissonSampling(0.5))
    assert calibrated.report.privacy.adjacency == "add-or-remove-one"
