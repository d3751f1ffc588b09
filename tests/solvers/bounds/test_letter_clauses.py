"""Tests of clauses of dual vectors.

Points under test: clauses contain every letter with a positive violation, in exact arithmetic, and few other letters; no better table
misses a clause.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.solvers.bounds.letter_clauses import (
    MOST_INTERVALS,
    Clauses,
    DualVectors,
    LocalVariance,
    at_target,
    clauses_of,
    ray_value,
)
from quietbits.solvers.bounds.letter_search_tree import bound_letters
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
from quietbits.solvers.table_search.multistart import widened
from quietbits.solvers.table_search.table_program import TableProgram


def average(count: int, epsilon: float) -> LocalVariance:
    return LocalVariance(np.arange(count) / (count - 1), np.full(count, 1 / count), epsilon)


def exact_violation(vector: DualVectors, variance: LocalVariance, letter: float) -> mpmath.mpf:
    """Return F_y of the only dual vector at a letter, with 60 digits."""
    with mpmath.workdps(60):
        count, letter = len(variance.inputs), mpmath.mpf(letter)
        ratio, total = mpmath.exp(mpmath.mpf(variance.log_ratio)), mpmath.mpf(0)
        for i in range(count):
            offset = letter - mpmath.mpf(i) / (count - 1)
            price, slope = mpmath.mpf(vector.normalisation[0, i]), mpmath.mpf(vector.unbiasedness[0, i])
            gain = price + slope * offset - mpmath.mpf(variance.input_weights[i]) * offset**2
            total += gain * (ratio if gain > 0 else 1)
        return total


def inside(clauses: Clauses, row: int, letters: np.ndarray) -> np.ndarray:
    return np.any((clauses.starts[row] <= letters[:, None]) & (letters[:, None] <= clauses.ends[row]), axis=1)


def random_vector(count: int, scale: float, rng: np.random.Generator) -> DualVectors:
    return DualVectors(scale * rng.normal(size=(1, count)), scale * rng.normal(size=(1, count)))


@given(st.integers(2, 9), st.sampled_from([0.01, 0.5, 1, 3, 10, 20]), st.sampled_from([1e-3, 0.1, 1, 100]), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_clause_holds_exactly_the_letters_that_violate_its_dual_vector(count: int, epsilon: float, scale: float, seed: int) -> None:
    """Check letters on a grid, and right beside the ends of the intervals, in exact arithmetic."""
    rng, variance = np.random.default_rng(seed), average(count, epsilon)
    target = scale * float(rng.uniform())
    vector = random_vector(count, scale / count, rng)
    clauses = clauses_of(vector, variance, target)
    shifted = at_target(vector, target)
    with mpmath.workdps(60):
        assert mpmath.fsum(mpmath.mpf(price) for price in shifted.normalisation[0]) >= target
    ends = np.concatenate([clauses.starts[0], clauses.ends[0]])
    ends = ends[np.isfinite(ends)]
    beside = np.concatenate([np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
    wide = 2 * max(1.0, np.abs(ends).max(initial=0.0))
    letters = np.concatenate([beside, rng.uniform(-wide, wide, 40), rng.uniform(0, 1, 20)])
    hit = inside(clauses, 0, letters)
    for letter, held in zip(letters, hit, strict=True):
        violation = exact_violation(shifted, variance, float(letter))
        if not held:
            assert violation <= 0
    for letter in rng.uniform(-wide, wide, 40):
        size = np.abs(shifted.normalisation).sum() + np.abs(shifted.unbiasedness).sum() * (1 + abs(letter)) + (1 + abs(letter)) ** 2
        if exact_violation(shifted, variance, float(letter)) < -1e-9 * np.exp(epsilon) * size * variance.unit:
            assert not inside(clauses, 0, np.array([letter]))[0]


@given(st.integers(2, 9), st.sampled_from([0.1, 1, 5]), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_parabolas_bound_the_violation_on_their_pieces(count: int, epsilon: float, seed: int) -> None:
    rng, variance = np.random.default_rng(seed), average(count, epsilon)
    vector = random_vector(count, 1 / count, rng)
    pieces = ray_value(vector, variance)
    assert pieces.lefts[0, 0] == -np.inf
    assert pieces.rights[0, -1] == np.inf
    assert np.array_equal(pieces.lefts[0, 1:], pieces.rights[0, :-1])
    for letter in rng.uniform(-3, 4, 20):
        on = np.flatnonzero((pieces.lefts[0] <= letter) & (letter <= pieces.rights[0]))
        bounds = pieces.constant[0, on] + letter * (pieces.linear[0, on] + letter * pieces.square[0, on])
        exact = float(exact_violation(vector, variance, float(letter)) * mpmath.exp(-epsilon))
        assert np.all(bounds >= exact - 1e-15 * (1 + letter**2))
        assert np.all(bounds <= exact + 1e-11 * (1 + letter**2) * variance.unit)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_no_better_table_misses_a_clause(epsilon: float) -> None:
    """Planted better tables have a letter in every clause.

    The dual vectors come from a search or are random.
    """
    count, letters, rng = 4, 3, np.random.default_rng(5)
    variance = average(count, epsilon)
    start = np.array([-0.3 - 1 / np.expm1(epsilon), 0.5, 1.3 + 1 / np.expm1(epsilon)])
    bound = bound_letters(variance, start, tolerance=3e-3)
    random = [random_vector(count, bound.value / count, rng) for _ in range(50)]
    vectors = DualVectors(
        np.concatenate([bound.vectors.normalisation, *(vector.normalisation for vector in random)]),
        np.concatenate([bound.vectors.unbiasedness, *(vector.unbiasedness for vector in random)]),
    ).with_mirrors()
    target = 1.02 * bound.value
    clauses = clauses_of(vectors, variance, target)
    constraint = RatioConstraint(epsilon, neighbours_only=False)
    program = TableProgram(variance.inputs, letters, constraint, variance.input_weights)
    better, others_missed = 0, 0
    for _ in range(400):
        moved = bound.alphabet + variance.unit * rng.normal(size=letters) * rng.choice([0.0003, 0.003, 0.03, 0.2])
        alphabet = widened(moved, count, constraint)
        value = program.solve(alphabet).value
        hit = (clauses.starts[:, :, None] <= alphabet) & (alphabet <= clauses.ends[:, :, None])
        missed = not np.all(hit.any(axis=(1, 2)))
        if value < target:
            better += 1
            assert not missed
        others_missed += missed
    assert better >= 20
    # The check is meaningful, as clauses exclude worse tables.
    assert others_missed >= 5


def test_close_intervals_are_merged_into_a_larger_clause() -> None:
    """A dual vector with a separate peak at each of 32 inputs has 32 intervals of letters."""
    count = 32
    variance = average(count, 14.0)
    slack = 5e-7
    vector = DualVectors(np.full((1, count), slack), np.zeros((1, count)))
    clauses = clauses_of(vector, variance, count * slack)
    used = np.isfinite(clauses.starts[0])
    assert used.sum() == MOST_INTERVALS
    assert np.all(clauses.starts[0, used][1:] > clauses.ends[0, used][:-1])
    assert np.all(inside(clauses, 0, variance.inputs))


@pytest.mark.parametrize(
    ("inputs", "weights", "message"),
    [
        (np.array([0.0, 0.4, 1.0]), np.full(3, 1 / 3), "inputs must be i / "),
        (np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 0.5]), "input_weights must be 3 numbers with sum 1"),
        (np.array([0.0, 0.5, 1.0]), np.full(3, 1.0), "input_weights must be 3 numbers with sum 1"),
    ],
)
def test_a_wrong_grid_or_weights_are_refused(inputs: np.ndarray, weights: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalVariance(inputs, weights, 1.0)
