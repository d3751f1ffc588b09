"""Tests of conditional rounding.

Points under test: its certain norm, rejection rate and bias, by enumeration and by simulation.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest

from quietbits.design.transforms.conditional_rounding import BETA, BOUNDS, ConditionalRounding
from quietbits.solvers.divergences.dithered_norm import rounded_norm_quantile


def outcomes(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every rounding of a vector of positions, and its probability before rejection."""
    lower = np.floor(positions)
    ups = np.array(list(itertools.product([0, 1], repeat=len(positions))))
    fractions = positions - lower
    return lower + ups, np.where(ups, fractions, 1 - fractions).prod(axis=1)


def vectors_of_the_ball(rng: np.random.Generator, count: int, dimension: int, clip_norm: float) -> np.ndarray:
    """Return vectors on the sphere, some of them sparse, some with equal coordinates."""
    vectors = rng.standard_normal((count, dimension)) * (rng.random((count, dimension)) < rng.random((count, 1)))
    vectors[: count // 4] = rng.choice([-1.0, 1.0], (count // 4, dimension))
    vectors[:, 0] += 1e-3
    return vectors * (clip_norm / np.linalg.norm(vectors, axis=1))[:, None]


@pytest.mark.parametrize("dimension", [1, 2, 16, 1000, 2**16])
@pytest.mark.parametrize("granularity", [1.0, 0.3, 1.1e-3])
@pytest.mark.parametrize("beta", [1e-6, 0.1, BETA, 0.99])
def test_the_published_bound_is_that_of_the_paper(dimension: int, granularity: float, beta: float) -> None:
    clip_norm = 1.7
    with mpmath.workdps(40):
        step, clip, root = mpmath.mpf(granularity), mpmath.mpf(clip_norm), mpmath.sqrt(dimension)
        probable = clip**2 + step**2 * dimension / 4 + mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(beta))) * step * (clip + step * root / 2)
        squared = min(probable, (clip + step * root) ** 2)
        expected = int(mpmath.ceil(squared / step**2)) - 1
        rounding = ConditionalRounding(dimension, granularity, clip_norm, beta)
        assert rounding.largest_squared_norm == expected
        # The norm bound is that of the integers, rounded upward.
        assert mpmath.mpf(rounding.norm_bound) >= step * mpmath.sqrt(expected)
    assert rounding.norm_bound == pytest.approx(granularity * math.sqrt(expected), rel=1e-14)


@pytest.mark.parametrize("dimension", [1, 16, 1000, 2**16])
@pytest.mark.parametrize("granularity", [2.0, 0.1, 0.02, 1e-4])
def test_the_sharp_bound_is_never_above_the_others(dimension: int, granularity: float) -> None:
    for beta in (1e-6, BETA, 0.9):
        sharp, published = (ConditionalRounding(dimension, granularity, 1.0, beta, bound=bound) for bound in BOUNDS[::-1])
        assert sharp.largest_squared_norm <= published.largest_squared_norm
        # The bound of quietbits has the same inequality and mean; its sum of weights is the published sum.
        quantile = rounded_norm_quantile(dimension, 2.0, 1 / granularity, beta) ** 2
        assert sharp.largest_squared_norm <= quantile
        if 2 / granularity >= math.sqrt(dimension) and quantile < (1 / granularity + math.sqrt(dimension)) ** 2:
            # The published bound is the largest whole number below the quantile, up to a relative 1e-10.
            assert quantile * (1 - 1e-10) - 1 <= published.largest_squared_norm < quantile


