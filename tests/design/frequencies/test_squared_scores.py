"""Squared z-scores from counts alone.

Points under test: their means by enumeration for every number of holders, and the resulting level.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from quietbits.arrays import FloatArray
from quietbits.design.frequencies.squared_scores import LARGEST_LEVEL, SignLaw, SupportLaw, calibrating_levels, likely_shift

CLIENTS = 7


@pytest.mark.parametrize(("held_support", "other_support"), [(0.5, 0.1), (0.9, 0.02), (0.3, 0.25), (1.0, 0.0)])
@pytest.mark.parametrize("holders", range(CLIENTS + 1))
def test_scores_of_supporters_have_the_mean_of_the_squared_error_over_the_variance(
    held_support: float, other_support: float, holders: int
) -> None:
    counts = np.arange(CLIENTS + 1.0)
    of_holders = binom.pmf(counts, holders, held_support)
    probabilities = np.convolve(of_holders, binom.pmf(counts, CLIENTS - holders, other_support))[: CLIENTS + 1]
    errors = counts - CLIENTS * other_support - holders * (held_support - other_support)

    def variance(counts: FloatArray) -> FloatArray:
        return 0.5 + np.maximum(counts, 0.0) ** 1.5

    scores = SupportLaw(CLIENTS, held_support, other_support).squared_scores(counts, variance)
    assert probabilities @ scores == pytest.approx(probabilities @ (errors**2 / variance(counts)), rel=1e-10)


@pytest.mark.parametrize("holders", range(4))
@pytest.mark.parametrize("others", [(0.1, 0.1), (0.3, 0.3)])
def test_scores_of_signs_have_the_mean_of_the_squared_error_over_the_variance(holders: int, others: tuple[float, float]) -> None:
    clients, law = 4, SignLaw(held_support=0.6, held_denial=0.1)
    own, rest = (0.6, 0.1, 0.3), (*others, 1 - sum(others))

    def variance(inside: FloatArray, outside: FloatArray) -> FloatArray:
        return 1.0 + np.maximum(inside, 0.0) ** 1.5 + 0.3 * np.maximum(inside + outside, 0.0)

    estimated = expected = 0.0
    cells = [cell for cell in itertools.product(range(clients + 1), repeat=2) if sum(cell) <= clients]
    for first, second in itertools.product(cells, repeat=2):
        probability = math.prod(
            float(multinomial.pmf((*cell, count - sum(cell)), count, law_of)) if sum(cell) <= count else 0.0
            for cell, count, law_of in ((first, holders, own), (second, clients - holders, rest))
        )
        inside, outside = (np.array([float(item + other)]) for item, other in zip(first, second, strict=True))
        estimated += probability * float(law.squared_scores(inside, outside, variance)[0])
        expected += probability * float(((inside - outside - holders * 0.5) ** 2 / variance(inside, outside))[0])
    assert estimated == pytest.approx(expected, rel=1e-10)


def test_the_level_makes_the_mean_of_all_scores_one_and_is_for_items_with_few_supporters() -> None:
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(1000) < 50, 100.0, 2.0)
    scores = np.where(counts > 50, 1.0, 0.8) + 0.01 * rng.standard_normal(1000)
    levels = calibrating_levels(scores, counts, counts > 50)
    assert np.unique(levels[:50]) == 1
    assert np.mean(scores / levels) == pytest.approx(1, abs=1e-3)
    # The level includes items that do not exceed the noise, with any number of supporters.
    assert np.unique(calibrating_levels(scores, counts, np.zeros(1000, dtype=bool))).size == 1


def test_a_level_within_its_sampling_error_is_one() -> None:
    rng = np.random.default_rng(0)
    scores = rng.chisquare(1, 20)
    assert abs(scores.mean() - 1) < scores.std() / math.sqrt(20)
    assert (calibrating_levels(scores, np.full(20, 2.0), np.zeros(20, dtype=bool)) == 1).all()
    # A level needs many items, and stays within its range.
    counts = np.where(np.arange(1000) < 50, 2.0, 100.0)
    assert (calibrating_levels(np.full(1000, 1.5), counts, counts > 50) == 1).all()
    rising = np.where(np.arange(1000) < 150, 1.0, 2.0)
    counts = np.where(np.arange(1000) < 150, 2.0, 100.0)
    assert calibrating_levels(rising, counts, counts > 50).max() == LARGEST_LEVEL


def test_the_shift_is_that_of_the_projection() -> None:
    decoded, likely = np.array([0.5, 0.2, 0.1, -0.3]), np.array([0.5, 0.15, 0.05, 0.0])
    assert likely_shift(decoded, likely, decoded > 0.3) == pytest.approx(0.05)
    assert likely_shift(decoded, decoded, decoded > -1) == 0.5
