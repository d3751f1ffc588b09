"""Pairs of rows: divergences in whole fractions, and the largest of many that hardly differ."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

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
        assert result == pytest.approx(float(exact), rel=1e-11)
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
