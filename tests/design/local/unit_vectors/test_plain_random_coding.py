"""Plain random coding: its index by enumeration, its epsilon, its bias, and the figures of others."""

import math

import mpmath
import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.plain_random_coding import PlainRandomCodingMechanism, plain_random_coding_mechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism

# Squared errors of one unit vector in 200 dimensions, with 8 bits and without bias.
REFERENCES = {1.0: 1276.7, 4.0: 89.0, 6.0: 45.7}


@pytest.mark.parametrize("epsilon", REFERENCES)
def test_published_figures(epsilon: float) -> None:
    mechanism = PlainRandomCodingMechanism(epsilon, 8, NormBall(200, 2.0), unbiased=True)
    assert mechanism.bias_bound == 0
    assert mechanism.worst_variance - 1 == pytest.approx(REFERENCES[epsilon], abs=0.051)
    # And little less than twice that epsilon is what is proven.
    assert 1.8 * epsilon < mechanism.epsilon < 2 * epsilon


def test_indices_have_probabilities_in_proportion_to_the_density() -> None:
    mechanism = PlainRandomCodingMechanism(2.0, 6, NormBall(5, 2.0))
    probabilities = mechanism.index_probabilities(np.eye(1, 5)[0], seed=3)
    assert probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert math.log(probabilities.max() / probabilities.min()) == pytest.approx(2.0, rel=1e-12)


def test_two_vectors_come_close_to_epsilon_and_not_above_it() -> None:
    # Of two candidates on a line one may lie in the first vector's cap, and the other in the second's.
    mechanism = PlainRandomCodingMechanism(1.0, 1, NormBall(1, 2.0))
    ratios = [
        np.abs(np.log(mechanism.index_probabilities([1.0], seed) / mechanism.index_probabilities([-1.0], seed))).max()
        for seed in range(200)
    ]
    assert max(ratios) == pytest.approx(mechanism.epsilon, rel=1e-9)
    assert max(ratios) <= mechanism.epsilon


@pytest.mark.parametrize(("bits", "unbiased"), [(3, False), (3, True), (6, False)])
def test_bias_and_variance_are_exact(bits: int, unbiased: bool) -> None:
    mechanism = PlainRandomCodingMechanism(4.0, bits, NormBall(6, 2.0, 2.0), unbiased)
    vectors = np.tile([[0.0, 2.0, 0.0, 0.0, 0.0, 0.0]], (1200, 1))
    messages = mechanism.encode(vectors, np.random.default_rng(0))
    found = np.array([mechanism.decode(mechanism.aggregate(messages[row : row + 1]), 1) for row in range(len(messages))])
    spread = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - [0, 2 * mechanism.shrinking, 0, 0, 0, 0]) < 5 * spread).all()
    assert mechanism.bias_bound == pytest.approx(2 * (1 - mechanism.shrinking), abs=1e-12)
    np.testing.assert_allclose(mechanism.known_bias(2 * vectors[:1]), [[0, -mechanism.bias_bound, 0, 0, 0, 0]], atol=1e-12)
    assert (mechanism.shrinking == 1) is unbiased
    squares = np.square(found - found.mean(axis=0)).sum(axis=1)
    assert abs(squares.mean() - mechanism.variance(vectors)[0]) < 5 * squares.std() / math.sqrt(len(squares))


def test_many_candidates_are_privunit_g() -> None:
    mechanism = PlainRandomCodingMechanism(3.0, 18, NormBall(50, 2.0))
    assert mechanism.shrinking == pytest.approx(1, abs=1e-3)
    assert mechanism.worst_variance == pytest.approx(PrivUnitGMechanism(3.0, mechanism.ball).worst_variance, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "bits"), [(0.001, 1), (1.0, 8), (20.0, 20)])
def test_the_epsilon_that_is_asked_for_is_kept_and_used(epsilon: float, bits: int) -> None:
    found = plain_random_coding_mechanism(epsilon, bits, NormBall(20, 2.0)).epsilon
    assert epsilon * (1 - 1e-9) < found <= epsilon


def test_other_norms_are_refused() -> None:
    with pytest.raises(ValueError, match="ball must be of norm 2 for minimal random coding, got norm 1"):
        PlainRandomCodingMechanism(1.0, 3, NormBall(3, 1.0))


@pytest.mark.parametrize("bits", [1, 2, 5, 12])
@pytest.mark.parametrize("epsilon", [1e-4, 1.3e-4, 0.0123, 1.0, 20.0])
def test_epsilon_is_rounded_upward(epsilon: float, bits: int) -> None:
    with mpmath.workdps(50):
        density, others = mpmath.exp(epsilon), 2**bits - 1
        exact = epsilon + mpmath.log((1 + others * density) / (density + others))
        found = PlainRandomCodingMechanism(epsilon, bits, NormBall(8, 2.0)).epsilon
        assert exact < found < exact * (1 + mpmath.mpf("2e-14"))
