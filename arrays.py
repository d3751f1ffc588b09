"""Types of arrays, and replacements for slow or lenient operations of NumPy."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntegerArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]
WordArray = NDArray[np.uint64]
"""Uniformly random 64-bit words, or numbers modulo M up to 2**62."""


def distinct(numbers: IntegerArray) -> IntegerArray:
    """Return the distinct whole numbers of an array, ascending.

    NumPy's `unique` hashes whole numbers, which takes up to forty times as long.
    """
    ascending = np.sort(numbers, axis=None)
    first = np.ones(ascending.size, dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]


def flat_view(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return all numbers of a contiguous array, shape (numbers,), in the array's own memory.

    NumPy's `reshape` would copy another array, and numbers written to the copy would be lost.
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be stored row by row, got strides {array.strides} for the shape {array.shape}: take a copy")
    return array.reshape(-1)


def check_unmasked(name: str, values: ArrayLike) -> None:
    """Raise ``ValueError`` if a mask withholds some values: NumPy would pass them on unmasked."""
    parts = values if isinstance(values, list | tuple) else [values]
    withheld = sum(np.count_nonzero(part.mask) for part in parts if isinstance(part, np.ma.MaskedArray))
    if withheld:
        raise ValueError(f"{name} must be without masked values, got {withheld} of these: leave out the clients that withhold theirs")
