"""Tests of clauses of dual vectors.

Points under test: clauses contain every letter with a positive violation, in exact arithmetic, and few other letters; no better table
misses a clause.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_variances import KINDS, random_vectors, table_program, variance_of

from quietbits.solvers.bounds import letter_clauses
from quietbits.solvers.bounds.letter_clauses import (
    MOST_INTERVALS,
    Clauses,
    DualVectors,
    TableVariance,
    at_target,
    clauses_of,
    joined,
    weights_of,
)
from quietbits.solvers.bounds.letter_search_tree import bound_letters
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
from quietbits.solvers.table_search.multistart import widened


def exact_violation(vector: DualVectors, variance: TableVariance, letter: float) -> mpmath.mpf:
    """Return F_y of the only dual vector at a letter, with 60 digits; for local privacy, exp(-epsilon) F_y."""
    weights = variance.input_weights if vector.input_weights is None else vector.input_weights[0]
    with mpmath.workdps(60):
        count, letter, total = len(variance.inputs), mpmath.mpf(letter), mpmath.mpf(0)
        ratio = mpmath.exp(mpmath.mpf(variance.constraint.log_ratio))
        for i in range(count - 1, -1, -1):
            offset = letter - mpmath.mpf(i) / (count - 1)
            price, slope = mpmath.mpf(vector.normalisation[0, i]), mpmath.mpf(vector.unbiasedness[0, i])
            gain = price + slope * offset - mpmath.mpf(weights[i]) * offset**2
            if variance.constraint.neighbours_only:
                total = gain + max(ratio * total, total / ratio)
            else:
                total += gain if gain > 0 else gain / ratio
        return total


def inside(clauses: Clauses, row: int, letters: np.ndarray) -> np.ndarray:
    return np.any((clauses.starts[row] <= letters[:, None]) & (letters[:, None] <= clauses.ends[row]), axis=1)


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(2, 9), st.sampled_from([0.01, 0.5, 1, 3, 10, 20]), st.sampled_from([1e-3, 0.1, 1, 100]), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_a_clause_holds_exactly_the_letters_that_violate_its_dual_vector(
    kind: str, count: int, epsilon: float, scale: float, seed: int
) -> None:
    """Check letters on a grid, and letters right beside the ends of the intervals, in exact arithmetic."""
    rng, variance = np.random.default_rng(seed), variance_of(kind, count, epsilon)
    target = scale * float(rng.uniform())
    vector = random_vectors(variance, 1, scale / count, rng)
    clauses = clauses_of(vector, variance, target)
    shifted = at_target(vector, target)
    with mpmath.workdps(60):
        weights = [1] if vector.input_weights is None else weights_of(vector, variance)[0]
        needed = mpmath.mpf(target) * mpmath.fsum(mpmath.mpf(weight) for weight in weights)
        assert mpmath.fsum(mpmath.mpf(price) for price in shifted.normalisation[0]) >= needed
    ends = np.concatenate([clauses.starts[0], clauses.ends[0]])
    ends = ends[np.isfinite(ends)]
    beside = np.concatenate([np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
    wide = 2 * max(1.0, np.abs(ends).max(initial=0.0))
    letters = np.concatenate([beside, rng.uniform(-wide, wide, 40), rng.uniform(0, 1, 20)])
    hit = inside(clauses, 0, letters)
    for letter, held in zip(letters, hit, strict=True):
        if not held:
            assert exact_violation(shifted, variance, float(letter)) <= 0
    # The sizes of the terms in the ray's value, with its largest factors.
    factors = np.exp(variance.constraint.log_ratio * np.arange(count)) if variance.constraint.neighbours_only else np.ones(count)
    for letter in rng.uniform(-wide, wide, 40):
        size = np.abs(shifted.normalisation) + np.abs(shifted.unbiasedness) * (1 + abs(letter)) + (1 + abs(letter)) ** 2
        if exact_violation(shifted, variance, float(letter)) < -1e-9 * (size @ factors)[0] * variance.unit:
            assert not inside(clauses, 0, np.array([letter]))[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_no_better_table_misses_a_clause(kind: str, epsilon: float) -> None:
    """Planted better tables have a letter in every clause, of dual vectors of a search and of random ones."""
    count, letters, rng = 4, 3, np.random.default_rng(5)
    variance = variance_of(kind, count, epsilon)
    reach = variance.unit - 1
    bound = bound_letters(variance, np.array([-0.3 - reach, 0.5, 1.3 + reach]), tolerance=3e-3, seconds=200)
    vectors = joined([bound.vectors, random_vectors(variance, 50, bound.value / count, rng)])
    target = 1.02 * bound.value
    clauses = clauses_of(vectors.with_mirrors() if variance.symmetric else vectors, variance, target)
    program = table_program(variance, letters)
    better, others_missed = 0, 0
    for _ in range(300):
        moved = bound.alphabet + variance.unit * rng.normal(size=letters) * rng.choice([0.0003, 0.003, 0.03, 0.2])
        alphabet = widened(moved, count, variance.constraint)
        value = program.solve(alphabet).value
        hit = (clauses.starts[:, :, None] <= alphabet) & (alphabet <= clauses.ends[:, :, None])
        missed = not np.all(hit.any(axis=(1, 2)))
        if value < target:
            better += 1
            assert not missed
        others_missed += missed
    assert better >= 10
    # The check is meaningful, as clauses exclude worse tables.
    assert others_missed >= 5


def test_the_weights_of_a_dual_vector_may_have_any_sum_near_1() -> None:
    """More weight raises a dual vector's target: a table's weighted variance is at most the sum times its largest variance."""
    variance = variance_of("largest", 4, 1.0)
    vector = random_vectors(variance, 1, 0.3, np.random.default_rng(0))
    assert vector.input_weights is not None
    for factor in (1 - 1e-4, 1.0, 1 + 1e-4):
        scaled = DualVectors(factor * vector.normalisation, factor * vector.unbiasedness, factor * vector.input_weights)
        assert at_target(scaled, 2.0).normalisation.sum() == pytest.approx(2.0 * factor, rel=1e-10)
        starts, expected = clauses_of(scaled, variance, 2.0).starts, clauses_of(vector, variance, 2.0).starts
        assert np.allclose(starts[np.isfinite(starts)], expected[np.isfinite(expected)], rtol=1e-9)


def test_mirror_images_have_mirrored_clauses() -> None:
    variance = variance_of("metric, largest", 5, 2.0)
    vector = random_vectors(variance, 1, 0.3, np.random.default_rng(3))
    clauses = clauses_of(vector.with_mirrors(), variance, 1.0)
    used = np.isfinite(clauses.starts[0])
    assert used.any()
    assert np.allclose(clauses.starts[1, used], (1 - clauses.ends[0, used])[::-1])


def test_many_dual_vectors_have_the_clauses_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("average", "metric, largest"):
        variance = variance_of(kind, 6, 2.0)
        vectors = random_vectors(variance, 20, 0.2, np.random.default_rng(2))
        together = clauses_of(vectors, variance, 1.0)
        with monkeypatch.context() as patched:
            patched.setattr(letter_clauses, "BLOCK", 16 * 6**2 * 7)
            blocks = clauses_of(vectors, variance, 1.0)
        for row in range(20):
            alone = clauses_of(vectors.take(np.array([row])), variance, 1.0)
            for clauses in (together, blocks):
                assert np.allclose(clauses.starts[row], alone.starts[0], rtol=1e-12)
                assert np.allclose(clauses.ends[row], alone.ends[0], rtol=1e-12)


def test_close_intervals_are_merged_into_a_larger_clause() -> None:
    """A dual vector with a separate peak at each of 32 inputs has 32 intervals of letters."""
    count = 32
    variance = variance_of("average", count, 14.0)
    slack = 5e-7
    vector = DualVectors(np.full((1, count), slack), np.zeros((1, count)))
    clauses = clauses_of(vector, variance, count * slack)
    used = np.isfinite(clauses.starts[0])
    assert used.sum() == MOST_INTERVALS
    assert np.all(clauses.starts[0, used][1:] > clauses.ends[0, used][:-1])
    assert np.all(inside(clauses, 0, variance.inputs))


@pytest.mark.parametrize(
    ("inputs", "weights", "constraint", "message"),
    [
        (np.array([0.0, 0.4, 1.0]), np.full(3, 1 / 3), RatioConstraint(1.0, False), "inputs must be i / "),
        (np.arange(1025) / 1024, None, RatioConstraint(1.0, False), "inputs must be i / .* at most 1024"),
        (np.arange(3) / 2, np.full(3, 1.0), RatioConstraint(1.0, False), "input_weights must be non-negative"),
        (np.arange(3) / 2, np.array([1.5, -0.5, 0.0]), RatioConstraint(1.0, False), "input_weights must be non-negative"),
        (np.arange(3) / 2, np.array([1.0, np.nan, 0.0]), RatioConstraint(1.0, False), "input_weights must be non-negative"),
        (np.arange(3) / 2, np.array([0.5, 0.5]), RatioConstraint(1.0, False), r"of shape \(3,\)"),
        (np.arange(3) / 2, None, RatioConstraint(20.1, False), "constraint must have a log ratio of 1e-12 to 20 over the grid, got 20.1"),
        (np.arange(3) / 2, None, RatioConstraint(10.1, True), "constraint must have a log ratio of 1e-12 to 20 over the grid, got 20.2"),
        (np.arange(3) / 2, None, RatioConstraint(np.nan, True), "constraint must have .* got nan"),
        (np.arange(3) / 2, None, RatioConstraint(0.0, False), "constraint must have .* got 0.0"),
    ],
)
def test_a_wrong_grid_weights_or_privacy_are_refused(
    inputs: np.ndarray, weights: np.ndarray | None, constraint: RatioConstraint, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TableVariance(inputs, weights, constraint)
