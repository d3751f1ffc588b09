"""Privacy losses of discrete Laplace noise, and its Rényi divergences, for a shift by whole steps.

With q = exp(-1 / scale), noise x has the probability (1 - q) / (1 + q) q^|x|. A shift of one coordinate by all D steps of the L1
sensitivity dominates every shift of several coordinates: the noise is log-concave, and tests of a composition of shifts are tests of one
shift by their sum, as in `laplace_privacy`.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ..accounting.privacy_loss import DominatingLoss
from ..accounting.pure_privacy import LARGEST_EPSILON, check_orders
from ..numerics.log_sum_exp import log_sum_exp
from ..numerics.rounding import SHORT_SLACK

LARGEST_STEPS = 2**62
# Grid points of a loss distribution on either side of zero.
MOST_LOSSES = 250


def discrete_laplace_divergences(epsilon: float, steps: int, orders: ArrayLike) -> NDArray[np.float64]:
    """Return Rényi divergences of discrete Laplace noise from the noise shifted by some steps.

    The divergences are upper bounds. Orders are above 1; infinity gives epsilon.

    Parameters
    ----------
    epsilon : float
        Shift over the scale of the noise, above 0.
    steps : int
        The shift in steps, at least 1.
    orders : array_like of shape (orders,)
        Rényi orders.

    Examples
    --------
    >>> discrete_laplace_divergences(1.0, 1, [2.0, float("inf")]).round(4).tolist()
    [0.7353, 1.0]
    """
    rate = _rate(epsilon, steps)
    array = check_orders(orders)
    order = np.where(np.isinf(array), 2.0, array)
    # Outputs up to 0 lose all of epsilon, those from `steps` on gain it, and the others are a geometric series.
    ends = -math.log1p(math.exp(-rate))
    low, high = ends + (order - 1) * epsilon, ends - order * epsilon
    step = (2 * order - 1) * rate
    middle = math.log(-math.expm1(-rate)) + low + _log_geometric(step, steps - 1)
    divergence = log_sum_exp(np.stack([low, high, middle]), axis=0) / (order - 1)
    return np.asarray(np.where(np.isinf(array), epsilon, np.clip(divergence * (1 + SHORT_SLACK) + SHORT_SLACK, 0.0, epsilon)))


def discrete_laplace_loss(epsilon: float, steps: int) -> DominatingLoss:
    """Return the privacy loss distribution of discrete Laplace noise, rounded upward.

    The hockey-stick divergence at (steps - 2 j) / scale is 1 - q^j, and is linear in e^epsilon between these points, which are more than
    the grid's for a shift by many steps.

    Examples
    --------
    >>> loss = discrete_laplace_loss(1.0, 4)
    >>> round(loss.get_delta_for_epsilon(0.0), 6), round(loss.get_epsilon_for_delta(0.0), 6)
    (0.393469, 1.0)
    """
    rate = _rate(epsilon, steps)
    count = min(steps, MOST_LOSSES)
    interval = epsilon / count
    losses = interval * np.arange(-count, count + 1)
    below = np.clip(np.floor((epsilon - losses) / (2 * rate)), 0, steps - 1)
    upper, lower = epsilon - 2 * rate * below, epsilon - 2 * rate * (below + 1)
    share = np.clip(np.expm1(upper - losses) / np.expm1(2 * rate) * np.exp(losses - lower), 0.0, 1.0)
    deltas = -((1 - share) * np.expm1(-rate * below) + share * np.expm1(-rate * (below + 1)))
    deltas[-1] = 0.0
    return DominatingLoss(interval, np.minimum(deltas * (1 + SHORT_SLACK), 1.0))


def _rate(epsilon: float, steps: int) -> float:
    """Return one over the scale."""
    return check_real("epsilon", epsilon, low=1e-12, high=LARGEST_EPSILON) / check_integer("steps", steps, low=1, high=LARGEST_STEPS)


def _log_geometric(step: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
    """Return ln of the sum of exp(-k step) for k from 1 to `terms`."""
    with np.errstate(divide="ignore"):
        return np.asarray(-step + np.log(-np.expm1(-terms * step)) - np.log(-np.expm1(-step)))
