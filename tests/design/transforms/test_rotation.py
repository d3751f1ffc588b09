"""Tests of rotations: orthonormal maps, exact inverses, and flat vectors.

Random checks state their false-alarm probabilities.
"""

import math

import numpy as np
import pytest

from quietbits.design.transforms.rotation import RandomisedFourier, RandomisedHadamard, Rotation, flattened_bound
from quietbits.solvers.numerics.walsh_hadamard import hadamard_entries, walsh_hadamard

KINDS = [RandomisedHadamard, RandomisedFourier]
Kind = type[RandomisedHadamard] | type[RandomisedFourier]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 8, 31, 100])
def test_the_matrix_is_orthonormal_and_the_inverse_its_transpose(kind: Kind, dimension: int) -> None:
    rotation: Rotation = kind(dimension, seed=3)
    matrix = rotation.forward(np.eye(dimension))
    assert matrix.shape == (dimension, rotation.padded_dimension)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(dimension), atol=1e-14)
    np.testing.assert_allclose(rotation.inverse(np.eye(rotation.padded_dimension)), matrix.T, atol=1e-14)
    # The rotation is linear along the last axis, and does not change its argument.
    vectors = np.random.default_rng(0).standard_normal((2, 3, dimension))
    before = vectors.copy()
    rotated = rotation.forward(vectors)
    np.testing.assert_allclose(rotated, vectors @ matrix, atol=1e-13)
    np.testing.assert_array_equal(vectors, before)
    rotated_before = rotated.copy()
    np.testing.assert_allclose(rotation.inverse(rotated), vectors, atol=1e-13)
    np.testing.assert_array_equal(rotated, rotated_before)
    np.testing.assert_allclose(rotation.forward(vectors[0, 0]), rotated[0, 0], atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [2**20, 10**6 + 3])
def test_long_vectors_keep_their_length_and_come_back(kind: Kind, dimension: int) -> None:
    vector = np.random.default_rng(1).standard_normal(dimension)
    rotation = kind(dimension, seed=2**128 - 1)
    rotated = rotation.forward(vector)
    assert np.linalg.norm(rotated) == pytest.approx(np.linalg.norm(vector), rel=1e-14)
    assert np.abs(rotation.inverse(rotated) - vector).max() < 1e-13


def test_padding() -> None:
    assert [RandomisedHadamard(dimension, 0).padded_dimension for dimension in (1, 3, 64, 65)] == [1, 4, 64, 128]
    assert [RandomisedFourier(dimension, 0).padded_dimension for dimension in (1, 3, 64, 65)] == [2, 4, 64, 66]


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_is_all_that_matters(kind: Kind) -> None:
    vector = np.arange(1.0, 101)
    np.testing.assert_array_equal(kind(100, 5).forward(vector), kind(100, 5).forward(vector))
    assert not np.allclose(kind(100, 5).forward(vector), kind(100, 6).forward(vector))


def test_signs_are_the_bits_of_philox() -> None:
    # The words are those of Philox4x64 with key 1, from its definition in plain integers: clients of other versions or languages must
    # agree.
    low = 2**64 - 1
    counter, key = [1, 0, 0, 0], [1, 0]
    for _ in range(10):
        first, second = counter[0] * 0xD2E7470EE14C6C93, counter[2] * 0xCA5A826395121157
        counter = [second >> 64 ^ counter[1] ^ key[0], second & low, first >> 64 ^ counter[3] ^ key[1], first & low]
        key = [(key[0] + 0x9E3779B97F4A7C15) & low, (key[1] + 0xBB67AE8584CAA73B) & low]
    bits = [word >> place & 1 for word in counter for place in range(64)]
    first_row = RandomisedHadamard(256, 1).inverse(np.eye(256)[0]) * 16
    np.testing.assert_array_equal(first_row, 1 - 2 * np.array(bits))


