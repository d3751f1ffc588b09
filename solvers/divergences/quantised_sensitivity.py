"""How far apart stochastic k-level quantisation can leave two vectors, in grid steps, with high probability.

`quantised_sensitivity` is equation (10) of Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and
differentially-private distributed SGD*; `quantised_l2_bound` is sharper, for the L2 norm alone.
"""

import math
from dataclasses import dataclass

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ..accounting.renyi_curve import check_delta
from ..numerics.rounding import UNIT

MOST_LEVELS = 2**24
# What rotation makes of the smallest clip norm, and the distance of vectors of the largest.
SMALLEST_BOUND, LARGEST_BOUND = 1e-105, 1e101


@dataclass(frozen=True)
class QuantisedSensitivity:
    """Bounds on the distance of two quantised vectors, in grid steps.

    Attributes
    ----------
    l1, l2, linf : float
        The distance in each norm; err upward.
    """

    l1: float
    l2: float
    linf: float


def quantised_sensitivity(dimension: int, levels: int, bound: float, distance: float, delta: float) -> QuantisedSensitivity:
    """Return bounds on how far apart two vectors are after coupled quantisation, which fail with a probability of at most delta.

    With k levels on [-X, X] a step is 2 X / (k - 1). Let R = distance (k - 1) / (2 X) be the distance of the two vectors in steps, and
    t = ln(2 / delta). Then

        linf = k + 1,    l1 = sqrt(d) R + sqrt(2 sqrt(d) R t) + (4/3) t,    l2 = R + sqrt(l1 + sqrt(2 sqrt(d) R t)).

    The paper writes D (k - 1) / X for R, with D a bound on the vectors' norms: that is the distance 2 D of two vectors that replace each
    other. For a vector with zero in its place the distance is D. The bounds are as published: linf never fails, and k - 1 would be enough.

    This holds for coupled rounding only: both vectors are rounded by the same uniform numbers. Rounded independently they can be further
    apart, even if they are equal. Privacy may be argued with the coupling, whatever the uniform numbers really are: each vector's message
    has the distribution that it would have with them, and they are independent of the noise.

    Parameters
    ----------
    dimension : int
        Number of coordinates d.
    levels : int
        Number k of levels, 2 to 2**24.
    bound : float
        X: levels reach from -bound to bound, in the vectors' units; 1e-105 to 1e101. All coordinates lie between.
    distance : float
        Largest L2 distance of the two vectors, in the vectors' units; 0 to 1e101.
    delta : float
        Failure probability of all three bounds together, above 0 and below 1.

    Examples
    --------
    >>> found = quantised_sensitivity(100, levels=17, bound=1.0, distance=2.0, delta=1e-5)
    >>> round(found.l1, 3), round(found.l2, 3), found.linf
    (238.772, 33.357, 18.0)
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    levels = check_integer("levels", levels, low=2, high=MOST_LEVELS)
    bound = check_real("bound", bound, low=SMALLEST_BOUND, high=LARGEST_BOUND)
    distance = check_real("distance", distance, low=0.0, high=LARGEST_BOUND)
    tail = math.log(2) - math.log(check_delta(delta))
    steps = distance / bound * (levels - 1) / 2
    spread = math.sqrt(dimension) * steps
    deviation = math.sqrt(2 * spread * tail)
    l1 = spread + deviation + 4 / 3 * tail
    return QuantisedSensitivity(l1=l1, l2=steps + math.sqrt(l1 + deviation), linf=float(levels + 1))


def quantised_l2_bound(dimension: int, distance: float, delta: float) -> float:
    """Return a bound on the L2 distance of two vectors after coupled quantisation, in steps; it fails with probability at most delta.

    Coordinates that are a_i steps apart, j + f with j whole, are moved to distances j or j + 1, on average a_i. The squared distance is on
    average ``sum a_i**2 + f (1 - f)``, at most R**2 + min(d / 4, sqrt(d) R), R being the distance before, from 0 to 1e101. Each square
    varies by 2 j + 1 <= 2 a_i + 1, and ``sum (2 a_i + 1)**2 <= (2 R + sqrt(d))**2``: Hoeffding's inequality adds (2 R + sqrt(d)) sqrt(ln(1
    / delta) / 2). Errs upward. See `quantised_sensitivity` for what is coupled.

    Examples
    --------
    >>> round(quantised_l2_bound(100, distance=16.0, delta=1e-5), 3)
    19.539
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    distance = check_real("distance", distance, low=0.0, high=LARGEST_BOUND)
    if distance == 0:
        return 0.0
    root = math.sqrt(dimension)
    deviation = (2 * distance + root) * math.sqrt(-math.log(check_delta(delta)) / 2)
    # Fewer than 20 units, all terms being positive.
    return math.sqrt(distance**2 + min(dimension / 4, root * distance) + deviation) * (1 + 20 * UNIT)
