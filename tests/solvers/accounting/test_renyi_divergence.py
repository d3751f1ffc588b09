"""Rényi divergences of rows.

The tests run against fifty digits, in both limits, and with letters that only some rows send.

Points under test of pairs of rows: divergences in whole fractions, and the largest of many nearly equal divergences.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting import renyi_divergence
from quietbits.solvers.accounting.renyi_divergence import (
    PairSearch,
    divergence_by_distance,
    largest_divergences,
    largest_step,
    pair_divergences,
    renyi_matrix,
)

ORDERS = (1 + 1e-9, 1.0001, 1.05, 1.5, 2.0, 7.3, 64.0, 1000.0, 65536.0, math.inf)


def rows(scale: float, seed: int, inputs: int = 5, letters: int = 4) -> NDArray[np.int64]:
    """Return whole-number rows that differ by about `scale` in the logarithm of each weight."""
    weights = np.exp(np.random.default_rng(seed).normal(size=(inputs, letters)) * scale)
    whole = (weights / weights.sum(axis=1, keepdims=True) * 2.0**62).astype(np.int64)
    whole[:, 0] += 2**62 - whole.sum(axis=1)
    return whole


def perturbed_response(inputs: int, spread: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return unnormalised rows of randomised response, with entries enlarged at random."""
    return np.where(np.eye(inputs, dtype=bool), math.e, 1.0) * (1 + spread * rng.random((inputs, inputs)))


def unequal_pairs(inputs: int) -> NDArray[np.intp]:
    """Return the flat indices of all ordered pairs of different inputs."""
    return np.flatnonzero(~np.eye(inputs, dtype=bool).ravel())


def exact(own: NDArray[np.int64], other: NDArray[np.int64], order: float) -> mpmath.mpf:
    """Return the divergence of one row from another by its definition, in eighty digits."""
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
    # The rows are equal except for tiny weights, whose log-ratio times the order exceeds 300.
    weights = np.array([[2**61 - 2 + weight, 2**61, 1], [2**61 - 1, 2**61, weight]])
    for order in (16.0, 32.0, 100.0):
        matrix = renyi_matrix(weights, order)
        for i, k in ((0, 1), (1, 0)):
            assert float(matrix[i, k] / exact(weights[i], weights[k], order) - 1) == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 0.3, 4.0])
def test_the_largest_of_each_distance_is_found(scale: float) -> None:
    weights = rows(scale, seed=2, inputs=12)
    distances = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    for order, result in zip(ORDERS, divergence_by_distance(weights, ORDERS), strict=True):
        matrix = renyi_matrix(weights, order)
        np.testing.assert_allclose(result, [matrix[distances == k].max() for k in range(12)], rtol=1e-14, atol=0)


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
    # Row 2 always sends letter 1, to which rows 0 and 1 give a half each, so the divergence is ln 2 at every order.
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


@pytest.mark.parametrize("weights", [[[1, 2], [2, 2]], [[0, 0], [0, 0]]])
def test_rows_of_different_sums_and_of_none_are_refused(weights: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="weights must have rows with the same sum, above zero"):
        renyi_matrix(weights, 2.0)


@pytest.mark.parametrize("order", [40.0, 700.0, 65536.0, math.inf])
@pytest.mark.parametrize("silent", [0, 3])
def test_blocks_of_rows_find_the_largest_of_each_distance(order: float, silent: int) -> None:
    # There are two blocks; sums of neighbours underflow at large orders. The first rows never send a few letters.
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
    # The orders use plain sums when small, chords between some, and shifted sums with bounds from the previous order when large; there are
    # more pairs than a batch holds. Many pairs of the narrow table are equal, and only one of them is computed.
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
        divergences = largest_divergences(table, orders, reach)
        np.testing.assert_allclose(divergences, by_distance[:, : reach + 1].max(axis=1), rtol=1e-9)
        assert np.all(divergences >= by_distance[:, : reach + 1].max(axis=1) * (1 - 1e-13))


