"""Rounding of vectors is unbiased and never exceeds the bound, which has the right size."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.design.transforms.vector_dithering import (
    bounded_rounding,
    independent_rounding,
    inside,
    rejection_bias_bound,
    rejection_rounding,
    systematic_rounding,
)
from quietbits.solvers.divergences.dithered_norm import least_shrinkable_radius, rounded_norm_bound, rounded_norm_quantile, shrinkage

NORMS = [1.0, 1.5, 2.0, 3.0, 7.5, 64.0]
ALL_DOWN, ALL_UP = 0.0, 1 - 2.0**-53


def on_the_sphere(vectors: np.ndarray, norm: float, radius: float) -> np.ndarray:
    """Scale vectors to slightly below a norm, despite floating-point errors."""
    # Powers of tiny entries would underflow.
    vectors = vectors / np.abs(vectors).max(axis=-1, keepdims=True)
    return vectors / np.linalg.norm(vectors, ord=norm, axis=-1, keepdims=True) * radius * (1 - 1e-13)


@given(st.lists(st.integers(-320, 320), min_size=1, max_size=12))
def test_systematic_rounding_is_exactly_unbiased(in_64ths: list[int]) -> None:
    positions = np.array([in_64ths]) / 64
    # Between multiples of 1/64 the result does not depend on u: the average over one u in each of 64 cells is the exact mean.
    uniforms = (np.arange(64) + 0.5) / 64
    rounded = systematic_rounding(np.repeat(positions, 64, axis=0), uniforms)
    assert (rounded.sum(axis=0) == np.array(in_64ths)).all()
    assert (rounded >= np.floor(positions)).all()
    assert (rounded <= np.ceil(positions)).all()


def test_systematic_rounding_goes_up_as_often_as_it_should() -> None:
    rng = np.random.default_rng(1)
    positions = rng.uniform(-3, 3, size=40)
    draws = 100_000
    ups = (systematic_rounding(np.tile(positions, (draws, 1)), rng.random(draws)) - np.floor(positions)).mean(axis=0)
    expected = positions - np.floor(positions)
    # Forty coordinates are within 5 sigma, with a false alarm in 40 000 seeds.
    assert (np.abs(ups - expected) < 5 * np.sqrt(expected * (1 - expected) / draws)).all()


def test_sorting_large_coordinates_alone_rounds_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    positions = np.where(rng.random((300, 40)) < 0.2, rng.integers(-3, 4, (300, 40)), 1.5 * rng.standard_normal((300, 40)))
    uniforms = rng.random(300)
    rounded = []
    for share in (0.0, 1.0):
        monkeypatch.setattr("quietbits.design.transforms.vector_dithering.MOST_LARGE", share)
        rounded.append(systematic_rounding(positions, uniforms))
    np.testing.assert_array_equal(*rounded)
    # Arrays that are stored by columns, such as those of a data frame, are rounded alike.
    np.testing.assert_array_equal(systematic_rounding(np.asfortranarray(positions), uniforms), rounded[0])


def test_independent_rounding_is_unbiased_and_uncorrelated() -> None:
    rng = np.random.default_rng(2)
    positions = np.array([-2.75, -0.5, 0.0, 0.25, 1.5, 3.0])
    draws = 100_000
    rounded = independent_rounding(np.tile(positions, (draws, 1)), rng.random((draws, 6)))
    deviations = rounded - positions
    fraction = positions - np.floor(positions)
    variances = fraction * (1 - fraction)
    covariance = deviations.T @ deviations / draws
    assert (np.abs(deviations.mean(axis=0)) <= 5 * np.sqrt(variances / draws)).all()
    # Products of two centred coordinates have a variance of at most 1/16: the margin is 5 sigma for fifteen pairs.
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 5 * 0.25 / math.sqrt(draws)
    assert (rounded[:, [2, 5]] == [0, 3]).all()


@pytest.mark.parametrize("rounding", [lambda x: systematic_rounding(x, np.full(len(x), ALL_UP)), lambda x: independent_rounding(x, 0 * x)])
def test_grid_points_stay_where_they_are(rounding: Callable[[np.ndarray], np.ndarray]) -> None:
    grid = np.random.default_rng(0).integers(-9, 10, size=(50, 20))
    assert (rounding(grid.astype(float)) == grid).all()
    assert (rounding(np.zeros((3, 5))) == 0).all()


@st.composite
def vectors_of_a_ball(draw: st.DrawFn) -> tuple[np.ndarray, float, float]:
    """Return vectors of the ball: sparse, flat, with one large coordinate, or random."""
    norm, radius, dimension = (
        draw(st.sampled_from(NORMS)),
        draw(st.sampled_from([0.4, 1.0, 2.5, 3.0, 15.0, 100.0])),
        draw(st.integers(1, 40)),
    )
    entries = draw(st.lists(st.floats(0, 1), min_size=dimension, max_size=dimension).map(np.array))
    shape = draw(st.sampled_from(["any", "flat", "sparse", "one large", "halves"]))
    if shape == "flat":
        entries = np.ones(dimension)
    elif shape == "sparse":
        entries = entries * (np.arange(dimension) % 5 == 0)
    elif shape == "one large":
        entries[0] += dimension
    vector = entries if not entries.any() else on_the_sphere(entries, norm, radius)
    if shape == "halves":
        vector = np.minimum(np.floor(vector) + 0.5, vector)
    return vector, norm, radius


@settings(max_examples=30)
@given(vectors_of_a_ball(), st.sampled_from([ALL_DOWN, 0.3, 0.5, ALL_UP]) | st.floats(0, ALL_UP))
def test_no_vector_gets_longer_than_the_bound(case: tuple[np.ndarray, float, float], uniform: float) -> None:
    vector, norm, radius = case
    rounded = systematic_rounding(vector[None, :], np.array([uniform]))
    assert inside(rounded, norm, rounded_norm_bound(len(vector), norm, radius)).all()
    assert (np.abs(rounded) <= math.ceil(radius)).all()


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("radius", [3.0, 15.0])
def test_many_random_vectors_keep_the_bound(norm: float, radius: float) -> None:
    rng = np.random.default_rng(5)
    spread = rng.exponential(size=(4_000, 64)) ** rng.uniform(0, 6, size=(4_000, 1))
    rounded = systematic_rounding(on_the_sphere(spread, norm, radius), rng.random(len(spread)))
    assert inside(rounded, norm, rounded_norm_bound(64, norm, radius)).all()


def test_an_l1_ball_is_kept_exactly() -> None:
    assert [rounded_norm_bound(d, 1.0, 255) for d in (1, 128, 10**6)] == [255.0, 255.0, 255.0]
    assert rounded_norm_bound(10, 1.0, 2.5) == 3.0
    vectors = on_the_sphere(np.random.default_rng(6).random((5000, 128)), 1.0, 255)
    assert np.abs(systematic_rounding(vectors, np.full(5000, ALL_UP))).sum(axis=1).max() == 255


def test_bounds_of_other_balls() -> None:
    assert rounded_norm_bound(7, math.inf, 3.0) == 3.0
    assert rounded_norm_bound(7, 2.0, 0.0) == 0.0
    # The largest squared norms are below 15**2 + 128/4 + 29, and below sqrt(10**4 * 9) + 5.
    assert rounded_norm_bound(128, 2.0, 15) ** 2 == pytest.approx(285, rel=1e-12)
    assert rounded_norm_bound(10**4, 2.0, 3) ** 2 == pytest.approx(304, rel=1e-12)
    # In one dimension, rounding never exceeds a whole radius.
    for norm in NORMS:
        assert rounded_norm_bound(1, norm, 3.0) == pytest.approx(3.0, rel=1e-10)


@pytest.mark.parametrize(("norm", "largest"), [(1.5, 9), (2.0, 14), (3.0, 14)])
def test_the_bound_is_nearly_reached(norm: float, largest: int) -> None:
    # One coordinate is just above a grid point, and the rest of the ball of radius 15 is spread over 127 others, all of which may be
    # rounded up.
    vector = np.zeros((1, 128))
    vector[0, 1:] = ((15**norm - (largest + 0.001) ** norm) / 127) ** (1 / norm)
    vector[0, 0] = largest + 0.001
    longest = np.linalg.norm(systematic_rounding(vector, np.array([ALL_UP]))[0], ord=norm)
    assert 0.98 * rounded_norm_bound(128, norm, 15) < longest <= rounded_norm_bound(128, norm, 15)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_a_vector_that_got_too_long_is_rounded_toward_zero(norm: float) -> None:
    # Vectors longer than the bound's ball imitate the floating-point errors of a real encoding.
    positions = np.array([[2.5, -2.5, 0.5], [1.5, 0.0, -0.5]])
    bound = float(np.linalg.norm([2, 2, 0], ord=norm))
    rounded = bounded_rounding(positions, np.array([0.75, 0.75]), norm, bound)
    assert not inside(systematic_rounding(positions, np.array([0.75, 0.75])), norm, bound)[0]
    assert rounded[0].tolist() == [2, -2, 0]
    assert rounded[1].tolist() == systematic_rounding(positions[1:], np.array([0.75]))[0].tolist()


def test_sums_that_rounding_pushes_over_a_whole_number_are_caught() -> None:
    # Ten tenths are each some units in the last place too large, and u is next to 1: the running sum reaches 2.
    positions = np.full((1, 10), 0.1) * (1 + 1e-15)
    assert systematic_rounding(positions, np.array([ALL_UP])).sum() == 2
    assert bounded_rounding(positions, np.array([ALL_UP]), 1.0, rounded_norm_bound(10, 1.0, 1.0)).sum() == 0


def test_no_coordinate_moves_by_more_than_a_step_however_the_sums_are_rounded() -> None:
    # The running sums plus u are 8 - 2**-50, rounded down, and then 9, rounded up twice: one coordinate passes two whole numbers.
    positions = np.append(np.full(15, 0.5), 1 - 2.0**-53)[None, :]
    uniform = 0.5 - 0.6 * 2.0**-50
    assert math.floor(positions.cumsum()[-1] + uniform) - math.floor(positions.cumsum()[-2] + uniform) == 2
    assert systematic_rounding(positions, np.array([uniform]))[0, -1] == 1


def test_membership_is_exact_for_whole_numbers() -> None:
    rounded = np.array([[3, -4, 0], [3, -4, 1]])
    assert inside(rounded, 2.0, 5.0).tolist() == [True, False]
    assert inside(rounded, 1.0, 7.0).tolist() == [True, False]
    assert inside(rounded, 3.0, 91 ** (1 / 3)).tolist() == [True, False]


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("kind", ["flat", "random", "large"])
@pytest.mark.parametrize("failure_probability", [0.5, 0.05])
def test_independent_rounding_exceeds_the_quantile_as_rarely_as_proved(norm: float, kind: str, failure_probability: float) -> None:
    rng = np.random.default_rng(8)
    dimension, radius, draws = 30, 6.0, 5_000
    entries = {"flat": np.ones(dimension), "random": rng.random(dimension), "large": np.r_[np.full(dimension - 1, 0.1), 1.0]}[kind]
    vector = on_the_sphere(entries, norm, radius)
    norms = np.linalg.norm(independent_rounding(np.tile(vector, (draws, 1)), rng.random((draws, dimension))), ord=norm, axis=1)
    failures = np.mean(norms > rounded_norm_quantile(dimension, norm, radius, failure_probability))
    assert failures <= failure_probability + 5 * math.sqrt(failure_probability / draws)
    # The bound has the right size: a slightly smaller bound would fail for the mean alone.
    assert rounded_norm_quantile(dimension, norm, radius, 0.999999) >= norms.mean() - 5 * norms.std() / math.sqrt(draws)


def test_the_euclidean_quantile_in_closed_form_agrees_with_the_general_one() -> None:
    for dimension, radius in ((10, 3.0), (128, 15.0), (10**4, 3.0)):
        general = rounded_norm_quantile(dimension, 2.0 + 1e-12, radius, 0.05)
        closed = rounded_norm_quantile(dimension, 2.0, radius, 0.05)
        # The envelope of w**2 takes only whole steps, while the closed form permits any: the envelope's bound is slightly smaller.
        assert general <= closed * (1 + 1e-8)
        assert general >= closed * 0.97


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_shrinkage_is_the_largest_that_is_proved(norm: float) -> None:
    factor = shrinkage(64, norm, 31, 0.05)
    assert 0 < factor < 1
    assert rounded_norm_quantile(64, norm, factor * 31, 0.05) <= 31
    assert rounded_norm_quantile(64, norm, (factor + 1e-6) * 31, 0.05) > 31


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_small_balls_cannot_be_shrunk_into(norm: float) -> None:
    least = least_shrinkable_radius(16, norm, 0.05)
    assert shrinkage(16, norm, least * (1 - 1e-9), 0.05) == 0.0
    assert shrinkage(16, norm, least * (1 + 1e-3), 0.05) > 0.0


def test_rejection_biases_less_than_its_bound_but_does_bias() -> None:
    rng = np.random.default_rng(9)
    dimension, radius, draws = 24, 3.0, 40_000
    position = on_the_sphere(np.ones(dimension), 2.0, 2.2)
    tried = independent_rounding(np.tile(position, (draws, 1)), rng.random((draws, dimension)))
    rejected = 1 - inside(tried, 2.0, radius).mean()
    assert 0.2 < rejected < 0.8
    rounded = rejection_rounding(np.tile(position, (draws, 1)), 2.0, radius, rng.random)
    assert inside(rounded, 2.0, radius).all()
    bias = float(np.linalg.norm(rounded.mean(axis=0) - position))
    # The measured bias includes the noise of `draws` vectors with a variance of at most 24 / 4: the margin is 5 sigma in length.
    noise = 5 * math.sqrt(dimension / 4 / draws)
    assert bias > noise
    # Both sides of the Cauchy-Schwarz inequality are within a factor of two, so the bound is tight.
    assert 0.5 * rejection_bias_bound(rejected) - noise < bias < rejection_bias_bound(rejected + 5 * 0.5 / math.sqrt(draws)) + noise


def test_rejection_accepts_in_the_end_and_keeps_the_order() -> None:
    positions = np.tile([[1.5, 0.0], [0.0, 0.5], [-0.5, 0.5]], (50, 1))
    rounded = rejection_rounding(positions, 1.0, 1.0, np.random.default_rng(0).random)
    assert inside(rounded, 1.0, 1.0).all()
    assert (rounded[0::3] == [1, 0]).all()
    assert (np.abs(rounded[1::3] - [0.0, 0.5]) <= [0.0, 0.5]).all()
    assert (np.abs(rounded[2::3] - [-0.5, 0.5]) <= 0.5).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2.0, 3.0), "dimension must be a whole number from 1"),
        ((3, 0.5, 3.0), "norm must be a number from 1 to 64, got 0.5"),
        ((3, 2.0, -1.0), "radius must be a number from 0"),
        ((3, 2.0, math.nan), "radius must be a number from 0"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[int, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rounded_norm_bound(*arguments)
    with pytest.raises(ValueError, match=message):
        rounded_norm_quantile(*arguments, 0.05)


def test_bad_probabilities_and_norms_of_quantiles_are_refused() -> None:
    with pytest.raises(ValueError, match="failure_probability must be a number from"):
        rounded_norm_quantile(3, 2.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="failure_probability must be a number from"):
        least_shrinkable_radius(3, 2.0, 0.0)
    with pytest.raises(ValueError, match="norm must be a number from 1 to 64, got inf"):
        rounded_norm_quantile(3, math.inf, 1.0, 0.5)
