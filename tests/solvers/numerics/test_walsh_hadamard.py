"""The fast Walsh-Hadamard transform equals the matrix product.

Lengths lie on either side of every block size.
"""

import numpy as np
import pytest
import scipy.linalg

from quietbits.solvers.numerics import walsh_hadamard as module
from quietbits.solvers.numerics.walsh_hadamard import hadamard_entries, padded_dimension, walsh_hadamard


@pytest.mark.parametrize("dimension", [1, 2, 8, 16, 64, 512])
def test_the_fast_transform_is_the_matrix(dimension: int) -> None:
    matrix = scipy.linalg.hadamard(dimension)
    vectors = np.random.default_rng(4).normal(size=(3, 2, dimension))
    before = vectors.copy()
    np.testing.assert_allclose(walsh_hadamard(vectors), vectors @ matrix, atol=1e-12)
    np.testing.assert_array_equal(vectors, before)
    np.testing.assert_allclose(walsh_hadamard(vectors[0, 0]), vectors[0, 0] @ matrix, atol=1e-12)
    np.testing.assert_array_equal(hadamard_entries(np.arange(dimension)[:, None], np.arange(dimension)), matrix)
    # Applying the transform twice multiplies by the dimension; whole numbers stay exact, also for a transposed array.
    whole = np.arange(5 * dimension).reshape(dimension, 5).T
    np.testing.assert_array_equal(walsh_hadamard(walsh_hadamard(whole)), dimension * whole)


@pytest.mark.parametrize(("piece", "columns", "factor"), [(4, 2, 1), (8, 8, 2), (16, 4, 4), (32, 1, 3)])
@pytest.mark.parametrize("dimension", [2, 16, 32, 256])
def test_pieces_and_columns_of_any_size_make_the_same_transform(
    monkeypatch: pytest.MonkeyPatch, piece: int, columns: int, factor: int, dimension: int
) -> None:
    monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr(module, "PIECE", piece)
    monkeypatch.setattr(module, "COLUMNS", columns)
    monkeypatch.setattr(module, "FACTOR_BITS", {"d": factor})
    monkeypatch.setattr(module, "LARGEST_BITS", {"d": factor})
    # The cache keeps no factors of other sizes.
    monkeypatch.setattr(module, "_factors", module._factors.__wrapped__)
    # The number of vectors does not fill the last piece.
    whole = np.random.default_rng(5).integers(-1000, 1000, (7, dimension))
    np.testing.assert_array_equal(walsh_hadamard(whole), whole @ scipy.linalg.hadamard(dimension))
    vectors = np.random.default_rng(6).normal(size=(7, dimension))
    room = np.empty_like(vectors)
    transformed = walsh_hadamard(vectors)
    assert walsh_hadamard(vectors, room, overwrite=True) is room
    np.testing.assert_array_equal(room, transformed)


@pytest.mark.parametrize(("dimension", "precision"), [(64, np.float64), (128, np.float32), (256, np.float32), (2**11, np.float64)])
def test_a_transform_of_more_than_one_product_does_not_depend_on_the_other_vectors(dimension: int, precision: type) -> None:
    vectors = np.random.default_rng(8).normal(size=(100, dimension)).astype(precision)
    together = walsh_hadamard(vectors)
    for count in (1, 3):
        np.testing.assert_array_equal(walsh_hadamard(vectors[:count]), together[:count])


def test_a_vector_of_many_pieces() -> None:
    dimension = 2**18
    rng = np.random.default_rng(6)
    whole = rng.integers(-(2**30), 2**30, (2, dimension))
    transformed = walsh_hadamard(whole)
    rows = rng.integers(0, dimension, 5)
    np.testing.assert_array_equal(transformed[:, rows], whole @ hadamard_entries(np.arange(dimension)[:, None], rows).astype(np.int64))
    np.testing.assert_array_equal(walsh_hadamard(transformed), dimension * whole)


@pytest.mark.parametrize("dimension", [1, 16, 64, 128, 256, 2**13, 2**15])
def test_single_precision_stays_single_precision(dimension: int) -> None:
    whole = np.random.default_rng(7).integers(-(2**8), 2**8, (2, dimension))
    transformed = walsh_hadamard(whole.astype(np.float32))
    assert transformed.dtype == np.float32
    # The absolute values add up to less than 2**24.
    np.testing.assert_array_equal(transformed, walsh_hadamard(whole))
    assert walsh_hadamard(whole.astype(np.float16)).dtype == np.float64


def test_whole_numbers_are_exact_up_to_a_sum_of_two_to_the_53() -> None:
    # The numbers use all 53 bits; products in another order than the sums would round.
    whole = np.full(32, 2.0**48)
    whole[0] -= 1
    transformed = walsh_hadamard(whole)
    assert transformed[0] == 2**53 - 1
    assert set(transformed[1:]) == {-1.0}


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 2), (0, 2**16)])
def test_no_vectors_have_no_transforms(shape: tuple[int, ...]) -> None:
    assert walsh_hadamard(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("shape", [(3,), (2, 0), (4, 6), ()])
def test_lengths_that_are_no_power_of_two_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="vectors must have a last axis whose length is a power of two"):
        walsh_hadamard(np.zeros(shape))


def test_a_dimension_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension must be a whole number from 1"):
        padded_dimension(0)
