"""Names for the types of arrays that the house passes around, and what NumPy is slow at."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntegerArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]
WordArray = NDArray[np.uint64]
"""Uniformly random 64-bit words, or numbers modulo M up to 2**62."""


def distinct(numbers: IntegerArray) -> IntegerArray:
    """Return the different ones of whole numbers, ascending: NumPy's `unique` hashes them, which takes up to forty times as long."""
    ascending = np.sort(numbers, axis=None)
    first = np.ones(ascending.size, dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]
