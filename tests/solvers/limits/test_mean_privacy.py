"""Limits of central and of local privacy, against mechanisms with known errors."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaln

from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.limits.mean_privacy import (
    central_bound,
    concentrated_central_bound,
    local_bound,
    unbiased_central_bound,
    unbiased_concentrated_central_bound,
    unbiased_local_bound,
)

SIZES = [(1, 1), (1, 1000), (3, 40), (100, 10), (100, 10_000), (2**14, 100), (2**20, 1000), (2**20, 2**30)]
EPSILONS = [1e-3, 0.1, 1.0, 3.0, 10.0]


@pytest.mark.parametrize(("dimension", "clients"), SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_noise_is_above_the_bounds(dimension: int, clients: int, epsilon: float) -> None:
    for delta in (1e-12, 1e-6, 1e-2):
        error = dimension * (gaussian_noise_multiplier(epsilon, delta) * 2 / clients) ** 2
        assert unbiased_central_bound(dimension, clients, epsilon, delta) <= error
        assert central_bound(dimension, clients, epsilon, delta) <= error / (1 + error)


@pytest.mark.parametrize(("dimension", "clients"), SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_l2_laplace_mechanism_is_above_the_pure_bounds(dimension: int, clients: int, epsilon: float) -> None:
    # The density is proportional to exp(-epsilon |z| n / 2): the radius has a Gamma distribution.
    error = dimension * (dimension + 1) * (2 / clients / epsilon) ** 2
    bound = unbiased_central_bound(dimension, clients, epsilon)
    assert bound <= error
    assert central_bound(dimension, clients, epsilon) <= error / (1 + error)
    if clients * epsilon >= 2 * dimension and epsilon <= 1:
        assert error <= 30 * bound


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-3, 0.3])
def test_one_number_of_one_client_is_attained(epsilon: float, delta: float) -> None:
    # The mechanism reveals the end of the interval with probability delta, and otherwise uses randomised response with the best letters.
    keep = (1 - delta) / (1 + math.exp(-epsilon))
    law = np.array([delta, keep, 1 - delta - keep, 0.0])
    letters = np.array([1.0, math.tanh(epsilon / 2), -math.tanh(epsilon / 2), -1.0])
    letters /= law @ letters
    variance = law @ letters**2 - 1
    assert unbiased_central_bound(1, 1, epsilon, delta) == pytest.approx(variance, rel=1e-7)
    assert unbiased_central_bound(1, 1, epsilon, delta) <= variance * (1 + 1e-12)


@pytest.mark.parametrize(("dimension", "clients"), SIZES)
@pytest.mark.parametrize("delta", [1e-8, 1e-3, 0.4])
def test_to_show_each_vector_with_probability_delta_is_above_the_bound(dimension: int, clients: int, delta: float) -> None:
    # The sum of the shown vectors over n delta is unbiased and (0, delta) private.
    error = (1 / delta - 1) / clients
    assert unbiased_central_bound(dimension, clients, 1e-6, delta) <= error
    assert unbiased_central_bound(dimension, clients, 1.0, delta) <= error


@pytest.mark.parametrize(("dimension", "clients"), SIZES)
def test_gaussian_noise_is_above_the_concentrated_bounds(dimension: int, clients: int) -> None:
    for rho in (1e-6, 1e-2, 1.0, 20.0):
        error = 2 * dimension / clients**2 / rho
        assert concentrated_central_bound(dimension, clients, rho) <= error / (1 + error)
        bound = unbiased_concentrated_central_bound(dimension, clients, rho)
        assert bound <= error
        if clients >= dimension:
            assert error <= bound * math.expm1(2 * rho) / (2 * rho) * (1 + 1e-8)


def test_pure_privacy_is_concentrated() -> None:
    # Pure epsilon implies rho = epsilon**2 / 2 (Bun, Steinke 2016, proposition 1.4), so this bound is lower.
    for (dimension, clients), epsilon in itertools.product(SIZES, EPSILONS):
        concentrated = unbiased_concentrated_central_bound(dimension, clients, epsilon**2 / 2)
        assert concentrated <= unbiased_central_bound(dimension, clients, epsilon) * (1 + 1e-6)


@pytest.mark.parametrize(("dimension", "clients"), SIZES)
def test_bounds_are_ordered(dimension: int, clients: int) -> None:
    for bound in (central_bound, unbiased_central_bound):
        for delta in (0.0, 1e-6):
            values = [bound(dimension, clients, epsilon, delta) for epsilon in np.geomspace(1e-4, 50, 6)]
            assert all(later <= earlier for earlier, later in itertools.pairwise(values))
            assert all(value > 0 for value in values)
        with_delta = [bound(dimension, clients, 1.0, delta) for delta in (0.0, 1e-12, 1e-8, 1e-4, 0.1)]
        assert all(later <= earlier for earlier, later in itertools.pairwise(with_delta))
    for delta in (0.0, 1e-6):
        assert central_bound(dimension, clients, 1.0, delta) <= unbiased_central_bound(dimension, clients, 1.0, delta) * (1 + 1e-12)
    assert unbiased_central_bound(dimension, clients, 1.0, radius=3.0) == pytest.approx(
        9 * unbiased_central_bound(dimension, clients, 1.0), rel=1e-12
    )


def test_few_clients_with_little_privacy_keep_the_error_of_zero() -> None:
    assert central_bound(2**20, 10, 0.1) > 0.99
    assert central_bound(2**20, 10, 0.01, 1e-9) > 0.2
    assert concentrated_central_bound(2**20, 10, 1e-3) > 0.99


def test_the_stated_constants() -> None:
    # With many clients per coordinate, the factors are max of x**2 / cosh(x/2)**2, and 1/sinh(epsilon/2)**2 without bias.
    scale = 100 / 10**12 / 0.01**2
    assert central_bound(100, 10**6, 0.01, 1e-12) == pytest.approx(1.757 * scale, rel=1e-2)
    assert unbiased_central_bound(100, 10**6, 0.01, 1e-12) == pytest.approx(4 * scale, rel=1e-3)
    # This case has few clients per coordinate.
    assert central_bound(2**30, 1000, 1.0, 1e-12) > 0.2
    assert central_bound(2**44, 10**9, 0.1, 1e-15) == pytest.approx(4 / 9 * 2**44 / 10**18 / 0.1**2, rel=0.15)
    # Under pure privacy the bound is of the order of the squared dimension.
    assert unbiased_central_bound(1024, 10**9, 0.01) == pytest.approx(0.162 * (1024 / 10**9 / 0.01) ** 2, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10, 1.0, 0.0), "dimension must be a whole number from 1"),
        ((3, 0, 1.0, 0.0), "clients must be a whole number from 1"),
        ((3, 10, 0.0, 0.0), "epsilon must be a number from"),
        ((3, 10, math.nan, 0.0), "epsilon must be a number from"),
        ((3, 10, 1.0, 1.0), "delta must be a number from 0"),
        ((3, 10, 1.0, -0.1), "delta must be a number from 0"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[int, int, float, float], message: str) -> None:
    for bound in (central_bound, unbiased_central_bound):
        with pytest.raises(ValueError, match=message):
            bound(*arguments)


def test_bad_rho_is_refused() -> None:
    for bound in (concentrated_central_bound, unbiased_concentrated_central_bound):
        with pytest.raises(ValueError, match="rho must be a number from"):
            bound(3, 10, 0.0)


def privunit_variance(dimension: int, epsilon: float) -> float:
    """Return the variance of PrivUnit with the best cap, whose density ratio is e^epsilon."""
    half = (dimension - 1) / 2

    def variance(threshold: float) -> float:
        inside = 0.5 * betainc(half, 0.5, 1 - threshold**2)
        first = math.exp(half * math.log1p(-(threshold**2)) - math.log(2 * half) - betaln(half, 0.5))
        mean = math.expm1(epsilon) * first / (1 + math.expm1(epsilon) * inside)
        return float(1 / mean**2 - 1)

    # The best cap is never much smaller than e^-epsilon.
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
def test_local_gaussian_noise_is_above_the_bounds(dimension: int, delta: float) -> None:
    for clients, epsilon in itertools.product((1, 100, 10**6), (0.05, 1.0, 6.0)):
        variance = dimension * (2 * gaussian_noise_multiplier(epsilon, delta)) ** 2 / clients
        assert 0 < unbiased_local_bound(dimension, clients, epsilon, delta) <= variance
        assert 0 < local_bound(dimension, clients, epsilon, delta) <= variance / (1 + variance)


def test_a_vector_that_is_shown_with_probability_delta_is_above_the_bound() -> None:
    for dimension, delta in itertools.product((1, 10, 10**5), (1e-6, 1e-2, 0.5)):
        assert unbiased_local_bound(dimension, 7, 1e-6, delta) <= (1 / delta - 1) / 7


def test_local_bounds_are_ordered() -> None:
    for dimension, clients in itertools.product((1, 2, 10**5), (1, 40, 10**5)):
        for bound in (local_bound, unbiased_local_bound):
            for delta in (0.0, 1e-6):
                values = [bound(dimension, clients, epsilon, delta) for epsilon in np.geomspace(1e-3, 30, 4)]
                assert all(later <= earlier for earlier, later in itertools.pairwise(values))
            assert bound(dimension, clients, 1.0, 1e-6) <= bound(dimension, clients, 1.0)
        assert local_bound(dimension, clients, 1.0) <= unbiased_local_bound(dimension, clients, 1.0)


def test_the_stated_constant() -> None:
    assert local_bound(1000, 10**9, 0.01) == pytest.approx(4 / math.e * 998 / 10**9 / 0.01**2, rel=1e-2)


def test_bad_arguments_of_local_bounds_are_refused() -> None:
    for bound in (local_bound, unbiased_local_bound):
        with pytest.raises(ValueError, match="epsilon must be a number from"):
            bound(3, 10, -1.0)
        with pytest.raises(ValueError, match="clients must be a whole number from 1"):
            bound(3, 0, 1.0)
