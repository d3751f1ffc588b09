"""Tests of Kashin's representation.

Requirements: representations are exact and bounded, and every vector gets one if a slightly lower level would do.
"""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.arrays import FloatArray
from quietbits.design.transforms.kashin import KASHIN_CONSTANT, KashinFrame, KashinRepresentation, kashin_representation


def unit_vectors(count: int, dimension: int, seed: int) -> FloatArray:
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def assert_represents(result: KashinRepresentation, vectors: FloatArray, frame: KashinFrame, level: float) -> None:
    assert np.abs(result.coefficients).max() <= level
    assert np.abs(frame.synthesis(result.coefficients) - result.scales[:, None] * vectors).max() <= 1e-14


def hardest_vectors(frame: KashinFrame, count: int) -> FloatArray:
    """Return unit vectors that need the largest coefficients, by reweighted least squares."""
    columns = frame.synthesis(np.eye(frame.size)).T
    rng = np.random.default_rng(0)
    result = []
    for _ in range(count):
        vector = rng.normal(size=frame.dimension)
        for step in range(40):
            weights = np.abs(columns.T @ vector) + 1e-6 * 0.7**step + 1e-12
            vector = np.linalg.eigh((columns / weights) @ columns.T)[1][:, 0]
        result.append(vector)
    return np.array(result)


@pytest.mark.parametrize(
    ("dimension", "size"), [(1, 2), (2, 4), (3, 8), (4, 8), (5, 16), (64, 128), (65, 256), (200, 512)], ids=lambda number: str(number)
)
def test_frames_are_tight_with_columns_of_equal_length(dimension: int, size: int) -> None:
    frame = KashinFrame(dimension, seed=3)
    columns = frame.synthesis(np.eye(size)).T
    assert columns.shape == (dimension, frame.size) == (dimension, size)
    np.testing.assert_allclose(columns @ columns.T, np.eye(dimension), atol=1e-14)
    np.testing.assert_allclose(np.sum(columns**2, axis=0), dimension / size, rtol=1e-13)
    vectors = unit_vectors(4, dimension, seed=1)
    np.testing.assert_allclose(frame.analysis(vectors), vectors @ columns, atol=1e-14)


def test_the_seed_decides_the_frame() -> None:
    vectors = unit_vectors(1, 20, seed=0)
    same, other = KashinFrame(20, 7).analysis(vectors), KashinFrame(20, 8).analysis(vectors)
    np.testing.assert_array_equal(KashinFrame(20, 7).analysis(vectors), same)
    assert not np.allclose(same, other)


@pytest.mark.parametrize("dimension", [50, 100, 128, 200, 256, 1000])
@pytest.mark.parametrize("seed", [0, 1])
def test_vectors_are_represented_exactly(dimension: int, seed: int) -> None:
    frame = KashinFrame(dimension, seed)
    level = KASHIN_CONSTANT / math.sqrt(frame.size)
    rng = np.random.default_rng(seed)
    special = np.zeros((4, dimension))
    special[0, 3], special[1], special[2] = 1.0, 1 / math.sqrt(dimension), rng.choice([-1, 1], dimension) / math.sqrt(dimension)
    vectors = np.vstack([unit_vectors(100, dimension, seed), special, 0.3 * unit_vectors(5, dimension, seed)])
    representation = kashin_representation(vectors, frame, level)
    np.testing.assert_array_equal(representation.scales, 1.0)
    assert_represents(representation, vectors, frame, level)


def test_blocks_do_not_matter() -> None:
    frame, vectors = KashinFrame(200), unit_vectors(1200, 200, seed=4)
    level = KASHIN_CONSTANT / math.sqrt(frame.size)
    whole = kashin_representation(vectors, frame, level)
    last = kashin_representation(vectors[-1:], frame, level)
    np.testing.assert_allclose(whole.coefficients[-1:], last.coefficients, atol=1e-15)
    assert kashin_representation(vectors[:0], frame, level).coefficients.shape == (0, 512)


