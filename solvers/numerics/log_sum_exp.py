"""The logarithm of a sum of exponentials, for small arrays.

The set-up of scipy's function takes several times as long.
"""

import numpy as np

from ...arrays import FloatArray


def log_sum_exp(logarithms: FloatArray, axis: int | None = None, weights: FloatArray | float = 1.0) -> FloatArray:
    """Return ``ln(sum(weights exp(logarithms)))`` along an axis, or of all numbers.

    The result is right to a few units in the last place, plus a unit per term. Logarithms may be infinite; sums of weights and exponentials
    must not be negative.

    Examples
    --------
    >>> bool(log_sum_exp(np.array([-1000.0, -1000.0])) == -1000 + np.log(2))
    True
    """
    largest = logarithms.max(axis=axis, keepdims=True)
    # The result is infinite if every term is 0, or if a term is infinite.
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        sums = np.log((weights * np.exp(logarithms - shift)).sum(axis=axis))
    return np.asarray(sums + shift.reshape(sums.shape))
