"""In how many rounds a secretly sampled client takes part."""

import math

import numpy as np
import pytest

from quietbits.solvers.accounting.sampling import likely_participations


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
