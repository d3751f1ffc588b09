"""Rényi divergence of a vector whose coordinates share a table: bounds from loose to exact.

Two vectors of grid inputs at L_p distance at most R (on the table's unit scale) differ by i_l - i'_l steps in coordinate l, with
sum_l |i_l - i'_l|^p <= K = ((B-1) R)^p. The divergence of the whole message is sum_l D(i_l, i'_l), and a coordinate at distance k adds at
most D_k, the largest divergence of two rows that far apart. The bounds spend the budget K on d coordinates, at the price k^p for a distance
of k (section 4.2 of Chaudhuri, Guo, Rabbat 2022).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import LARGEST_DIMENSION, check_integer, check_norm, check_real
from ...arrays import FloatArray
from ..accounting.renyi_divergence import check_weights, divergence_by_distance, largest_divergences, largest_step
from ..numerics.concave_envelope import concave_envelope
from ..numerics.rounding import SLACK

LARGEST_NORM = 64.0
LARGEST_DISTANCE = 1e6
# Largest number of additions for the exact integer optimum, which take about two seconds.
AFFORDABLE_ADDITIONS = 2e9
# SLACK covers budgets and prices, powers of at most 64 of rounded products, with fewer than 200 units. It also covers bounds: products and
# interpolations of divergences, whose sums of up to 1024 terms, with exponents of up to 300 that cancel to a quarter, have fewer than 4000
# units.


@dataclass(frozen=True)
class VectorBounds:
    """Bounds on the Rényi divergence of a vector's message, in nats.

    The bounds satisfy greedy >= linear_program >= integer.

    Attributes
    ----------
    greedy : float
        Budget times the steepest divergence per unit of it (lemma 7 of Chaudhuri, Guo, Rabbat 2022), an upper bound.
    linear_program : float
        Optimum of the relaxation, their program (4), where a coordinate may be split between distances, an upper bound.
    integer : float or None
        The exact largest value of sum_l D_(k_l); None if it is too expensive to compute, or p is not a whole number.
    """

    greedy: float
    linear_program: float
    integer: float | None


def vector_bounds(weights: ArrayLike, order: float, dimension: int, norm: float, distance: float) -> VectorBounds:
    """Return all bounds on the divergence of a vector's message, at one order.

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    order : float
        Rényi order above 1; infinity for the pure epsilon.
    dimension : int
        Number of coordinates.
    norm : float
        Order p of the L_p norm, from 1 to 64, or infinity.
    distance : float
        Largest L_p distance of two vectors, on the table's unit scale; above 0.

    Examples
    --------
    >>> bounds = vector_bounds([[3, 1], [2, 2], [1, 3]], order=2.0, dimension=3, norm=1.0, distance=1.25)
    >>> round(bounds.greedy, 4), round(bounds.linear_program, 4), round(bounds.integer, 4)
    (1.0591, 1.0591, 0.8473)
    """
    dimension, norm, distance = _checked(dimension, norm, distance)
    divergences = divergence_by_distance(weights, order)
    reachable = divergences[0, : largest_step(len(divergences[0]), distance) + 1]
    if math.isinf(norm):
        value = dimension * float(reachable.max())
        return VectorBounds(value, value, value)
    spending = distance_prices(divergences.shape[1], norm, distance)
    prices, budget = spending.prices, spending.budget
    greedy = greedy_bound(divergences[0], prices, budget)
    return VectorBounds(
        greedy=greedy,
        # The bound never exceeds the greedy bound, not even by a rounding error.
        linear_program=min(greedy, envelope_bound(divergences[0], prices, dimension, budget)),
        integer=integer_optimum(reachable, prices[: len(reachable)], dimension, budget),
    )


def vector_divergences(weights: ArrayLike, orders: ArrayLike, dimension: int, norm: float, distance: float) -> FloatArray:
    """Return the bound of guarantees on a vector's message, for many orders.

    The bound is the relaxation without distances that no input can reach: no coordinate can be further apart than the whole vector, but the
    published relaxation mixes such pairs in. Where the distance is below 1, their omission makes the bound smaller, and it stays a bound.
    Divergences are upper bounds in nats. Parameters are those of `vector_bounds`.
    """
    dimension, norm, distance = _checked(dimension, norm, distance)
    if dimension == 1 or math.isinf(norm):
        # Every coordinate can be as far apart as any two inputs within the distance, without any other limit.
        inputs = len(check_weights(weights))
        return np.asarray(dimension * largest_divergences(weights, orders, largest_step(inputs, distance)) * (1 + SLACK))
    return compose_distances(divergence_by_distance(weights, orders), dimension, norm, distance)


def compose_distances(divergences: FloatArray, dimension: int, norm: float, distance: float) -> FloatArray:
    """Return `vector_divergences` from a table's `divergence_by_distance`.

    The shape of the divergences is (orders, inputs).
    """
    dimension, norm, distance = _checked(dimension, norm, distance)
    reachable = divergences[:, : largest_step(divergences.shape[1], distance) + 1]
    if math.isinf(norm):
        return np.asarray(dimension * reachable.max(axis=1) * (1 + SLACK))
    spending = distance_prices(divergences.shape[1], norm, distance)
    prices = spending.prices[: reachable.shape[1]]
    return np.array([envelope_bound(of_order, prices, dimension, spending.budget) for of_order in reachable])


def greedy_bound(divergences: FloatArray, prices: FloatArray, budget: float) -> float:
    """Return budget times the steepest divergence per unit of it.

    The greedy bound is an upper bound on the relaxation's value in every dimension. Choices are a coordinate's possible divergences with
    their prices, which rise from 0; the first choice is distance 0 and adds nothing. The result is an upper bound and exceeds rounding
    errors.
    """
    if len(divergences) == 1:
        return 0.0
    return float(budget * (divergences[1:] / prices[1:]).max()) * (1 + SLACK)


def envelope_bound(divergences: FloatArray, prices: FloatArray, dimension: int, budget: float) -> float:
    """Return an upper bound on the value of the linear relaxation, d E(K / d).

    E is the concave envelope of the choices and K the budget. All coordinates have the same choices, so that an optimum exists that spends
    the same on each: the relaxation's value is concave in the division of the budget, and symmetric. Its upward margin
    exceeds rounding errors.
    """
    if np.isinf(divergences).any():
        return math.inf
    return float(dimension * concave_envelope(prices, divergences).value(budget / dimension)) * (1 + SLACK)


def integer_optimum(divergences: FloatArray, prices: FloatArray, dimension: int, budget: float) -> float | None:
    """Return the exact best way to spend the budget, by dynamic programming over its units.

    The best values of n coordinates, as a function of their budget, are the max-plus convolution of those of m and n - m coordinates, so
    that repeated squaring reaches any dimension. The result is None if prices are not whole numbers or the computation is too expensive.
    """
    if np.isinf(divergences).any():
        return math.inf
    if dimension * prices[-1] <= budget:
        return float(dimension * divergences.max())
    if np.any(prices != np.round(prices)) or len(divergences) == 1:
        return None if len(divergences) > 1 else 0.0
    units = int(budget)
    # A coordinate that is not at distance 0 costs one unit or more.
    dimension = min(dimension, units)
    squarings = dimension.bit_length() - 1
    by_squaring = (squarings + dimension.bit_count()) * units * (units + 1) / 2
    one_by_one = dimension * units * len(prices)
    if min(by_squaring, one_by_one) > AFFORDABLE_ADDITIONS:
        return None
    whole = prices.astype(np.int64)
    single = np.zeros(units + 1)
    np.maximum.at(single, whole, divergences)
    single = np.maximum.accumulate(single)
    best = single
    if one_by_one <= by_squaring:
        for _ in range(dimension - 1):
            best = _best_sum(best, divergences.tolist(), whole.tolist())
    else:
        everything = range(units + 1)
        for bit in bin(dimension)[3:]:
            best = _best_sum(best, best.tolist(), everything)
            if bit == "1":
                best = _best_sum(best, divergences.tolist(), whole.tolist())
    return float(best[-1])


def _best_sum(best: FloatArray, gains: "list[float]", units: "list[int] | range") -> FloatArray:
    """Return, for each budget, the best value if some units pay for a further choice.

    The remaining units keep their previous choices.
    """
    result = best.copy()
    for gain, spent in zip(gains, units, strict=True):
        np.maximum(result[spent:], best[: len(best) - spent] + gain, out=result[spent:])
    return result


def _checked(dimension: int, norm: float, distance: float) -> tuple[int, float, float]:
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    return dimension, check_norm(norm, high=LARGEST_NORM), check_real("distance", distance, low=1e-9, high=LARGEST_DISTANCE)


@dataclass(frozen=True, eq=False)
class DistancePrices:
    """Price of 0, 1, ... grid steps between two inputs, and the budget of a vector.

    The prices have the shape (inputs,); they are upper bounds and may be infinite.
    """

    prices: FloatArray
    budget: float


def distance_prices(inputs: int, norm: float, distance: float) -> DistancePrices:
    """Return the price of each number of grid steps, for a finite p, and a vector's budget.

    The budget is rounded upward, so that rounding excludes no choice of steps that uses the whole budget. A budget too large for a
    float, from a large norm and distance, is infinite.
    """
    with np.errstate(over="ignore"):
        budget = np.float64((inputs - 1) * distance) ** norm * (1 + SLACK)
    return DistancePrices(np.arange(inputs, dtype=float) ** norm, float(budget))
