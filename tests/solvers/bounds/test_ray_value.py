"""Tests of the value of dual vectors over privacy rays.

Points under test: its parabolas bound the exact value on their pieces, closely; lines are positive on half-lines; and a value with too many
pieces counts as positive everywhere.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.solvers.bounds import ray_value
from quietbits.solvers.bounds.ray_value import Gains, RayValue, positive_interval, staircase_value, walk_value


def random_gains(count: int, rng: np.random.Generator) -> Gains:
    """Return the gains of a random dual vector, of which some weights are 0."""
    constant, linear = rng.normal(size=(2, 1, count)) / count
    weights = rng.random((1, count)) * (rng.random((1, count)) < 0.6) / count
    weights[0, rng.integers(count)] = 1 / count
    return Gains(constant, linear, weights, np.abs(constant), np.abs(linear), 1.5)


def exact_value(gains: Gains, log_ratio: float, letter: float, *, walks: bool) -> mpmath.mpf:
    with mpmath.workdps(60):
        ratio, letter, total = mpmath.exp(mpmath.mpf(log_ratio)), mpmath.mpf(letter), mpmath.mpf(0)
        for i in range(gains.constant.shape[1] - 1, -1, -1):
            constant, linear, weight = (mpmath.mpf(part[0, i]) for part in (gains.constant, gains.linear, gains.weights))
            gain = constant + letter * (linear - weight * letter)
            if walks:
                total = gain + max(ratio * total, total / ratio)
            else:
                total += gain if gain > 0 else gain / ratio
        return total


def value_at(value: RayValue, row: int, letter: float) -> float:
    on = np.flatnonzero((value.lefts[row] <= letter) & (letter <= value.rights[row]) & (value.lefts[row] < value.rights[row]))[0]
    return float(value.constant[row, on] + letter * (value.linear[row, on] + letter * value.square[row, on]))


@pytest.mark.parametrize("walks", [False, True])
@given(st.integers(2, 9), st.sampled_from([0.1, 1, 5, 20]), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_parabolas_bound_the_value_on_their_pieces(walks: bool, count: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gains, log_ratio = random_gains(count, rng), spread / (count - 1) if walks else spread
    value = (walk_value if walks else staircase_value)(gains, log_ratio)
    wide = value.lefts[0] < value.rights[0]
    lefts, rights = value.lefts[0, wide], value.rights[0, wide]
    assert lefts[0] == -np.inf
    assert rights[-1] == np.inf
    assert np.array_equal(lefts[1:], rights[:-1])
    ends = lefts[1:]
    beside = np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
    for letter in np.concatenate([rng.uniform(-3, 4, 20), beside[np.abs(beside) < 1e6]]):
        on = np.flatnonzero(wide & (value.lefts[0] <= letter) & (letter <= value.rights[0]))
        exact = exact_value(gains, log_ratio, float(letter), walks=walks)
        for piece in on:
            with mpmath.workdps(60):
                parts = (mpmath.mpf(part[0, piece]) for part in (value.constant, value.linear, value.square))
                constant, linear, square = parts
                bound = constant + mpmath.mpf(letter) * (linear + mpmath.mpf(letter) * square)
            assert bound >= exact
            assert bound <= exact + mpmath.mpf(1e-11 * (1 + letter**2) * np.exp(spread))


def test_walks_between_two_inputs_take_exactly_the_factor_of_their_sign() -> None:
    """At a log ratio of 20 the lower factor is 4e-18 of the upper one."""
    constant, linear = np.array([[0.5, -1.0]]), np.zeros((1, 2))
    gains = Gains(constant, linear, np.array([[1.0, 0.0]]), np.abs(constant), linear, 1.0)
    allowance = 64 * 2.0**-53 * (np.exp(20.0) + 0.5)
    assert value_at(walk_value(gains, 20.0), 0, 0.0) - allowance == pytest.approx(0.5 - np.exp(-20.0), abs=1e-13)


def test_lines_are_positive_on_half_lines_everywhere_or_nowhere() -> None:
    constant = np.array([1.0, 1.0, 1.0, -1.0, 0.0, 1.0, -1.0])
    linear = np.array([2.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    weights = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 4.0])
    lows, highs = positive_interval(constant, linear, weights)
    assert lows.tolist() == [-0.5, -np.inf, -np.inf, np.inf, np.inf, -0.5, np.inf]
    assert highs.tolist() == [np.inf, 0.5, np.inf, -np.inf, -np.inf, 0.5, -np.inf]


def test_a_value_with_too_many_pieces_is_positive_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    several = [random_gains(6, rng) for _ in range(30)]
    names = ("constant", "linear", "weights", "constant_size", "linear_size")
    gains = Gains(*(np.concatenate([getattr(one_gains, name) for one_gains in several]) for name in names), 1.5)
    full = walk_value(gains, 0.4)
    pieces = (full.lefts < full.rights).sum(axis=1)
    monkeypatch.setattr(ray_value, "MOST_PIECES_PER_INPUT", 1)
    limited = walk_value(gains, 0.4)
    crowded = np.isposinf(limited.square[:, 0])
    assert np.array_equal(crowded, pieces > 6)
    assert 0 < crowded.sum() < 30
    assert np.all(limited.lefts[crowded, 0] == -np.inf)
    assert np.all(limited.rights[crowded, 0] == np.inf)
    for row in np.flatnonzero(~crowded):
        for letter in (-1.0, 0.3, 0.7, 2.0):
            assert value_at(limited, row, letter) == pytest.approx(value_at(full, row, letter), rel=1e-12)
