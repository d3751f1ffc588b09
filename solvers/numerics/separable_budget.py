"""Upper bounds on sums of a function of each coordinate, over an L_p ball.

The bounds come from Lagrangian duality.
"""

import math

import numpy as np
import scipy

from ...arrays import FloatArray
from .bisection import Brackets, bisect_each
from .rounding import UNIT

# Number of halvings of a cell before the tangent at its left end bounds the rest: the gap is of the order of the last width squared.
HALVINGS = 26
# Number of halvings of all cells; later halvings concern only cells that can have the maximum.
FIRST_HALVINGS = 2
# Relative slack by which the bound is rounded upward: its powers, at most 64, have rounding errors below 400 units.
UPWARD = 1e-11
# Least budget that floating point distinguishes from zero. Raising smaller budgets to this value is safe, since a larger budget only
# loosens the bound.
LEAST_BUDGET = 1e-280
# Natural logarithm of the largest over the smallest price in the search.
PRICE_RANGE = 60.0


def largest_piecewise_sum(
    lefts: FloatArray,
    constants: FloatArray,
    slopes: FloatArray,
    curvatures: FloatArray,
    dimension: int,
    norm: float,
    radius: float,
) -> float:
    """Return an upper bound on a sum of piecewise parabolas over an L_p ball.

    The sum is max sum_l h(x_l) over all x >= 0 with ``||x||_p <= radius``, for a function h made of parabolas. For any price, sum_l h(x_l)
    <= price radius**p + dimension max_x (h(x) - price x**p) by weak duality, so that no price makes the bound too small. The best price
    gives dimension E(radius**p / dimension), with E the concave envelope of h as a function of x**p. In each cell h - price x**p is
    concave, and a tangent bounds its maximum. The upper bound is too large by a relative 1e-8 or so at a good price, if the sum is at least
    0 somewhere.

    Parameters
    ----------
    lefts : ndarray of shape (cells,)
        Left ends of the cells, whole numbers of at least 0, 0 among them; cells have the length 1, or end at the radius if that comes
        first. Cells beyond the radius do not count. If several parabolas share a cell, the largest counts at each point.
    constants, slopes, curvatures : ndarray of shape (cells,)
        h(left + f) = constant + slope f - curvature f**2, the curvature at least 0.
    dimension : int
        Number of coordinates.
    norm, radius : float
        Order p, from 1 to 64, and radius of the ball, above 0.

    Examples
    --------
    The largest L1 norm in the Euclidean unit ball of 4 dimensions is 2.

    >>> unit = np.ones(1)
    >>> round(largest_piecewise_sum(0 * unit, 0 * unit, unit, 0 * unit, dimension=4, norm=2.0, radius=1.0), 9)
    2.0
    """
    reached = lefts < radius
    lefts, constants, slopes, curvatures = lefts[reached], constants[reached], slopes[reached], curvatures[reached]
    scale = math.ceil(radius)
    budget = max((radius / scale) ** norm * (1 + UPWARD), LEAST_BUDGET)
    cells = np.stack([lefts, constants, slopes, curvatures, np.minimum(1.0, radius - lefts)])

    def best_of_a_coordinate(price: float) -> float:
        # After a few halvings, cells whose bound is below another cell's attained value are dropped.
        brackets = Brackets(np.zeros_like(lefts), cells[-1])
        brackets, attained, bounds = narrowed(cells, brackets, price, FIRST_HALVINGS)
        rivals = bounds >= attained.max()
        brackets = Brackets(brackets.holds[rivals], brackets.fails[rivals])
        return float(narrowed(cells[:, rivals], brackets, price, HALVINGS - FIRST_HALVINGS)[2].max())

    def narrowed(cells: FloatArray, between: Brackets, price: float, halvings: int) -> tuple[Brackets, FloatArray, FloatArray]:
        """Return a bracket, an attained value and an upper bound for each cell.

        Value and bound are those of the function h - price x**p in the cell. The bracket holds the sign change of its derivative.
        """
        lefts, constants, slopes, curvatures, tops = cells
        doubled, steepness = 2 * curvatures, price * norm / scale

        def derivative(f: FloatArray) -> FloatArray:
            return np.asarray(slopes - doubled * f - steepness * ((lefts + f) / scale) ** (norm - 1))

        brackets = bisect_each(lambda middle: derivative(middle) >= 0, between.holds, between.fails, halvings)
        low, high = brackets.holds, brackets.fails
        values = constants + slopes * low - curvatures * low**2 - price * ((lefts + low) / scale) ** norm
        # The dimension multiplies a difference and its error, which depends on the terms, with a power's units and 16 more for each term. A
        # derivative whose sign is lost in its error rises by at most that error over the rest of the cell.
        ends = (lefts + tops) / scale
        terms = np.abs(constants) + 2 * np.abs(slopes) * tops + 3 * curvatures * tops + price * ends ** (norm - 1) * (ends + norm / scale)
        error = (8 * norm + 16) * UNIT * terms
        return brackets, values - error, values + np.maximum(derivative(low), 0.0) * (high - low) + error

    def dual(price: float) -> float:
        return float(price * budget + dimension * best_of_a_coordinate(price))

    free = dual(0.0)
    gain = free / dimension - float(constants[lefts == 0].max())
    if gain <= 0:
        return free * (1 + UPWARD)
    # The envelope is concave: its slope at a coordinate's budget is at most that of the line from 0 to its top.
    highest = math.log(gain * dimension / budget)

    minimum = scipy.optimize.minimize_scalar(
        lambda logarithm: dual(math.exp(logarithm)),
        bounds=(highest - PRICE_RANGE, highest),
        method="bounded",
        options={"xatol": 1e-7, "maxiter": 100},
    )
    return min(free, float(minimum.fun)) * (1 + UPWARD)