def test_a_linear_program_agrees_on_which_vectors_can_be_represented() -> None:
    frame = KashinFrame(8, seed=1)
    level = KASHIN_CONSTANT / math.sqrt(frame.size)
    columns = frame.synthesis(np.eye(frame.size)).T
    vectors = np.vstack([unit_vectors(75, 8, seed=5), hardest_vectors(frame, 10)])
    representation = kashin_representation(vectors, frame, level)
    assert_represents(representation, vectors, frame, level)
    # The linear program minimises t subject to U a = x, -t <= a <= t.
    ones = np.ones((frame.size, 1))
    box = np.vstack([np.hstack([np.eye(frame.size), -ones]), np.hstack([-np.eye(frame.size), -ones])])
    cost, plane = np.append(np.zeros(frame.size), 1.0), np.hstack([columns, np.zeros((8, 1))])
    least = np.array([linprog(cost, box, np.zeros(len(box)), plane, vector, bounds=(None, None), method="highs").fun for vector in vectors])
    assert np.all(representation.scales[least <= 0.9 * level] == 1)
    assert np.all(representation.scales[least > level * (1 + 1e-6)] < 1)
    assert np.all(representation.scales <= level / least * (1 + 1e-7))
    # Both kinds of vectors occur, and shrinking costs little more than necessary.
    assert np.count_nonzero(least <= 0.9 * level) > 50
    assert np.count_nonzero(least > level * (1 + 1e-6)) > 3
    assert np.all(representation.scales >= np.minimum(1, 0.85 * level / least))


@pytest.mark.parametrize("dimension", [4, 32, 128])
def test_vectors_without_a_representation_are_scaled_down_and_the_sure_level_has_none(dimension: int) -> None:
    frame = KashinFrame(dimension, seed=0)
    vectors = hardest_vectors(frame, 5)
    level = KASHIN_CONSTANT / math.sqrt(frame.size)
    # For any representation, 1 = <y, y> = <U^T y, a> <= level ||U^T y||_1.
    reach = level * np.abs(frame.analysis(vectors)).sum(axis=1)
    result = kashin_representation(vectors, frame, level)
    assert_represents(result, vectors, frame, level)
    assert np.all(result.scales <= reach * (1 + 1e-12))
    assert np.all(result.scales >= KASHIN_CONSTANT / math.sqrt(dimension) * (1 - 1e-12))
    if dimension > 4:
        assert reach.min() < 0.9
    sure = math.sqrt(dimension / frame.size) * (1 + 1e-12)
    certain = kashin_representation(vectors, frame, sure)
    np.testing.assert_array_equal(certain.scales, 1.0)
    assert_represents(certain, vectors, frame, sure)


def test_adding_up_what_is_cut_off_leaves_vectors_that_projections_represent() -> None:
    frame, vectors = KashinFrame(256, seed=1), unit_vectors(100, 256, seed=2)
    level, cut = KASHIN_CONSTANT / math.sqrt(frame.size), 1 / math.sqrt(0.8 * frame.size)
    added, rest = np.zeros((100, frame.size)), vectors
    represented = np.zeros(100, dtype=bool)
    for _ in range(60):
        coefficients = frame.analysis(rest)
        represented |= np.abs(added + coefficients).max(axis=1) <= level
        kept = np.clip(coefficients, -cut, cut)
        added, rest, cut = added + kept, rest - frame.synthesis(kept), 0.4 * cut
    assert np.count_nonzero(represented) < 50
    assert np.all(kashin_representation(vectors, frame, level).scales == 1)


@pytest.mark.parametrize(
    ("dimension", "seed", "name"), [(0, 0, "dimension"), (2**24 + 1, 0, "dimension"), (3, -1, "seed"), (3, 0.5, "seed")]
)
def test_bad_frames_are_refused(dimension: int, seed: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number from"):
        KashinFrame(dimension, seed)


@pytest.mark.parametrize("level", [0.0, -1.0, math.nan, math.inf])
def test_bad_levels_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level must be a number from"):
        kashin_representation(np.zeros((1, 3)), KashinFrame(3), level)


@pytest.mark.parametrize("level", [1e-60, 1e-42, 1e60])
def test_levels_beyond_single_precision_are_kept(level: float) -> None:
    frame, vectors = KashinFrame(37), np.random.default_rng(3).standard_normal((20, 37))
    representation = kashin_representation(vectors, frame, level)
    assert np.abs(representation.coefficients).max() <= level
    np.testing.assert_allclose(
        frame.synthesis(representation.coefficients),
        representation.scales[:, None] * vectors,
        rtol=1e-12,
        atol=1e-14 * representation.scales[0],
    )
    shortest = level / np.abs(frame.analysis(vectors)).max(axis=1)
    assert (representation.scales >= np.minimum(1.0, shortest * (1 - 1e-12))).all()