def test_the_sharp_sums_are_bounds_over_the_ball() -> None:
    rng = np.random.default_rng(2)
    for dimension, radius in [(1, 0.4), (3, 0.2), (3, 4.0), (40, 2.0), (40, 9.7), (40, 100.0)]:
        positions = np.abs(vectors_of_the_ball(rng, 2000, dimension, radius))
        floors = np.floor(positions)
        chords = (positions**2 + (positions - floors) * (1 - positions + floors)).sum(axis=1)
        weights = ((2 * floors + 1) ** 2).sum(axis=1)
        # The square root of -ln / 2 is 1 for exp(-2) and 3 for exp(-18): the two values determine both sums.
        near, far = (ConditionalRounding(dimension, 1.0, radius, math.exp(-exponent), bound="sharp") for exponent in (2, 18))
        root = (far._probable_square - near._probable_square) / 2
        mean = near._probable_square - root
        assert chords.max() <= mean * (1 + 1e-12)
        assert weights.max() <= root**2 * (1 + 1e-12)
        # Equal coordinates attain the chords where the envelopes touch.
        assert chords.max() >= 0.5 * mean


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("dimension", "radius"), [(1, 0.7), (2, 1.5), (4, 1.0), (8, 1.2), (10, 3.0)])
@pytest.mark.parametrize("beta", [0.05, BETA, 0.9])
def test_rejection_bias_and_error_keep_their_bounds_exactly(bound: str, dimension: int, radius: float, beta: float) -> None:
    """The test enumerates all 2**d outcomes, without random draws."""
    rounding = ConditionalRounding(dimension, 0.25, 0.25 * radius, beta, bound=bound)
    for position in vectors_of_the_ball(np.random.default_rng(dimension), 30, dimension, radius):
        points, probabilities = outcomes(position)
        accepted = (points**2).sum(axis=1) <= rounding.largest_squared_norm
        mass = probabilities[accepted].sum()
        assert 1 - mass <= rounding.rejection_bound + 1e-12
        conditional = probabilities[accepted] / mass
        bias = 0.25 * np.linalg.norm(conditional @ points[accepted] - position)
        assert bias <= rounding.bias_bound + 1e-12
        distances = 0.25**2 * ((points[accepted] - position) ** 2).sum(axis=1)
        assert conditional @ distances <= rounding.error_bound + 1e-12
        every = 0.25**2 * ((points - position) ** 2).sum(axis=1)
        assert rounding.expected_error(0.25 * position[None])[0] == pytest.approx(probabilities @ every, abs=1e-12)


def test_some_bias_is_real() -> None:
    # At most one of the two coordinates may be rounded up, so three of four outcomes are accepted, with mean 1/3 instead of 1/2.
    rounding = ConditionalRounding(2, 1.0, math.sqrt(0.5), 0.99, bound="sharp")
    assert rounding.largest_squared_norm == 1
    points, _ = outcomes(np.array([0.5, 0.5]))
    mean = points[(points**2).sum(axis=1) <= 1].mean(axis=0)
    np.testing.assert_allclose(mean, 1 / 3)
    assert 0 < math.sqrt(2) / 6 <= rounding.bias_bound


@pytest.mark.parametrize("bound", BOUNDS)
def test_outcomes_have_the_conditional_distribution(bound: str) -> None:
    """Each of 16 counts is within 5 standard deviations, with a false alarm in 10**5 runs."""
    rounding = ConditionalRounding(4, 0.5, 0.6, 0.9, bound=bound)
    vector = np.array([0.25, -0.3, 0.4, 0.1]) * (0.6 / math.sqrt(0.3225 + 1e-12))
    draws = 100_000
    rounded = rounding.round(np.tile(vector, (draws, 1)), np.random.default_rng(4))
    assert rounded.dtype == np.int64
    assert (rounded**2).sum(axis=1).max() <= rounding.largest_squared_norm
    points, probabilities = outcomes(vector / 0.5)
    accepted = (points**2).sum(axis=1) <= rounding.largest_squared_norm
    assert not accepted.all()
    for point, probability in zip(points[accepted], probabilities[accepted] / probabilities[accepted].sum(), strict=True):
        count = np.count_nonzero((rounded == point).all(axis=1))
        assert abs(count - draws * probability) <= 5 * math.sqrt(draws * probability * (1 - probability))


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("granularity", [0.5, 0.05, 1e-3])
def test_long_vectors_are_rejected_no_more_than_stated(bound: str, granularity: float) -> None:
    rng = np.random.default_rng(6)
    dimension, tries = 1024, 2000
    rounding = ConditionalRounding(dimension, granularity, 1.0, 0.3, bound=bound)
    worst = min(1.0, math.sqrt(dimension) * granularity / 2)
    # The vector has as many coordinates as the ball permits at half a step, the worst case of rounding.
    count = int((worst / (granularity / 2)) ** 2 + 1e-9)
    vector = np.zeros(dimension)
    vector[: max(count, 1)] = granularity / 2
    ups = rng.random((tries, dimension)) < vector / granularity % 1
    rejected = np.mean(ups.sum(axis=1) > rounding.largest_squared_norm)
    assert rejected <= 0.3 + 5 * math.sqrt(0.21 / tries)
    rounded = rounding.round(np.tile(vector, (50, 1)), rng)
    assert (rounded**2).sum(axis=1).max() <= rounding.largest_squared_norm
    assert np.abs(rounded * granularity - vector).max() <= granularity


