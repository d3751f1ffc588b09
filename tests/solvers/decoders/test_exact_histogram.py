"""Tests of exact histograms.

Points under test: solutions, second solutions and proofs agree with enumeration, also by messages alone and branches alone; refusals.

The rank modulo a prime agrees with the rational rank.
"""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.decoders.exact_histogram import PRIME, HistogramTree, decode_histogram, guess_histogram, modular_rank
from quietbits.solvers.decoders.histogram_problem import pose_histogram_problem


def all_solutions(matrix: np.ndarray, sums: np.ndarray, clients: int) -> list[list[int]]:
    dimension = matrix.shape[1]
    items = itertools.combinations_with_replacement(range(dimension), clients)
    every = (np.bincount(np.array(chosen, dtype=int), minlength=dimension) for chosen in items)
    return [counts.tolist() for counts in every if np.array_equal(matrix @ counts, sums)]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 5), st.booleans(), st.integers(0, 2**32))
def test_it_finds_what_enumeration_finds(measurements: int, dimension: int, clients: int, real: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 2, (measurements, dimension))
    counts = np.bincount(rng.integers(0, dimension, clients), minlength=dimension)
    sums = matrix @ counts if real else rng.integers(0, clients + 1, measurements)
    expected = all_solutions(matrix, sums, clients)
    if not expected:
        with pytest.raises(InfeasibleError, match=f"no histogram of {clients} items has these {measurements} sums"):
            decode_histogram(matrix, sums, clients)
        return
    result = decode_histogram(matrix, sums, clients)
    assert result.counts.tolist() in expected
    assert result.unique is (len(expected) == 1)
    if len(expected) > 1:
        assert result.other is not None
        assert result.other.tolist() in expected
        assert result.other.tolist() != result.counts.tolist()
    else:
        assert result.other is None


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(2, 7), st.integers(1, 5), st.integers(0, 2**32))
def test_branches_alone_find_what_enumeration_finds(measurements: int, dimension: int, clients: int, seed: int) -> None:
    """Branching proves its results without messages and after wrong guesses of columns."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 2, (measurements, dimension))
    counts = np.bincount(rng.integers(0, dimension, clients), minlength=dimension)
    problem = pose_histogram_problem(matrix, matrix @ counts, clients)
    tree = HistogramTree(problem, -counts.astype(float))
    tree.search(2, math.inf)
    expected = all_solutions(matrix, problem.sums, clients)
    assert len(tree.solutions) == min(2, len(expected))
    assert all(solution.tolist() in expected for solution in tree.solutions)
    assert len({tuple(solution.tolist()) for solution in tree.solutions}) == len(tree.solutions)
    assert tree.exhausted or len(expected) > 1


def test_a_tree_that_was_interrupted_goes_on() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 2, (30, 200))
    problem = pose_histogram_problem(matrix, matrix @ np.bincount(rng.integers(0, 200, 10), minlength=200), 10)
    tree, calls = HistogramTree(problem, np.zeros(200)), 0
    while not tree.exhausted and len(tree.solutions) < 2:
        tree.search(2, math.inf, nodes=7)
        calls += 1
        assert tree.nodes <= 7 * calls
    assert calls > 2
    assert len(tree.solutions) == 1


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_were_left_out_enter(seed: int) -> None:
    """The linear program starts with few columns, all of them wrong."""
    rng = np.random.default_rng(seed)
    dimension = 400
    matrix = rng.integers(0, 2, (70, dimension))
    counts = np.bincount(rng.integers(0, dimension, 8), minlength=dimension)
    problem = pose_histogram_problem(matrix, matrix @ counts, 8)
    tree = HistogramTree(problem, -counts.astype(float))
    tree.search(2, math.inf)
    assert [solution.tolist() for solution in tree.solutions] == [counts.tolist()]
    assert tree.exhausted
    # One linear program finds the solution, and another with the cut proves that it is unique.
    assert tree.nodes == 2


@pytest.mark.parametrize("kind", ["uniform", "concentrated"])
def test_messages_find_histograms(kind: str) -> None:
    rng = np.random.default_rng(3)
    dimension, clients = 400, 20
    matrix = rng.integers(0, 2, (100, dimension))
    items = rng.integers(0, dimension, clients) if kind == "uniform" else rng.geometric(0.3, clients)
    counts = np.bincount(items, minlength=dimension)
    problem = pose_histogram_problem(matrix, matrix @ counts, clients)
    guess = guess_histogram(problem, 4, math.inf)
    assert guess.counts is not None
    assert guess.counts.tolist() == counts.tolist()


def test_the_rigorous_size_is_decoded_and_proven() -> None:
    rng = np.random.default_rng(11)
    matrix = rng.integers(0, 2, (120, 1000))
    counts = np.bincount(rng.integers(0, 1000, 30), minlength=1000)
    histogram = decode_histogram(matrix, matrix @ counts, 30)
    assert histogram.counts.tolist() == counts.tolist()
    assert histogram.unique


def test_large_counts() -> None:
    """Counts exceed the limit of the messages, and there are far more clients than items."""
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 2, (40, 60))
    counts = np.zeros(60, dtype=np.int64)
    counts[[3, 9, 30, 59]] = 1500, 400, 99, 1
    histogram = decode_histogram(matrix, matrix @ counts, 2000)
    assert histogram.counts.tolist() == counts.tolist()
    assert histogram.unique


def test_wrong_sums_are_refused() -> None:
    rng = np.random.default_rng(8)
    matrix = rng.integers(0, 2, (60, 200))
    sums = matrix @ np.bincount(rng.integers(0, 200, 10), minlength=200)
    sums[7] += 1 if sums[7] < 10 else -1
    with pytest.raises(InfeasibleError, match="no histogram of 10 items has these 60 sums"):
        decode_histogram(matrix, sums, 10)


def test_out_of_time() -> None:
    rng = np.random.default_rng(4)
    matrix = rng.integers(0, 2, (45, 1000))
    sums = matrix @ np.bincount(rng.integers(0, 1000, 30), minlength=1000)
    start = time.monotonic()
    with pytest.raises(ConvergenceError, match=r"no histogram with these sums was found in 0\.05 s"):
        decode_histogram(matrix, sums, 30, time_limit=0.05)
    assert time.monotonic() - start < 30


def test_a_proof_that_was_not_asked_for_or_not_finished() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 2, (12, 40))
    counts = np.bincount(rng.integers(0, 40, 6), minlength=40)
    histogram = decode_histogram(matrix, matrix @ counts, 6, prove_unique=False)
    assert histogram.unique is None
    assert np.array_equal(matrix @ histogram.counts, matrix @ counts)


@pytest.mark.parametrize(
    ("matrix", "sums", "clients", "expected"), [([[1]], [3], 3, [3]), ([[0]], [0], 3, [3]), ([[1, 0]], [0], 0, [0, 0])]
)
def test_small_domains(matrix: list, sums: list, clients: int, expected: list) -> None:
    histogram = decode_histogram(matrix, sums, clients)
    assert (histogram.counts.tolist(), histogram.unique) == (expected, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrix": [[0, 2]]}, "matrix must have entries 0 and 1, got 2"),
        ({"matrix": [0, 1]}, r"matrix must have two axes, .*, got the shape \(2,\)"),
        ({"sums": [4]}, "sums must be from 0 to 3, the number of clients, got 4"),
        ({"sums": [1.0]}, "sums must be 1 whole numbers"),
        ({"sums": [1, 2]}, "sums must be 1 whole numbers"),
        ({"clients": -1}, "clients must be a whole number .*, got -1"),
        ({"time_limit": -1.0}, r"time_limit must be a number .*, got -1\.0"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_histogram(**({"matrix": [[0, 1]], "sums": [1], "clients": 3} | change))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 5), st.integers(0, 2**32))
def test_products_have_the_rank_of_their_factors(rows: int, columns: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-9, 10, (rows, rank)) @ rng.integers(-9, 10, (rank, columns))
    assert modular_rank(matrix) == np.linalg.matrix_rank(matrix.astype(float))


def test_it_is_never_above_the_rational_rank() -> None:
    assert modular_rank(np.array([[PRIME, 0], [0, 1]])) == 1
    assert modular_rank(np.array([[1, 2], [2, 4]])) == 1
