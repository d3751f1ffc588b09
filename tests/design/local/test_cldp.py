"""Tests of CLDP for vectors.

Points under test: privacy by enumeration, the closed law, and the Walsh-Hadamard transform.
"""

import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
import scipy.linalg

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.cldp import (
    CLDPL1Mechanism,
    CLDPL2Mechanism,
    CLDPLinfMechanism,
    SampledSignMechanism,
    vector_cldp_mechanism,
)

NORMS = [1.0, 2.0, math.inf]


def message_probabilities(mechanism: SampledSignMechanism, vector: np.ndarray) -> np.ndarray:
    """Return the probability of every message, from the paper's formulas; shape (indices, 2)."""
    ball, dimension = mechanism.ball, mechanism.ball.dimension
    contrast = (math.exp(mechanism.epsilon) - 1) / (math.exp(mechanism.epsilon) + 1)
    if ball.norm == 1:
        size = mechanism.indices
        numbers = contrast / ball.clip_norm * scipy.linalg.hadamard(size)[:, :dimension] @ vector
    elif ball.norm == 2:
        ratio = math.gamma((dimension - 1) / 2 + 1) / math.gamma(dimension / 2 + 1)
        radius = ball.clip_norm * dimension * math.sqrt(math.pi) * ratio / (2 * contrast)
        numbers = math.sqrt(dimension) / radius * vector
    else:
        numbers = contrast / ball.clip_norm * vector
    return np.stack([1 - numbers, 1 + numbers], axis=1) / (2 * len(numbers))


def inputs(ball: NormBall) -> Iterator[np.ndarray]:
    """Yield the centre, ends of axes, scaled corners of the cube, and random unit vectors."""
    rng = np.random.default_rng(5)
    yield np.zeros(ball.dimension)
    directions = [*np.eye(ball.dimension), *rng.choice([-1.0, 1.0], (6, ball.dimension)), *rng.normal(size=(6, ball.dimension))]
    for direction in directions:
        surface = direction / np.linalg.norm(direction, ord=ball.norm) * ball.clip_norm
        yield from (surface, -surface)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_message_breaks_epsilon_and_the_realised_one_is_attained(norm: float, dimension: int, epsilon: float) -> None:
    mechanism = vector_cldp_mechanism(epsilon, NormBall(dimension, norm, 2.5))
    rows = np.array([message_probabilities(mechanism, vector).ravel() for vector in inputs(mechanism.ball)])
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    realised = float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())
    assert realised == pytest.approx(mechanism.realised_epsilon, rel=1e-9)
    assert realised <= epsilon * (1 + 1e-12)
    if norm != 2 or dimension == 1:
        assert mechanism.realised_epsilon == epsilon


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_decoded_messages_have_the_vector_as_mean_and_the_stated_variance_exactly(norm: float, dimension: int) -> None:
    mechanism = vector_cldp_mechanism(1.3, NormBall(dimension, norm, 2.5))
    identity = np.eye(2 * mechanism.indices, dtype=np.int64).reshape(-1, mechanism.indices, 2)
    decoded = np.array([mechanism.decode(histogram, 1) for histogram in identity])
    for vector in inputs(mechanism.ball):
        probabilities = message_probabilities(mechanism, vector).ravel()
        np.testing.assert_allclose(probabilities @ decoded, vector, atol=1e-12)
        error = float(probabilities @ np.square(decoded - vector).sum(axis=1))
        assert mechanism.variance([vector])[0] == pytest.approx(error, rel=1e-12)
        assert error <= mechanism.variance_bound * (1 + 1e-12)
    assert mechanism.variance(np.zeros((1, dimension)))[0] == mechanism.variance_bound


