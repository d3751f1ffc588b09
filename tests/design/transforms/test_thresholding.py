"""Tests of thresholding.

Points under test: sums with a memory, vectors layer by layer, the exact error, and bounds on the error.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quietbits.design.transforms.thresholding import keep_largest, threshold_with_memory

SIZES = (3, 1, 4)
VECTORS = arrays(float, (5, 8), elements=st.floats(-10, 10))


@given(VECTORS, st.floats(0, 1))
def test_the_largest_are_kept(vectors: np.ndarray, share: float) -> None:
    result = keep_largest(vectors, SIZES, share)
    for column, (start, size) in enumerate(zip((0, 3, 4), SIZES, strict=True)):
        before, after = vectors[:, start : start + size], result.vectors[:, start : start + size]
        count = math.ceil(share * size)
        largest = [np.sort(np.abs(values), axis=1)[:, size - count :] for values in (before, after)]
        assert np.array_equal(*largest)
        assert np.all((after == before) | (after == 0))
        assert np.all(result.kept[:, column] <= count)
        norms = np.linalg.norm(before, axis=1)
        assert np.all(result.layer_errors[:, column] <= math.sqrt(1 - share) * norms * (1 + 1e-12) + 1e-150)


@settings(max_examples=50)
@given(VECTORS, st.floats(0, 1))
def test_errors_are_exact_and_bound_the_error_of_the_mean(vectors: np.ndarray, share: float) -> None:
    largest = keep_largest(vectors, SIZES, share)
    assert largest.errors == pytest.approx(np.linalg.norm(vectors - largest.vectors, axis=1), rel=1e-12, abs=1e-300)
    assert np.linalg.norm((vectors - largest.vectors).mean(axis=0)) <= largest.mean_error_bound + 1e-15
    assert largest.kept.sum() == np.count_nonzero(largest.vectors)


def test_equal_coordinates_attain_the_bound_of_a_share() -> None:
    largest = keep_largest(np.ones((1, 100)), (100,), 0.75)
    assert largest.errors == pytest.approx(math.sqrt(0.25) * 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: keep_largest(np.zeros((0, 8)), SIZES, 0.5), r"vectors must have the shape \(clients, 8\).* got \(0, 8\)"),
        (lambda: keep_largest(np.zeros((2, 7)), SIZES, 0.5), r"got \(2, 7\)"),
        (lambda: keep_largest(np.full((2, 8), math.nan), SIZES, 0.5), "vectors must"),
        (lambda: keep_largest(np.zeros((2, 0)), (), 0.5), "number of sizes must be a whole number from 1"),
        (lambda: keep_largest(np.zeros((2, 8)), SIZES, 1.5), r"share must be a number from 0 to 1, got 1\.5"),
        (lambda: keep_largest(np.zeros((2, 8)), (8, 0), 0.5), "sizes must be a whole number from 1"),
    ],
)
def test_bad_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


SUMS = arrays(float, (6, 8), elements=st.floats(-10, 10))


@settings(max_examples=50)
@given(SUMS, st.floats(0, 3))
def test_a_memory_loses_nothing_over_rounds(sums: np.ndarray, threshold: float) -> None:
    memory, kept = np.zeros(8), np.zeros(8)
    for values in sums:
        whole = values + memory
        result = threshold_with_memory(values, memory, threshold)
        # Each coordinate is either kept or remembered, depending on its size.
        limit = threshold * math.sqrt(np.mean(whole**2))
        assert np.array_equal(result.kept, np.where(np.abs(whole) >= limit, whole, 0.0))
        assert np.array_equal(result.kept + result.memory, whole)
        kept, memory = kept + result.kept, result.memory
    assert kept + memory == pytest.approx(sums.sum(axis=0), abs=1e-12)


def test_without_a_threshold_nothing_is_remembered() -> None:
    result = threshold_with_memory([1.0, -2.0, 0.0], np.zeros(3), 0.0)
    assert result.kept.tolist() == [1.0, -2.0, 0.0]
    assert not result.memory.any()


def test_a_small_coordinate_is_sent_once_it_has_added_up() -> None:
    memory, sent = np.zeros(2), []
    for _ in range(40):
        result = threshold_with_memory([1.0, 0.1], memory, 1.0)
        memory, sent = result.memory, [*sent, result.kept[1]]
    # The threshold uses the root mean square of both coordinates, so the large coordinate raises it for the small coordinate.
    assert 1 < np.count_nonzero(sent) < 20
    assert sum(sent) == pytest.approx(4.0 - memory[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [0.0, 0.0], 1.0), r"memory must have the shape of the values, \(coordinates,\), got \(2,\) and \(1,\)"),
        (([[1.0]], [[0.0]], 1.0), r"memory must have the shape of the values, \(coordinates,\), got \(1, 1\) and \(1, 1\)"),
        (([1.0], [0.0], -1.0), "threshold must be a number from 0 to 100, got -1"),
    ],
)
def test_what_a_memory_refuses(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        threshold_with_memory(*arguments)
