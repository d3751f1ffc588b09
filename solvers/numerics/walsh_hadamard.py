"""The Walsh-Hadamard transform, in Sylvester's order: fast on whole arrays, and single entries of its matrix."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray

LARGEST_DIMENSION = 2**31
# Rows of the Hadamard matrices that the transform is made of.
LARGEST_FACTOR = 16
# Numbers transformed at a time, a quarter of a megabyte, and columns of vectors that are longer.
PIECE, COLUMNS = 2**15, 2**12


def padded_dimension(dimension: int) -> int:
    """Return the smallest power of two that is not below a dimension, which is at least 1.

    Examples
    --------
    >>> [padded_dimension(dimension) for dimension in (1, 2, 3, 128)]
    [1, 2, 4, 128]
    """
    return 1 << (check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION) - 1).bit_length()


def walsh_hadamard(vectors: ArrayLike) -> NDArray[np.float64]:
    """Multiply vectors by the Hadamard matrix H, whose entries are 1 and -1: H is symmetric, and H H = dimension times the identity.

    H is the Kronecker product of Hadamard matrices of at most 16 rows. Vectors are multiplied by one after the other, in matrix products:
    first within pieces that fit into a processor's cache, then, for longer vectors, across the pieces. That takes 16 multiplications and
    additions per number and factor of 16, and less than a megabyte beside the result, or a copy of what is not a contiguous float64 array.

    Whole numbers stay exact if their absolute values add up to at most 2**53 in each vector: so do all intermediate results, then.
    Divided by the square root of the dimension, the transform is a rotation.

    Parameters
    ----------
    vectors : array_like of shape (..., dimension)
        Vectors along the last axis; its length is a power of two.

    Examples
    --------
    >>> walsh_hadamard([1.0, 2.0, 3.0, 5.0]).tolist()
    [11.0, -3.0, -5.0, 1.0]
    """
    array = np.asarray(vectors, dtype=float, order="C")
    dimension = array.shape[-1] if array.ndim else 0
    if dimension == 0 or dimension & (dimension - 1):
        raise ValueError(f"vectors must have a last axis whose length is a power of two, got the shape {array.shape}")
    if dimension == 1:
        return array.copy()
    result = np.empty(array.shape)
    length = min(dimension, PIECE)
    _transform_pieces(array.reshape(-1, length), result.reshape(-1, length))
    _transform_across(result.reshape(-1), length, dimension)
    return result


def _transform_pieces(pieces: FloatArray, result: FloatArray) -> None:
    """Transform each row, as many at a time as the cache holds."""
    count, length = pieces.shape
    factors = _factors(length)
    at_once = max(1, min(PIECE // length, count))
    scratch = np.empty((2, at_once * length))
    for start in range(0, count, at_once):
        current, target = pieces[start : start + at_once], result[start : start + at_once]
        stride = 1
        for number, factor in enumerate(factors):
            rows = len(factor)
            output = target if number == len(factors) - 1 else scratch[number % 2, : target.size]
            if stride == 1:
                # One product instead of many small ones; H is symmetric.
                np.matmul(current.reshape(-1, rows), factor, out=output.reshape(-1, rows))
            else:
                np.matmul(factor, current.reshape(-1, rows, stride), out=output.reshape(-1, rows, stride))
            current, stride = output, stride * rows


def _transform_across(numbers: FloatArray, stride: int, dimension: int) -> None:
    """Finish, in place, vectors one behind the other of which every piece of length `stride` is transformed."""
    for factor in _factors(dimension // stride):
        rows = len(factor)
        for vector in numbers.reshape(-1, rows, stride):
            for start in range(0, stride, COLUMNS):
                columns = vector[:, start : start + COLUMNS]
                columns[...] = factor @ columns
        stride *= rows


def _factors(dimension: int) -> list[FloatArray]:
    """Return Hadamard matrices of at most 16 rows whose Kronecker product is that of a dimension."""
    factors = []
    while dimension > 1:
        rows = min(dimension, LARGEST_FACTOR)
        indices = np.arange(rows)
        factors.append(hadamard_entries(indices[:, None], indices).astype(float))
        dimension //= rows
    return factors


def hadamard_entries(rows: ArrayLike, columns: ArrayLike) -> NDArray[np.int8]:
    """Return entries of the Hadamard matrix: -1 where row and column, in binary, share an odd number of ones, and 1 elsewhere.

    Indices of rows and columns are from 0, and broadcast against each other.

    Examples
    --------
    >>> hadamard_entries([[0], [1], [2], [3]], [0, 1, 2, 3]).tolist()
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    odd = np.bitwise_count(np.bitwise_and(rows, columns)) & 1
    return 1 - 2 * odd.astype(np.int8)
