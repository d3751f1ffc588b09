"""The Walsh-Hadamard transform in Sylvester's order, and entries of its matrix."""

import threading
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_integer

# Binary logarithms of the rows of Hadamard matrices, by precision: of a transform's factors, and the largest for a transform by a single
# factor. The factors do not depend on other vectors, nor do a vector's sums, except in a product of all vectors together.
FACTOR_BITS, LARGEST_BITS = {"d": 3, "f": 4}, {"d": 5, "f": 6}
# Largest size of a small transform; size of a batch (half a megabyte); and number of columns of longer vectors per batch.
FEW, PIECE, COLUMNS = 2**12, 2**16, 2**12
# Number of bytes of a page of memory; some systems have larger pages.
PAGE = 4096


def padded_dimension(dimension: int) -> int:
    """Return the smallest power of two that is not below a dimension of at least 1.

    Examples
    --------
    >>> [padded_dimension(dimension) for dimension in (1, 2, 3, 128)]
    [1, 2, 4, 128]
    """
    return 1 << (check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION) - 1).bit_length()


def walsh_hadamard(vectors: ArrayLike, out: NDArray[Any] | None = None, *, overwrite: bool = False) -> NDArray[Any]:
    """Multiply vectors by the Hadamard matrix H, whose entries are 1 and -1.

    H is symmetric, and H H = dimension times the identity. H is the Kronecker product of Hadamard matrices of at most 64 rows. The function
    multiplies the vectors by these matrices in turn. Vectors that don't fit into a processor's cache are first multiplied across pieces
    that fit, then within the pieces. The transform takes at most 64 multiplications and additions per number and factor, and less than two
    megabytes a thread beside the result, or a copy of an argument that is not a contiguous array. Numbers of type float32 keep their type;
    all others become float64.

    If a vector has at most 32 numbers, or 64 of type float32, all vectors share a product: the last digits of a transform may then depend
    on the number of vectors. Transforms of longer vectors do not depend on each other.

    Whole numbers stay exact if their absolute values add up to at most 2**53 in each vector (2**24 for float32), since all intermediate
    results are whole. Divided by the square root of the dimension, the transform is a rotation.

    Parameters
    ----------
    vectors : array_like of shape (..., dimension)
        Vectors along the last axis; its length is a power of two.
    out : ndarray, optional
        A contiguous array for the result, of the vectors' shape and type, that shares no memory with them.
    overwrite : bool
        Whether the vectors' memory may hold intermediate results: caches then hold longer vectors. The result is the same.

    Examples
    --------
    >>> walsh_hadamard([1.0, 2.0, 3.0, 5.0]).tolist()
    [11.0, -3.0, -5.0, 1.0]
    """
    array = np.asarray(vectors, order="C")
    if array.dtype != np.float32:
        array = array.astype(float, copy=False)
    dimension = array.shape[-1] if array.ndim else 0
    if dimension == 0 or dimension & (dimension - 1):
        raise ValueError(f"vectors must have a last axis whose length is a power of two, got the shape {array.shape}")
    if 0 < array.size <= FEW:
        few = _transform_few(array)
        if out is None:
            return few
        out[...] = few
        return out
    result = _touched(np.empty_like(array)) if out is None else out
    length = min(dimension, PIECE)
    in_place = length < dimension
    current = _transform_across(array, result, length) if in_place else array
    _transform_pieces(current.reshape(-1, length), result.reshape(-1, length), in_place, overwrite and not in_place)
    return result


