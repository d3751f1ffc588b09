"""The Walsh-Hadamard transform, in Sylvester's order: fast on whole arrays, and single entries of its matrix."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import check_integer

LARGEST_DIMENSION = 2**31


def padded_dimension(dimension: int) -> int:
    """Return the smallest power of two that is not below a dimension.

    Parameters
    ----------
    dimension : int
        At least 1.

    Returns
    -------
    int
        The power of two.

    Raises
    ------
    ValueError
        If the dimension is out of range.

    Examples
    --------
    >>> [padded_dimension(dimension) for dimension in (1, 2, 3, 128)]
    [1, 2, 4, 128]
    """
    return 1 << (check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION) - 1).bit_length()


def walsh_hadamard(vectors: ArrayLike) -> NDArray[np.float64]:
    """Multiply vectors by the Hadamard matrix H, whose entries are 1 and -1: H is symmetric, and H H = dimension times the identity.

    Whole numbers stay exact, up to 2**53. Divided by the square root of the dimension, the transform is a rotation.

    Parameters
    ----------
    vectors : array_like of shape (..., dimension)
        Vectors along the last axis; its length is a power of two.

    Returns
    -------
    ndarray of float64, shape (..., dimension)
        The products, in an array of their own; ``dimension * log2(dimension)`` additions each.

    Raises
    ------
    ValueError
        If the length is not a power of two.

    Examples
    --------
    >>> walsh_hadamard([1.0, 2.0, 3.0, 5.0]).tolist()
    [11.0, -3.0, -5.0, 1.0]
    """
    result = np.array(vectors, dtype=float, order="C")
    dimension = result.shape[-1] if result.ndim else 0
    if dimension == 0 or dimension & (dimension - 1):
        raise ValueError(f"vectors must have a last axis whose length is a power of two, got the shape {result.shape}")
    half = 1
    while half < dimension:
        # A view, so that the sums and differences are written back in place.
        pairs = result.reshape(*result.shape[:-1], dimension // (2 * half), 2, half)
        differences = pairs[..., 0, :] - pairs[..., 1, :]
        pairs[..., 0, :] += pairs[..., 1, :]
        pairs[..., 1, :] = differences
        half *= 2
    return result


def hadamard_entries(rows: ArrayLike, columns: ArrayLike) -> NDArray[np.int8]:
    """Return entries of the Hadamard matrix: -1 where row and column, in binary, share an odd number of ones.

    Parameters
    ----------
    rows, columns : array_like of int
        Indices from 0, which broadcast against each other.

    Returns
    -------
    ndarray of int8
        Entries, 1 or -1.

    Examples
    --------
    >>> hadamard_entries([[0], [1], [2], [3]], [0, 1, 2, 3]).tolist()
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    odd = np.bitwise_count(np.bitwise_and(rows, columns)) & 1
    return 1 - 2 * odd.astype(np.int8)
