"""Tests of rounding in the L1 ball.

Points under test: norms, neighbours, expectations by enumeration, and variances.
"""

import numpy as np
import pytest

from quietbits.design.noise.random_words import WordSource, seeded_words
from quietbits.design.transforms.l1_rounding import largest_rounding_variance, rounded_within, rounding_variance


class Grid(WordSource):
    """All upper bytes in turn."""

    def __call__(self, count: int) -> np.ndarray:
        return (np.arange(count) % 256).astype(np.uint64) << np.uint64(56)


def test_expectations_are_the_vectors_by_enumeration() -> None:
    # Sums of coordinates are multiples of 1/256, so that 256 equally likely numbers u have the exact expectation.
    rng = np.random.default_rng(1)
    for _ in range(50):
        whole = rng.integers(-200, 201, 5)
        vector = whole / 256
        most = int(np.ceil(np.abs(vector).sum()))
        rounded = rounded_within(np.tile(vector, (256, 1)), max(1, most), Grid())
        assert (rounded.mean(axis=0) == vector).all()
        assert (rounded.var(axis=0).sum() - rounding_variance(vector[None])[0]) == pytest.approx(0, abs=1e-12)
        assert np.abs(rounded).sum(axis=1).max() <= max(1, most)
        assert (np.abs(rounded - vector) < 1).all()


@pytest.mark.parametrize("most", [1, 7, 2**20, 2**40])
def test_the_norm_never_grows(most: int) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.laplace(size=(500, 40))
    vectors *= most / np.abs(vectors).sum(axis=1, keepdims=True) * (1 + 1e-15)
    rounded = rounded_within(vectors, most, seeded_words(rng))
    assert np.abs(rounded).sum(axis=1).max() == most
    assert (np.abs(rounded - vectors) <= 1).all()


def test_whole_vectors_stay() -> None:
    vectors = np.array([[3.0, 0.0, -2.0], [0.0, 0.0, 0.0], [-5.0, 0.0, 0.0]])
    assert (rounded_within(vectors, 5, seeded_words(np.random.default_rng(3))) == vectors).all()
    # A longer vector, which callers clip, loses its last steps.
    assert rounded_within(vectors, 4, seeded_words(np.random.default_rng(3))).tolist() == [[3, 0, -1], [0, 0, 0], [-4, 0, 0]]


def test_the_largest_variance_bounds_every_vector() -> None:
    rng = np.random.default_rng(4)
    for dimension, most in ((1, 1), (4, 1), (10, 2), (10, 50)):
        vectors = rng.laplace(size=(2000, dimension))
        vectors *= most * rng.random((2000, 1)) / np.abs(vectors).sum(axis=1, keepdims=True)
        bound = largest_rounding_variance(dimension, most)
        assert rounding_variance(vectors).max() <= bound
        equal = np.full((1, dimension), min(0.5, most / dimension))
        assert rounding_variance(equal)[0] == pytest.approx(bound)