@pytest.mark.parametrize("norm", NORMS)
def test_messages_are_drawn_with_the_stated_probabilities(norm: float) -> None:
    mechanism = vector_cldp_mechanism(1.0, NormBall(5, norm, 2.5))
    clients = 200_000
    for vector in list(inputs(mechanism.ball))[-3:]:
        messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(11))
        expected = clients * message_probabilities(mechanism, vector)
        histogram = mechanism.aggregate(messages)
        # Each of at most 16 cells is within 5 sigma, with a false alarm in 100 000 seeds.
        assert (np.abs(histogram - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_the_closed_law_for_l2_is_that_of_the_published_sampler(dimension: int) -> None:
    mechanism = CLDPL2Mechanism(1.5, NormBall(dimension, 2.0, 1.0))
    rng, draws = np.random.default_rng(3), 200_000
    vector = rng.normal(size=dimension)
    vector *= 0.8 / np.linalg.norm(vector)
    # The published sampler rounds to the sphere, chooses a half of it, draws a point of this half, and quantises the point to an axis.
    side = np.where(rng.random(draws) < (1 + 0.8) / 2, 1.0, -1.0)
    side *= np.where(rng.random(draws) < math.exp(1.5) / (math.exp(1.5) + 1), 1.0, -1.0)
    points = rng.normal(size=(draws, dimension))
    points *= (side * np.sign(points @ vector))[:, None]
    contrast = (math.exp(1.5) - 1) / (math.exp(1.5) + 1)
    radius = dimension * math.sqrt(math.pi) * math.gamma((dimension + 1) / 2) / (2 * contrast * math.gamma(dimension / 2 + 1))
    points *= radius / np.linalg.norm(points, axis=1, keepdims=True)
    lengths = np.abs(points).sum(axis=1)
    cumulative = np.cumsum(np.abs(points), axis=1)
    index = np.minimum((cumulative <= (rng.random(draws) * lengths)[:, None]).sum(axis=1), dimension - 1)
    kept = rng.random(draws) < 0.5 + lengths / (2 * radius * math.sqrt(dimension))
    bit = (points[np.arange(draws), index] > 0) == kept
    histogram = mechanism.aggregate(2 * index + bit)
    expected = draws * message_probabilities(mechanism, vector)
    # Each of at most 12 cells is within 5 sigma, with a false alarm in 100 000 seeds.
    assert (np.abs(histogram - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("dimension", [2, 3, 127, 300, 301, 10**6, 2**31])
def test_the_realised_epsilon_for_l2_against_fifty_digits(dimension: int) -> None:
    with mpmath.workdps(50):
        kappa = mpmath.gamma(mpmath.mpf(dimension) / 2) / mpmath.sqrt(mpmath.pi) / mpmath.gamma(mpmath.mpf(dimension + 1) / 2)
        for epsilon in (1e-3, 1.0, 100.0):
            exact = 2 * mpmath.atanh(kappa * mpmath.sqrt(dimension) * mpmath.tanh(mpmath.mpf(epsilon) / 2))
            mechanism = CLDPL2Mechanism(epsilon, NormBall(dimension, 2.0)).realised_epsilon
            assert mechanism == pytest.approx(float(exact), rel=1e-12)
            assert mechanism < min(epsilon, 3)


def test_the_cube_around_an_l2_ball_is_served_better_than_the_ball() -> None:
    on_ball = CLDPL2Mechanism(2.0, NormBall(1000, 2.0)).variance_bound
    on_cube = CLDPLinfMechanism(2.0, NormBall(1000, math.inf)).variance_bound
    assert on_cube / on_ball == pytest.approx(2 / math.pi, rel=1e-3)


@pytest.mark.parametrize(
    ("norm", "dimension", "bits"), [(1.0, 100, 8), (1.0, 128, 8), (1.0, 1, 1), (2.0, 128, 8), (2.0, 129, 9), (math.inf, 3, 3)]
)
def test_a_message_takes_an_index_and_a_bit(norm: float, dimension: int, bits: int) -> None:
    assert vector_cldp_mechanism(1.0, NormBall(dimension, norm)).bits_per_client == bits


def several_draws_law(mechanism: CLDPL2Mechanism, vector: np.ndarray, points: int = 4000) -> np.ndarray:
    """Return the probability of every pair of draws in the plane, by the paper's sum."""
    angles = (np.arange(points) + 0.5) / points * 2 * math.pi
    z = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    lengths = np.abs(z).sum(axis=1)
    # The point z yields coordinate i with probability |z_i| / ||z||_1; the sign of z_i is kept with probability
    # 1/2 + ||z||_1 / (2 sqrt(dimension)).
    kept = 0.5 + lengths / (2 * math.sqrt(2))
    draws = np.stack(
        [np.abs(z[:, i]) / lengths * np.where((z[:, i] > 0) == up, kept, 1 - kept) for i in range(2) for up in (False, True)], axis=1
    )
    length = float(np.linalg.norm(vector)) / mechanism.ball.clip_norm
    half = (1 + length * math.tanh(mechanism.epsilon / 2)) / 2
    weights = np.where(z @ vector > 0, half, 1 - half) * 2 / points
    return np.einsum("p,pi,pj->ij", weights, draws, draws)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_two_draws_of_one_private_point_keep_epsilon_and_have_the_stated_mean_and_variance(epsilon: float) -> None:
    mechanism = CLDPL2Mechanism(epsilon, NormBall(2, 2.0, 2.5), draws=2)
    surface = 2.5 * np.array([[math.cos(angle), math.sin(angle)] for angle in np.arange(16) * math.pi / 8 + 0.03])
    pairs = [(i, j) for i in range(4) for j in range(4)]
    decoded = np.array([mechanism.decode(mechanism.aggregate(np.array([pair])), 1) for pair in pairs])
    laws = []
    for vector in (*surface, 0.3 * surface[3], np.zeros(2)):
        law = several_draws_law(mechanism, vector).ravel()
        laws.append(law)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        np.testing.assert_allclose(law @ decoded, vector, atol=2e-3)
        error = float(law @ np.square(decoded - vector).sum(axis=1))
        assert mechanism.variance([vector])[0] == pytest.approx(error, rel=2e-3)
    realised = float(np.log(np.max(laws, axis=0) / np.min(laws, axis=0)).max())
    # Two draws reveal more about the point than a single draw; the point is epsilon private.
    assert CLDPL2Mechanism(epsilon, mechanism.ball).realised_epsilon * 1.02 < realised <= epsilon
    assert mechanism.realised_epsilon == mechanism.guarantee.epsilon == epsilon


def test_two_draws_are_drawn_with_the_stated_probabilities() -> None:
    mechanism, clients = CLDPL2Mechanism(1.5, NormBall(2, 2.0, 2.5), draws=2), 200_000
    for vector in (np.array([2.0, -1.0]), np.array([0.0, -2.5]), np.zeros(2)):
        messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(11))
        assert messages.shape == (clients, 2)
        counts = np.bincount(messages @ [4, 1], minlength=16)
        expected = clients * several_draws_law(mechanism, vector).ravel()
        # Each of 16 cells is within 5 sigma, with a false alarm in 100 000 seeds.
        assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize(("epsilon", "draws"), [(2.0, 2), (2.0, 16), (0.5, 64), (4.0, 64)])
def test_several_draws_have_the_stated_error(epsilon: float, draws: int) -> None:
    mechanism, rng, clients = CLDPL2Mechanism(epsilon, NormBall(64, 2.0), draws), np.random.default_rng(draws), 500
    vectors = np.abs(rng.normal(size=(clients, 64)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) * 1.25
    errors = []
    for _ in range(40):
        estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, rng)), clients)
        errors.append(np.square(estimate - vectors.mean(axis=0)).sum())
    predicted = mechanism.error(vectors).of_mean(clients)
    assert abs(np.mean(errors) - predicted) <= 4 * np.std(errors, ddof=1) / math.sqrt(40)
    assert np.std(errors, ddof=1) / math.sqrt(40) < 0.06 * predicted


def test_as_many_draws_as_coordinates_have_less_than_twice_the_error_of_the_point() -> None:
    for epsilon, stated in ((0.5, 0.67), (2.0, 0.069), (4.0, 0.043)):
        ball = NormBall(128, 2.0)
        by_draws = [CLDPL2Mechanism(epsilon, ball, draws) for draws in (1, 2, 64, 127, 128)]
        variances = [mechanism.variance_bound for mechanism in by_draws]
        point = by_draws[0].message_norm ** 2 / 128
        np.testing.assert_allclose(variances, [point * (127 + draws) / draws for draws in (1, 2, 64, 127, 128)], rtol=1e-12)
        assert by_draws[-1].variance(np.eye(128)[:1])[0] / 10_000 == pytest.approx(stated, rel=0.01)
        assert [mechanism.bits_per_client for mechanism in by_draws] == [8, 16, 512, 1016, 1024]


def test_chunks_of_clients_draw_from_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, vectors = CLDPL2Mechanism(8.0, NormBall(3, 2.0), 3), np.tile([0.6, 0.0, -0.8], (3000, 1))
    monkeypatch.setattr("quietbits.design.local.cldp.CHUNK", 7 * 3)
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(2))), 3000)
    assert np.linalg.norm(estimate - vectors[0]) <= 4 * math.sqrt(mechanism.error(vectors).of_mean(3000))


