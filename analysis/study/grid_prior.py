"""A prior over grid inputs from a column of values, for tables that minimise the variance averaged over that prior."""

import numpy as np

from ...arguments import check_integer, check_interval
from ...arrays import FloatArray
from ...design.transforms.dithering import finite_values, grid_position


def grid_prior(values: FloatArray, interval: tuple[float, float], bits_in: int) -> FloatArray:
    """Return how often each grid input is used, on average over dithering, when these values are encoded.

    The result has shape (2**bits_in,) and sums to one. The prior shapes the table, and the table is public: take it from public or past
    data, never from the clients to be protected.

    Parameters
    ----------
    values : ndarray of shape (values,)
        Finite values, at least one; those outside the interval count as its nearer end.
    interval : tuple of float
        The grid's ends (low, high).
    bits_in : int
        Bits of the grid index, 1 to 9.

    Examples
    --------
    >>> grid_prior(np.array([0.0, 0.5]), (0.0, 1.0), 1).tolist()
    [0.75, 0.25]
    """
    steps = 2 ** check_integer("bits_in", bits_in, low=1, high=9) - 1
    positions = grid_position(finite_values("values", values), check_interval("interval", interval), steps)
    if positions.size == 0:
        raise ValueError("values must hold at least one number, got none")
    lower = np.minimum(positions.astype(np.intp), steps - 1)
    fraction = positions - lower
    weights = np.bincount(lower, 1 - fraction, steps + 1) + np.bincount(lower + 1, fraction, steps + 1)
    return np.asarray(weights / weights.sum())
