"""Rényi divergences of rows: against fifty digits, in both limits, and with letters that only some rows send."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting import pair_search, renyi_divergence
from quietbits.solvers.accounting.renyi_divergence import (
    divergence_by_distance,
    largest_divergences,
    largest_step,
    renyi_matrix,
)

ORDERS = (1 + 1e-9, 1.0001, 1.05, 1.5, 2.0, 7.3, 64.0, 1000.0, 65536.0, math.inf)


def rows(scale: float, seed: int, inputs: int = 5, letters: int = 4) -> NDArray[np.int64]:
    """Return whole-number rows that differ by about `scale` in the logarithm of each weight."""
    weights = np.exp(np.random.default_rng(seed).normal(size=(inputs, letters)) * scale)
    whole = (weights / weights.sum(axis=1, keepdims=True) * 2.0**62).astype(np.int64)
    whole[:, 0] += 2**62 - whole.sum(axis=1)
    return whole


def exact(own: NDArray[np.int64], other: NDArray[np.int64], order: float) -> mpmath.mpf:
    """Return the divergence of one row from another in eighty digits, as it is defined."""
    with mpmath.workdps(80):
        pairs = [(mpmath.mpf(int(p)) / int(own.sum()), mpmath.mpf(int(q)) / int(other.sum())) for p, q in zip(own, other, strict=True) if p]
        if order == 1:
            return sum(p * mpmath.log(p / q) for p, q in pairs)
        if math.isinf(order):
            return max(mpmath.log(p / q) for p, q in pairs)
        a = mpmath.mpf(order)
        return mpmath.log(sum(p**a * q ** (1 - a) for p, q in pairs)) / (a - 1)


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1e-3, 0.1, 1.0, 5.0])
def test_every_digit_is_right_however_alike_the_rows_are(scale: float) -> None:
    weights = rows(scale, seed=1)
    for order in (*ORDERS, 1.0):
        matrix = renyi_matrix(weights, order)
        for i in range(len(weights)):
            assert matrix[i, i] == 0
            for k in set(range(len(weights))) - {i}:
                assert float(matrix[i, k] / exact(weights[i], weights[k], order) - 1) == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("weight", [10**6, 10**9, 10**12])
def test_a_letter_that_one_row_next_to_never_sends(weight: int) -> None:
    # The rows are alike but for dust, whose log-ratio times the order is beyond 300.
    weights = np.array([[2**61 - 2 + weight, 2**61, 1], [2**61 - 1, 2**61, weight]])
    for order in (16.0, 32.0, 100.0):
        matrix = renyi_matrix(weights, order)
        for i, k in ((0, 1), (1, 0)):
            assert float(matrix[i, k] / exact(weights[i], weights[k], order) - 1) == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 0.3, 4.0])
def test_the_largest_of_each_distance_is_found(scale: float) -> None:
    weights = rows(scale, seed=2, inputs=12)
    distances = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    for order, found in zip(ORDERS, divergence_by_distance(weights, ORDERS), strict=True):
        matrix = renyi_matrix(weights, order)
        np.testing.assert_allclose(found, [matrix[distances == k].max() for k in range(12)], rtol=1e-14, atol=0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-4, 3), st.floats(1.001, 50), st.floats(1.001, 50))
def test_divergences_rise_with_the_order_up_to_the_largest_log_ratio(seed: int, scale: float, first: float, second: float) -> None:
    weights = rows(scale, seed, inputs=3)
    low, high = sorted((first, second))
    slack = 1 + 1e-12
    assert np.all(renyi_matrix(weights, 1) <= renyi_matrix(weights, low) * slack)
    assert np.all(renyi_matrix(weights, low) <= renyi_matrix(weights, high) * slack)
    assert np.all(renyi_matrix(weights, high) <= renyi_matrix(weights, math.inf) * slack)


def test_the_limits_at_one_and_at_infinity() -> None:
    weights = rows(1.0, seed=3)
    np.testing.assert_allclose(renyi_matrix(weights, 1 + 1e-9), renyi_matrix(weights, 1), rtol=1e-8)
    np.testing.assert_allclose(renyi_matrix(weights, 1e9), renyi_matrix(weights, math.inf), rtol=1e-7)


def test_a_table_of_randomised_response_has_the_divergence_of_its_formula() -> None:
    epsilon, inputs, order = 1.5, 8, 3.0
    table = generalised_randomised_response(epsilon, 3)
    kept, other = math.exp(epsilon) / (math.exp(epsilon) + inputs - 1), 1 / (math.exp(epsilon) + inputs - 1)
    expected = math.log(kept**order * other ** (1 - order) + other**order * kept ** (1 - order) + (inputs - 2) * other) / (order - 1)
    divergences = renyi_matrix(table.weights, order)
    np.testing.assert_allclose(divergences[~np.eye(inputs, dtype=bool)], expected, rtol=1e-9)


@pytest.mark.parametrize("order", [1.5, 2.0, 1000.0, math.inf])
def test_letters_that_only_one_row_sends_are_infinite_evidence(order: float) -> None:
    weights = np.array([[2, 2, 0, 0], [1, 2, 1, 0], [0, 4, 0, 0]])
    matrix = renyi_matrix(weights, order)
    assert np.isinf(matrix).tolist() == [[False, False, True], [True, False, True], [False, False, False]]
    # Row 2 always sends letter 1, to which rows 0 and 1 give a half each: ln 2 at every order.
    np.testing.assert_allclose(matrix[2, :2], math.log(2), rtol=1e-12)
    distances = divergence_by_distance(weights, [order])[0]
    assert distances.tolist() == [0.0, math.inf, math.inf]


def test_floats_are_taken_as_they_are() -> None:
    weights = rows(0.5, seed=4)
    np.testing.assert_allclose(renyi_matrix(weights / 2.0**62, 2.5), renyi_matrix(weights, 2.5), rtol=1e-12)


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, math.nan])
def test_orders_that_are_not_above_one_are_refused(order: float) -> None:
    with pytest.raises(ValueError, match="orders must be above 1, got"):
        renyi_matrix([[1, 1], [1, 1]], order if order != 1 else 0.999)
    with pytest.raises(ValueError, match="orders must be above 1, got"):
        divergence_by_distance([[1, 1], [1, 1]], [2.0, order])


@pytest.mark.parametrize("weights", [[[1, -1], [1, 1]], [[1.0, math.nan], [1, 1]], [[1, 1]], [1, 1]])
def test_what_is_no_table_is_refused(weights: object) -> None:
    with pytest.raises(ValueError, match="weights must be a table of finite non-negative numbers"):
        renyi_matrix(weights, 2.0)


def test_rows_of_different_sums_are_refused() -> None:
    with pytest.raises(ValueError, match="weights must have rows with the same sum"):
        renyi_matrix([[1, 2], [2, 2]], 2.0)


@pytest.mark.parametrize("order", [40.0, 700.0, 65536.0, math.inf])
@pytest.mark.parametrize("silent", [0, 3])
def test_blocks_of_rows_find_the_largest_of_each_distance(order: float, silent: int) -> None:
    # Two blocks; sums of neighbours underflow at large orders. A few letters are never sent by the first rows.
    inputs, letters = np.linspace(0, 1, 40), np.linspace(-1, 2, 24)
    table = np.exp(-20 * np.abs(inputs[:, None] - letters))
    table[:5, :silent] = 0.0
    table /= table.sum(axis=1, keepdims=True)
    matrix = renyi_matrix(table, order)
    expected = [max(np.diag(matrix, k).max(), np.diag(matrix, -k).max()) for k in range(40)]
    assert np.isinf(expected[1:]).all() == bool(silent)
    np.testing.assert_allclose(divergence_by_distance(table, order)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["alike", "unlike", "narrow", "silent"])
def test_the_largest_of_all_pairs_is_found_at_every_order(kind: str) -> None:
    # Plain sums at small orders, chords between some of them, shifted sums and bounds from the order before at large ones; more pairs
    # than are computed at a time. Many pairs of the narrow table are alike: only one of them is computed.
    generator = np.random.default_rng(8)
    size = 60 if kind == "narrow" else 48
    orders = (1.01, 1.5, 1.55, 1.6, 1.7, 3.0, 3.0, 3.3, 3.5, 3.9, 20.0, 21.0, 23.5, 25.0, 60.0, 90.0, 400.0, 1000.0, 65536.0, math.inf)
    places = np.linspace(0, 1, size)
    table = np.exp(generator.normal(size=(size, size)) * (0.02 if kind == "alike" else 2.0))
    if kind == "narrow":
        table = np.exp(-300 * (places[:, None] - np.linspace(-1, 2, size)) ** 2) + 1e-30
    if kind == "silent":
        table[:, :3] *= generator.random((size, 3)) < 0.95
    table /= table.sum(axis=1, keepdims=True)
    by_distance = np.array([[np.diag(m, k).max(initial=0) for k in range(size)] for o in orders for m in [np.maximum(*_both(table, o))]])
    np.testing.assert_allclose(divergence_by_distance(table, orders), by_distance, rtol=1e-9)
    for reach in (1, 7, size - 1):
        found = largest_divergences(table, orders, reach)
        np.testing.assert_allclose(found, by_distance[:, : reach + 1].max(axis=1), rtol=1e-9)
        assert np.all(found >= by_distance[:, : reach + 1].max(axis=1) * (1 - 1e-13))


def _both(table: NDArray[np.float64] | NDArray[np.int64], order: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    matrix = renyi_matrix(table, order)
    return matrix, matrix.T


def test_rows_that_are_not_apart_have_no_divergence() -> None:
    assert largest_divergences([[3, 1], [1, 3]], [2.0, math.inf], 0).tolist() == [0.0, 0.0]


def test_a_rounded_product_counts_as_the_whole_number() -> None:
    # 100 * 0.29 is 28.999999999999996: inputs that far apart are 29 rows apart.
    for inputs in (2, 11, 101, 512):
        for steps in range(1, inputs):
            distance = steps / (inputs - 1)
            assert largest_step(inputs, distance) == steps
            assert largest_step(inputs, distance * (1 - 1e-9)) == steps - 1
    assert largest_step(101, 0.29) == 29
    assert largest_step(5, 7.0) == 4


@pytest.mark.parametrize("zeros", [False, True])
def test_the_largest_of_tables_with_letters_that_some_rows_never_send(zeros: bool) -> None:
    rng = np.random.default_rng(6)
    orders = [1.1, 2.0, 30.0, math.inf]
    for _ in range(20):
        table = rng.random((6, 5)) ** 6
        if zeros:
            # The same letter is never sent by the last rows.
            table[4:, 2] = 0.0
        table /= table.sum(axis=1, keepdims=True)
        for reach in (1, 5):
            near = [(i, j) for i in range(6) for j in range(6) if 0 < abs(i - j) <= reach]
            expected = [max(renyi_matrix(table, order)[pair] for pair in near) for order in orders]
            assert largest_divergences(table, orders, reach) == pytest.approx(expected, rel=1e-9)
            if zeros:
                assert math.isinf(expected[0])


@pytest.mark.parametrize("order", [1.2, 3.0, 40.0])
def test_sums_of_all_pairs_in_blocks_of_rows(order: float) -> None:
    # Rows that drift: each block has a centre of its own, far from 0.
    rng = np.random.default_rng(2)
    centred = 0.3 * rng.normal(size=(8, 5)) + np.arange(8)[:, None] / 20 + np.array([3.0, -2.0, 1.0, 0.0, 2.0])
    log_scale = rng.normal(size=5)
    sums = renyi_divergence._shifted_sums(centred, log_scale, order, 3)
    exponents = order * centred[:, None] + (1 - order) * centred[None] + log_scale
    np.testing.assert_allclose(sums.bound, np.logaddexp.reduce(exponents, axis=2), rtol=1e-11, atol=1e-11)
    assert sums.exact.all()


# Where one pair may stand for a few others, what they can differ by is added.
@pytest.mark.parametrize(("few", "excess"), [(2**16, 1e-12), (16, 2e-9)])
@pytest.mark.parametrize("kind", ["random", "gaussian", "laplace", "alike", "silent", "steep"])
def test_no_largest_pair_is_missed_however_small_batches_and_blocks_are(
    monkeypatch: pytest.MonkeyPatch, kind: str, few: int, excess: float
) -> None:
    for module, name, value in (
        (pair_search, "FEW", few),
        (pair_search, "BATCH", 1),
        (renyi_divergence, "BATCH", 1),
        (renyi_divergence, "BLOCK_ROWS", 4),
        (renyi_divergence, "BLOCKS_WORTH", 1),
    ):
        monkeypatch.setattr(module, name, value)
    rng = np.random.default_rng(3)
    for whole in (False, True, False, True):
        size, letters = int(rng.integers(4, 14)), int(rng.integers(2, 6))
        gaps = np.linspace(0, 1, size)[:, None] - np.linspace(-1, 2, letters)
        uniform, normal, scale = rng.random(gaps.shape), rng.normal(size=gaps.shape), rng.choice([3.0, 30.0])
        weights: NDArray[np.float64] = {
            "random": uniform**3 + 1e-4,
            "gaussian": np.exp(-15 * scale * gaps**2) + 1e-250,
            "laplace": np.exp(-2 * scale * np.abs(gaps)),
            "alike": 1 + 1e-3 * uniform,
            "silent": np.where(uniform < 0.1, 0, uniform) + (np.arange(letters) == 0),
            "steep": np.exp(scale * normal),
        }[kind]
        table: NDArray[np.float64] | NDArray[np.int64] = weights / weights.sum(axis=1, keepdims=True)
        if whole:
            table = np.round(table * 2.0**52).astype(np.int64)
            table[np.arange(size), table.argmax(axis=1)] += 2**52 - table.sum(axis=1)
        orders = rng.permutation([1.1, 1.4, 1.5, *rng.choice([2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 100.0, 1000.0], 5, replace=False), math.inf])
        largest = np.array([np.maximum(*_both(table, order)) for order in orders])
        expected = np.array([[np.diag(matrix, distance).max(initial=0.0) for distance in range(size)] for matrix in largest])
        compared = [(divergence_by_distance(table, orders), expected)]
        compared += [
            (largest_divergences(table, orders, reach), expected[:, : reach + 1].max(axis=1)) for reach in (1, size // 2, size - 1)
        ]
        for result, truth in compared:
            assert np.all(result >= truth * (1 - 1e-13))
            assert np.all(result <= truth * (1 + excess))
