"""Tests of sketches of items.

Points under test: estimates have no bias over all hash functions of a small domain, and enumeration confirms the worst pair of items.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from quietbits.design.frequencies import worst_pair as joins
from quietbits.design.frequencies.item_sketch import ItemSketch, usual_rows
from quietbits.design.frequencies.worst_pair import WorstPair, likely_excess, worst_pair
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard


@dataclass(frozen=True)
class GivenPlaces(ItemSketch):
    """Sketch with a given hash function."""

    table: tuple[int, ...] = ()

    def _places(self, row: int) -> Iterator[tuple[slice, np.ndarray]]:  # noqa: ARG002 - all rows are alike
        yield slice(0, self.categories), np.array(self.table)


def every_sketch(categories: int, width: int, *, signed: bool) -> list[GivenPlaces]:
    places = range(2 * width) if signed else range(0, 2 * width, 2)
    return [GivenPlaces(categories, 1, width, signed=signed, table=table) for table in product(places, repeat=categories)]


def one_hot(sketch: ItemSketch) -> np.ndarray:
    """Return sketches of all items, shape (items, rows, width)."""
    return np.array([sketch.counted(row) for row in np.eye(sketch.categories)])


@pytest.mark.parametrize(("width", "signed"), [(2, True), (3, True), (2, False), (3, False)])
def test_estimates_are_unbiased_over_all_hash_functions_with_the_stated_variance(width: int, signed: bool) -> None:
    counts = np.array([5.0, 2.0, 0.0, 1.0])
    sketches = every_sketch(4, width, signed=signed)
    errors = np.array([sketch.decoded(sketch.counted(counts).astype(float)) for sketch in sketches]) - counts
    np.testing.assert_allclose(errors.mean(axis=0), 0.0, atol=1e-12)
    expected = sketches[0].collision_share * (np.sum(counts**2) - counts**2)
    np.testing.assert_allclose((errors**2).mean(axis=0), expected, rtol=1e-12)


@pytest.mark.parametrize("sketch", [ItemSketch(9, 3, 4), ItemSketch(9, 3, 4, signed=False), ItemSketch(5, 1, 7, signed=False)])
def test_what_decoding_makes_of_noise(sketch: ItemSketch) -> None:
    # The squared length of the gradient of an item's estimate is the share of independent noise.
    units = np.eye(sketch.coordinates).reshape(-1, sketch.rows, sketch.width)
    gradient = np.array([sketch.decoded(unit) for unit in units])
    np.testing.assert_allclose((gradient**2).sum(axis=0), sketch.noise_share, rtol=1e-12)


@pytest.mark.parametrize("signed", [True, False])
def test_items_are_counted_where_their_buckets_and_signs_say(signed: bool) -> None:
    sketch = ItemSketch(300, 4, 8, seed=3, signed=signed)
    items = np.array([0, 7, 299, 7])
    expected = np.zeros((4, 8), dtype=int)
    for buckets, signs in zip(sketch.buckets(items), sketch.signs(items), strict=True):
        expected[np.arange(4), buckets] += signs
    sums = sketch.counted(np.bincount(items, minlength=300))
    np.testing.assert_array_equal(sums, expected)
    assert (sketch.signs(np.arange(300)) == 1).all() == (not signed)
    assert set(sketch.buckets(np.arange(300)).ravel().tolist()) == set(range(8))
    assert (sketch.renewed(4).buckets(items) != sketch.buckets(items)).any()
    if signed:
        rows = [sketch.signs(items)[0, row] * sums[row, sketch.buckets(items)[0, row]] for row in range(4)]
        assert sketch.medians(sums.astype(float))[0] == np.median(rows)


def test_blocks_do_not_change_the_hash_function(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = ItemSketch(1001, 2, 8, seed=5)
    places = sketch.places(1)
    monkeypatch.setattr("quietbits.design.frequencies.item_sketch.BLOCK", 64)
    np.testing.assert_array_equal(sketch.places(1), places)
    counts = np.arange(1001)
    sums = sketch.counted(counts)
    monkeypatch.undo()
    np.testing.assert_array_equal(sketch.counted(counts), sums)


def test_buckets_are_equally_likely() -> None:
    places = np.concatenate([ItemSketch(20_000, 1, 16, seed=seed).places(0) for seed in range(5)])
    observed = np.bincount(places, minlength=32)
    # Chi-square with 31 degrees of freedom is above 80 with probability 4e-6.
    assert float(np.sum((observed - 3125) ** 2 / 3125)) < 80


def test_a_histogram_is_exact() -> None:
    sketch = ItemSketch(6, 1, 8, signed=False)
    assert sketch.direct
    np.testing.assert_array_equal(sketch.decoded(sketch.counted(np.arange(6)).astype(float)), np.arange(6))
    assert (sketch.collision_share, sketch.noise_share, worst_pair(sketch)) == (0.0, 1.0, WorstPair(0, exact=True))


# Tests of the worst pair


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("categories", "rows", "width"), [(5, 2, 2), (12, 3, 2), (20, 3, 4), (40, 5, 4), (3, 1, 2), (30, 70, 2)])
def test_the_worst_pair_by_enumeration_of_all_pairs(categories: int, rows: int, width: int, seed: int) -> None:
    for signed in (True, False):
        sketches = one_hot(ItemSketch(categories, rows, width, seed, signed=signed))
        first, second = np.triu_indices(categories, 1)
        distances = int(np.sum((sketches[first] - sketches[second]) ** 2, axis=(1, 2)).max())
        transformed = walsh_hadamard(sketches)
        differing = int(np.count_nonzero(transformed[first] != transformed[second], axis=(1, 2)).max())
        excess = worst_pair(ItemSketch(categories, rows, width, seed, signed=signed)).excess
        # Without signs, the bound is that of two items that share no bucket.
        for result, bound in ((distances, 2 * (rows + excess)), (differing, width // 2 * (rows + excess))):
            assert result == bound if signed and distances >= 2 * rows else result <= bound


@pytest.mark.parametrize(
    ("categories", "rows", "width"),
    [(1000, 15, 64), (800, 5, 16), (900, 4, 256), (1000, 2, 1024), (500, 1, 64), (900, 9, 8), (400, 70, 64)],
)
def test_joins_find_what_all_pairs_have(monkeypatch: pytest.MonkeyPatch, categories: int, rows: int, width: int) -> None:
    for seed in range(2):
        sketch = ItemSketch(categories, rows, width, seed) if width < categories else ItemSketch(2 * width, rows, width, seed)
        monkeypatch.setattr(joins, "ALL_COMPARISONS", 10**12)
        worst_pair.cache_clear()
        result = worst_pair(sketch)
        for limit in (10**12, 10**5):
            monkeypatch.setattr(joins, "ALL_COMPARISONS", 0)
            monkeypatch.setattr(joins, "MOST_COMPARISONS", limit)
            monkeypatch.setattr(joins, "AT_ONCE", 1000)
            monkeypatch.setattr(joins, "OF_A_PAIR", 0)
            worst_pair.cache_clear()
            joined = worst_pair(sketch)
            assert result.excess <= joined.excess <= rows
            assert (joined == result) or not joined.exact
            assert joined.exact or limit == 10**5
    worst_pair.cache_clear()
    monkeypatch.undo()
    assert abs(likely_excess(sketch) - result.excess) <= 1


def test_all_pairs_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = ItemSketch(301, 7, 4, seed=2)
    whole = worst_pair(sketch)
    monkeypatch.setattr(joins, "AT_ONCE", 1000)
    worst_pair.cache_clear()
    assert worst_pair(sketch) == whole
    worst_pair.cache_clear()


def test_too_many_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "MOST_PLACES", 100)
    worst_pair.cache_clear()
    assert worst_pair(ItemSketch(101, 3, 4)) == WorstPair(3, exact=False)
    worst_pair.cache_clear()


# Tests of errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ItemSketch(1, 1, 2), "categories must be a whole number from 2 to"),
        (lambda: ItemSketch(10, 0, 2), "rows must be a whole number from 1 to 1024, got 0"),
        (lambda: ItemSketch(10, 1, 1), "width must be a whole number from 2 to"),
        (lambda: ItemSketch(10, 1, 4, seed=-1), "seed must be a whole number from 0"),
        (lambda: ItemSketch(10, 2, 10, signed=False), "rows must be 1 where width is at least categories, 10, as nothing is hashed, got 2"),
        (lambda: ItemSketch(10, 1, 16), "signed must be False where width is at least categories, 10, as nothing is hashed, got True"),
        (lambda: ItemSketch(10, 1, 4).counted(np.zeros(9)), r"counts must have the shape \(10,\), got \(9,\)"),
        (lambda: ItemSketch(10, 1, 4, signed=False).medians(np.zeros((1, 4))), "signed must be True for medians, got False"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_usual_rows() -> None:
    assert [usual_rows(d, gamma) for d, gamma in ((100_000, 0.05), (2, 0.9), (10**6, 0.01))] == [15, 1, 19]
