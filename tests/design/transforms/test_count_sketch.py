"""Count-mean sketches: buckets, hashing in blocks, memory use, and the median decoder.

Seeds are fixed; about one seed in a million would make a statistical test fail.
"""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.stats

from quietbits.design.transforms import count_sketch
from quietbits.design.transforms.count_sketch import BLOCK, CountMeanSketch
from quietbits.design.transforms.rotation import RandomisedFourier


def places(seed: int, row: int, dimension: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return buckets and signs of all coordinates in a row, from Philox's words at (seed, row)."""
    words = np.random.Philox(key=seed, counter=(row + 1) << 192).random_raw(-(-dimension // 2))
    halves = np.stack([words & np.uint64(2**32 - 1), words >> np.uint64(32)], axis=1).ravel()[:dimension]
    buckets = ((halves >> np.uint64(1)) * np.uint64(width)) >> np.uint64(31)
    return buckets.astype(int), np.where(halves & np.uint64(1), -1, 1)


def by_definition(sketch: CountMeanSketch, vector: np.ndarray) -> np.ndarray:
    """Return rows of buckets without a scale, from the definition of the sketch."""
    buckets = np.zeros((sketch.rows, sketch.width))
    for row in range(sketch.rows):
        chosen, signs = places(sketch.seed, row, sketch.dimension, sketch.width)
        np.add.at(buckets[row], chosen, signs * vector)
    return buckets


@pytest.mark.parametrize(("dimension", "rows", "width"), [(1, 1, 1), (2, 1, 2), (31, 3, 7), (1000, 15, 10), (999, 1, 999)])
@pytest.mark.parametrize("seed", [0, 2**128 - 1])
def test_every_bucket_by_its_definition(dimension: int, rows: int, width: int, seed: int) -> None:
    sketch = CountMeanSketch(dimension, rows, width, seed)
    vector = np.arange(1.0, dimension + 1)
    np.testing.assert_allclose(sketch.encode(vector) * math.sqrt(rows), by_definition(sketch, vector).ravel(), rtol=1e-13)


def test_sketches_that_were_stored_can_still_be_read() -> None:
    # No later version may change these buckets and signs: coordinate i is the power 2**i.
    sketch = CountMeanSketch(dimension=11, rows=2, width=5, seed=1)
    result = sketch.encode(2.0 ** np.arange(11)) * math.sqrt(2)
    assert np.rint(result).astype(int).tolist() == [0, 829, -16, -1156, 8, -1040, 256, -511, -34, 200]


@pytest.mark.parametrize(("dimension", "width"), [(40, 3), (41, 3), (41, 7), (41, 5), (17, 16), (1, 1)])
def test_blocks_do_not_matter(dimension: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whole numbers add up exactly in every order. With 8 coordinates per block, some rows are wider than a block.
    vectors = np.random.default_rng(3).integers(-1000, 1000, size=(2, dimension)).astype(float)
    sketch = CountMeanSketch(dimension, 1, width, seed=5)
    whole, restored, medians = sketch.encode(vectors), sketch.decode(np.arange(width)), sketch.decode_median(np.arange(width))
    monkeypatch.setattr(count_sketch, "BLOCK", 8)
    np.testing.assert_array_equal(sketch.encode(vectors), whole)
    np.testing.assert_array_equal(sketch.encode(vectors[1]), whole[1])
    np.testing.assert_array_equal(sketch.decode(np.arange(width)), restored)
    np.testing.assert_array_equal(sketch.decode_median(np.arange(width)), medians)


@pytest.mark.parametrize("width", [3, 65535, 65537, BLOCK + 1])
def test_long_vectors_are_hashed_like_short_ones(width: int) -> None:
    # The vector has several blocks; rows of more than half a block make blocks longer.
    dimension = 2 * BLOCK + 2 * width + 3
    vector = np.random.default_rng(4).integers(-1000, 1000, size=dimension).astype(float)
    sketch = CountMeanSketch(dimension, 1, width, seed=6)
    encoded = sketch.encode(vector)
    np.testing.assert_array_equal(encoded, by_definition(sketch, vector)[0])
    buckets, signs = places(6, 0, dimension, width)
    np.testing.assert_array_equal(sketch.decode(encoded), signs * encoded[buckets])
    # The hashes of the first coordinates do not depend on the dimension.
    np.testing.assert_array_equal(CountMeanSketch(dimension - 7, 1, width, seed=6).decode(encoded), sketch.decode(encoded)[:-7])


def test_buckets_and_signs_are_fair_and_rows_independent() -> None:
    dimension, width = 60_000, 7
    rows = [places(8, row, dimension, width) for row in range(2)]
    # The test above shows that these are the sketch's own hashes; there are 14 x 14 cells of equal probability.
    cells = [2 * buckets + (signs < 0) for buckets, signs in rows]
    counts = np.bincount(14 * cells[0] + cells[1], minlength=196)
    assert scipy.stats.chisquare(counts).pvalue > 1e-6
    neighbours = np.bincount(14 * cells[0][:-1:2] + cells[0][1::2], minlength=196)
    assert scipy.stats.chisquare(neighbours).pvalue > 1e-6


def test_hashes_are_other_words_than_those_of_a_rotation_with_the_same_seed() -> None:
    # The sketch and the rotation must be independent: the correlation of 1000 pairs is below 6 / sqrt(1000).
    buckets = np.abs(CountMeanSketch(2000, 1, 2000, seed=5).decode(np.arange(2000)))
    # A pair's phase is that of the first number of its transform.
    phases = np.angle(RandomisedFourier(2000, seed=5).forward(np.eye(2000)[::2]).view(np.complex128)[:, 0]) % (2 * math.pi)
    for part in (buckets[0::2], buckets[1::2]):
        assert abs(np.corrcoef(part, phases)[0, 1]) < 6 / math.sqrt(1000)


def test_ten_million_coordinates_take_little_memory_beside_the_vector() -> None:
    vector = np.ones(10**7)
    sketch = CountMeanSketch(10**7, rows=2, width=1000, seed=1)
    tracemalloc.start()
    encoded = sketch.encode(vector)
    peaks = [tracemalloc.get_traced_memory()[1]]
    tracemalloc.reset_peak()
    decoded = sketch.decode(encoded)
    peaks.append(tracemalloc.get_traced_memory()[1] - decoded.nbytes)
    tracemalloc.stop()
    # The check for finite numbers takes a byte per coordinate; a matrix or stored hashes would take at least 4 bytes per row and
    # coordinate.
    assert max(peaks) < 2 * 10**7
    # The mean is the squared length of the sketch over that of the vector.
    assert abs(decoded.mean() - 1) < 6 * math.sqrt(sketch.length_variance)


@pytest.mark.parametrize("rows", [1, 4, 15])
def test_scalings_differ_by_a_factor_that_decoding_takes_off(rows: int) -> None:
    usual = CountMeanSketch(300, rows, 20, seed=2)
    other = CountMeanSketch(300, rows, 20, seed=2, scaling="mean")
    vectors = np.random.default_rng(5).normal(size=(3, 300))
    np.testing.assert_allclose(other.encode(vectors) * math.sqrt(rows), usual.encode(vectors), rtol=1e-13)
    np.testing.assert_allclose(other.encode(vectors) * rows, by_rows(usual, vectors), rtol=1e-12)
    np.testing.assert_allclose(other.decode(other.encode(vectors)), usual.decode(usual.encode(vectors)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.decode_median(other.encode(vectors)), usual.decode_median(usual.encode(vectors)), atol=1e-12)
    assert (usual.length_factor, other.length_factor) == (1.0, pytest.approx(1 / math.sqrt(rows), rel=1e-15))
    for name in ("distortion", "length_variance", "squared_operator_norm_bound", "sketch_dimension"):
        assert getattr(usual, name) == getattr(other, name)


def by_rows(sketch: CountMeanSketch, vectors: np.ndarray) -> np.ndarray:
    return np.array([by_definition(sketch, vector).ravel() for vector in vectors])


@pytest.mark.parametrize("rows", [1, 4, 15])
def test_the_median_over_rows_by_definition(rows: int) -> None:
    sketch = CountMeanSketch(200, rows, 13, seed=4)
    buckets = np.random.default_rng(6).normal(size=(rows, 13))
    estimates = []
    for row in range(rows):
        chosen, signs = places(4, row, 200, 13)
        estimates.append(signs * buckets[row, chosen])
    result = sketch.decode_median(buckets.ravel() / math.sqrt(rows))
    np.testing.assert_allclose(result, np.median(estimates, axis=0), rtol=1e-12)
    np.testing.assert_allclose(sketch.decode(buckets.ravel() / math.sqrt(rows)), np.mean(estimates, axis=0), rtol=1e-11, atol=1e-14)


def test_the_median_is_hardly_moved_by_a_few_huge_coordinates() -> None:
    # Three of 2000 coordinates are 10**6. Another coordinate meets them in 8 of 15 rows with a probability of C(15, 8) 0.03**8 = 4e-9.
    vector = np.random.default_rng(7).uniform(-1, 1, size=2000)
    vector[[5, 500, 1500]] = 1e6, -1e6, 1e6
    sketch = CountMeanSketch(2000, rows=15, width=100, seed=3)
    encoded = sketch.encode(vector)
    by_median, by_mean = np.abs(sketch.decode_median(encoded) - vector), np.abs(sketch.decode(encoded) - vector)
    # A row's estimate has a standard deviation of sqrt(20 / 3) = 2.6 without a huge coordinate in its bucket.
    assert by_median.max() < 5 * math.sqrt(20 / 3)
    # A third of the other coordinates meet a huge coordinate in some row.
    assert np.mean(by_mean > 1e4) > 0.3


def test_the_size_may_be_given_in_all() -> None:
    assert CountMeanSketch.of_size(1000, 150, rows=15, seed=3) == CountMeanSketch(1000, 15, 10, 3)
    assert CountMeanSketch.of_size(10, 10, rows=2).sketch_dimension == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100, 101, 1), "sketch_dimension must be a whole number from 1 to 100, got 101"),
        ((100, 0, 1), "sketch_dimension must be a whole number from 1 to 100, got 0"),
        ((100, 50, 15), "sketch_dimension must be a multiple of rows, 15, such as 60, got 50"),
        ((100, 50, 0), "rows must be a whole number from 1 to 100, got 0"),
        ((10, 10, 15), "rows must be a whole number from 1 to 10, got 15"),
        ((10**6, 5000, 1025), "rows must be a whole number from 1 to 1024, got 1025"),
    ],
)
def test_sizes_that_cannot_be_are_refused(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CountMeanSketch.of_size(*arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows must be a whole number from 1 to 100, got 0"),
        ({"rows": 101}, "rows must be a whole number from 1 to 100, got 101"),
        ({"width": 0}, "width must be a whole number from 1 to 2147483647, got 0"),
        ({"rows": 15, "width": 7}, "width must be at most dimension // rows = 6, or a sketch is longer than its vector; got 7"),
        ({"scaling": "sum"}, "scaling must be one of isometry, mean, got 'sum'"),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CountMeanSketch(**{"dimension": 100, "rows": 1, "width": 5} | changes)
