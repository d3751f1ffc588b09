"""In how many rounds a secretly sampled client takes part."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quietbits.solvers.accounting.sampling import (
    FixedSizeSampling,
    PoissonSampling,
    Sampling,
    amplified_epsilon,
    delta_of_everyone,
    likely_participations,
    sampled_share,
)


@pytest.mark.parametrize("probability", [1e-6, 0.01, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("rounds", [1, 7, 400])
@pytest.mark.parametrize("failure", [0.3, 1e-3, 1e-12])
def test_more_participations_are_as_rare_as_asked_and_one_less_is_not(probability: float, rounds: int, failure: float) -> None:
    found = likely_participations(probability, rounds, failure)
    terms = [math.comb(rounds, k) * probability**k * (1 - probability) ** (rounds - k) for k in range(rounds + 1)]
    assert math.fsum(terms[found + 1 :]) <= failure
    assert found == 0 or math.fsum(terms[found:]) > failure * (1 - 1e-6)


def test_nothing_is_left_out_without_a_failure_probability() -> None:
    assert likely_participations(1e-9, 5, 0.0) == 5


def test_rounds_without_number() -> None:
    mean, deviation = 10**10, math.sqrt(0.99 * 10**10)
    found = likely_participations(0.01, 10**12, 1e-6)
    assert mean + 4.7 * deviation < found < mean + 4.8 * deviation


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
