"""Tests of ProjUnit and FastProjUnit.

Points under test: moments against simulation, published figures, and the proven bound on the bias.
"""

import itertools
import math

import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.privunit import PrivUnitMechanism
from quietbits.design.local.unit_vectors.projected_privunit import FastProjUnitMechanism, ProjectedPrivUnitMechanism, ProjUnitMechanism
from quietbits.design.local.unit_vectors.shared_frames import frame_vectors
from quietbits.solvers.numerics.projected_norm import hadamard_bias, mean_norm, projected_mean_norm
from quietbits.solvers.numerics.walsh_hadamard import hadamard_entries

KINDS = (ProjUnitMechanism, FastProjUnitMechanism)
# Squared errors of one unit vector in 200 dimensions by FastProjUnit with 64 projections of PrivUnitG, in a published simulation.
PUBLISHED = {4.0: 87.0, 6.0: 46.0}


def estimates(mechanism: ProjectedPrivUnitMechanism, vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return the estimate from each client's message alone."""
    messages = mechanism.encode(vectors, np.random.default_rng(seed))
    one_by_one = len(messages)
    if isinstance(mechanism, ProjUnitMechanism):
        # All frames are made together, and some one by one as on the server.
        lifted = frame_vectors(messages[:, 0].astype(int).tolist(), messages[:, 1:], mechanism.ball.dimension)
        one_by_one = 20
    result = np.array([mechanism.decode(mechanism.aggregate(messages[row : row + 1]), 1) for row in range(one_by_one)])
    if one_by_one < len(messages):
        together = lifted * (mechanism.ball.clip_norm / mechanism.scale)
        np.testing.assert_allclose(together[:one_by_one], result, atol=1e-12)
        return together
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 6.0])
def test_errors_of_unit_vectors_are_as_predicted(kind: type[ProjectedPrivUnitMechanism], epsilon: float) -> None:
    mechanism = kind(epsilon, 64, NormBall(200, 2.0))
    vectors = np.random.default_rng(0).normal(size=(400, 200))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    squares = np.square(estimates(mechanism, vectors, 1) - vectors).sum(axis=1)
    allowed = 5 * squares.std() / math.sqrt(len(squares))
    predicted = float(mechanism.variance(vectors).mean())
    # FastProjUnit states a bound, at most a fortieth above the measured value.
    slack = 0.0 if kind is ProjUnitMechanism else predicted / 40
    assert predicted - slack - allowed <= squares.mean() <= predicted + allowed
    least = PrivUnitMechanism(epsilon, mechanism.ball).variance(vectors[:1])[0]
    assert least - allowed < squares.mean() < 1.04 * least + allowed
    if epsilon in PUBLISHED:
        assert squares.mean() < 1.01 * PUBLISHED[epsilon] + allowed


@pytest.mark.parametrize("kind", KINDS)
def test_all_projections_are_privunit(kind: type[ProjectedPrivUnitMechanism]) -> None:
    ball = NormBall(16, 2.0, 3.0)
    mechanism = kind(2.0, 16, ball)
    assert mechanism.bias_bound == 0
    # PrivUnit's variance is rounded upward by a relative error of 2e-9.
    assert mechanism.variance_bound == pytest.approx(PrivUnitMechanism(2.0, ball).variance_bound, rel=3e-9)


@pytest.mark.parametrize(("dimension", "projected"), [(4, 1), (10, 3), (10, 10)])
def test_mean_norms_of_random_projections(dimension: int, projected: int) -> None:
    vectors = np.random.default_rng(3).normal(size=(100_000, dimension))
    norms = np.linalg.norm(vectors[:, :projected], axis=1) / np.linalg.norm(vectors, axis=1)
    assert abs(norms.mean() - projected_mean_norm(dimension, projected)) <= 5 * norms.std() / math.sqrt(len(norms)) + 1e-12


def test_the_series_of_mean_norms_meets_the_gamma_functions() -> None:
    assert mean_norm(20_001) / mean_norm(19_999) == pytest.approx(math.sqrt(20_000.5 / 19_998.5), rel=1e-10)


