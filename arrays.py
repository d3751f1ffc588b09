"""Names for the types of arrays that the house passes around."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntegerArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]
WordArray = NDArray[np.uint64]
"""Uniformly random 64-bit words, or numbers modulo M up to 2**62."""
