"""Consequences of pure epsilon privacy alone.

Binary randomised response dominates every epsilon-private mechanism.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_real

LARGEST_EPSILON = 1e6


def check_orders(orders: ArrayLike) -> NDArray[np.float64]:
    """Return Rényi orders as a one-dimensional float array.

    There must be at least one order, and all must be above 1; infinity is allowed.
    """
    array = np.atleast_1d(np.asarray(orders, dtype=float))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"orders must be one or more numbers above 1, got {orders!r}")
    if not np.all(array > 1):
        raise ValueError(f"orders must be above 1, got {float(array[~(array > 1)][0])!r}")
    return array


def pure_renyi_divergences(epsilon: float, orders: ArrayLike) -> NDArray[np.float64]:
    """Return the largest Rényi divergence of an epsilon-private mechanism, in nats, per order.

    At infinite order the divergence is epsilon. The worst case is binary randomised response, of which every other epsilon-private pair of
    outputs is a post-processing (Kairouz, Oh, Viswanath 2015, *The composition theorem for differential privacy*).

    Examples
    --------
    >>> pure_renyi_divergences(1.0, [2.0, float("inf")]).round(6).tolist()
    [0.735326, 1.0]
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    array = check_orders(orders)
    order = np.where(np.isinf(array), 2.0, array)
    # p^a (1-p)^(1-a) + (1-p)^a p^(1-a) = cosh((a - 1/2) epsilon) / cosh(epsilon / 2) for p = e^epsilon / (1 + e^epsilon), less its
    # value at epsilon 0, by cosh x - cosh y = 2 sinh((x + y) / 2) sinh((x - y) / 2): no cancellation at small epsilon. Larger exponents use
    # log space.
    small = order * epsilon < 300
    upper, lower = np.where(small, order, 0.0) * epsilon / 2, np.where(small, order - 1, 0.0) * epsilon / 2
    excess = 2 * np.sinh(upper) * np.sinh(lower) / np.cosh(min(epsilon, 300.0) / 2)
    direct = np.log1p(excess)
    in_logs = np.logaddexp(order * epsilon, (1 - order) * epsilon) - np.logaddexp(0.0, epsilon)
    divergence = np.where(small, direct, in_logs) / (order - 1)
    return np.asarray(np.where(np.isinf(array), epsilon, np.minimum(divergence, epsilon)))