def _both(table: NDArray[np.float64] | NDArray[np.int64], order: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    matrix = renyi_matrix(table, order)
    return matrix, matrix.T


def test_rows_that_are_not_apart_have_no_divergence() -> None:
    assert largest_divergences([[3, 1], [1, 3]], [2.0, math.inf], 0).tolist() == [0.0, 0.0]


def test_a_rounded_product_counts_as_the_whole_number() -> None:
    # 100 * 0.29 is 28.999999999999996 in floating point, but inputs that far apart are 29 rows apart.
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
            # The last rows never send the same letter.
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
    # The rows drift: each block has its own centre, far from 0.
    rng = np.random.default_rng(2)
    centred = 0.3 * rng.normal(size=(8, 5)) + np.arange(8)[:, None] / 20 + np.array([3.0, -2.0, 1.0, 0.0, 2.0])
    log_scale = rng.normal(size=5)
    sums = renyi_divergence._shifted_sums(centred, log_scale, order, 3)
    exponents = order * centred[:, None] + (1 - order) * centred[None] + log_scale
    np.testing.assert_allclose(sums.bound, np.logaddexp.reduce(exponents, axis=2), rtol=1e-11, atol=1e-11)
    assert sums.exact.all()


# If one pair stands for a few others, the bound adds their possible difference.
@pytest.mark.parametrize(("few", "excess"), [(2**16, 1e-12), (16, 2e-9)])
@pytest.mark.parametrize("kind", ["random", "gaussian", "laplace", "alike", "silent", "steep"])
def test_no_largest_pair_is_missed_however_small_batches_and_blocks_are(
    monkeypatch: pytest.MonkeyPatch, kind: str, few: int, excess: float
) -> None:
    for module, name, value in (
        (renyi_divergence, "FEW", few),
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


@pytest.mark.parametrize("order", [1.0, 1.01, 2.0, 7.5, 300.0, math.inf])
def test_divergences_have_twelve_digits(order: float) -> None:
    # The rows are nearly equal, or as different as possible, or have letters that one of them never sends.
    table = np.array([[2**61, 2**61, 0], [2**61 + 5, 2**61 - 5, 0], [2**62 - 1, 1, 0], [2**61, 2**60, 2**60]])
    rows, others = np.array([0, 1, 0, 2, 1, 0]), np.array([1, 0, 2, 0, 2, 3])
    for row, other, result in zip(rows, others, pair_divergences(table, rows, others, order).tolist(), strict=True):
        with mpmath.workdps(60):
            pairs = [(Fraction(int(own), 2**62), Fraction(int(its), 2**62)) for own, its in zip(table[row], table[other], strict=True)]
            numbers = [tuple(mpmath.mpf(part.numerator) / part.denominator for part in pair) for pair in pairs if pair[0] > 0]
            if math.isinf(order):
                exact = max(mpmath.log(own / its) for own, its in numbers)
            elif order == 1:
                exact = mpmath.fsum(own * mpmath.log(own / its) for own, its in numbers)
            else:
                power = mpmath.mpf(order)
                exact = mpmath.log(mpmath.fsum(own**power * its ** (1 - power) for own, its in numbers)) / (power - 1)
        assert result == pytest.approx(float(exact), rel=1e-11, abs=0)
    assert np.isinf(pair_divergences(table, np.array([3]), np.array([0]), order)).all()


@pytest.mark.parametrize("order", [2.0, 40.0])
def test_where_one_of_many_stands_for_all_what_they_differ_by_is_added(order: float) -> None:
    # The rows are those of randomised response with relative differences of 1e-11, in some thousand pairs.
    inputs = 64
    rng = np.random.default_rng(4)
    table = perturbed_response(inputs, 1e-11, rng)
    table /= table[0].sum()
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    # In this order, the first pair has the smallest divergence.
    pairs, exact = pairs[np.argsort(exact)], np.sort(exact)
    allowance = np.array([2 * float(exact[-1] - exact[0]) * (order - 1)])
    assert 0 < allowance[0] < 1e-9 * exact[0] * (order - 1)
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, exact * (order - 1), allowance)
    assert exact[-1] <= result[0] <= exact[-1] * (1 + 2e-9)


@pytest.mark.parametrize("order", [2.0, 40.0])
def test_none_of_many_stands_for_others_that_may_be_larger_than_what_is_known(order: float) -> None:
    # Some thousand pairs differ by more than rounding: the bounds are exact, and only a lower bound on the largest divergence is known.
    inputs = 64
    table = perturbed_response(inputs, 1e-3, np.random.default_rng(8))
    table /= table.sum(axis=1, keepdims=True)
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(exact)], np.sort(exact)
    bound = exact * (order - 1)
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, bound.copy(), np.array([1e-14 * bound[-1]]), bound[:1].copy())
    assert result[0] == pytest.approx(exact[-1], rel=1e-12)


