"""Lower bounds on coordinate noise of vectors with independent messages and a Rényi budget.

The Chapman-Robbins bound is the Cramér-Rao limit on a grid: the variance of an unbiased estimate at row k is at least
``(i - k)**2 / chi2(P_i || P_k)`` squared grid steps, whatever the letters. `docs/proofs/renyi-tables.md` bounds chi2 by the accounted
divergence.
"""

import math

import numpy as np

from ...arrays import FloatArray
from ..accounting.renyi_curve import DEFAULT_ORDERS
from ..numerics.bisection import bisect
from ..table_search.renyi_budget import SMALLEST_ORDER, RenyiBudget

# Least Rényi order that bounds the chi-squared divergence.
LEAST_ORDER = 2.0
HALVINGS = 20
# Position x of the minimum of (exp(x) - 1) / x**2.
STEEPNESS = 1.5936
# Rounding errors come from products and exponentials of a few rounded numbers.
ROUNDING = 1e-12


def least_coordinate_variance(budget: RenyiBudget) -> float:
    """Return a lower bound on each coordinate's variance under a vector's Rényi budget.

    The bound holds for every unbiased table on the budget's grid, with any letters and any number of letters, for each coordinate by
    itself, at each of its inputs. The account is the relaxation (`RenyiBudget`) at a Rényi order of quietbits. The bound is 0.0, which is
    trivial, if an order below 2 can prove the budget.

    Returns
    -------
    float
        Lower bound in squared grid steps. Where divergences are small, it is about ``order * K / (2 rho)`` for p = 2: the variance of
        Gaussian noise with the same account.

    Examples
    --------
    >>> budget = RenyiBudget(inputs=32, dimension=128, norm=2.0, distance=1.0, epsilon=2.0, delta=1e-5)
    >>> bound = least_coordinate_variance(budget)
    >>> gaussian = min(order * 31**2 / 2 / budget.divergence(order) for order in budget.orders())
    >>> 0.95 < bound / gaussian < 1
    True
    """
    orders = [order for order in DEFAULT_ORDERS if order > SMALLEST_ORDER and budget.divergence(order) > 0]
    if min(orders) < LEAST_ORDER:
        return 0.0
    return min(_at_order(budget, order) for order in orders)


def chi_squared_bound(order: float, divergence: FloatArray) -> FloatArray:
    """Return an upper bound on the chi-squared divergence from Rényi divergences of an order.

    The Rényi divergences of the two distributions, both ways, are at most `divergence`. The bound is ``2 (exp((a - 1) D) - 1) / (a (a -
    1))`` for the order a, at least 2, or for any smaller order from 2 on; at infinite order, ``(exp(D) - 1) (1 - exp(-D))`` is a bound as
    well. At order 2 the bound is the chi-squared divergence itself, and for small D it is 2 D / a, as for neighbours of a smooth family,
    whose Fisher information is chi2 over distance squared.
    """
    # Divergences rise with the order; this smaller order is nearly the best order.
    smaller = np.clip(1 + STEEPNESS / np.maximum(divergence, 1e-300), LEAST_ORDER, order)
    bound = 2 * np.expm1((smaller - 1) * divergence) / (smaller * (smaller - 1))
    if math.isinf(order):
        bound = np.minimum(bound, np.expm1(divergence) * -np.expm1(-divergence))
    return np.asarray(bound * (1 + ROUNDING))


def _at_order(budget: RenyiBudget, order: float) -> float:
    # Every row has another row at distances up to half the grid.
    steps = np.arange(1, min(budget.reach, budget.inputs // 2 - 1) + 1)
    if len(steps) == 0:
        return 0.0
    # A steeper line allows more to distances that cost more than a coordinate has on average, and less to shorter distances.
    costly = budget.relative_prices()[steps] > 1 / budget.dimension

    def bounds(share: float) -> FloatArray:
        return np.asarray(steps**2 / chi_squared_bound(order, budget.limits(order, share)[steps]))

    def falling(values: FloatArray) -> float:
        return float(values[costly].max(initial=0.0))

    def rising(values: FloatArray) -> float:
        return float(values[~costly].max(initial=0.0))

    def falling_is_larger(share: float) -> bool:
        values = bounds(share)
        return falling(values) >= rising(values)

    # The line that a table keeps is unknown: take the least over lines of the larger of a falling and a rising function.
    lines = bisect(falling_is_larger, 0.0, 1.0, HALVINGS)
    return max(rising(bounds(lines.holds)), falling(bounds(lines.fails))) * (1 - ROUNDING)
