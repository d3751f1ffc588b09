"""Dithering: unbiased random rounding of real values to a uniform grid."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, WordArray


def finite_values(name: str, values: ArrayLike) -> FloatArray:
    """Return values as a float array, refusing NaN, infinities and everything that is not a real number."""
    try:
        raw = np.asarray(values)
        # Text is not a number even if it reads as one, nor is a date; a complex number is more than its real part.
        if raw.dtype.kind in "cmMSU":
            raise TypeError(f"got an array of {raw.dtype}")
        array = raw.astype(float, copy=False)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None
    finite = np.isfinite(array)
    if not finite.all():
        count = np.count_nonzero(~finite)
        raise ValueError(f"{name} must hold finite numbers only, got {float(array[~finite][0])!r} ({count} such values)")
    return array


def grid_position(values: FloatArray, interval: tuple[float, float], steps: int) -> FloatArray:
    """Return where finite values lie on a grid, in steps from 0 to `steps`; values outside the interval count as its nearer end."""
    low, high = interval
    # The C header repeats these operations in this order: the two must round alike.
    positions = np.clip(values, low, high)
    positions -= low
    positions /= high - low
    positions *= steps
    return np.asarray(positions)


def dither(positions: FloatArray, words: WordArray) -> NDArray[np.intp]:
    """Round grid positions, at least 0, to a neighbouring grid point, up with probability equal to the fractional part.

    Unbiased, with variance f (1 - f) <= 1/4 grid step squared, f the fractional part (section 3 of Chaudhuri, Guo, Rabbat 2022). Privacy
    never rests on it: whatever it returns is a row of the table. The upper 53 bits of one uniformly random word per value are compared
    with the fractional part.
    """
    lower = np.floor(positions)
    # Signed numbers of 53 bits are made floats faster than unsigned ones.
    up = (words >> np.uint64(11)).view(np.int64) * 2.0**-53 < positions - lower
    return np.asarray(lower.astype(np.intp) + up)