@pytest.mark.parametrize("order", [2.0, 40.0])
def test_one_of_many_that_is_smaller_than_its_bound_does_not_lower_what_is_known(order: float) -> None:
    # Two rows are equal: their bound is as large as all others, which determine the largest divergence.
    inputs = 64
    table = perturbed_response(inputs, 1e-11, np.random.default_rng(4))
    table[1] = table[0]
    table /= table[0].sum()
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    assert exact[0] == 0
    largest = exact.max() * (order - 1)
    bound = np.full(len(pairs), largest)
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, bound, np.array([1e-12 * largest]), np.array([largest]))
    assert exact.max() <= result[0] <= exact.max() * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.5, 2.0, 64.0, 1000.0])
@pytest.mark.parametrize(
    "rows",
    [
        [[10**9, 10**9, 10**9, 3], [1, 1, 1, 3 * 10**9]],
        [[10**12, 10**12], [10**12 + 1, 10**12 - 1]],
        [[7, 5, 3], [5, 3, 7]],
        # Ratios of 4/5 and 6/5 give exponents up to 180 at the highest order, too large for a short power series.
        [[500, 500, 1000], [600, 400, 1000]],
    ],
)
def test_pairs_that_are_very_unlike_or_very_alike(rows: list[list[int]], order: float) -> None:
    # Several letters of the same large ratio count separately, and ratios near 1 must not cancel.
    table = np.array(rows, dtype=np.int64)
    computed = float(pair_divergences(table, np.array([0]), np.array([1]), order)[0])
    with mpmath.workdps(60):
        total = mpmath.mpf(sum(rows[0]))
        terms = [(own / total) ** order * (other / total) ** (1 - mpmath.mpf(order)) for own, other in zip(*rows, strict=True)]
        expected = float(mpmath.log(mpmath.fsum(terms)) / (order - 1))
    assert computed == pytest.approx(expected, rel=1e-11, abs=0)


@pytest.mark.parametrize("order", [1.5, 2.0, 40.0])
def test_in_every_group_one_of_many_stands_for_its_own(order: float) -> None:
    inputs = 128
    rng = np.random.default_rng(4)
    table = perturbed_response(inputs, 1e-11, rng)
    table /= table[0].sum()
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(exact)], np.sort(exact)
    half = len(pairs) // 2
    groups = exact[:half], exact[half:]
    # The first pair of a group has its smallest divergence, and the allowance is the distance to the largest.
    allowance = np.array([1.001 * float(group[-1] - group[0]) * (order - 1) for group in groups])
    result = PairSearch(table, pairs, np.array([half, len(pairs) - half])).largest(order, exact * (order - 1), allowance)
    for group, largest in zip(groups, result.tolist(), strict=True):
        assert group[-1] <= largest <= group[-1] * (1 + 2e-9)


# The divergences are above 1, or far below.
@pytest.mark.parametrize("power", [2.0, 0.1])
@pytest.mark.parametrize("order", [1.01, 1.5, 40.0, math.inf])
def test_batches_end_at_the_largest_of_each_group(monkeypatch: pytest.MonkeyPatch, order: float, power: float) -> None:
    monkeypatch.setattr(renyi_divergence, "BATCH", 1)
    inputs = 12
    rng = np.random.default_rng(3)
    table = rng.random((inputs, 5)) ** power
    table /= table.sum(axis=1, keepdims=True)
    pairs = rng.permutation(unequal_pairs(inputs))
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    factor = 1.0 if math.isinf(order) else order - 1
    # Bounds of other pairs are up to four times too large, and bounds of the largest pairs are close, so the largest pairs come late. A
    # lower bound on the largest divergence is known.
    bound = exact * factor * (2 + 2 * rng.random(len(pairs)))
    for place in (int(exact[:40].argmax()), 40 + int(exact[40:].argmax())):
        bound[place] = exact[place] * factor * 1.001
    counts = np.array([40, len(pairs) - 40])
    largest = np.array([exact[:40].max(), exact[40:].max()])
    lowered = bound.copy()
    result = PairSearch(table, pairs, counts).largest(order, lowered, np.full(2, 1e-15), 0.1 * largest * factor)
    np.testing.assert_allclose(result, largest, rtol=1e-12)
    # Bounds at higher orders rest on the computed divergences.
    computed = lowered != bound
    assert computed.sum() >= 12
    np.testing.assert_allclose(lowered[computed], exact[computed] * factor, rtol=1e-12)


