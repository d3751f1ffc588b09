"""Tests of the largest hockey-stick divergences of a table's rows.

No skipped pair exceeds the result.
"""

from fractions import Fraction

import numpy as np
import pytest

from quietbits.solvers.accounting import privacy_loss
from quietbits.solvers.accounting.privacy_loss import FEW, dominating_privacy_loss, largest_hockey_sticks


# With few pairs, the function computes all pairs; with many pairs, only pairs that may be the largest.
@pytest.mark.parametrize("count", [6, 30])
@pytest.mark.parametrize("kind", ["random", "two values", "gaussian", "laplace", "alike"])
def test_the_largest_divergences_are_those_of_all_pairs(kind: str, count: int) -> None:
    rng = np.random.default_rng(1)
    inputs, letters = np.linspace(0, 1, count), np.linspace(-1, 2, 16)
    table = {
        "random": rng.random((count, 16)) + 0.01,
        "two values": np.where(rng.random((count, 16)) < 0.3, np.e, 1.0),
        "gaussian": np.exp(-((inputs[:, None] - letters) ** 2) * 3),
        "laplace": np.exp(-np.abs(inputs[:, None] - letters) * 4),
        "alike": np.ones((count, 16)) + 1e-6 * rng.random((count, 16)),
    }[kind]
    table /= table.sum(axis=1, keepdims=True)
    rows, others = (index.ravel() for index in np.indices((count, count)))
    near = np.abs(rows - others) <= 17
    rows, others = rows[near], others[near]
    assert (len(rows) * 16 <= FEW) == (count == 6)
    factors = (table[rows] / table[others]).max() ** (np.arange(31) / 30 * (1 + 1e-9))
    hockey_sticks = largest_hockey_sticks(table, rows, others, factors)
    expected = np.maximum(table[rows, None] - factors[:, None] * table[others, None], 0).sum(axis=2).max(axis=0)
    np.testing.assert_allclose(hockey_sticks[:-1], expected[:-1], rtol=1e-11, atol=2e-15)
    assert hockey_sticks[-1] == 0.0


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 20.0])
@pytest.mark.parametrize("inputs", [2, 5, 70])
def test_one_use_is_accounted_for_as_dp_accounting_does(inputs: int, epsilon: float) -> None:
    rng = np.random.default_rng(3)
    table = np.exp(epsilon * rng.random((inputs, 6)))
    loss = dominating_privacy_loss(table / table.sum(axis=1, keepdims=True))
    theirs = loss.self_compose(1)
    largest = loss.get_epsilon_for_delta(0.0)
    # The masses are differences of divergences over the grid's interval, so rounding matters more on a finer grid.
    rounding = 1e-16 / loss.interval
    for delta in (1e-9, 1e-5, 1e-3, 0.5, 0.99):
        assert loss.get_epsilon_for_delta(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-9, abs=rounding)
    for share in (0.0, 0.3, 0.99, 1.5):
        expected = theirs.get_delta_for_epsilon(share * largest)
        assert loss.get_delta_for_epsilon(share * largest) == pytest.approx(expected, rel=1e-9, abs=rounding)


@pytest.mark.parametrize("count", [6, 30])
@pytest.mark.parametrize("chunk", [40, 500, 2**15])
def test_parts_of_any_size_make_the_same_whole(monkeypatch: pytest.MonkeyPatch, count: int, chunk: int) -> None:
    monkeypatch.setattr("quietbits.solvers.accounting.privacy_loss.CHUNK", chunk)
    rng = np.random.default_rng(7)
    # Most pairs are nearly as far apart as the furthest pair, so all are computed.
    table = np.where(rng.random((count, 16)) < 0.5, np.e, 1.0) * (1 + 1e-3 * rng.random((count, 16)))
    table /= table.sum(axis=1, keepdims=True)
    rows, others = (index.ravel() for index in np.indices((count, count)))
    factors = (table[rows] / table[others]).max() ** (np.arange(12) / 11 * (1 + 1e-9))
    expected = np.maximum(table[rows, None] - factors[:, None] * table[others, None], 0).sum(axis=2).max(axis=0)
    np.testing.assert_allclose(largest_hockey_sticks(table, rows, others, factors)[:-1], expected[:-1], rtol=1e-11, atol=2e-15)


