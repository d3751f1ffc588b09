"""The Gaussian ensemble; `test_linear_sketch` covers the properties of all sketches."""

import math

import numpy as np
import pytest
import scipy.stats

from quietbits.design.transforms.gaussian_sketch import GaussianSketch


def test_entries_are_independent_gaussian_numbers_of_variance_one_over_m() -> None:
    # 40 000 entries agree with their law, and neighbours' products with zero; one seed in a million fails.
    matrix = GaussianSketch(400, 100, seed=1).encode(np.eye(400)).T
    entries = matrix.ravel() * 10
    assert scipy.stats.kstest(entries, "norm").pvalue > 1e-6
    for products in (matrix[1:] * matrix[:-1], matrix[:, 1:] * matrix[:, :-1]):
        assert abs(products.mean()) < 5 * products.std() / math.sqrt(products.size)


def test_the_same_seed_has_the_same_matrix() -> None:
    first, same, other = (GaussianSketch(30, 20, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.encode(np.eye(30)), same.encode(np.eye(30)))
    assert not np.allclose(first.encode(np.eye(30)), other.encode(np.eye(30)))


@pytest.mark.parametrize(
    ("dimension", "size", "message"),
    [
        (2**20, 129, "sketch_dimension must be a whole number from 1 to 128, got 129"),
        (100, 0, "sketch_dimension must be a whole number from 1 to 1342177, got 0"),
        (2**28, 1, "dimension must be a whole number from 1 to 134217728, got 268435456"),
    ],
)
def test_more_than_a_gigabyte_is_refused(dimension: int, size: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianSketch(dimension, size)
