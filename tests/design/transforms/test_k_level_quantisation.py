"""Stochastic k-level quantisation.

Each test of a few statistics has a chance of a false alarm below 1e-5 (5 sigma).
"""

import math
from typing import Any

import numpy as np
import pytest

from quietbits.design.transforms.k_level_quantisation import quantisation_error, quantisation_step, quantise_k_levels

DRAWS = 40_000


def test_levels_are_neighbours_of_the_position_and_right_on_average() -> None:
    vector, levels, bound = np.array([-2.0, -1.3, 0.0, 0.1, 1.999, 2.0]), 6, 2.0
    step = quantisation_step(levels, bound)
    positions = (vector + bound) / step
    drawn = quantise_k_levels(np.tile(vector, (DRAWS, 1)), levels, bound, np.random.default_rng(1))
    assert drawn.dtype == np.int64
    assert np.all((drawn == np.floor(positions)) | (drawn == np.ceil(positions)))
    fractions = positions - np.floor(positions)
    allowed = 5 * np.sqrt(fractions * (1 - fractions) / DRAWS) + 1e-12
    assert np.all(np.abs(drawn.mean(axis=0) - positions) <= allowed)


def test_the_ends_are_levels_and_what_is_beyond_goes_there() -> None:
    bound = 0.1
    drawn = quantise_k_levels(np.tile([-5.0, -bound, bound, 7.0], (1000, 1)), 4, bound, np.random.default_rng(2))
    assert np.unique(drawn, axis=0).tolist() == [[0, 0, 3, 3]]


def test_the_error_is_exact_and_as_measured() -> None:
    vectors, levels, bound = np.random.default_rng(3).uniform(-1, 1, size=(3, 5)), 4, 1.0
    step = quantisation_step(levels, bound)
    # The expectation enumerates the two levels of each coordinate.
    expected = np.zeros(3)
    for client, coordinate in np.ndindex(3, 5):
        value = vectors[client, coordinate]
        level = math.floor((value + bound) / step)
        below, above = level * step - bound, (level + 1) * step - bound
        upper = (value - below) / step
        expected[client] += upper * (above - value) ** 2 + (1 - upper) * (value - below) ** 2
    assert quantisation_error(vectors, levels, bound) == pytest.approx(expected, rel=1e-12)
    drawn = quantise_k_levels(np.tile(vectors, (DRAWS, 1, 1)), levels, bound, np.random.default_rng(4))
    squares = np.sum((drawn * step - bound - vectors) ** 2, axis=2)
    assert np.all(np.abs(squares.mean(axis=0) - expected) < 5 * squares.std(axis=0) / math.sqrt(DRAWS))


def test_the_error_is_at_most_a_quarter_of_a_squared_step_for_each_coordinate() -> None:
    step = quantisation_step(3, 1.0)
    assert quantisation_error([step / 2] * 8, 3, 1.0) == 8 * step**2 / 4
    assert quantisation_error([0.0, 1.0, -1.0], 3, 1.0) == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": 1}, "levels must be a whole number from 2 to 16777216, got 1"),
        ({"levels": 2**24 + 1}, "levels must be a whole number from 2 to 16777216, got 16777217"),
        ({"bound": 0.0}, "bound must be a number from 1e-105 to 1e\\+101, got 0.0"),
        ({"vectors": [math.nan]}, r"vectors must hold finite numbers only, got nan"),
        ({"random_words": 0}, r"random_words must be quietbits\.secure_words, .*, got 0"),
    ],
)
def test_arguments_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"vectors": [0.5], "levels": 3, "bound": 1.0, "random_words": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        quantise_k_levels(**(arguments | changes))
