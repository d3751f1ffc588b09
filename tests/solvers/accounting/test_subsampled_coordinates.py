"""Tests of the divergences of secretly sampled coordinates.

Points under test: moments against integrals in both directions, worst vectors against random ones, and limits.
"""

import math

import numpy as np
import pytest

from quietbits.solvers.accounting.sampled_noise import poisson_cumulants
from quietbits.solvers.accounting.subsampled_coordinates import subsampled_coordinate_curve

POINTS = np.linspace(-20.0, 45.0, 200_001)
DENSITY = np.exp(-(POINTS**2) / 2) / math.sqrt(2 * math.pi) * (POINTS[1] - POINTS[0])


def log_moments(coordinate: float, levels: int, share: float, multiplier: float, order: int) -> tuple[float, float]:
    """Integrate the moments of a sampled, rounded coordinate in both directions."""
    place = coordinate * levels
    below = min(math.floor(place), levels - 1)
    shifts = np.array([below, below + 1]) / (levels * multiplier)
    chances = np.array([below + 1 - place, place - below])
    ratio = 1 - share + share * (chances[:, None] * np.exp(shifts[:, None] * POINTS - shifts[:, None] ** 2 / 2)).sum(axis=0)
    return math.log(float(DENSITY @ ratio**order)), math.log(float(DENSITY @ ratio ** (1.0 - order)))


@pytest.mark.parametrize(("levels", "share", "multiplier"), [(1, 0.3, 1.5), (3, 0.1, 0.8), (7, 0.9, 2.0), (2, 0.01, 0.5)])
def test_no_vector_exceeds_the_bound_and_the_best_splits_come_near(levels: int, share: float, multiplier: float) -> None:
    rng = np.random.default_rng(1)
    dimension, square = 6, 2.5
    curve = subsampled_coordinate_curve(multiplier, levels, share, square, dimension)
    for order in (2, 3, 6):
        largest = 0.0
        splits = [np.full(dimension, math.sqrt(square / dimension)), np.array([1.0, 1.0, math.sqrt(0.5), 0, 0, 0])]
        for vector in [*splits, *np.abs(rng.normal(size=(20, dimension)))]:
            short = np.minimum(vector * min(1.0, math.sqrt(square) / float(np.linalg.norm(vector))), 1.0)
            sums = np.sum([log_moments(float(part), levels, share, multiplier, order) for part in short], axis=0)
            assert sums[1] <= sums[0] * (1 + 1e-9)
            largest = max(largest, float(sums[0]))
        bound = float(curve.at(float(order))[0]) * (order - 1)
        assert largest * (1 - 1e-9) <= bound <= largest * 1.2


def test_a_ball_of_coordinates_alone_makes_every_coordinate_a_sampled_gaussian() -> None:
    curve = subsampled_coordinate_curve(2.0, 3, 0.2, 50.0, 50)
    for order in (2, 5, 20):
        expected = 50 * poisson_cumulants(2.0, 0.2, np.array([order]))[0] / (order - 1)
        assert float(curve.at(float(order))[0]) == pytest.approx(expected, rel=1e-8)


def test_small_levels_and_large_shares_reveal_what_a_gaussian_does() -> None:
    multiplier, dimension = 4.0, 10_000
    factor = 4.0
    curve = subsampled_coordinate_curve(0.5 * multiplier * math.sqrt(dimension) / factor, 7, 0.5, dimension / factor**2, dimension)
    assert float(curve.at(8.0)[0]) == pytest.approx(8 / (2 * multiplier**2), rel=0.01)
    assert float(curve.at(8.0)[0]) > 8 / (2 * multiplier**2)


def test_little_noise_has_a_finite_bound_and_unlike_noise_raises_it() -> None:
    loud = subsampled_coordinate_curve(0.01, 1, 0.1, 1.0, 4)
    # The worst vector has four equal coordinates, each of which may be rounded up to the level.
    assert float(loud.at(2.0)[0]) == pytest.approx(4 * (2 * math.log(0.1 * 0.5) + 1e4), rel=1e-4)
    plain, unlike = (subsampled_coordinate_curve(1.0, 1, 0.1, 1.0, 4, ratio) for ratio in (0.0, 0.01))
    assert float(unlike.at(2.0)[0] - plain.at(2.0)[0]) == pytest.approx(3 * 4 * 0.01)
