"""Dithering: unbiased random rounding of real values to a uniform grid."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, WordArray


def finite_values(name: str, values: ArrayLike) -> FloatArray:
    """Return values as a float array, refusing NaN, infinities and what is no real number.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    values : array_like
        The values.

    Returns
    -------
    ndarray
        The values, same shape.

    Raises
    ------
    ValueError
        If a value is NaN, infinite, complex or no number, or rows have different lengths.
    """
    try:
        raw = np.asarray(values)
        # Text that reads as a number is none, nor are dates; and a complex number is more than its real part.
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
    """Return where values lie on the grid, in grid steps; values outside the interval count as its nearer end.

    Parameters
    ----------
    values : ndarray
        Finite values.
    interval : tuple of float
        The grid's ends (low, high).
    steps : int
        Number of grid steps.

    Returns
    -------
    ndarray
        Positions from 0 to `steps`.
    """
    low, high = interval
    # The C header repeats these operations in this order: the two must round alike.
    return np.asarray((np.clip(values, low, high) - low) / (high - low) * steps)


def dither(positions: FloatArray, words: WordArray) -> NDArray[np.intp]:
    """Round grid positions to a neighbouring grid point, up with probability equal to the fractional part.

    Unbiased, with variance f (1 - f) <= 1/4 grid step squared, f the fractional part (section 3 of Chaudhuri, Guo, Rabbat 2022). Privacy
    never rests on it: whatever it returns is a row of the table.

    Parameters
    ----------
    positions : ndarray
        Positions on the grid, in steps, at least 0.
    words : ndarray of uint64, same shape
        One uniformly random word per value; the upper 53 bits are compared with the fractional part.

    Returns
    -------
    ndarray of int, same shape
        Grid indices.
    """
    lower = positions.astype(np.intp)
    return lower + ((words >> np.uint64(11)) * 2.0**-53 < positions - lower)