def _touched(array: NDArray[Any]) -> NDArray[Any]:
    """Return new memory after a write to every page.

    Writing in order is faster than writing during a product.
    """
    array.reshape(-1)[:: PAGE // array.itemsize] = 0
    return array


def _transform_few(vectors: NDArray[Any]) -> NDArray[Any]:
    """Transform few numbers by few calls, because the calls' overhead dominates the time."""
    dimension = vectors.shape[-1]
    count = vectors.size // dimension
    factors = _factors(dimension, vectors.dtype.char)
    if len(factors) == 1:
        # All vectors share a single product.
        transformed: NDArray[Any] = vectors.reshape(-1, dimension) @ factors[0]
        return transformed.reshape(vectors.shape)
    current = vectors
    for factor in factors:
        rows = len(factor)
        # Each turn transforms the indices' first digit, in base `rows`, and makes it the last digit: after a turn for each digit, all are
        # in place. Each turn of a vector is then a product of two matrices, one of them as long as possible.
        current = (current.reshape(rows, -1).T if count == 1 else current.reshape(count, rows, -1).swapaxes(1, 2)) @ factor
    return current.reshape(vectors.shape)


def _transform_across(vectors: NDArray[Any], result: NDArray[Any], stride: int) -> NDArray[Any]:
    """Write the transform across pieces of length `stride` to the result, and return it."""
    current = vectors
    for factor in _factors(vectors.shape[-1] // stride, vectors.dtype.char):
        rows = len(factor)
        before, after = current.reshape(-1, rows, stride), result.reshape(-1, rows, stride)
        for start in range(0, stride, COLUMNS):
            columns = slice(start, start + COLUMNS)
            if current is vectors:
                np.matmul(factor, before[:, :, columns], out=after[:, :, columns])
            else:
                for vector in after:
                    vector[:, columns] = factor @ vector[:, columns]
        current, stride = result, stride * rows
    return current


def _transform_pieces(pieces: NDArray[Any], result: NDArray[Any], in_place: bool, overwrite: bool) -> None:
    """Transform each row, as many at a time as the cache holds.

    Set `in_place` if the result is the pieces themselves, and `overwrite` if the pieces may hold intermediate results.
    """
    count, length = pieces.shape
    factors = _factors(length, pieces.dtype.char)
    if len(factors) == 1:
        # All pieces share a single product.
        np.matmul(pieces, factors[0], out=result)
        return
    at_once = max(1, min(PIECE // length, count))
    # For an even number of products, the first would overwrite its own input.
    overwrite = overwrite and len(factors) % 2 == 1
    scratch = None if overwrite else _SCRATCH.array(2 * at_once * length, pieces.dtype).reshape(2, at_once, length)
    for start in range(0, count, at_once):
        target = result[start : start + at_once]
        current = given = pieces[start : start + at_once]
        for number, factor in enumerate(factors):
            # Every second product goes to the result, and so does the last product; the first does not, as it would overwrite its own
            # input.
            to_result = (len(factors) - number) % 2 == 1 and not (in_place and number == 0)
            output = target if to_result else given if scratch is None else scratch[number % 2, : len(target)]
            rows = len(factor)
            # Each product transforms the indices' first digit, in base `rows`, and makes it the last digit.
            others = length // rows
            np.matmul(current.reshape(-1, rows, others).swapaxes(1, 2), factor, output.reshape(-1, others, rows))
            current = output


class _Scratch(threading.local):
    """Memory that each thread keeps, since new memory for each call would cause page faults."""

    def __init__(self) -> None:
        self.kept = np.empty(0, np.uint8)

    def array(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        needed = size * dtype.itemsize
        if needed > len(self.kept):
            self.kept = np.empty(needed, np.uint8)
        return self.kept[:needed].view(dtype)


_SCRATCH = _Scratch()


@lru_cache(maxsize=64)
def _factors(dimension: int, dtype: str) -> tuple[NDArray[Any], ...]:
    """Return Hadamard matrices of similar sizes whose Kronecker product has the dimension."""
    bits = dimension.bit_length() - 1
    count = 1 if bits <= LARGEST_BITS[dtype] else round(bits / FACTOR_BITS[dtype])
    factors = []
    for number in range(count):
        indices = np.arange(1 << (bits + number) // count)
        factors.append(hadamard_entries(indices[:, None], indices).astype(dtype))
        factors[-1].flags.writeable = False
    return tuple(reversed(factors))


def hadamard_entries(rows: ArrayLike, columns: ArrayLike) -> NDArray[np.int8]:
    """Return entries of the Hadamard matrix for rows and columns, from 0.

    An entry is -1 where row and column, in binary, share an odd number of ones, and 1 elsewhere. Rows and columns broadcast against each
    other.

    Examples
    --------
    >>> hadamard_entries([[0], [1], [2], [3]], [0, 1, 2, 3]).tolist()
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    odd = np.bitwise_count(np.bitwise_and(rows, columns)) & 1
    return 1 - 2 * odd.astype(np.int8)