def test_the_norm_is_compared_in_whole_numbers() -> None:
    # The vectors on the grid have the largest possible squared norm, as one unit more would exceed a float's 53 bits.
    rounding = ConditionalRounding(2, 1.0, 2.0**31 - 2, BETA)
    vector = np.array([[2.0**31 - 2, 0.0]])
    np.testing.assert_array_equal(rounding.round(vector, np.random.default_rng(0)), vector)
    assert rounding.largest_squared_norm < 2**62
    edge = math.isqrt(rounding.largest_squared_norm - 1)
    over = rounding.largest_squared_norm - edge**2
    small = math.isqrt(over)
    inside, outside = np.array([[edge, small]]), np.array([[edge, small + 1]])
    assert rounding._accepted(inside).tolist() == [True]
    assert rounding._accepted(outside).tolist() == [False]


def test_vectors_on_the_grid_stay_and_vectors_longer_by_rounding_errors_are_shortened() -> None:
    rounding = ConditionalRounding(3, 0.5, 1.5)
    vectors = np.array([[0.5, -1.0, 1.0], [0.0, 0.0, 0.0], [-1.5, 0.0, 0.0]])
    rounded = rounding.round(vectors, np.random.default_rng(1))
    np.testing.assert_array_equal(rounded, [[1, -2, 2], [0, 0, 0], [-3, 0, 0]])
    np.testing.assert_array_equal(rounding.expected_error(vectors), np.zeros(3))
    longer = vectors[:1] * (1 + 1e-10)
    assert (rounding.round(np.tile(longer, (100, 1)), np.random.default_rng(2)) == rounded[0]).all()
    assert rounding.round(np.zeros((0, 3)), np.random.default_rng(3)).shape == (0, 3)


def test_a_bound_that_always_holds_rejects_nothing() -> None:
    rounding = ConditionalRounding(1, 1.0, 3.0)
    # The probable bound 9 + 1/4 + (3 + 1/2) is 12.75, and the certain bound is 16.
    assert rounding.largest_squared_norm == 12
    assert rounding.rejection_bound == BETA
    # Rounding errors must not turn 1 + 1e-20 into a bound below 1.
    tiny = ConditionalRounding(1, 1.0, 1e-20, 1e-3)
    assert (tiny.largest_squared_norm, tiny.rejection_bound) == (1, 0.0)
    certain = ConditionalRounding(4, 1.0, 0.1, 1e-9)
    assert certain.largest_squared_norm == 4
    assert (certain.rejection_bound, certain.bias_bound) == (0.0, 0.0)
    # Four equal coordinates of 0.05, each of variance 0.05 * 0.95, are the worst case.
    assert certain.error_bound == pytest.approx(4 * 0.05 * 0.95, rel=1e-12)
    assert certain.expected_error(np.full((1, 4), 0.05))[0] == pytest.approx(certain.error_bound, rel=1e-12)
    assert ConditionalRounding(4, 1.0, 1.0, 1e-9).error_bound == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number from 1"),
        ({"granularity": 0.0}, "granularity must be a number from"),
        ({"clip_norm": math.nan}, "clip_norm must be a number from"),
        ({"beta": 1.0}, "beta must be a number from 1e-300 to 0.99, got 1.0"),
        ({"bound": "best"}, "bound must be one of published, sharp, got 'best'"),
        ({"granularity": 1e-10}, "granularity must be at least 4.65661e-10 for clip_norm 1.0, got 1e-10"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConditionalRounding(**{"dimension": 4, "granularity": 0.1, "clip_norm": 1.0, **fields})


def test_bad_vectors_are_refused() -> None:
    rounding = ConditionalRounding(2, 0.1, 1.0)
    for call in (rounding.expected_error, lambda vectors: rounding.round(vectors, np.random.default_rng(0))):
        with pytest.raises(ValueError, match=r"vectors must have the shape \(clients, 2\), got \(2,\)"):
            call([0.0, 0.0])
        with pytest.raises(ValueError, match="vectors must hold finite numbers only, got nan"):
            call([[0.0, math.nan]])
        with pytest.raises(ValueError, match=r"vectors must have L2 norms of at most clip_norm, 1.0, got 5.0"):
            call([[0.1, 0.1], [3.0, 4.0]])
