"""Shared normal numbers: the same bits everywhere, random access, and normality.

False-alarm probabilities are stated.
"""

import hashlib

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from quietbits.design.relative_entropy.shared_randomness import (
    NUMBERS_PER_CHUNK,
    SharedNormals,
    normals_from_words,
    upper_quantile,
    upper_tail,
    vectors_of_seeds,
)


def philox_words(seed: int, stream: int, counter: int) -> list[int]:
    """Return words of Philox4x64-10 from its definition, in plain integers."""
    low = 2**64 - 1
    state, key = [counter, 0, 0, 0], [seed, stream]
    for _ in range(10):
        first, second = state[0] * 0xD2E7470EE14C6C93, state[2] * 0xCA5A826395121157
        state = [second >> 64 ^ state[1] ^ key[0], second & low, first >> 64 ^ state[3] ^ key[1], first & low]
        key = [(key[0] + 0x9E3779B97F4A7C15) & low, (key[1] + 0xBB67AE8584CAA73B) & low]
    return state


@pytest.mark.parametrize(("seed", "stream", "dimension", "index"), [(1, 0, 8, 0), (2**64 - 1, 7, 20, 5), (12345, 2**32 - 1, 3, 2**32 - 1)])
def test_vectors_are_made_of_the_words_of_philox(seed: int, stream: int, dimension: int, index: int) -> None:
    blocks = -(-dimension // 8)
    words = [word for block in range(blocks) for word in philox_words(seed, stream, index * blocks + block + 1)]
    expected = normals_from_words(np.array(words, dtype=np.uint64))[:dimension]
    np.testing.assert_array_equal(SharedNormals(seed, dimension, stream).vector(index), expected)


def test_bits_are_pinned() -> None:
    # Servers decode messages of clients of other versions, machines or languages, so these numbers never change.
    assert philox_words(2026, 3, 1)[:2] == [0x0E42F0DF628C8631, 0xEA4B7A5825C7BE12]
    assert SharedNormals(seed=2026, dimension=6, stream=3).vector(0).view(np.uint32).tolist() == [
        0x3E95C100,
        0x3FCBC1D3,
        0x3F85FFEF,
        0xBFAFD186,
        0xBFBA6A28,
        0xBEB92108,
    ]
    digest = hashlib.sha256(SharedNormals(seed=1, dimension=10**6).vector(77).astype("<f4").tobytes()).hexdigest()
    assert digest == "4cd445cbcac244de585bb23c9cd1c7821a128bac49c46b6ffc34af89935586a1"


@pytest.mark.parametrize("dimension", [1, 7, 8, 9, 16, 17, 1000, 70_000])
def test_many_seeds_have_the_vectors_of_each(dimension: int) -> None:
    seeds, first, count = [0, 2**64 - 1, 7], [0, 2**32 - 2, 5], 2
    expected = [SharedNormals(seed, dimension).vectors(number, count) for seed, number in zip(seeds, first, strict=True)]
    np.testing.assert_array_equal(vectors_of_seeds(seeds, dimension, count, first), expected)
    np.testing.assert_array_equal(vectors_of_seeds(seeds, dimension)[:, 0], [SharedNormals(seed, dimension).vector(0) for seed in seeds])


@pytest.mark.parametrize("dimension", [1, 8, 13, NUMBERS_PER_CHUNK, 2 * NUMBERS_PER_CHUNK + 3])
def test_any_vector_is_made_without_those_before(dimension: int) -> None:
    normals = SharedNormals(seed=5, dimension=dimension, stream=1)
    together = normals.vectors(0, 6)
    assert together.shape == (6, dimension)
    assert together.dtype == np.float32
    for index in (5, 0, 3):
        np.testing.assert_array_equal(normals.vector(index), together[index])
        np.testing.assert_array_equal(np.concatenate(list(normals.parts(index))), together[index])
    np.testing.assert_array_equal(normals.vectors(2, 3), together[2:5])


def test_seeds_streams_and_vectors_differ() -> None:
    vectors = [SharedNormals(seed, 50, stream).vector(index) for seed in (0, 1) for stream in (0, 1) for index in (0, 1)]
    correlations = np.corrcoef(vectors)[np.triu_indices(8, 1)]
    # Each of the 28 correlations has 50 numbers, so the largest exceeds 0.75 with a chance below 1e-8.
    assert np.abs(correlations).max() < 0.75


def test_numbers_are_the_quantiles_of_their_words() -> None:
    # The test covers every octave of the tail and both signs; the low half of a word comes first.
    rng = np.random.default_rng(0)
    tails = np.concatenate([2**octave + rng.integers(0, 2**octave, 2000) for octave in range(31)]) | 1
    words = tails.astype(np.uint64) | (-tails).astype(np.uint32).astype(np.uint64) << np.uint64(32)
    numbers = normals_from_words(words).astype(float)
    exact = -special.ndtri(tails / 2.0**32)
    assert np.abs(numbers[::2] - exact).max() < 6e-7
    np.testing.assert_array_equal(numbers[1::2], -numbers[::2])


def test_variance_is_one() -> None:
    # The exact distribution is checked octave by octave, at the midpoints of 2**16 equal parts of each, without random draws.
    variance = 2.0**-31 * float(normals_from_words(np.array([1], dtype=np.uint64))[0]) ** 2
    for octave in range(31):
        middles = 2.0**octave * (1 + (np.arange(2**16) + 0.5) / 2**16)
        squares = normals_from_words(middles.astype(np.uint64))[::2].astype(float) ** 2
        variance += 2.0 ** (octave - 31) * squares.mean()
    assert variance == pytest.approx(1, abs=1e-7)


def test_five_million_numbers_look_normal() -> None:
    numbers = np.concatenate([SharedNormals(seed=3, dimension=10**6).vector(index) for index in range(5)]).astype(float)
    # The cells have equal probability: chi-square with 9999 degrees of freedom. Each of six checks fails with probability 1e-6.
    counts = np.bincount((special.ndtr(numbers) * 10**4).astype(int), minlength=10**4)
    assert stats.chisquare(counts).pvalue > 1e-6
    assert stats.kstest(numbers[: 10**6], "norm").pvalue > 1e-6
    powers = np.ones_like(numbers)
    for moment, spread in ((0, 1), (1, 2), (0, 15), (3, 96)):
        powers *= numbers
        assert abs(powers.mean() - moment) < 4.9 * np.sqrt(spread / len(numbers))
    # 317 numbers are expected beyond 4 standard deviations.
    assert stats.binomtest(int(np.count_nonzero(np.abs(numbers) > 4)), len(numbers), 2 * special.ndtr(-4)).pvalue > 1e-6


def test_tails_and_quantiles_beside_sixty_digits() -> None:
    points = np.array([0.0, 1e-8, 0.3, 1.7, 2.4999, 2.5, 3.9, 6.2, 7.5])
    with mpmath.workdps(60):
        exact = [float(mpmath.ncdf(-point)) for point in points.tolist()]
    np.testing.assert_allclose(upper_tail(points), exact, rtol=1e-11)
    tails = 2.0 ** -np.arange(1, 41)
    np.testing.assert_allclose(upper_quantile(tails), -special.ndtri(tails), atol=1e-11)


@pytest.mark.parametrize("tail", [0.0, 2.0**-41, 0.51, np.nan])
def test_quantiles_of_other_tails_are_refused(tail: float) -> None:
    with pytest.raises(ValueError, match="tails must be probabilities from"):
        upper_quantile(np.array([0.25, tail]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": -1}, "seed must be a whole number from 0 to 18446744073709551615, got -1"),
        ({"seed": 2**64}, "seed must be"),
        ({"dimension": 0}, "dimension must be a whole number from 1"),
        ({"stream": 2**32}, "stream must be a whole number from 0 to 4294967295, got 4294967296"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SharedNormals(**{"seed": 0, "dimension": 3} | fields)


def test_bad_vectors_are_refused() -> None:
    normals = SharedNormals(seed=0, dimension=3)
    with pytest.raises(ValueError, match="index must be a whole number from 0 to 4294967295, got -1"):
        normals.vector(-1)
    with pytest.raises(ValueError, match="first must be"):
        normals.vectors(-1, 2)
    with pytest.raises(ValueError, match="count must be a whole number from 1 to 1, got 2"):
        normals.vectors(2**32 - 1, 2)
