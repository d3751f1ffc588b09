"""Sparse means from sums of sketches.

Requirements: sparse means are recovered at the predicted error, and no estimate is outside the ball.

Seeds are fixed; each random check states its probability.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.stats

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.sparse_sum import LOOSE, TOLERANCE, SparseSum
from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.gaussian_sketch import GaussianSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.linear_sketch import LinearSketch

DIMENSION, CLIENTS, SIGMA, SUPPORT = 600, 10, 0.01, [7, 70, 300, 599]


def made(sketch: LinearSketch, *, sigma: float = SIGMA, sparsity: int = 4, clip: float = 1.3, **changes: Any) -> SparseSum:
    factor = sketch.length_factor
    sums = DistributedDiscreteGaussianMechanism(
        NormBall(sketch.sketch_dimension, 2.0, clip * factor),
        CLIENTS,
        bits=30,
        granularity=1e-3 * factor,
        local_sigma=sigma * factor,
        delta=1e-5,
        rotation="fourier",
    )
    return SparseSum(NormBall(sketch.dimension, 2.0), sketch, sums, sparsity, **changes)


def estimate(mechanism: SparseSum, vectors: np.ndarray, seed: int) -> np.ndarray:
    return mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(seed))), CLIENTS)


def sparse_vectors() -> np.ndarray:
    """Return equal vectors with four nonzero coordinates."""
    vectors = np.zeros((CLIENTS, DIMENSION))
    vectors[:, SUPPORT] = 0.4, -0.3, 0.5, 0.45
    return vectors


SKETCHES = {
    "hadamard": HadamardSketch(DIMENSION, 250, seed=1),
    "gaussian": GaussianSketch(DIMENSION, 250, seed=1),
    "count-mean": CountMeanSketch(DIMENSION, 5, 50, seed=1),
    "count-mean over 5": CountMeanSketch(DIMENSION, 5, 50, seed=1, scaling="mean"),
}


@cache
def found_in_rounds(name: str, *, refit: bool) -> np.ndarray:
    """Return the estimates of 30 rounds, each with a new sketch."""
    mechanism, vectors = made(SKETCHES[name], refit=refit), sparse_vectors()
    return np.array([estimate(mechanism.renewed(seed), vectors, seed) for seed in range(1, 31)])


# Scaled rows give the same estimates, as `test_scaled_rows_are_the_same_mechanism` shows.
@pytest.mark.parametrize("name", ["hadamard", "gaussian", "count-mean"])
def test_a_sparse_mean_is_found_at_the_predicted_error(name: str) -> None:
    # Least squares on four coordinates has about a chi-square error with four degrees of freedom: the median of 30 rounds is nearly always
    # within a quarter of the chi-square's median, 3.36 of 4.
    mechanism, estimates = made(SKETCHES[name]), found_in_rounds(name, refit=True)
    errors = np.sum((estimates - sparse_vectors()[0]) ** 2, axis=1)
    predicted = mechanism.error(sparse_vectors()).of_mean(CLIENTS) - mechanism.bias_bound**2
    assert predicted == pytest.approx(4 * (SIGMA**2 + 1e-6 / 4 / (1 - math.exp(-0.5))) / CLIENTS, rel=1e-9)
    assert 0.5 < np.median(errors) / predicted < 1.7
    assert (estimates[:, SUPPORT] != 0).all()
    # Noise exceeds its level, and adds a coordinate, in one round of 20. Two or fewer of 30 rounds have another coordinate with probability
    # 0.81, five or fewer with 0.997. The chi-square is above ten times its mean in one round of 10**8, and slightly more often with another
    # coordinate.
    assert np.mean(np.count_nonzero(estimates, axis=1) == 4) >= 25 / 30
    assert errors.max() < 10 * predicted
    # Without sparsity, the noise on all coordinates would be larger by DIMENSION / 4. The estimate zero errs by the mean.
    assert DIMENSION / 4 * predicted > 20 * errors.max()
    assert errors.max() < 0.01 * np.sum(sparse_vectors()[0] ** 2)


def test_refitting_takes_off_what_the_lasso_is_too_short_by() -> None:
    refitted, plain = (found_in_rounds("hadamard", refit=refit) for refit in (True, False))
    signs, sizes = np.sign(sparse_vectors()[0, SUPPORT]), np.abs(sparse_vectors()[0, SUPPORT])
    mechanism = made(SKETCHES["hadamard"])
    # The Lasso shrinks each coordinate by about m times the penalty; refitting shrinks nothing on average (5 sigma).
    shrunk = (sizes - plain[:, SUPPORT] * signs).mean()
    assert 0.5 < shrunk / (250 * mechanism.penalty) < 2
    spread = SIGMA / math.sqrt(CLIENTS * 120)
    assert abs((sizes - refitted[:, SUPPORT] * signs).mean()) < 5 * spread
    errors = [np.sum((item - sparse_vectors()[0]) ** 2, axis=1).mean() for item in (refitted, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_scaled_rows_are_the_same_mechanism() -> None:
    usual, scaled = made(SKETCHES["count-mean"]), made(SKETCHES["count-mean over 5"])
    assert scaled.variance_bound == pytest.approx(usual.variance_bound, rel=1e-9)
    assert scaled.noise_level == pytest.approx(usual.noise_level, rel=1e-9)
    assert scaled.guarantee.epsilon == pytest.approx(usual.guarantee.epsilon, rel=1e-9)
    result = [estimate(item, sparse_vectors(), 5) for item in (usual, scaled)]
    np.testing.assert_allclose(result[0], result[1], atol=0.02)
    assert result[0].nonzero()[0].tolist() == result[1].nonzero()[0].tolist() == SUPPORT


@pytest.mark.parametrize("name", SKETCHES)
def test_noise_alone_is_below_the_penalty(name: str) -> None:
    # The noise exceeds its level with probability at most 1/20, so in at most 18 of 100 rounds, except with probability 1e-6.
    mechanism = made(SKETCHES[name], sigma=0.5, failure_probability=0.05)
    zeros, rng = np.zeros((CLIENTS, DIMENSION)), seeded_words(np.random.default_rng(6))
    above = above_level = 0
    for _ in range(100):
        observed = mechanism.inner.decode(mechanism.aggregate(mechanism.encode(zeros, rng)), CLIENTS)
        correlations = mechanism.sketch.operator().rmatvec(observed)
        above += np.abs(correlations).max() / mechanism.sketch_dimension > mechanism.penalty
        # Correlations over the squared length of a column are least squares of a single coordinate.
        above_level += np.abs(mechanism.sketch.decode(observed)).max() > mechanism.noise_level
    assert above_level == above <= scipy.stats.binom.ppf(1 - 1e-6, 100, 0.05)
    # The level is tight, as the noise comes close to it.
    assert np.abs(correlations).max() / mechanism.sketch_dimension > 0.6 * mechanism.penalty
    larger = replace(mechanism, failure_probability=1e-6)
    assert larger.penalty > 1.2 * mechanism.penalty
    assert mechanism.noise_deviation == pytest.approx(
        math.sqrt((mechanism.inner.local_sigma**2 + mechanism.inner.granularity**2 / 4) / CLIENTS)
    )


@pytest.mark.parametrize(("name", "refit"), [*((name, True) for name in SKETCHES), ("hadamard", False)])
def test_means_that_are_not_sparse_are_answered_with_a_vector_of_the_ball(name: str, refit: bool) -> None:
    vectors = {
        "all alike": np.ones(DIMENSION),
        "many": np.random.default_rng(7).normal(size=DIMENSION),
        "at the edge": 5 * np.eye(DIMENSION)[3],
        "none": np.zeros(DIMENSION),
    }
    mechanism = made(SKETCHES[name], sigma=0.05, refit=refit)
    for kind, vector in vectors.items():
        result = estimate(mechanism, np.tile(vector, (CLIENTS, 1)), 8)
        assert result.shape == (DIMENSION,)
        assert np.linalg.norm(result) <= 1 + 1e-9
        error = np.linalg.norm(result - mechanism.ball.clip(vector[None])[0])
        assert error <= mechanism.bias_bound == 2.0
        if kind == "at the edge":
            assert result[3] > 0.9
        if kind == "none":
            assert np.linalg.norm(result) < 0.1


def test_a_mean_for_which_the_lasso_takes_too_long_is_answered_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    # All coordinates are equal, with little noise, so 10 000 iterations do not reach the tolerance for sparse means.
    mechanism = made(GaussianSketch(500, 60, seed=1), sigma=2e-4)
    dense = np.tile(np.full(500, 1 / math.sqrt(500)), (CLIENTS, 1))
    aggregate = mechanism.aggregate(mechanism.encode(dense, np.random.default_rng(9)))
    result = mechanism.solution(aggregate, CLIENTS)
    assert TOLERANCE < result.relative_gap <= LOOSE
    # The decoder returns this fixed solution instead of another Lasso solution.
    monkeypatch.setattr(SparseSum, "solution", lambda *_: result)
    assert np.linalg.norm(mechanism.decode(aggregate, CLIENTS)) <= 1 + 1e-9


def test_the_solution_is_certified() -> None:
    mechanism = made(SKETCHES["hadamard"])
    aggregate = mechanism.aggregate(mechanism.encode(sparse_vectors(), np.random.default_rng(10)))
    result = mechanism.solution(aggregate, CLIENTS)
    assert result.relative_gap <= TOLERANCE
    assert set(SUPPORT) <= set(result.support.tolist())


def test_the_guarantee_is_that_of_the_sum_of_sketches() -> None:
    mechanism = made(SKETCHES["hadamard"])
    assert mechanism.guarantee == mechanism.inner.guarantee
    assert mechanism.error().shared == mechanism.shared_variance(np.ones(DIMENSION)) == 0.0
    assert not mechanism.decodes_linearly
    assert mechanism.renewed(9) == replace(mechanism, sketch=HadamardSketch(DIMENSION, 250, seed=9))
    assert mechanism.bits_per_client == 250 * 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sparsity": 251}, "sparsity must be a whole number from 1 to 250, got 251"),
        ({"sparsity": 0}, "sparsity must be a whole number from 1 to 250, got 0"),
        ({"failure_probability": 0.0}, "failure_probability must be a number above 0 and below 1, got 0.0"),
        ({"failure_probability": 1.0}, "failure_probability must be a number above 0 and below 1, got 1.0"),
        ({"ball": NormBall(DIMENSION - 1, 2.0)}, "sketch must be of 599 coordinates, as the ball is, got 600"),
        ({"sketch": HadamardSketch(DIMENSION, 200)}, "inner must be for 200 coordinates of a sketch, got 250"),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(made(SKETCHES["hadamard"]), **changes)


@pytest.mark.parametrize("name", ["hadamard", "gaussian"])
def test_the_error_predicted_for_a_mean_is_that_of_rounds(name: str) -> None:
    mechanism, mean = made(SKETCHES[name]), sparse_vectors()[0]
    measured = np.sum((found_in_rounds(name, refit=True) - mean) ** 2, axis=1).mean()
    predicted = mechanism.predicted_error(mean, mechanism.variance_bound, draws=16).of_mean(CLIENTS)
    # The error is about chi-square with four degrees of freedom: the mean of 30 rounds has a relative deviation of 0.13.
    assert 0.5 < measured / predicted < 1.7


def test_least_squares_on_the_right_coordinates_stays_in_the_ball() -> None:
    mechanism = replace(made(SKETCHES["hadamard"]), ball=NormBall(DIMENSION, 2.0, 0.5))
    values, noise = np.array([0.3, 0.0]), np.array([[0.0, 0.1], [0.5, 0.6], [-0.3, 0.0]])
    # The vector (0.3, 0.1) is inside the ball, (0.8, 0.6) of length 1 becomes (0.4, 0.3), and (0, 0) stays.
    assert mechanism._oracle_square(values, noise) == pytest.approx((0.01 + (0.01 + 0.09) + 0.09) / 3, rel=1e-12)


def test_an_estimate_and_a_mean_in_the_ball_are_at_most_its_diameter_apart() -> None:
    assert replace(made(SKETCHES["hadamard"]), ball=NormBall(DIMENSION, 2.0, 0.25)).bias_bound == 0.5


def test_each_draw_of_the_predicted_error_has_another_sketch_in_any_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, renewed = list[int](), SparseSum.renewed

    def recorded(mechanism: SparseSum, seed: int) -> SparseSum:
        seeds.append(seed)
        return renewed(mechanism, seed)

    monkeypatch.setattr(SparseSum, "renewed", recorded)
    predicted = [
        made(SKETCHES[name]).predicted_error(sparse_vectors()[0], 0.0, draws=4).of_mean(CLIENTS)
        for name in ("count-mean", "count-mean over 5")
    ]
    assert len(set(seeds[:4])) == 4
    assert seeds[:4] == seeds[4:]
    assert predicted[1] == pytest.approx(predicted[0], rel=1e-6)


def test_the_noise_of_the_mean_of_sketches_counts_rounding() -> None:
    # The ten clients have noise of 0.3, and steps of 0.8, whose rounding deviation is at most 0.4.
    mechanism = made(SKETCHES["hadamard"])
    coarse = replace(mechanism, inner=replace(mechanism.inner, local_sigma=0.3, granularity=0.8))
    assert coarse.noise_deviation == pytest.approx(0.5 / math.sqrt(10), rel=1e-12)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_coordinates_no_larger_than_noise_are_left_out_and_the_others_fitted_again(share: float) -> None:
    mechanism, mean = made(SKETCHES["gaussian"]), sparse_vectors()[0]
    mean[100] = share * mechanism.noise_level
    observed = mechanism.sketch.encode(mean[None])[0]
    fitted = mechanism._refitted(observed, np.array(sorted([*SUPPORT, 100])))
    kept = SUPPORT if share < 1 else sorted([*SUPPORT, 100])
    columns = mechanism.sketch.encode(np.eye(DIMENSION)[kept]).T
    expected = np.zeros(DIMENSION)
    expected[kept] = np.linalg.lstsq(columns, observed)[0]
    np.testing.assert_allclose(fitted, expected, rtol=1e-9, atol=0)


def test_the_oracles_error_is_that_of_the_mean() -> None:
    mechanism = made(SKETCHES["hadamard"])
    assert mechanism.facts()["oracle_squared_error"] == pytest.approx(mechanism.variance_bound / CLIENTS)


def test_a_single_coordinate_is_refitted_and_the_zero_vector_is_decoded() -> None:
    mechanism = made(SKETCHES["hadamard"])
    vector = np.zeros(DIMENSION)
    for length in (0.0, 0.5):
        vector[70] = length
        decoded = mechanism._decoded(mechanism.sketched(vector[None])[0])
        assert decoded == pytest.approx(vector, abs=1e-9)
    error = mechanism.predicted_error(np.zeros(DIMENSION), 0.0, draws=2)
    assert error.of_mean(CLIENTS) < mechanism.variance_bound / CLIENTS
