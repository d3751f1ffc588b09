import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from quietbits.arrays import WordArray
from quietbits.design.frequencies.subset_selection import listed_subsets, packed_subsets
from quietbits.design.noise.packed_bits import bits_at, random_bits, set_bits, sum_of_bits
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words


class GivenWords(WordSource):
    """Source that returns rows of a table of words, for the columns that are still undecided."""

    def __init__(self, table: WordArray) -> None:
        self.rows = iter(table)

    def __call__(self, count: int) -> WordArray:
        return next(self.rows)[:count].copy()


@pytest.mark.parametrize("probability", [0.0, 2.0**-64, 1e-3, 0.25, 0.3, 0.5, 1 / math.e, 1 - 2.0**-53, 1.0])
def test_a_bit_is_whether_a_uniform_number_is_below_the_probability(probability: float) -> None:
    # The first word holds the first bits of the numbers, and so on; half of these 64 numbers are next to the threshold.
    threshold = math.ceil(probability * 2**64)
    rng = np.random.default_rng(0)
    near = [min(max(threshold + step, 0), 2**64 - 1) for step in range(-16, 16)]
    numbers = [*near, *rng.integers(0, 2**64, 32, dtype=np.uint64).tolist()]
    digits = [[sum((number >> place & 1) << lane for lane, number in enumerate(numbers))] for place in range(63, -1, -1)]
    packed = random_bits(probability, 1, 64, GivenWords(np.array(digits, dtype=np.uint64)))
    result = np.unpackbits(packed[0], bitorder="little")
    np.testing.assert_array_equal(result, [number < threshold for number in numbers])


@pytest.mark.parametrize("random_words", [seeded_words(np.random.default_rng(0)), secure_words])
def test_bits_are_independent_and_as_frequent(random_words: WordSource) -> None:
    packed = random_bits(0.3, 40_000, 11, random_words)
    assert packed.shape == (40_000, 2)
    assert (packed[:, 1] < 8).all()
    bits = np.unpackbits(packed, axis=1, bitorder="little")[:, :11].astype(float)
    assert abs(bits.mean() - 0.3) < 6 * math.sqrt(0.21 / bits.size)
    correlations = np.corrcoef(bits.T)[~np.eye(11, dtype=bool)]
    assert np.abs(correlations).max() < 6 / math.sqrt(40_000)


def test_sums_and_single_bits_are_those_of_the_unpacked() -> None:
    packed = random_bits(0.8, 300, 20_001, np.random.default_rng(1))
    bits = np.unpackbits(packed, axis=1, bitorder="little")[:, :20_001]
    np.testing.assert_array_equal(sum_of_bits(packed, 20_001), bits.sum(axis=0))
    positions = np.random.default_rng(2).integers(0, 20_001, 300)
    np.testing.assert_array_equal(bits_at(packed, positions), bits[np.arange(300), positions])
    new = np.random.default_rng(3).random(300) < 0.5
    set_bits(packed, positions, new)
    bits[np.arange(300), positions] = new
    np.testing.assert_array_equal(np.unpackbits(packed, axis=1, bitorder="little")[:, :20_001], bits)


@pytest.mark.parametrize("draw", [listed_subsets, packed_subsets])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("included", [True, False])
def test_subsets_are_uniform(draw: Callable[..., Any], size: int, included: bool) -> None:
    count = 3_000
    drawn = draw(np.full(count, 2), np.full(count, included), size, 6, seeded_words(np.random.default_rng(size)))
    members = drawn if draw is listed_subsets else [np.flatnonzero(np.unpackbits(row, bitorder="little")) for row in drawn]
    result = Counter(tuple(map(int, row)) for row in members)
    possible = [subset for subset in itertools.combinations(range(6), size) if (2 in subset) == included]
    assert set(result) == set(possible)
    if len(possible) > 1:
        assert chisquare([result[subset] for subset in possible]).pvalue > 1e-6


def test_both_kinds_of_subsets_of_large_universes_have_their_size() -> None:
    held, included = np.arange(300) * 33, np.arange(300) % 3 == 0
    words = seeded_words(np.random.default_rng(4))
    listed = listed_subsets(held, included, 500, 10_000, words)
    assert (np.diff(listed, axis=1) > 0).all()
    assert (listed.min(), listed.max()) >= (0, 9_000)
    assert listed.max() < 10_000
    np.testing.assert_array_equal((listed == held[:, None]).any(axis=1), included)
    packed = packed_subsets(held, included, 500, 10_000, words)
    assert (np.bitwise_count(packed).sum(axis=1) == 500).all()
    np.testing.assert_array_equal(bits_at(packed, held) == 1, included)
