"""Tests of a rotating simplex.

Points under test: its code by enumeration, privacy for every seed, error, and best number of closest corners.
"""

import math

import mpmath
import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.privunit import PrivUnitMechanism
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism, largest_normals_sum, most_simplex_bits
from quietbits.design.local.unit_vectors.shared_frames import frame_vectors
from quietbits.errors import InfeasibleError
from quietbits.solvers.numerics.walsh_hadamard import hadamard_entries


def corners_of(mechanism: RotatingSimplexMechanism, seed: int) -> np.ndarray:
    return np.array([mechanism.aggregate(np.array([[seed, number]], dtype=np.uint64)) for number in range(mechanism.corners)])


@pytest.mark.parametrize(("count", "largest"), [(2, 1), (5, 2), (16, 3), (40, 25)])
def test_expected_sums_of_the_largest_normal_numbers(count: int, largest: int) -> None:
    choices = [math.comb(count - 1, number) for number in range(largest)]
    with mpmath.workdps(15):

        def integrand(z: mpmath.mpf) -> mpmath.mpf:
            above = mpmath.ncdf(-z)
            few = mpmath.fsum(choices[number] * above**number * (1 - above) ** (count - 1 - number) for number in range(largest))
            return z * mpmath.npdf(z) * few

        expected = count * mpmath.quad(integrand, [-10, -5, -2, -1, 0, 1, 2, 5, 10])
    assert largest_normals_sum(count, largest) == pytest.approx(float(expected), rel=1e-11)


def test_corners_are_those_of_a_simplex() -> None:
    mechanism = RotatingSimplexMechanism(2.0, 3, NormBall(9, 2.0))
    products = corners_of(mechanism, 77) @ corners_of(mechanism, 77).T
    np.testing.assert_allclose(products, np.where(np.eye(8) == 1, 1, -1 / 7), atol=1e-12)


@pytest.mark.parametrize(("epsilon", "bits"), [(0.5, 1), (2.0, 3), (6.0, 4)])
def test_the_closest_corners_are_likelier_by_e_to_the_epsilon(epsilon: float, bits: int) -> None:
    mechanism = RotatingSimplexMechanism(epsilon, bits, NormBall(20, 2.0))
    rng = np.random.default_rng(0)
    for seed in range(20):
        vector = rng.normal(size=20)
        vector /= np.linalg.norm(vector)
        probabilities = mechanism.number_probabilities(vector, seed)
        assert probabilities.sum() == pytest.approx(1, rel=1e-12)
        near = np.argsort(corners_of(mechanism, seed) @ vector)[-mechanism.closest :]
        assert set(np.flatnonzero(probabilities > probabilities.min())) == set(near)
        assert math.log(probabilities.max() / probabilities.min()) == pytest.approx(epsilon, rel=1e-12)
        assert math.log(probabilities.max() / probabilities.min()) <= epsilon


def test_numbers_are_drawn_with_their_probabilities() -> None:
    mechanism = RotatingSimplexMechanism(2.0, 3, NormBall(10, 2.0))
    vectors = np.tile(np.eye(1, 10), (1200, 1))
    messages = mechanism.encode(vectors, np.random.default_rng(1))
    own = np.array([mechanism.number_probabilities(vectors[0], int(seed))[number] for seed, number in messages])
    share = np.mean(own == own.max())
    keep = mechanism.closest * own.max()
    assert abs(share - keep) < 5 * math.sqrt(keep * (1 - keep) / len(own))


@pytest.mark.parametrize(("epsilon", "bits"), [(1.0, 1), (4.0, 4), (6.0, 6)])
def test_errors_of_unit_vectors_are_as_predicted(epsilon: float, bits: int) -> None:
    mechanism = RotatingSimplexMechanism(epsilon, bits, NormBall(100, 2.0))
    vectors = np.random.default_rng(2).normal(size=(1000, 100))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    messages = mechanism.encode(vectors, np.random.default_rng(3))
    # All frames are made together, and some one by one as on the server.
    corners = hadamard_entries(messages[:, 1, None].astype(int), np.arange(1, mechanism.corners)) / math.sqrt(mechanism.corners - 1)
    result = frame_vectors(messages[:, 0].tolist(), corners, 100) / mechanism.projection_mean
    one_by_one = [mechanism.decode(mechanism.aggregate(messages[row : row + 1]), 1) for row in range(20)]
    np.testing.assert_allclose(result[:20], one_by_one, atol=1e-12)
    along = np.einsum("ij,ij->i", result, vectors)
    assert abs(along.mean() - 1) < 5 * along.std() / math.sqrt(len(along))
    squares = np.square(result - vectors).sum(axis=1)
    assert abs(squares.mean() - mechanism.variance(vectors).mean()) < 5 * squares.std() / math.sqrt(len(squares))


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 8.0])
def test_no_other_number_of_closest_corners_is_better(epsilon: float) -> None:
    ball, least = NormBall(200, 2.0), math.inf
    for bits in range(1, 8):
        mechanism = RotatingSimplexMechanism(epsilon, bits, ball)
        means = [
            math.expm1(epsilon)
            / (closest * math.exp(epsilon) + mechanism.corners - closest)
            * largest_normals_sum(mechanism.corners, closest)
            for closest in range(1, mechanism.corners)
        ]
        assert 1 + int(np.argmax(means)) == mechanism.closest
        assert PrivUnitMechanism(epsilon, ball).variance_bound < mechanism.variance_bound
        # For a small epsilon, two corners are better than four.
        assert mechanism.variance_bound < least or (epsilon, bits) == (0.1, 2)
        least = mechanism.variance_bound


def test_bad_arguments_say_what_is_needed() -> None:
    with pytest.raises(InfeasibleError, match="message_bits must be at most 2 for a simplex in 6 dimensions, got 3"):
        RotatingSimplexMechanism(1.0, 3, NormBall(6, 2.0))
    with pytest.raises(ValueError, match="ball must be of norm 2 for a rotating simplex, got norm 1"):
        RotatingSimplexMechanism(1.0, 1, NormBall(6, 1.0))
    with pytest.raises(ValueError, match="messages must hold numbers of corners from 0 to 3, got 4"):
        RotatingSimplexMechanism(1.0, 2, NormBall(6, 2.0)).aggregate(np.array([[1, 4]], dtype=np.uint64))
    assert [most_simplex_bits(dimension) for dimension in (1, 2, 3, 7)] == [1, 1, 2, 3]
