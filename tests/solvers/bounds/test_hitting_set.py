"""Tests of the replay of a letter bound.

Points under test: narrowing loses no letters that hit all clauses; a proof agrees with brute force over the ends of all intervals; and a
certificate that proves too little, or is out of range, does not pass.
"""

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_variances import KINDS, spread_letters, variance_of

from quietbits.solvers.bounds import hitting_set
from quietbits.solvers.bounds.hitting_set import (
    MOST_CLAUSES,
    NO_SPLITS,
    Boxes,
    bisection,
    meeting,
    narrowed,
    narrowed_with_checks,
    replay,
    root_boxes,
    split_boxes,
)
from quietbits.solvers.bounds.letter_clauses import Clauses, DualVectors, TableVariance, clauses_of, joined
from quietbits.solvers.bounds.letter_search_tree import LetterBound, bound_letters
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint


@cache
def bounded(count: int, letters: int, epsilon: float, tolerance: float, kind: str = "average") -> tuple[TableVariance, LetterBound]:
    variance = variance_of(kind, count, epsilon)
    return variance, bound_letters(variance, spread_letters(variance, letters, 1.1), tolerance=tolerance, seconds=100)


def hits_all(clauses: Clauses, letters: np.ndarray) -> bool:
    inside = (clauses.starts[:, :, None] <= letters) & (letters <= clauses.ends[:, :, None])
    return bool(np.all(inside.any(axis=(1, 2))))


