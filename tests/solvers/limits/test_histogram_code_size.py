"""Tests of the size of the code.

The tests run against the exact failure probability of random matrices of tiny cases, and a sum over vectors.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from quietbits.solvers.limits.histogram_code_size import code_size, code_size_of_histogram, zero_probability

Vector = tuple[int, ...]


def histograms(clients: int, dimension: int) -> list[Vector]:
    return [
        tuple(np.bincount(np.array(items, dtype=int), minlength=dimension).tolist())
        for items in itertools.combinations_with_replacement(range(dimension), clients)
    ]


def differences(clients: int, dimension: int) -> set[Vector]:
    """Return differences of two histograms, one of each pair of opposite differences."""
    every = histograms(clients, dimension)
    result = {tuple(np.subtract(first, second).tolist()) for first in every for second in every if first != second}
    return {vector for vector in result if vector > tuple(-entry for entry in vector)}


def failure_probability(vectors: set[Vector], dimension: int, rows: int) -> float:
    """Return the exact probability that a matrix of fair bits maps some vector to 0."""
    table = np.array(sorted(vectors))
    patterns = Counter(
        sum(1 << place for place in np.flatnonzero(table @ np.array(bits) == 0).tolist())
        for bits in itertools.product((0, 1), repeat=dimension)
    )
    alive = {(1 << len(table)) - 1: 1.0}
    for _ in range(rows):
        then: Counter[int] = Counter()
        for mask, weight in alive.items():
            for pattern, times in patterns.items():
                then[mask & pattern] += weight * times / 2**dimension
        alive = dict(then)
    return 1 - alive.get(0, 0.0)


@pytest.mark.parametrize(("clients", "dimension"), [(1, 2), (1, 5), (2, 3), (3, 3), (4, 3), (2, 5), (4, 4), (3, 5)])
@pytest.mark.parametrize("probability", [0.3, 0.01])
def test_the_matrix_fails_no_more_often_than_asked_for(clients: int, dimension: int, probability: float) -> None:
    rows = code_size(clients, dimension, probability)
    assert failure_probability(differences(clients, dimension), dimension, rows) <= probability
    for histogram in histograms(clients, dimension)[:: max(1, dimension - 1)]:
        others = {tuple(np.subtract(other, histogram).tolist()) for other in histograms(clients, dimension) if other != histogram}
        own = code_size_of_histogram(histogram, dimension, probability)
        assert failure_probability(others, dimension, own) <= probability
        assert own <= rows + 2


@pytest.mark.parametrize(("clients", "dimension"), [(1, 1000), (2, 9), (4, 6), (5, 5)])
@pytest.mark.parametrize("probability", [0.5, 1e-3, 1e-9])
def test_it_is_the_union_bound(clients: int, dimension: int, probability: float) -> None:
    """The size is the least m with a sum over all vectors of at most q, by enumeration."""
    if clients == 1:
        sizes = Counter({2: math.comb(dimension, 2)})
    else:
        kept = (vector for vector in differences(clients, dimension) if not (np.count_nonzero(vector) == 2 and max(vector) > 1))
        sizes = Counter(int(np.count_nonzero(vector)) for vector in kept)

    def bound(rows: int) -> float:
        return sum(count * zero_probability(size) ** rows for size, count in sizes.items())

    rows = code_size(clients, dimension, probability)
    assert bound(rows) <= probability
    assert rows == 1 or bound(rows - 1) > probability


@pytest.mark.parametrize("histogram", [(1, 1, 1, 0, 0, 0), (3, 1, 0, 0, 0, 0), (2, 2, 0, 0, 0), (5, 0, 0), (2, 1, 1, 0, 0)])
def test_the_bound_for_one_histogram_counts_its_alternatives(histogram: Vector) -> None:
    every = [tuple(np.subtract(other, histogram).tolist()) for other in histograms(sum(histogram), len(histogram)) if other != histogram]
    sizes = Counter(np.count_nonzero(vector) for vector in every if not (np.count_nonzero(vector) == 2 and max(vector) > 1))
    rows = code_size_of_histogram(histogram, len(histogram), 1e-4)

    def bound(rows: int) -> float:
        return sum(count * zero_probability(size) ** rows for size, count in sizes.items())

    assert bound(rows) <= 1e-4 < bound(rows - 1)


@pytest.mark.parametrize("support", [2, 3, 4, 5])
def test_no_vector_is_mapped_to_zero_more_often(support: int) -> None:
    bits = np.array(list(itertools.product((0, 1), repeat=support)))
    vectors = [vector for vector in itertools.product((-3, -2, -1, 1, 2, 3), repeat=support) if sum(vector) == 0]
    most = max(np.mean(bits @ np.array(vector) == 0) for vector in vectors)
    assert most <= zero_probability(support) * (1 + 1e-12)
    assert support == 5 or most == pytest.approx(zero_probability(support), rel=1e-12)


def test_it_grows_with_everything() -> None:
    assert code_size(29, 1000) <= code_size(30, 1000) <= code_size(30, 1100) <= code_size(30, 1100, 1e-5)
    # Beyond 256 clients the bound on the sum is coarser, and never lower.
    termwise = code_size(256, 10**4)
    assert termwise <= code_size(257, 10**4) <= termwise + 8
    assert code_size(100, 10**12) > code_size(100, 10**6)


def test_nothing_to_tell_apart() -> None:
    assert (code_size(0, 100), code_size(5, 1), code_size_of_histogram([], 100), code_size_of_histogram([7], 1)) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 10, 0.1), "clients must be a whole number from 0 to 2000, got -1"),
        ((3, 0, 0.1), "dimension must be a whole number .*, got 0"),
        ((3, 10, 0.0), r"failure_probability must be .*, got 0\.0"),
    ],
)
def test_bad_arguments(arguments: tuple[int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        code_size(*arguments)


@pytest.mark.parametrize(("counts", "message"), [([1, -1], "none negative"), ([1.5], "whole numbers"), ([1, 1, 1], "at most 2 items")])
def test_bad_counts(counts: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        code_size_of_histogram(counts, 2)