def vectors_to_flatten(dimension: int) -> dict[str, np.ndarray]:
    """Return vectors of length 1 that the plain transforms turn into a peak, and others."""
    index = np.arange(dimension)
    vectors = {
        "one-hot": np.eye(dimension)[5],
        "constant": np.ones(dimension),
        "row of the Hadamard matrix": hadamard_entries(index, 37).astype(float),
        "wave": np.stack([np.cos(0.3 * np.pi * (index // 2)), np.sin(0.3 * np.pi * (index // 2))])[index % 2, index],
        "few large": np.where(index < 4, 100.0, 1.0),
        "falling": 1 / (1.0 + index),
    }
    return {name: vector / np.linalg.norm(vector) for name, vector in vectors.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(vectors_to_flatten(64)))
def test_rotated_vectors_are_flat(kind: Kind, name: str) -> None:
    dimension, draws, probability = 256, 200, 0.2
    vector = vectors_to_flatten(dimension)[name]
    largest = np.array([np.abs(kind(dimension, seed).forward(vector)).max() for seed in range(draws)])
    # The union bound is not tight; if it holds, more than 0.2 + 5 standard deviations have a chance below 1e-6.
    exceeded = np.mean(largest > flattened_bound(dimension, 1.0, probability))
    assert exceeded <= probability + 5 * math.sqrt(probability * (1 - probability) / draws)
    # The bound holds for all draws at once; it fails with probability 1e-6.
    assert largest.max() <= flattened_bound(dimension, 1.0, 1e-6 / draws)


def test_without_random_signs_there_are_peaks() -> None:
    row = vectors_to_flatten(256)["row of the Hadamard matrix"]
    assert np.abs(walsh_hadamard(row) / 16).max() == pytest.approx(1.0)
    assert flattened_bound(256, 1.0, 0.01) == pytest.approx(math.sqrt(2 * math.log(2 * 256 / 0.01) / 256))


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_on_flat_vectors_is_not_far_off(kind: Kind) -> None:
    """Coordinates are nearly normal, and the bound has the normal tail's leading exponent."""
    dimension = 2**12
    vector = np.full(dimension, 1 / math.sqrt(dimension))
    largest = [np.abs(kind(dimension, seed).forward(vector)).max() for seed in range(30)]
    # The median of the largest of D normal coordinates has a two-sided tail of ln(2)/D; bound and median differ by at most 15 %.
    assert 0.85 < np.median(largest) / flattened_bound(dimension, 1.0, 0.5) < 1


def test_the_mean_exponential_of_a_coordinate_is_below_the_bound_used() -> None:
    steps = np.linspace(0, 30, 301)
    assert (np.cosh(steps) <= np.exp(steps**2 / 2) * (1 + 1e-15)).all()
    assert (np.i0(steps) <= np.exp(steps**2 / 4) * (1 + 1e-15)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments_are_refused(kind: Kind) -> None:
    for dimension in (0, 1.5, 2**31 + 1):
        with pytest.raises(ValueError, match="dimension must be a whole number from 1 to 2147483648"):
            kind(dimension, 0)
    for seed in (-1, 2**128, 0.5):
        with pytest.raises(ValueError, match="seed must be a whole number from 0"):
            kind(4, seed)
    rotation = kind(3, 0)
    for vectors in (np.ones(4), np.ones((3, 2)), 1.0):
        with pytest.raises(ValueError, match=r"vectors must have the shape \(\.\.\., 3\), got"):
            rotation.forward(vectors)
    with pytest.raises(ValueError, match=r"vectors must have the shape \(\.\.\., 4\), got \(3,\)"):
        rotation.inverse(np.ones(3))
    for turn, count in ((rotation.forward, 3), (rotation.inverse, 4)):
        with pytest.raises(ValueError, match="vectors must hold finite numbers only, got nan"):
            turn(np.full(count, math.nan))


def test_bad_arguments_of_the_bound_are_refused() -> None:
    with pytest.raises(ValueError, match="padded_dimension must be a whole number from 1"):
        flattened_bound(0, 1.0, 0.1)
    with pytest.raises(ValueError, match="norm must be a number from 0"):
        flattened_bound(4, -1.0, 0.1)
    with pytest.raises(ValueError, match="failure_probability must be a number from"):
        flattened_bound(4, 1.0, 0.0)
    # No coordinate is longer than the vector.
    assert flattened_bound(1, 3.0, 1e-9) == pytest.approx(3.0)