@pytest.mark.parametrize("draws", [0, 5, 1.5])
def test_more_draws_than_coordinates_are_refused(draws: float) -> None:
    with pytest.raises(ValueError, match=f"draws must be a whole number from 1 to 4, got {draws}"):
        CLDPL2Mechanism(1.0, NormBall(4, 2.0), draws)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", [1.0, math.inf])
def test_other_balls_have_no_private_vector_to_draw_from(norm: float) -> None:
    with pytest.raises(ValueError, match=f"draws must be 1 for CLDP on a ball of norm {norm:g}, got 2"):
        vector_cldp_mechanism(1.0, NormBall(4, norm), 2)


def test_messages_of_another_number_of_draws_are_refused() -> None:
    mechanism = CLDPL2Mechanism(1.0, NormBall(4, 2.0), 3)
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 3\), got \(2, 2\)"):
        mechanism.aggregate(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(ValueError, match="clients must be the number of messages in the histogram, 2, got 3"):
        mechanism.decode(mechanism.aggregate(np.zeros((2, 3), dtype=np.int64)), 3)


def test_chunks_of_clients_get_the_same_hadamard_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = CLDPL1Mechanism(1.0, NormBall(6, 1.0))
    vectors = np.random.default_rng(1).normal(size=(50, 6))
    whole = mechanism.encode(vectors, np.random.default_rng(2))
    monkeypatch.setattr("quietbits.design.local.cldp.CHUNK", 7 * 6)
    np.testing.assert_array_equal(mechanism.encode(vectors, np.random.default_rng(2)), whole)


@pytest.mark.parametrize("norm", [1.5, 3.0])
def test_other_norms_are_refused(norm: float) -> None:
    with pytest.raises(ValueError, match=f"ball must be of norm 1, 2 or infinity for CLDP, got norm {norm:g}"):
        vector_cldp_mechanism(1.0, NormBall(4, norm))
    with pytest.raises(ValueError, match=f"ball must be of norm 1 for CLDPL1Mechanism, got norm {norm:g}"):
        CLDPL1Mechanism(1.0, NormBall(4, norm))


def test_messages_and_histograms_that_cannot_be_are_refused() -> None:
    mechanism = vector_cldp_mechanism(1.0, NormBall(4, 2.0))
    with pytest.raises(ValueError, match="messages must be whole numbers from 0 to 7, got 0 to 8"):
        mechanism.aggregate(np.array([0, 8]))
    with pytest.raises(ValueError, match=r"messages must be whole numbers from 0 to 7, got 0\.5 to 1\.0"):
        mechanism.aggregate(np.array([0.5, 1.0]))
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients,\), got \(2, 4\)"):
        mechanism.aggregate(np.zeros((2, 4), dtype=np.int64))
    with pytest.raises(ValueError, match="clients must be the number of messages in the histogram, 8, got 9"):
        mechanism.decode(np.ones((4, 2), dtype=np.int64), 9)
