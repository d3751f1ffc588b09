"""Pairs of rows: divergences in whole fractions, and the largest of many that hardly differ."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quietbits.solvers.accounting import pair_search
from quietbits.solvers.accounting.pair_search import PairSearch, pair_divergences


@pytest.mark.parametrize("order", [1.0, 1.01, 2.0, 7.5, 300.0, math.inf])
def test_divergences_have_twelve_digits(order: float) -> None:
    # Rows that are nearly alike, as different as can be, and with letters that one of them never sends.
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
    # Randomised response, whose rows differ by a share of 1e-11: some thousand pairs.
    inputs = 64
    rng = np.random.default_rng(4)
    table = np.where(np.eye(inputs, dtype=bool), math.e, 1.0) * (1 + 1e-11 * rng.random((inputs, inputs)))
    table /= table[0].sum()
    pairs = np.flatnonzero(~np.eye(inputs, dtype=bool).ravel())
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    # In an order in which the first one is the smallest.
    pairs, exact = pairs[np.argsort(exact)], np.sort(exact)
    allowance = np.array([2 * float(exact[-1] - exact[0]) * (order - 1)])
    assert 0 < allowance[0] < 1e-9 * exact[0] * (order - 1)
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, exact * (order - 1), allowance)
    assert exact[-1] <= result[0] <= exact[-1] * (1 + 2e-9)


@pytest.mark.parametrize("order", [2.0, 40.0])
def test_none_of_many_stands_for_others_that_may_be_larger_than_what_is_known(order: float) -> None:
    # Some thousand pairs that differ by more than rounding: bounds that are exact, and a largest that is only known from below.
    inputs = 64
    table = np.where(np.eye(inputs, dtype=bool), math.e, 1.0) * (1 + 1e-3 * np.random.default_rng(8).random((inputs, inputs)))
    table /= table.sum(axis=1, keepdims=True)
    pairs = np.flatnonzero(~np.eye(inputs, dtype=bool).ravel())
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(exact)], np.sort(exact)
    bound = exact * (order - 1)
    result = PairSearch(table, pairs, np.array([len(pairs)])).largest(order, bound.copy(), np.array([1e-14 * bound[-1]]), bound[:1].copy())
    assert result[0] == pytest.approx(exact[-1], rel=1e-12)


@pytest.mark.parametrize("order", [2.0, 40.0])
def test_one_of_many_that_is_smaller_than_its_bound_does_not_lower_what_is_known(order: float) -> None:
    # Two rows are equal: their bound is as large as that of all others, and the largest is known from those.
    inputs = 64
    table = np.where(np.eye(inputs, dtype=bool), math.e, 1.0) * (1 + 1e-11 * np.random.default_rng(4).random((inputs, inputs)))
    table[1] = table[0]
    table /= table[0].sum()
    pairs = np.flatnonzero(~np.eye(inputs, dtype=bool).ravel())
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
        # Ratios of 4/5 and 6/5: the exponents are up to 180 at the highest order, too large for a short power series.
        [[500, 500, 1000], [600, 400, 1000]],
    ],
)
def test_pairs_that_are_very_unlike_or_very_alike(rows: list[list[int]], order: float) -> None:
    # Several letters of the same large ratio count one by one; ratios next to one must not cancel.
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
    table = np.where(np.eye(inputs, dtype=bool), math.e, 1.0) * (1 + 1e-11 * rng.random((inputs, inputs)))
    table /= table[0].sum()
    pairs = np.flatnonzero(~np.eye(inputs, dtype=bool).ravel())
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    pairs, exact = pairs[np.argsort(exact)], np.sort(exact)
    half = len(pairs) // 2
    groups = exact[:half], exact[half:]
    # The first of a group is its smallest: the allowance is what the largest has more.
    allowance = np.array([1.001 * float(group[-1] - group[0]) * (order - 1) for group in groups])
    result = PairSearch(table, pairs, np.array([half, len(pairs) - half])).largest(order, exact * (order - 1), allowance)
    for group, largest in zip(groups, result.tolist(), strict=True):
        assert group[-1] <= largest <= group[-1] * (1 + 2e-9)


# Divergences are above 1, or far below.
@pytest.mark.parametrize("power", [2.0, 0.1])
@pytest.mark.parametrize("order", [1.01, 1.5, 40.0])
def test_batches_end_at_the_largest_of_each_group(monkeypatch: pytest.MonkeyPatch, order: float, power: float) -> None:
    monkeypatch.setattr(pair_search, "BATCH", 1)
    inputs = 12
    rng = np.random.default_rng(3)
    table = rng.random((inputs, 5)) ** power
    table /= table.sum(axis=1, keepdims=True)
    pairs = rng.permutation(np.flatnonzero(~np.eye(inputs, dtype=bool).ravel()))
    exact = pair_divergences(table, *np.divmod(pairs, inputs), order)
    # Bounds of others are up to four times as large, those of the largest are close: it comes late. It is known from below.
    bound = exact * (order - 1) * (2 + 2 * rng.random(len(pairs)))
    for place in (int(exact[:40].argmax()), 40 + int(exact[40:].argmax())):
        bound[place] = exact[place] * (order - 1) * 1.001
    counts = np.array([40, len(pairs) - 40])
    largest = np.array([exact[:40].max(), exact[40:].max()])
    lowered = bound.copy()
    result = PairSearch(table, pairs, counts).largest(order, lowered, np.full(2, 1e-15), 0.1 * largest * (order - 1))
    np.testing.assert_allclose(result, largest, rtol=1e-12)
    # Bounds at higher orders rest on what was computed.
    computed = lowered != bound
    assert computed.sum() >= 12
    np.testing.assert_allclose(lowered[computed], exact[computed] * (order - 1), rtol=1e-12)


def test_a_small_pair_at_the_head_of_a_group_does_not_stand_for_the_others() -> None:
    # In each group, a thousand pairs hardly differ, and the first pair, of equal rows, has a divergence of zero and is no candidate.
    inputs, order = 128, 2.0
    table = np.where(np.eye(inputs, dtype=bool), math.e, 1.0) * (1 + 1e-11 * np.random.default_rng(4).random((inputs, inputs)))
    table[1] = table[0]
    table /= table[0].sum()
    others = np.flatnonzero(~np.eye(inputs, dtype=bool).ravel())
    exact = pair_divergences(table, *np.divmod(others, inputs), order)
    others, exact = others[exact > 0], exact[exact > 0]
    half, allowance = len(others) // 2, np.full(2, 1e-11)
    equal_rows = 1
    pairs = np.concatenate([[equal_rows], others[:half], [equal_rows], others[half:]])
    bound = np.concatenate([[0.0], exact[:half], [0.0], exact[half:]])
    result = PairSearch(table, pairs, np.array([half + 1, len(others) - half + 1])).largest(order, bound, allowance)
    for group, largest in zip((exact[:half], exact[half:]), result.tolist(), strict=True):
        assert group.max() <= largest <= group.max() * (1 + 1e-9)
