"""The subsampled randomised Hadamard transform.

`test_linear_sketch` covers the properties of all sketches.
"""

import math

import numpy as np
import pytest

from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.rotation import RandomisedHadamard
from quietbits.solvers.numerics.walsh_hadamard import hadamard_entries

EYE = np.eye(1024)


@pytest.mark.parametrize("dimension", [1, 2, 5, 64])
def test_nothing_is_lost_where_all_rows_are_kept(dimension: int) -> None:
    padded = 1 << (dimension - 1).bit_length()
    sketch = HadamardSketch(dimension, padded, seed=2)
    vectors = np.random.default_rng(1).normal(size=(3, dimension))
    np.testing.assert_allclose(sketch.decode(sketch.encode(vectors)), vectors, atol=1e-14)
    assert sketch.distortion == 0.0
    assert sketch.squared_operator_norm_bound == 1.0


@pytest.mark.parametrize("size", [1, 7, 32])
def test_rows_are_different_ones_of_a_hadamard_matrix_with_signs(size: int) -> None:
    sketch = HadamardSketch(32, size, seed=3)
    matrix = sketch.encode(np.eye(32)).T
    np.testing.assert_allclose(np.abs(matrix), 1 / math.sqrt(size), rtol=1e-14)
    np.testing.assert_allclose(matrix @ matrix.T, 32 / size * np.eye(size), atol=1e-13)
    # Signs belong to columns, and without them each row is a row of Hadamard's matrix. A kept row determines the signs up to that row.
    hadamard = hadamard_entries(np.arange(32)[:, None], np.arange(32)[None, :])
    ratios = matrix * matrix[0] * size
    assert {tuple(row) for row in np.rint(ratios).astype(int)} <= {tuple(row) for row in hadamard.astype(int)}


def test_all_rows_are_chosen_equally_often() -> None:
    # Row 0 of 8 is in 3 of 8 sketches. Its share of 1000 sketches has a standard deviation of 0.015, and the margin is 5 standard
    # deviations. Its pattern is the signs themselves, which the test encodes.
    hits = 0
    for seed in range(1000):
        matrix = np.sign(HadamardSketch(8, 3, seed).encode(np.eye(8)).T)
        signs = np.sign(HadamardSketch(8, 8, seed).encode(np.eye(8)).T)[0]
        hits += any((row == signs).all() for row in matrix)
    assert abs(hits / 1000 - 3 / 8) < 5 * math.sqrt(3 / 8 * 5 / 8 / 1000)


def test_signs_are_others_than_those_of_a_rotation_with_the_same_seed() -> None:
    # The sketch and the rotation must be independent: of 1000 signs, the number that agree has a standard deviation of 16.
    signs = [np.sign(rotated[:, 0]) for rotated in (RandomisedHadamard(1024, 7).forward(EYE), HadamardSketch(1024, 1024, 7).encode(EYE))]
    assert abs(np.sum(signs[0] == signs[1]) - 512) < 6 * 16


@pytest.mark.parametrize("size", [0, 129, 2.5])
def test_a_size_that_cannot_be_is_refused(size: float) -> None:
    with pytest.raises(ValueError, match=f"sketch_dimension must be a whole number from 1 to 128, got {size}"):
        HadamardSketch(100, size)  # type: ignore[arg-type]