def test_a_small_pair_at_the_head_of_a_group_does_not_stand_for_the_others() -> None:
    # In each group, a thousand pairs hardly differ, and the first pair, of equal rows, has divergence zero and is no candidate.
    inputs, order = 128, 2.0
    table = perturbed_response(inputs, 1e-11, np.random.default_rng(4))
    table[1] = table[0]
    table /= table[0].sum()
    others = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(others, inputs), order)
    others, exact = others[exact > 0], exact[exact > 0]
    half, allowance = len(others) // 2, np.full(2, 1e-11)
    equal_rows = 1
    pairs = np.concatenate([[equal_rows], others[:half], [equal_rows], others[half:]])
    bound = np.concatenate([[0.0], exact[:half], [0.0], exact[half:]])
    result = PairSearch(table, pairs, np.array([half + 1, len(others) - half + 1])).largest(order, bound, allowance)
    for group, largest in zip((exact[:half], exact[half:]), result.tolist(), strict=True):
        assert group.max() <= largest <= group.max() * (1 + 1e-9)


def test_candidates_and_maxima_are_those_of_each_group() -> None:
    search = PairSearch(np.eye(3) + 1, np.array([1, 2, 3, 5, 6]), np.array([2, 3]))
    assert search.starts.tolist() == search.best.tolist() == [0, 2]
    assert (search.rows.tolist(), search.others.tolist()) == ([0, 0, 1, 1, 2], [1, 2, 0, 2, 0])
    bound = np.array([0.5, 0.9, 3.0, 1.0, 2.0])
    assert search.maxima(bound).tolist() == [0.9, 3.0]
    assert search.candidates(bound, np.array([0.9, 2.0])).tolist() == [1, 2, 4]


def test_a_group_that_is_in_no_batch_yet_keeps_its_own_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    # All pairs of the first group have larger bounds than those of the second group.
    monkeypatch.setattr(renyi_divergence, "BATCH", 1)
    inputs, order = 12, 2.0
    table = np.random.default_rng(3).random((inputs, 5))
    table /= table.sum(axis=1, keepdims=True)
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(-exact)], -np.sort(-exact)
    search = PairSearch(table, pairs, np.array([40, len(pairs) - 40]))
    result = search.largest(order, 1.5 * exact, np.full(2, 1e-15), np.full(2, 0.1 * exact[-1]))
    np.testing.assert_allclose(result, [exact[0], exact[40]], rtol=1e-12)
    assert search.best.tolist() == [0, 40]


def test_a_pair_whose_bound_is_too_low_by_rounding_is_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renyi_divergence, "BATCH", 1)
    inputs, order = 12, 2.0
    table = np.random.default_rng(3).random((inputs, 5))
    table /= table.sum(axis=1, keepdims=True)
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(-exact)], -np.sort(-exact)
    allowance = exact[0] - exact[1]
    # The pair of the largest divergence has a bound that is too low by nearly the whole allowance, and comes in a later batch than the
    # second largest.
    bound = 3 * exact
    bound[0] = exact[0] - 0.9 * allowance
    assert (bound > bound[0]).sum() > inputs
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, bound, np.array([allowance]), np.array([exact[-1]]))
    assert result[0] == pytest.approx(exact[0], rel=1e-12)


def test_a_pair_within_the_allowance_of_the_largest_bound_is_compared() -> None:
    inputs, order = 12, 2.0
    table = np.random.default_rng(3).random((inputs, 5))
    table /= table.sum(axis=1, keepdims=True)
    pairs = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(-exact)], -np.sort(-exact)
    difference = exact[0] - exact[1]
    # Rounding has put the bound of the largest pair below the next pair's bound.
    bound = exact.copy()
    bound[0] -= 1.2 * difference
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, bound, np.array([2 * difference]))
    assert result[0] == pytest.approx(exact[0], rel=1e-12)


def test_small_pairs_at_both_ends_of_a_group_do_not_stand_for_the_others() -> None:
    inputs, order = 128, 2.0
    table = perturbed_response(inputs, 1e-11, np.random.default_rng(4))
    table[1] = table[0]
    table /= table[0].sum()
    others = unequal_pairs(inputs)
    exact = pair_divergences(table, *np.divmod(others, inputs), order)
    others, exact = others[exact > 0], exact[exact > 0]
    half, equal_rows = len(others) // 2, 1
    pairs = np.concatenate([[equal_rows], others[:half], [equal_rows] * 2, others[half:], [equal_rows]])
    bound = np.concatenate([[0.0], exact[:half], [0.0] * 2, exact[half:], [0.0]])
    counts = np.array([half + 2, len(others) - half + 2])
    for group, largest in zip(
        (exact[:half], exact[half:]), PairSearch(table, pairs, counts).largest(order, bound, np.full(2, 1e-11)).tolist(), strict=True
    ):
        assert group.max() <= largest <= group.max() * (1 + 1e-9)