def test_clauses_meet_the_boxes_that_they_have_a_letter_of() -> None:
    """Ends are small whole numbers, many of them equal: boxes and intervals contain their ends."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        lows, highs = np.sort(np.sort(rng.integers(0, 5, (2, 3)), axis=0), axis=1).astype(float)
        ends = np.sort(rng.integers(0, 5, (20, 4)), axis=1).astype(float)
        clauses = Clauses(ends[:, ::2].copy(), ends[:, 1::2].copy())
        clauses.starts[::3, 1], clauses.ends[::3, 1] = np.inf, -np.inf
        # An interval that ends before its start is empty.
        clauses.starts[1::3, 1], clauses.ends[1::3, 1] = 3.0, 2.0
        result = meeting(Boxes(lows, highs), clauses, np.arange(20))
        for row, (starts, ends) in enumerate(zip(clauses.starts, clauses.ends, strict=True)):
            shared = [
                {place for place in range(5) if low <= place <= high and any((starts <= place) & (place <= ends))}
                for low, high in zip(lows, highs, strict=True)
            ]
            numbers = [number for number, places in enumerate(shared) if places]
            assert result.met[row] == bool(numbers)
            assert result.hit[row] == any(np.any((starts <= low) & (high <= ends)) for low, high in zip(lows, highs, strict=True))
            if numbers:
                assert (result.first[row], result.last[row]) == (numbers[0], numbers[-1])
                assert (result.tops[row], result.bottoms[row]) == (max(set.union(*shared)), min(set.union(*shared)))


@given(st.integers(2, 4), st.integers(1, 6), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_narrowing_keeps_all_letters_that_hit_every_clause(letters: int, count: int, mirrored: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.uniform(-1, 2, (count, 4)), axis=1)
    clauses = Clauses(ends[:, ::2], ends[:, 1::2])
    lows, highs = np.sort(rng.uniform(-1, 2, (2, letters)), axis=1)
    boxes = Boxes(np.minimum(lows, highs), np.maximum(lows, highs))
    result = narrowed(boxes, clauses, np.arange(count), mirrored=mirrored)
    for _ in range(100):
        point = rng.uniform(boxes.lows, boxes.highs)
        if np.any(np.diff(point) < 0) or (mirrored and point[0] + point[-1] < 1) or not hits_all(clauses, point):
            continue
        assert result is not None
        assert np.all((result.boxes.lows <= point) & (point <= result.boxes.highs))
    if result is not None:
        for row in set(range(count)) - set(result.open_clauses.tolist()):
            # Letters anywhere in the boxes hit a clause that is no longer open.
            assert all(hits_all(clauses.take(np.array([row])), rng.uniform(result.boxes.lows, result.boxes.highs)) for _ in range(5))


@pytest.mark.parametrize(("kept", "seed"), [(2, 0), (3, 1), (4, 2), (5, 3), (8, 4), (12, 5)])
def test_a_replay_agrees_with_brute_force(kept: int, seed: int) -> None:
    """Letters hit all clauses if and only if some ends of intervals do."""
    variance, bound = bounded(4, 3, 1.0, 2e-2)
    rows = np.random.default_rng(seed).permutation(len(bound.vectors))[:kept]
    some = DualVectors(bound.vectors.normalisation[rows], bound.vectors.unbiasedness[rows])
    clauses = clauses_of(some.with_mirrors(), variance, bound.lower_bound)
    root = root_boxes(variance, 3)
    ends = np.concatenate([clauses.starts.ravel(), clauses.ends.ravel(), [root.highs[0], root.lows[-1], -1e3, 1e3]])
    candidates = np.unique(ends[np.isfinite(ends)])
    hit = any(
        hits_all(clauses, np.array(triple))
        for triple in combinations_with_replacement(candidates, 3)
        if triple[0] <= root.highs[0] and triple[2] >= root.lows[-1]
    )
    assert replay(some, NO_SPLITS, variance, 3, bound.lower_bound, most_nodes=20_000).proven == (not hit)


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_proves_the_bound_with_its_splits(kind: str) -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4, kind)
    assert bound.gap <= 5e-4
    checked = replay(bound.vectors, bound.splits, variance, 3, bound.lower_bound)
    assert checked.proven
    assert checked.nodes <= bound.nodes


def test_a_replay_may_prove_a_bound_without_splits() -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4)
    assert len(bound.splits) > 5
    assert replay(bound.vectors, NO_SPLITS, variance, 3, bound.lower_bound).proven


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_proves_no_target_above_a_table(kind: str) -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4, kind)
    for splits in (bound.splits, NO_SPLITS):
        assert not replay(bound.vectors, splits, variance, 3, bound.value * (1 + 1e-9), most_nodes=2000).proven
    # More letters permit a better table, or one as good.
    assert not replay(bound.vectors, bound.splits, variance, 4, bound.value * (1 + 1e-9), most_nodes=2000).proven


def test_a_replay_without_its_dual_vectors_proves_nothing() -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4)
    few = DualVectors(bound.vectors.normalisation[:1], bound.vectors.unbiasedness[:1])
    assert not replay(few, bound.splits, variance, 3, bound.lower_bound, most_nodes=2000).proven
    none = DualVectors(np.empty((0, 4)), np.empty((0, 4)))
    assert not replay(none, NO_SPLITS, variance, 3, bound.lower_bound).proven
    assert replay(bound.vectors, bound.splits, variance, 3, bound.lower_bound, most_nodes=1).nodes == 1


def test_certificates_out_of_range_are_refused() -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4)
    vectors, splits, target = bound.vectors, bound.splits, bound.lower_bound
    many = DualVectors(np.zeros((MOST_CLAUSES + 1, 4)), np.zeros((MOST_CLAUSES + 1, 4)))
    infinite = DualVectors(np.full((1, 4), np.inf), np.zeros((1, 4)))
    no_number = DualVectors(np.zeros((1, 4)), np.full((1, 4), np.nan))
    weighted = replace(vectors, input_weights=np.full(vectors.normalisation.shape, 0.25))
    each_kind, shapes = "vectors must have a price of each kind per input", "splits must have a box, a point and two following splits"
    for wrong, steering, letters, bounded_by, message in (
        (many, splits, 3, target, "vectors must have at most 20000 rows for 3 letters and 4 inputs, got 20001"),
        (many, splits, 320, target, "vectors must have at most 1000 rows for 320 letters and 4 inputs, got 20001"),
        (infinite, splits, 3, target, r"vectors must hold numbers from -1e\+60 to 1e\+60, got inf"),
        (no_number, splits, 3, target, "vectors must hold numbers .* got nan"),
        (
            replace(vectors, normalisation=vectors.normalisation[:, :3]),
            splits,
            3,
            target,
            each_kind,
        ),
        (replace(vectors, normalisation=vectors.normalisation[1:]), splits, 3, target, each_kind),
        (DualVectors(np.zeros(4), np.zeros(4)), splits, 3, target, each_kind),
        (DualVectors(np.array(0.0), np.array(0.0)), splits, 3, target, each_kind),
        (weighted, splits, 3, target, "vectors must have input_weights for the largest variance, and for no other objective"),
        (vectors, replace(splits, boxes=splits.boxes + 3), 3, target, "splits must divide boxes 0 to 2"),
        (vectors, replace(splits, boxes=-1 - splits.boxes), 3, target, "splits must divide boxes 0 to 2"),
        (vectors, replace(splits, points=splits.points + np.inf), 3, target, "splits must divide boxes 0 to 2 at finite points"),
        (vectors, replace(splits, points=splits.points * np.nan), 3, target, "splits must divide boxes 0 to 2 at finite points"),
        (vectors, replace(splits, points=splits.points[1:]), 3, target, shapes),
        (vectors, replace(splits, points=np.array(0.0)), 3, target, shapes),
        (vectors, replace(splits, below=splits.below[1:]), 3, target, shapes),
        (vectors, replace(splits, below=splits.below + len(splits)), 3, target, "splits must be followed by splits -1 to"),
        (vectors, replace(splits, above=splits.above - 1), 3, target, "splits must be followed by splits -1 to"),
        (vectors, splits, 1, target, "letters must be from 2 to 320000, got 1"),
        (vectors, splits, 10**9, target, "letters must be from 2 to 320000, got 1000000000"),
        (vectors, splits, 3, np.nan, r"target must be from 1e-60 to 1e\+60, got nan"),
        (vectors, splits, 3, np.inf, r"target must be from 1e-60 to 1e\+60, got inf"),
        (vectors, splits, 3, 0.0, r"target must be from 1e-60 to 1e\+60, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            replay(wrong, steering, variance, letters, bounded_by)


def test_weights_out_of_range_are_refused() -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4, "largest")
    weights = bound.vectors.input_weights
    assert weights is not None
    without = replace(bound.vectors, input_weights=None)
    negative, no_number, more = weights.copy(), weights.copy(), weights.copy()
    negative[0, :2] += [-2.0, 2.0]
    no_number[-1, -1] = np.nan
    more[0, 0] += 1e-8
    with pytest.raises(ValueError, match="vectors must have input_weights for the largest variance"):
        replay(without, bound.splits, variance, 3, bound.lower_bound)
    for wrong in (negative, no_number, more, weights[:, :3], weights[1:], np.array(1.0)):
        with pytest.raises(ValueError, match="input_weights must be non-negative"):
            replay(replace(bound.vectors, input_weights=wrong), bound.splits, variance, 3, bound.lower_bound)
    # Weights that a file has rounded have another sum, which the target of their clause takes into account.
    slightly_more = replace(bound.vectors, input_weights=weights * (1 + 1e-10))
    assert replay(slightly_more, bound.splits, variance, 3, bound.lower_bound * (1 - 1e-8)).proven


def test_extreme_dual_vectors_neither_crash_nor_prove_anything() -> None:
    """Warnings count as errors in tests: nothing overflows."""
    rng = np.random.default_rng(1)
    for kind in KINDS:
        variance = variance_of(kind, 5, 20.0)
        rows = []
        for size in (1e60, 1e-60, 1e-300, 5e-324):
            for _ in range(4):
                prices = size * rng.choice([-1.0, -0.5, 0.0, 0.3, 1.0], (2, 1, 5))
                weights = np.eye(5)[[rng.integers(5)]] if variance.input_weights is None else None
                rows.append(DualVectors(prices[0], prices[1], weights))
        for target in (1e-60, 1.0, 1e60):
            checked = replay(joined(rows), NO_SPLITS, variance, 3, target, most_nodes=50)
            # Tables of three letters have variances below 1 at this epsilon.
            assert not (checked.proven and target >= 1)


def test_a_replay_ends_at_its_limit_of_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4)
    nodes = replay(bound.vectors, bound.splits, variance, 3, bound.lower_bound).nodes
    monkeypatch.setattr(hitting_set, "MOST_CHECKS", 3 * len(bound.vectors))
    checked = replay(bound.vectors, bound.splits, variance, 3, bound.lower_bound)
    assert not checked.proven
    assert 1 <= checked.nodes < nodes


def test_repetitions_of_narrowing_count_as_comparisons() -> None:
    """Each clause of a chain narrows the box by 2 %, once the clause before has."""
    count = 60
    tops = 0.98 ** np.arange(count + 1)
    # Clause k holds the letters up to tops[k + 1], and letters above tops[k], which the clause before excludes.
    clauses = Clauses(np.column_stack([np.full(count, -1.0), tops[:-1] + 1e-6]), np.column_stack([tops[1:], np.full(count, 2.0)]))
    boxes = Boxes(np.array([0.0]), np.array([1.0]))
    result, checks = narrowed_with_checks(boxes, clauses, np.arange(count), mirrored=False)
    assert result is not None
    np.testing.assert_allclose(result.boxes.highs, tops[-1:])
    # The first round compares all clauses. In each round after that, a clause holds the whole box and drops out.
    assert checks == count + sum(range(count + 1))


def test_fine_grids_have_a_limit_of_dual_vectors_of_their_own() -> None:
    """The clauses of one metric dual vector with 512 inputs take a tenth of a second."""
    variance = TableVariance(np.arange(512) / 511, np.full(512, 1 / 512), RatioConstraint(1 / 511, neighbours_only=True))
    many = DualVectors(np.zeros((39, 512)), np.zeros((39, 512)))
    with pytest.raises(ValueError, match="vectors must have at most 38 rows for 8 letters and 512 inputs, got 39"):
        replay(many, NO_SPLITS, variance, 8, 1.0)


def test_splits_that_go_round_in_a_circle_end_at_the_limit() -> None:
    variance, bound = bounded(4, 3, 1.0, 5e-4)
    circle = replace(bound.splits, below=np.zeros_like(bound.splits.below), above=np.zeros_like(bound.splits.above))
    few = DualVectors(bound.vectors.normalisation[:1], bound.vectors.unbiasedness[:1])
    assert replay(few, circle, variance, 3, bound.lower_bound, most_nodes=500).nodes <= 500


def test_splits_divide_boxes_and_move_their_neighbours() -> None:
    boxes = Boxes(np.array([-np.inf, -1.0, 0.0]), np.array([1.0, 2.0, np.inf]))
    below, above = split_boxes(boxes, 1, 0.5)
    assert below.highs.tolist() == [0.5, 0.5, np.inf]
    assert below.lows.tolist() == boxes.lows.tolist()
    assert above.lows.tolist() == [-np.inf, 0.5, 0.5]
    assert above.highs.tolist() == boxes.highs.tolist()
    assert bisection(boxes, 10.0) == (0, -4.5)
