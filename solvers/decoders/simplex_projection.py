"""The nearest frequencies to an estimate: Euclidean projection onto the probability simplex, by sorting.

Held, Wolfe, Crowder 1974, *Validation of subgradient optimization*; Duchi, Shalev-Shwartz, Singer, Chandra 2008, *Efficient projections
onto the l1-ball for learning in high dimensions*.
"""

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray


def project_onto_simplex(values: ArrayLike, total: float = 1.0) -> FloatArray:
    """Return the nearest vector of numbers that are at least 0 and add up to `total`, in L2 distance: ``max(values - shift, 0)``.

    It is never further from the true frequencies than the estimate was, and not unbiased.

    Parameters
    ----------
    values : array_like of shape (items,)
        Finite numbers.
    total : float
        What the result adds up to, from 1e-100 to 1e100.

    Examples
    --------
    >>> project_onto_simplex([0.7, 0.5, -0.1]).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"values must be finite numbers, shape (items,), of at least one item, got the shape {array.shape}")
    total = check_real("total", total, low=1e-100, high=1e100)
    # Around the largest value, so that nothing cancels where all are large.
    below = np.sort(array - array.max())[::-1]
    excess = np.cumsum(below) - total
    # The number of positive results: those of the largest values that stay positive where their sum is lowered to the total.
    positive = np.flatnonzero(below * np.arange(1, len(below) + 1) > excess)[-1]
    return np.asarray(np.maximum(array - array.max() - excess[positive] / (positive + 1), 0.0))