def exact_bias(vector: np.ndarray, projected: int) -> float:
    """Return the norm of E P^T u / c - v over all signs and all choices of rows."""
    size = len(vector)
    matrix = hadamard_entries(np.arange(size)[:, None], np.arange(size)).astype(float) / math.sqrt(size)
    chosen = np.array([*itertools.combinations(range(size), projected)])
    total, count = np.zeros(size), 0
    for signs in itertools.product((-1.0, 1.0), repeat=size):
        turned = matrix * np.array(signs)
        parts = (turned @ vector)[chosen]
        norms = np.linalg.norm(parts, axis=1, keepdims=True)
        points = np.where(norms > 1e-12, parts / np.maximum(norms, 1e-12), np.eye(1, projected))
        total += turned.T @ np.bincount(chosen.ravel(), points.ravel(), size)
        count += len(chosen)
    return float(np.linalg.norm(total / count / projected_mean_norm(size, projected) - vector))


@pytest.mark.parametrize("vector", [[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0], [4, 2, 1, 1, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8]])
def test_the_bias_of_every_vector_is_within_the_bound(vector: list[int]) -> None:
    unit = np.array(vector, dtype=float)
    unit /= np.linalg.norm(unit)
    for projected in (2, 5, 8):
        assert exact_bias(unit, projected) <= hadamard_bias(8, projected) + 1e-12


def test_moments_that_the_bound_on_the_bias_rests_on() -> None:
    # The ratio r = (n / k) |S H D v|**2 has mean 1, and variance and fourth moment at most as stated, for sparse and dense vectors.
    n, k, draws, rng = 32, 8, 10_000, np.random.default_rng(4)
    matrix = hadamard_entries(np.arange(n)[:, None], np.arange(n)).astype(float) / math.sqrt(n)
    for active in (1, 2, 4, 7, 32):
        vector = np.zeros(n)
        vector[:active] = 1 / math.sqrt(active)
        images = (np.where(rng.random((draws, n)) < 0.5, -1.0, 1.0) * vector) @ matrix
        chosen = np.take_along_axis(images, np.argsort(rng.random(images.shape), axis=1)[:, :k], axis=1)
        excess = n / k * np.square(chosen).sum(axis=1) - 1
        spread = (n * (k - 1) + (3 - 2 * np.sum(vector**4)) * (n - k)) / (k * (n - 1)) - 1
        assert abs(excess.mean()) <= 5 * excess.std() / math.sqrt(draws) + 1e-12
        assert abs(np.square(excess).mean() - spread) <= 5 * np.square(excess).std() / math.sqrt(draws) + 1e-12
        assert np.mean(excess**4) <= (3 * (k - 1) * 8.25 + 116) / k**3
    x = np.linspace(-1, 100, 2_000_001)
    assert (np.sqrt(1 + x) - (1 + x / 2 - 0.15 * x**2 - 0.35 * x**4)).min() >= -1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments_say_what_is_needed(kind: type[ProjectedPrivUnitMechanism]) -> None:
    with pytest.raises(ValueError, match=r"ball must be of norm 2 for (Fast)?ProjUnit, got norm 1"):
        kind(1.0, 2, NormBall(3, 1.0))
    with pytest.raises(ValueError, match=r"projected must be a whole number from 1 to [34], got 5"):
        kind(1.0, 5, NormBall(3, 2.0))
    mechanism = kind(1.0, 2, NormBall(3, 2.0))
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 3\), got \(4, 2\)"):
        mechanism.aggregate(np.zeros((4, 2)))
    for seed in (-1.0, 1.5, 2.0**53, math.nan, math.inf):
        with pytest.raises(ValueError, match="messages must begin with a seed, a whole number from 0 to 9007199254740991, got "):
            mechanism.aggregate(np.array([[1.0, 1.0, 0.0], [seed, 1.0, 0.0]]))


def test_a_hundred_thousand_coordinates() -> None:
    mechanism = FastProjUnitMechanism(6.0, 1024, NormBall(100_000, 2.0))
    vectors = np.zeros((25, 100_000))
    vectors[:, 3] = 1.0
    result = estimates(mechanism, vectors, 5)[:, 3]
    assert abs(result.mean() - 1) < 5 * result.std() / 5 + mechanism.bias_bound