@pytest.mark.parametrize("chunk", [7, 2**15])
@pytest.mark.parametrize("factor", [1.0, 1.2, 2.7])
def test_sums_of_chosen_pairs_and_of_all_are_those_of_whole_fractions(monkeypatch: pytest.MonkeyPatch, factor: float, chunk: int) -> None:
    # A chunk is one pair or all pairs; uncomputed divergences are NaN.
    monkeypatch.setattr(privacy_loss, "CHUNK", chunk)
    monkeypatch.setattr(privacy_loss.np, "empty", lambda shape: np.full(shape, np.nan))
    table = np.random.default_rng(5).dirichlet(np.ones(7), size=9)
    rows, others = (index.ravel() for index in np.indices((9, 9)))
    exact = [
        float(
            sum(
                max(Fraction(p) - Fraction(factor) * Fraction(q), 0)
                for p, q in zip(table[row].tolist(), table[other].tolist(), strict=True)
            )
        )
        for row, other in zip(rows, others, strict=True)
    ]
    np.testing.assert_allclose(privacy_loss._hockey_sticks(table, rows, others, factor), exact, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(privacy_loss._all_hockey_sticks(table, factor).ravel(), exact, rtol=1e-13, atol=1e-15)
    # Bounds are never below the sums, and above them only by rounding.
    above = privacy_loss._bounded_hockey_sticks(table, rows, others, factor) - exact
    assert 0 <= above.min() <= above.max() < 1e-13


def test_a_few_pairs_of_many_letters_are_all_compared() -> None:
    # The number of pairs fills a batch exactly, and no pair is recomputed.
    table = np.random.default_rng(6).dirichlet(np.ones(2**13), size=2)
    factors = (table / table[::-1]).max() ** (np.arange(5) / 4 * (1 + 1e-9))
    rows, others = np.array([0, 1]), np.array([1, 0])
    expected = np.maximum(table[rows, None] - factors[:, None] * table[others, None], 0).sum(axis=2).max(axis=0)
    np.testing.assert_allclose(largest_hockey_sticks(table, rows, others, factors)[:-1], expected[:-1], rtol=1e-11)


@pytest.mark.parametrize("factor", [1.0, 1.3, 2.0])
def test_no_pair_whose_bound_is_above_the_largest_is_passed_over(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    for name, value in (("BATCH", 2), ("MANY", 1.0), ("MOST", 1.0)):
        monkeypatch.setattr(privacy_loss, name, value)
    rng = np.random.default_rng(5)
    table = rng.random((14, 6)) + 0.05
    table /= table.sum(axis=1, keepdims=True)
    rows, others = (index.ravel() for index in np.indices((14, 14)))
    exact = np.maximum(table[rows] - factor * table[others], 0).sum(axis=1)
    # Each bound is up to four times as large as its sum, so the largest bound may belong to a smaller sum.
    bound = exact * (1 + 3 * rng.random(len(exact)))
    assert privacy_loss._largest_hockey_stick(bound, table, rows, others, factor) == pytest.approx(exact.max(), rel=1e-12)


def test_equal_rows_reveal_nothing() -> None:
    loss = dominating_privacy_loss(np.full((3, 4), 0.25))
    assert loss.get_epsilon_for_delta(1e-9) == 0.0
    assert loss.get_delta_for_epsilon(0.0) == 0.0
    # The hockey-stick divergence of two equal distributions is max(0, 1 - e^epsilon).
    np.testing.assert_allclose(loss.deltas, [1 - np.exp(-1), 0, 0], rtol=1e-15)
    assert loss.interval == 1.0
    assert loss.self_compose(3).get_epsilon_for_delta(1e-9) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("distance", [0.15, 0.3, 1.0])
def test_only_inputs_within_the_distance_are_compared(distance: float) -> None:
    # The first rows differ least, and the last rows most.
    table = np.cumsum(np.random.default_rng(2).random((8, 5)) * np.arange(1, 9)[:, None], axis=0) + 1
    table /= table.sum(axis=1, keepdims=True)
    rows, others = (index.ravel() for index in np.indices((8, 8)))
    near = np.abs(rows - others) <= 7 * distance
    rows, others = rows[near], others[near]
    loss = dominating_privacy_loss(table, distance)
    steps = len(loss.deltas) // 2
    factors = np.exp(loss.interval * np.arange(-steps, steps + 1))
    expected = np.maximum(table[rows, None] - factors[:, None] * table[others, None], 0).sum(axis=2).max(axis=0)
    np.testing.assert_allclose(loss.deltas, expected, rtol=1e-10, atol=1e-15)


def test_a_pair_as_large_as_its_first_bound_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FEW", 0), ("BATCH", 1), ("MANY", 1.0), ("MOST", 1.0)):
        monkeypatch.setattr(privacy_loss, name, value)
    # With two letters, the divergence and its bound are linear between factor 1 and the largest ratio. The second pair has the larger
    # ratio.
    table = np.array([[0.6, 0.4], [0.4, 0.6], [0.1, 0.9], [0.01, 0.99]])
    result = largest_hockey_sticks(table, np.array([0, 2]), np.array([1, 3]), np.array([1.0, 1.2, 10.1]))
    np.testing.assert_allclose(result, [0.2, 0.12, 0.0], rtol=1e-14)


def test_letters_that_nobody_sends_change_nothing() -> None:
    # With many pairs, ratios bound the sums: a letter without a ratio must not hide the other letters.
    table = np.random.default_rng(8).dirichlet(np.ones(20), size=30)
    zeros = np.insert(table, [3, 11], 0.0, axis=1)
    rows, others = (index.ravel() for index in np.indices((30, 30)))
    factors = (table[rows] / table[others]).max() ** (np.arange(9) / 8 * (1 + 1e-9))
    assert len(rows) * 20 > FEW
    with_them, without = (largest_hockey_sticks(probabilities, rows, others, factors) for probabilities in (zeros, table))
    np.testing.assert_allclose(with_them, without, rtol=1e-12, atol=2e-15)


@pytest.mark.parametrize("distance", [0.5, 1.0])
def test_rows_that_can_be_told_apart_with_certainty_are_refused(distance: float) -> None:
    with pytest.raises(ValueError, match="weights must give no letter that one input sends and another one never does"):
        dominating_privacy_loss([[1, 1, 2], [0, 2, 2], [1, 1, 2]], distance)
