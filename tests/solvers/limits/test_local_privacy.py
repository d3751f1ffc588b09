"""Limits of local privacy, against mechanisms whose errors are known."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaln

from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.limits.local_privacy import local_bound, unbiased_local_bound


def privunit_variance(dimension: int, epsilon: float) -> float:
    """Return the variance of PrivUnit with the best cap: a direction is e^epsilon times as likely inside the vector's cap as outside."""
    half = (dimension - 1) / 2

    def variance(threshold: float) -> float:
        inside = 0.5 * betainc(half, 0.5, 1 - threshold**2)
        first = math.exp(half * math.log1p(-(threshold**2)) - math.log(2 * half) - betaln(half, 0.5))
        mean = math.expm1(epsilon) * first / (1 + math.expm1(epsilon) * inside)
        return float(1 / mean**2 - 1)

    # No cap that is best is much smaller than e^-epsilon.
    reach = math.sqrt(min(0.999, (2 * epsilon + 10) / dimension))
    return float(minimize_scalar(variance, bounds=(0, reach), method="bounded", options={"xatol": 1e-12}).fun)


@pytest.mark.parametrize("dimension", [2, 3, 10, 128, 5000])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 8.0])
def test_privunit_attains_the_unbiased_bound(dimension: int, epsilon: float) -> None:
    variance = privunit_variance(dimension, epsilon)
    assert unbiased_local_bound(dimension, 1, epsilon) == pytest.approx(variance, rel=1e-6)
    assert unbiased_local_bound(dimension, 1, epsilon) <= variance * (1 + 1e-10)
    assert unbiased_local_bound(dimension, 500, epsilon, radius=2.0) == pytest.approx(4 * variance / 500, rel=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3, 64, 4096])
@pytest.mark.parametrize("clients", [1, 30, 10_000, 10**7])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 8.0])
def test_shrunk_privunit_is_above_the_biased_bound(dimension: int, clients: int, epsilon: float) -> None:
    variance = (1 / math.sinh(epsilon / 2) ** 2 if dimension == 1 else privunit_variance(dimension, epsilon)) / clients
    shrunk = variance / (1 + variance)
    assert 0.01 * shrunk <= local_bound(dimension, clients, epsilon) <= shrunk * (1 + 1e-10)


@pytest.mark.parametrize("dimension", [1, 3, 4096])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_gaussian_noise_is_above_the_bounds(dimension: int, delta: float) -> None:
    for clients, epsilon in itertools.product((1, 100, 10**6), (0.05, 1.0, 6.0)):
        variance = dimension * (2 * gaussian_noise_multiplier(epsilon, delta)) ** 2 / clients
        assert 0 < unbiased_local_bound(dimension, clients, epsilon, delta) <= variance
        assert 0 < local_bound(dimension, clients, epsilon, delta) <= variance / (1 + variance)


def test_a_vector_that_is_shown_with_probability_delta_is_above_the_bound() -> None:
    for dimension, delta in itertools.product((1, 10, 10**5), (1e-6, 1e-2, 0.5)):
        assert unbiased_local_bound(dimension, 7, 1e-6, delta) <= (1 / delta - 1) / 7


def test_bounds_are_ordered() -> None:
    for dimension, clients in itertools.product((1, 2, 10**5), (1, 40, 10**5)):
        for bound in (local_bound, unbiased_local_bound):
            for delta in (0.0, 1e-6):
                values = [bound(dimension, clients, epsilon, delta) for epsilon in np.geomspace(1e-3, 30, 4)]
                assert all(later <= earlier for earlier, later in itertools.pairwise(values))
            assert bound(dimension, clients, 1.0, 1e-6) <= bound(dimension, clients, 1.0)
        assert local_bound(dimension, clients, 1.0) <= unbiased_local_bound(dimension, clients, 1.0)


def test_the_stated_constant() -> None:
    assert local_bound(1000, 10**9, 0.01) == pytest.approx(4 / math.e * 998 / 10**9 / 0.01**2, rel=1e-2)


def test_bad_arguments_are_refused() -> None:
    for bound in (local_bound, unbiased_local_bound):
        with pytest.raises(ValueError, match="epsilon must be a number from"):
            bound(3, 10, -1.0)
        with pytest.raises(ValueError, match="clients must be a whole number from 1"):
            bound(3, 0, 1.0)
