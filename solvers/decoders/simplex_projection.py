"""Euclidean projection of estimated frequencies onto the probability simplex.

The projection uses sorting.

Held, Wolfe, Crowder 1974, *Validation of subgradient optimization*; Duchi, Shalev-Shwartz, Singer, Chandra 2008, *Efficient projections
onto the l1-ball for learning in high dimensions*.
"""

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import FloatArray

LARGEST_TOTAL = 1e100


def project_onto_simplex(values: ArrayLike, total: ArrayLike = 1.0) -> FloatArray:
    """Return the L2-nearest vector of numbers that are at least 0 and add up to `total`.

    The result is ``max(values - shift, 0)``. The projection is never further from the true frequencies than the estimate, and has a bias.

    Parameters
    ----------
    values : array_like of shape (..., items)
        Finite numbers. Vectors along the last axis are projected separately.
    total : array_like of shape (...)
        Sum of the result, from 0 to 1e100: the same for all vectors, or a sum for each.

    Examples
    --------
    >>> project_onto_simplex([0.7, 0.5, -0.1]).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    array = np.asarray(values, dtype=float)
    if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"values must be finite numbers, shape (..., items), of at least one item, got the shape {array.shape}")
    totals = np.asarray(total, dtype=float)
    if not bool(np.all((totals >= 0) & (totals <= LARGEST_TOTAL))):
        raise ValueError(f"total must be from 0 to {LARGEST_TOTAL:g}, got {total!r}: pass the sum that the result is to have")
    # Values are shifted by the largest value, so that large values do not cancel.
    centred = array - array.max(axis=-1, keepdims=True)
    below = np.sort(centred, axis=-1)[..., ::-1]
    excess = np.cumsum(below, axis=-1) - totals[..., None]
    # The comparison counts the positive results. These are the largest values that stay positive when their sum is lowered to the total.
    stays = below * np.arange(1, below.shape[-1] + 1) > excess
    # At a total of 0 no value stays positive, and the shift is the largest value.
    stays[..., 0] = True
    last = below.shape[-1] - 1 - np.argmax(stays[..., ::-1], axis=-1)[..., None]
    return np.asarray(np.maximum(centred - np.take_along_axis(excess, last, axis=-1) / (last + 1), 0.0))
