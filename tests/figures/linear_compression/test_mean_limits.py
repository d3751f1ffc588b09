"""Tests of the limits of a task beside the error of Gaussian noise."""

import pytest

from quietbits import FixedSizeSampling, NormBall, Task
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.figures.linear_compression.needed_bits import mean_limits


def task(dimension: int, clients: int, epsilon: float, **more: object) -> Task:
    return Task(NormBall(dimension, 2.0), clients, epsilon, 1e-5, "replace-one", **more)  # type: ignore[arg-type]


def test_bits_that_are_necessary_rise_with_the_square_of_clients_times_epsilon_until_the_dimension() -> None:
    # An unbiased estimate has an error of about 0.72 d c**2 / bits, which must be at most slack d sigma**2.
    few = mean_limits(task(2**22, 1000, 0.5), "secure-sum")
    more = mean_limits(task(2**22, 2000, 0.5), "secure-sum")
    assert more.necessary_unbiased_bits == pytest.approx(4 * few.necessary_unbiased_bits, rel=0.02)
    # In the same regime, the estimate zero needs no bits.
    assert few.necessary_bits == 0
    assert few.gaussian_error > few.zero_error
    # Precision beyond a bit per coordinate is cheap.
    many = mean_limits(task(64, 10**6, 1.0), "secure-sum")
    assert many.necessary_unbiased_bits == pytest.approx(many.necessary_bits, rel=1e-3)
    assert many.necessary_bits > 64


@pytest.mark.parametrize("trust_model", ["local", "secure-sum", "central"])
def test_limits_are_below_gaussian_noise_and_rise_with_trust_withheld(trust_model: str) -> None:
    limits = mean_limits(task(256, 5000, 1.0), trust_model)
    assert limits.private_error is not None
    assert limits.unbiased_private_error is not None
    assert limits.private_error <= limits.unbiased_private_error
    if trust_model != "local":
        assert limits.unbiased_private_error <= limits.gaussian_error
    looser = mean_limits(task(256, 5000, 1.0), trust_model, slack=10.0)
    assert looser.necessary_bits <= limits.necessary_bits
    assert looser.necessary_unbiased_bits < limits.necessary_unbiased_bits


def test_a_mechanism_of_the_house_sends_what_is_necessary() -> None:
    asked = task(256, 2000, 2.0, bits=12)
    mechanism = REGISTRY["distributed-discrete-gaussian"].mechanism_for(asked, {"bits": 12})
    limits = mean_limits(asked, "secure-sum", slack=mechanism.error().of_mean(2000) / mean_limits(asked, "secure-sum").gaussian_error)
    assert 0 < limits.necessary_bits <= mechanism.bits_per_client
    assert limits.necessary_unbiased_bits <= mechanism.bits_per_client


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="task must be one round in which all clients take part, got 3 rounds"):
        mean_limits(task(10, 100, 1.0, rounds=3), "central")
    with pytest.raises(ValueError, match="task must be one round"):
        mean_limits(task(10, 100, 1.0, sampling=FixedSizeSampling(100, 10)), "central")
    with pytest.raises(ValueError, match="slack must be a number from"):
        mean_limits(task(10, 100, 1.0), "central", slack=0.0)
    with pytest.raises(ValueError, match="trust_model must be one of"):
        mean_limits(task(10, 100, 1.0), "shuffle")
