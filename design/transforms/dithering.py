"""Dithering: unbiased random rounding of real values to a uniform grid."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, WordArray, check_unmasked
from ...errors import NotFiniteError


def finite_values(name: str, values: ArrayLike) -> FloatArray:
    """Return values as a float array, or refuse any that is not a finite real number.

    The function refuses NaN, infinities and masks.
    """
    array = real_values(name, values)
    check_finite(name, array)
    return array


def real_values(name: str, values: ArrayLike) -> FloatArray:
    """Return values as a float array, or refuse masks and any value that is not a real number."""
    check_unmasked(name, values)
    try:
        raw = np.asarray(values)
        # Text and dates are no numbers, even if they read like numbers; a complex number is more than its real part.
        if raw.dtype.kind in "cmMSU":
            raise TypeError(f"got an array of {raw.dtype}")
        return raw.astype(float, copy=False)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None


def check_finite(name: str, array: FloatArray) -> None:
    """Raise `NotFiniteError` if an array has a NaN or an infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        count = np.count_nonzero(~finite)
        raise NotFiniteError(f"{name} must hold finite numbers only, got {float(array[~finite][0])!r} ({count} such values)")


def grid_position(values: FloatArray, interval: tuple[float, float], steps: int) -> FloatArray:
    """Return the positions of finite values on a grid, in steps from 0 to `steps`.

    Values outside the interval count as its nearer end.
    """
    low, high = interval
    # Deployed clients repeat these operations in this order, since all must round alike.
    positions = np.asarray(np.maximum(values, low))
    np.minimum(positions, high, out=positions)
    # These operations change nothing on the unit interval.
    if low != 0:
        positions -= low
    if high - low != 1:
        positions /= high - low
    positions *= steps
    return positions


def dither(positions: FloatArray, words: WordArray, steps: int) -> NDArray[np.int32]:
    """Round grid positions, from 0 to `steps`, to a neighbouring grid point without bias.

    A position goes up with probability equal to the fractional part f; the variance is f (1 - f) <= 1/4 grid step squared (section 3 of
    Chaudhuri, Guo, Rabbat 2022). Privacy never rests on the rounding, as every result is a row of the table. The function compares the
    upper 53 bits of a uniformly random word per value with the fractional part. Their first bits, as many as a number of 32 bits can hold,
    decide unless they are equal.
    """
    bits = 31 - steps.bit_length()
    fixed = (positions * 2.0**bits).astype(np.int32)
    # The difference stays within its whole step if the fractional part is greater, and falls into the step below if it is smaller.
    fixed -= (words >> np.uint64(64 - bits)).astype(np.int32)
    rounded = fixed >> bits
    rounded += 1
    fixed &= (1 << bits) - 1
    if fixed.size and fixed.min() == 0:
        equal = fixed == 0
        lower = np.floor(positions[equal])
        up = (words[equal] >> np.uint64(11)) * 2.0**-53 < positions[equal] - lower
        rounded[equal] = lower + up
    return rounded
