"""Kerdock's frame: its bases are mutually unbiased, and every vector has small coefficients, the worst ones too."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.design.transforms.kashin import KASHIN_CONSTANT, KashinFrame, kashin_representation
from quietbits.design.transforms.kerdock_frame import KerdockFrame, kerdock_signs
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard


@pytest.mark.parametrize("length", [4, 16, 64])
def test_columns_of_different_bases_are_at_the_same_angle(length: int) -> None:
    bases = kerdock_signs(length)[:, None, :] * walsh_hadamard(np.eye(length)) / math.sqrt(length)
    columns = bases.reshape(-1, length)
    assert len(bases) == length // 2
    products = np.abs(columns @ columns.T).reshape(len(bases), length, len(bases), length)
    for first in range(len(bases)):
        for second in range(len(bases)):
            expected = np.eye(length) if first == second else 1 / math.sqrt(length)
            np.testing.assert_allclose(products[first, :, second], expected, atol=1e-14)


@pytest.mark.parametrize("length", [256, 1024])
def test_bases_of_many_columns_are_at_the_same_angle(length: int) -> None:
    signs = kerdock_signs(length).astype(float)
    # Inner products of the columns of two bases are the transform of the products of their signs.
    for first, second in ((0, 1), (1, 2), (3, length // 2 - 1), (length // 4, length // 4 + 1)):
        np.testing.assert_array_equal(np.abs(walsh_hadamard(signs[first] * signs[second])), math.sqrt(length))


@pytest.mark.parametrize(("dimension", "size"), [(1, 8), (4, 8), (5, 128), (16, 128), (17, 2048), (200, 32768)])
def test_the_frame_is_tight_with_columns_of_equal_length(dimension: int, size: int) -> None:
    frame = KerdockFrame(dimension, seed=3)
    rows = frame.analysis(np.eye(dimension))
    assert rows.shape == (dimension, frame.size) == (dimension, size)
    np.testing.assert_allclose(rows @ rows.T, np.eye(dimension), atol=1e-13)
    np.testing.assert_allclose(np.sum(rows**2, axis=0), dimension / size, rtol=1e-12)
    coefficients = np.random.default_rng(0).normal(size=(3, size))
    np.testing.assert_allclose(frame.synthesis(coefficients), coefficients @ rows.T, atol=1e-12)


def test_the_certain_constant_is_above_what_a_linear_program_needs() -> None:
    frame = KerdockFrame(6, seed=1)
    columns = frame.analysis(np.eye(6))
    rng = np.random.default_rng(2)
    vectors = np.vstack([rng.normal(size=(10, 6)), columns.T[:5], (columns.T[:5] + columns.T[40:45])])
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    ones = np.ones((frame.size, 1))
    box = np.vstack([np.hstack([np.eye(frame.size), -ones]), np.hstack([-np.eye(frame.size), -ones])])
    cost, plane = np.append(np.zeros(frame.size), 1.0), np.hstack([columns, np.zeros((6, 1))])
    least = [linprog(cost, box, np.zeros(len(box)), plane, vector, bounds=(None, None), method="highs").fun for vector in vectors]
    needed = max(least) * math.sqrt(frame.size)
    assert 1.2 < needed <= math.sqrt(3 - 2 / 16) < frame.certain_constant <= KASHIN_CONSTANT


@pytest.mark.parametrize("dimension", [4, 9, 16, 64, 200])
def test_no_vector_is_scaled_down_at_the_certain_level(dimension: int) -> None:
    frame = KerdockFrame(dimension, seed=5)
    rng = np.random.default_rng(1)
    sums = np.zeros((40, frame.size))
    for row, terms in zip(sums, [1] * 10 + [2] * 10 + [5] * 10 + [dimension] * 10, strict=True):
        row[rng.choice(frame.size, terms, replace=False)] = rng.choice([-1.0, 1.0], terms)
    vectors = np.vstack([frame.synthesis(sums), rng.normal(size=(10, dimension)), np.eye(2, dimension)])
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    level = frame.certain_constant / math.sqrt(frame.size)
    representation = kashin_representation(vectors, frame, level)
    np.testing.assert_array_equal(representation.scales, 1.0)
    assert np.abs(representation.coefficients).max() <= level
    np.testing.assert_allclose(frame.synthesis(representation.coefficients), vectors, atol=1e-13)
    if dimension in (64, 200):
        # Random rows scale vectors along their columns down at the same constant.
        rows = KashinFrame(dimension, seed=5)
        along = rows.synthesis(np.eye(10, rows.size))
        along /= np.linalg.norm(along, axis=1)[:, None]
        assert kashin_representation(along, rows, frame.certain_constant / math.sqrt(rows.size)).scales.min() < 0.99


def test_the_seed_decides_the_signs() -> None:
    vectors = np.ones((1, 20))
    assert np.array_equal(KerdockFrame(20, 7).analysis(vectors), KerdockFrame(20, 7).analysis(vectors))
    assert not np.allclose(KerdockFrame(20, 7).analysis(vectors), KerdockFrame(20, 8).analysis(vectors))


@pytest.mark.parametrize(("dimension", "seed", "name"), [(0, 0, "dimension"), (1025, 0, "dimension"), (3, -1, "seed")])
def test_bad_frames_are_refused(dimension: int, seed: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number from"):
        KerdockFrame(dimension, seed)
