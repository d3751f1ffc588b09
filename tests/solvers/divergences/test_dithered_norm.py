"""Norms after rounding, for norms other than L1 and L2.

Points under test: the bounds agree with their sums in fifty digits.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.solvers.divergences import dithered_norm
from quietbits.solvers.divergences.dithered_norm import least_shrinkable_radius, rounded_norm_bound, rounded_norm_quantile, shrinkage


@pytest.mark.parametrize("norm", [1.5, 3.0, 7.5])
@pytest.mark.parametrize("radius", [2.0, 37.0, 2.0**15])
def test_one_coordinate_by_hand(norm: float, radius: float) -> None:
    # One coordinate at a whole radius has no fractional part: systematic rounding adds the last w, independent rounding adds w times the
    # deviation.
    failure = 1e-4
    with mpmath.workdps(60):
        power, last = mpmath.mpf(radius) ** norm, mpmath.mpf(radius) ** norm - (mpmath.mpf(radius) - 1) ** norm
        deviation = last * mpmath.sqrt(-mpmath.log(mpmath.mpf(failure)) / 2)
        certain, likely = mpmath.mpf(radius), (power + deviation) ** (1 / mpmath.mpf(norm))
    assert certain <= rounded_norm_bound(1, norm, radius) <= certain * (1 + mpmath.mpf(1) / 10**9)
    assert likely <= rounded_norm_quantile(1, norm, radius, failure) <= likely * (1 + mpmath.mpf(1) / 10**7)


@pytest.mark.parametrize("norm", [3.0, 4.0])
def test_many_coordinates_by_enumeration(norm: float) -> None:
    # Every vector of whole numbers in the ball stays unchanged.
    dimension, radius = 3, 4.0
    axes = np.arange(5)
    powers = sum(axis**norm for axis in np.meshgrid(*[axes] * dimension))
    longest = float(powers[powers <= radius**norm].max()) ** (1 / norm)
    assert longest <= rounded_norm_bound(dimension, norm, radius)


@pytest.mark.parametrize(("dimension", "radius"), [(1, 3.0), (5, 1.0), (5, 20.0), (4000, 12.0)])
@pytest.mark.parametrize("failure", [0.3, 1e-6])
def test_the_first_two_norms_by_the_formulas(dimension: int, radius: float, failure: float) -> None:
    with mpmath.workdps(40):
        deviations, root = mpmath.sqrt(-mpmath.log(mpmath.mpf(failure)) / 2), mpmath.sqrt(dimension)
        first = radius + root * deviations
        # A chord's f (1 - f) is at most 1/4, and at most f, whose sum is at most sqrt(d) r.
        chords = mpmath.mpf(radius) ** 2 + min(mpmath.mpf(dimension) / 4, max(root * radius - mpmath.mpf(radius) ** 2, 0))
        if 4 * radius**2 >= dimension:
            chords = mpmath.mpf(radius) ** 2 + mpmath.mpf(dimension) / 4
        second = mpmath.sqrt(chords + (2 * radius + root) * deviations)
    for norm, exact in ((1.0, first), (2.0, second)):
        assert exact <= rounded_norm_quantile(dimension, norm, radius, failure) <= exact * (1 + mpmath.mpf(1) / 10**7)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("radius", [3.3, 4.0])
def test_rounding_exceeds_the_length_no_more_often_than_stated(norm: float, radius: float) -> None:
    # The test enumerates all eight roundings of three coordinates, with exact probabilities.
    failure = 0.2
    bound = rounded_norm_quantile(3, norm, radius, failure)
    rng = np.random.default_rng(5)
    corners = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, 8).T
    for _ in range(200):
        vector = np.abs(rng.normal(size=3)) ** rng.choice([0.3, 1.0, 4.0])
        vector *= radius / np.linalg.norm(vector, norm)
        fractions = vector - np.floor(vector)
        chances = np.prod(np.where(corners == 1, fractions, 1 - fractions), axis=1)
        lengths = np.linalg.norm(np.floor(vector) + corners, norm, axis=1)
        assert chances[lengths > bound].sum() <= failure


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 2.5, 3.0, 7.3, 64.0])
@pytest.mark.parametrize("dimension", [1, 2, 30])
def test_a_single_coordinate_that_is_rounded_up_is_inside(norm: float, dimension: int) -> None:
    # Powers of fractional order are no whole numbers.
    for radius in (0.7, 1.0, 2.0, 2.3, 5.9, 40.0):
        assert rounded_norm_bound(dimension, norm, radius) >= math.ceil(radius)


@pytest.mark.parametrize("norm", [1.0, 2.0, 5.0, math.inf])
def test_the_largest_coordinate_is_rounded_up_and_nothing_stays_nothing(norm: float) -> None:
    assert rounded_norm_bound(50, norm, 0.0) == 0.0
    if math.isinf(norm):
        assert [rounded_norm_bound(50, norm, radius) for radius in (0.2, 1.0, 3.7, 255.0)] == [1.0, 1.0, 4.0, 255.0]


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("failure", [0.1, 1e-5])
def test_the_shrunk_ball_stays_inside_and_a_larger_one_does_not(norm: float, failure: float) -> None:
    dimension = 16
    least = least_shrinkable_radius(dimension, norm, failure)
    assert shrinkage(dimension, norm, least * 0.999, failure) == 0.0
    for radius in (least * 1.01, least * 4, 1000.0):
        factor = shrinkage(dimension, norm, radius, failure)
        assert 0 < factor < 1
        assert rounded_norm_quantile(dimension, norm, factor * radius, failure) <= radius
        assert rounded_norm_quantile(dimension, norm, min(1.0, factor * (1 + 1e-6) + 1e-12) * radius, failure) > radius


@pytest.mark.parametrize("norm", [3.0, 4.0])
@pytest.mark.parametrize("radius", [2.5, 3.2])
def test_systematic_rounding_adds_the_last_cell_to_the_chords(norm: float, radius: float) -> None:
    # A fine search over two coordinates of the ball gives the sum of the chords of x^p between whole numbers.
    points = np.linspace(0, 1, 200_001) ** (1 / norm) * radius
    whole = np.arange(math.ceil(radius) + 1)
    chords = np.interp(points, whole, whole**norm)
    largest = float((chords + chords[::-1]).max())
    last = math.ceil(radius) ** norm - (math.ceil(radius) - 1) ** norm
    power = rounded_norm_bound(2, norm, radius) ** norm
    # A sum of whole powers below a number is at most the next smaller whole number.
    assert math.ceil(largest + last) - 1 <= power * (1 + 1e-9) <= 1.02 * (largest + last)


@pytest.mark.parametrize("dimension", [3, 128, 1000, 4099])
@pytest.mark.parametrize("radius", [0.3, 0.75, 1.0, 1.7, 4.2, 15.0, 40.5])
def test_the_square_of_the_euclidean_bound_is_the_largest_whole_number_below_the_chords(dimension: int, radius: float) -> None:
    top = math.ceil(radius)
    with mpmath.workdps(60):
        share = mpmath.mpf(radius) ** 2 / dimension
        # The concave envelope of the chords is the root up to a quarter, and then the square plus a quarter.
        envelope = mpmath.sqrt(share) if share < mpmath.mpf(1) / 4 else share + mpmath.mpf(1) / 4
        power = min(dimension * top**2, int(mpmath.ceil(dimension * envelope + 2 * top - 1)) - 1)
    bound = rounded_norm_bound(dimension, 2.0, radius)
    # The bound is rounded upward, by one unit in the last place of the root.
    assert power <= Fraction(bound) ** 2 <= power * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize(("radius", "chords"), [(4.0, 40.0), (4.9, 49.0), (5.1, 5.1**2 + 25), (8.0, 64 + 25.0), (30.0, 900 + 25.0)])
def test_the_chords_of_the_euclidean_quantile_change_at_half_a_step_each(radius: float, chords: float) -> None:
    # There are a hundred coordinates, and half a step each is a radius of 5. Beyond it, 10 times the radius is the smaller bound on the
    # chords.
    failure = 0.01
    expected = math.sqrt(chords + (2 * radius + 10) * math.sqrt(-math.log(failure) / 2))
    assert rounded_norm_quantile(100, 2.0, radius, failure) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("dimension", "norm", "radius"), [(20, 3.0, 4.5), (50, 1.5, 9.0), (7, 4.0, 3.0)])
def test_the_ranges_of_other_norms_are_the_optimum_of_a_linear_program(dimension: int, norm: float, radius: float) -> None:
    # A coordinate in a cell between whole numbers uses at least its lower end to the power, and gains the cell's squared range.
    failure, lefts = 0.01, np.arange(math.ceil(radius))
    won = ((lefts + 1.0) ** norm - lefts**norm) ** 2
    solved = linprog(-won, A_ub=[lefts**norm], b_ub=[radius**norm], A_eq=[np.ones(len(lefts))], b_eq=[dimension])
    top = math.ceil(radius)
    spread = math.sqrt(-solved.fun) * math.sqrt(-math.log(failure) / 2)
    chords = dithered_norm._chords(dimension, norm, radius) * top**norm
    assert rounded_norm_quantile(dimension, norm, radius, failure) == pytest.approx((chords + spread) ** (1 / norm), rel=1e-8)


def test_no_mean_of_a_rounded_vector_is_above_the_euclidean_bound() -> None:
    # 35000 coordinates of 3/2 and 965000 of 1/2 have squares whose means after rounding are 5/2 and 1/2.
    bound = rounded_norm_bound(10**6, 2.0, math.sqrt(35_000 * 9 / 4 + 965_000 / 4))
    assert bound**2 >= 35_000 * 5 / 2 + 965_000 / 2


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0])
def test_zero_stays_zero_by_independent_rounding(norm: float) -> None:
    assert rounded_norm_quantile(5, norm, 0.0, 0.1) == 0.0
