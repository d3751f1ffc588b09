"""Rényi divergences of fair binomial noise on vectors after stochastic k-level quantisation.

No bound on sensitivities is necessary. Two vectors that are a_i steps apart in coordinate i are rounded by the same uniform numbers: they
then differ by floor(a_i) or floor(a_i) + 1 steps, on average by a_i. For whole numbers that differ by j, noise of fair trials has a
divergence r_j of at most ``square j**2 + linear j`` (`fair_binomial_bound`). As exp((a - 1) D_a) is jointly convex, its average over the
uniform numbers is a bound for the mixture, and coordinates, which are rounded independently, add up:

    D_a <= sum_i g(a_i),    g(j + f) = ln((1 - f) exp((a - 1) r_j) + f exp((a - 1) r_(j+1))) / (a - 1).

The worst a_i with ``sum a_i**2 <= R**2`` are bounded by Lagrange's relaxation. Only the ends of the noise can fail.

The published account needs sensitivities: the distance, in grid steps, of two vectors after quantisation, with high probability.
`quantised_sensitivity` is equation (10) of Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and
differentially-private distributed SGD*; `quantised_l2_bound` is sharper, for the L2 norm alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ...arrays import FloatArray
from ..accounting.pure_privacy import check_orders
from ..accounting.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, EpsilonAtDelta, RenyiCurve, check_delta
from ..numerics.rounding import SLACK, UNIT
from .cpsgd_theorem import check_trials

MOST_LEVELS = 2**24
# Range of bounds and distances: rotation may divide the smallest clip norm, and vectors of the largest clip norm may be twice as far apart.
SMALLEST_BOUND, LARGEST_BOUND = 1e-105, 1e101

ORDERS = np.array(DEFAULT_ORDERS[:-1:2])
# The ends of the noise may fail with this share of delta.
NEGLECTED = 0.01
# Limit of shifts that are evaluated one by one; a formula serves larger shifts.
NODES = 16
SECTIONS = 36
GOLDEN = (math.sqrt(5) - 1) / 2
LARGEST_DISTANCE = 1e12
# Largest length of a window with small cubic terms, as a share of the support.
LONGEST_WINDOW = 0.9
# The relative rounding error of a chain of positive terms is below 100 units, plus 8 units times an exponent of at most LARGEST_EXPONENT.
# Together this is less than SLACK.
UPWARD = 1 + SLACK
LARGEST_EXPONENT = 700.0
# Least values of divisors, which are negligible and prevent a division by zero.
LEAST_MULTIPLIER, LEAST_FRACTION = 1e-300, 1e-200


@dataclass(frozen=True, eq=False)
class FairBinomialBound:
    """A bound on the Rényi divergence of fair binomial noise and the same noise shifted.

    For a shift of j steps it is ``square j**2 + linear j``.

    Attributes
    ----------
    square : ndarray of shape (orders,)
        Coefficient of the square.
    linear : float
        Coefficient of j.
    failure : float
        Probability of the omitted end of the support; the divergence is that of the remaining support, not normalised.
    """

    square: FloatArray
    linear: float
    failure: float


def fair_binomial_bound(trials: int, largest_shift: int, orders: FloatArray, log_failure: float) -> FairBinomialBound | None:
    """Return a closed-form bound on Rényi divergences of Bin(N, 1/2) shifted by whole numbers.

    With M = (N + 1) / 2 and y = x - N/2, ln(P(Z = x) / P(Z = x - j)) is the sum of -2 artanh(t_i / M) over i < j, where t_i = y - i - 1/2.
    Let E be y >= -w, which fails with a probability of at most exp(-2 w**2 / N) (Hoeffding). On it, with u = (w + j) / M and k = u**2 / (3
    (1 - u**2)), -artanh(t / M) is at most -t / M for t > 0, and (1 + k) |t| / M else. Thus (a - 1) times the loss is at most ``-s y + k s
    max(-y, 0) + s j (1 + k) / 2``, with s = 2 j (a - 1) / M. By exp(z (1 + k)) - exp(z) <= k z exp(z (1 + k)), the moment generating
    function cosh(z / 2)**N <= exp(z**2 N / 8) of y, and the mean and variance of y in the tilted distribution, the average of its
    exponential is at most

        exp(s j (1 + k) / 2 + s'**2 N / 8) (1 + k s (s' N / 4 + sqrt(N) / 2)),    s' = s (1 + k);

    take the logarithm, ln(1 + z) <= z and N <= 2 M. The other direction, and negative shifts, are mirror images. The leading term is ``a
    j**2 / M``. The bound is for shifts up to the largest and finite orders; E fails with at most the probability whose logarithm is given.
    The result is None if the trials are too few for the largest shift and this probability.
    """
    half = (trials + 1) / 2
    window = math.sqrt(-trials * log_failure / 2)
    share = (window + largest_shift) / half
    if share > LONGEST_WINDOW:
        return None
    excess = share**2 / (3 * (1 - share**2))
    square = (1 + excess) * (1 + (orders - 1) * (1 + 3 * excess)) / half
    return FairBinomialBound(square * UPWARD, excess * math.sqrt(trials) / half * UPWARD, math.exp(log_failure) * UPWARD)


def quantised_epsilon(trials: int, dimension: int, levels: int, distance: float, delta: float, rounds: int = 1) -> EpsilonAtDelta | None:
    """Return the epsilon of fair binomial noise on vectors after stochastic quantisation.

    Levels are whole numbers from 0 to levels - 1.

    Parameters
    ----------
    trials : int
        Number N of fair trials of a coordinate's noise, of all clients together; 1 to 10**15.
    dimension : int
        Number of coordinates, at least 1.
    levels : int
        Number of levels, 2 to 2**24.
    distance : float
        Largest L2 distance of two neighbours' vectors before rounding, in steps; 0 to 10**12.
    delta : float
        Failure probability of all rounds together, above 0 and below 1; a hundredth is spent on the ends of the noise.
    rounds : int
        Number of rounds, at least 1.

    Returns
    -------
    EpsilonAtDelta or None
        Upper bound on epsilon and its order; None if the trials are too few for any proof.

    Examples
    --------
    >>> round(quantised_epsilon(10**6, dimension=1024, levels=33, distance=32.0, delta=1e-5).epsilon, 4)
    0.262
    """
    trials = check_trials(trials)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    levels = check_integer("levels", levels, low=2, high=MOST_LEVELS)
    distance = check_real("distance", distance, low=0.0, high=LARGEST_DISTANCE) * UPWARD
    delta = check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    largest = min(distance, levels - 1.0)
    log_failure = math.log(NEGLECTED * delta / dimension) - math.log(rounds)
    bound = fair_binomial_bound(trials, math.ceil(largest), ORDERS, log_failure)
    if bound is None:
        return None
    # The distribution without its end is normalised, which gives a factor (1 - failure)**(-a) for each coordinate.
    normalised = -dimension * ORDERS / (ORDERS - 1) * math.log1p(-bound.failure)
    divergences = quantised_renyi(bound, ORDERS, dimension, distance, largest) + normalised
    converted = RenyiCurve(ORDERS, divergences).composed(rounds).epsilon(delta * (1 - NEGLECTED * UPWARD))
    return converted if math.isfinite(converted.epsilon) else None


def quantised_renyi(bound: FairBinomialBound, orders: FloatArray, dimension: int, distance: float, largest: float) -> FloatArray:
    """Return bounds on sum_i g(a_i), in nats, for all bounded shifts a_i.

    Shifts have 0 <= a_i <= largest and ``sum a_i**2 <= distance**2``. For every multiplier m the sum is at most ``m distance**2 + dimension
    max_a (g(a) - m a**2)``: the results are upper bounds for every multiplier. Between two whole numbers g is concave, and a quadratic
    equation gives that maximum. From NODES on, with a rounded to a + e, e = -f or 1 - f of mean zero, e**2 = (1 - 2 f) e + f (1 - f), so
    that the divergence is that of a plus e times a number, and Hoeffding's lemma gives, with c = square + linear,

        g(a) <= square a**2 (1 + (order - 1) square / 2) + (linear + (order - 1) square c / 2) a + square / 4 + (order - 1) c**2 / 8.

    If (order - 1) square a is at least 4, ``square a**2 (1 + (order - 1) square / 2) + linear a + c`` is above the divergence of a + 1.
    """
    orders = check_orders(orders)
    budget = distance**2
    if budget == 0:
        return np.zeros_like(orders)
    # The optimal multiplier lies between two slopes of g as a function of a**2, the slope at the largest a and the slope over a long way to
    # it.
    typical = math.sqrt(budget / dimension)
    scale = bound.square + bound.linear
    nodes, far = _nodes(bound, orders, largest), _far(bound, orders)
    low, high = np.log(scale * 1e-4), np.log(scale) + math.log(1e3 * max(1.0, 1 / typical))

    def relaxed(log_multiplier: FloatArray) -> FloatArray:
        multiplier = np.exp(log_multiplier)
        return multiplier * budget + dimension * _largest_excess(nodes, far, multiplier, largest)

    # Golden sections of a function that falls and then rises.
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = relaxed(left), relaxed(right)
    for _ in range(SECTIONS):
        lower = at_left < at_right
        low, high = np.where(lower, low, left), np.where(lower, right, high)
        kept, at_kept = np.where(lower, left, right), np.where(lower, at_left, at_right)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        fresh = np.where(lower, left, right)
        at_fresh = relaxed(fresh)
        left, right = np.where(lower, fresh, kept), np.where(lower, kept, fresh)
        at_left, at_right = np.where(lower, at_fresh, at_kept), np.where(lower, at_kept, at_fresh)
    every = dimension * _largest_excess(nodes, far, np.full_like(orders, LEAST_MULTIPLIER), largest)
    return np.asarray(np.minimum(np.minimum(at_left, at_right), every) * UPWARD)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Terms of the largest excess that do not depend on the multiplier.

    Rows are the whole numbers from which shifts start, columns the orders.
    """

    power: FloatArray
    start: FloatArray
    ends: FloatArray
    lower: FloatArray
    growth: FloatArray
    offset: FloatArray
    squared_offset: FloatArray
    ahead: NDArray[np.bool_]


def _nodes(bound: FairBinomialBound, orders: FloatArray, largest: float) -> _Nodes:
    start = np.arange(min(NODES, math.ceil(largest)), dtype=float)[:, None]
    power = orders - 1
    rise = bound.square * (2 * start + 1) + bound.linear
    lower = bound.square * start**2 + bound.linear * start
    # Beyond the largest exponent, a divergence is practically infinite.
    growth = np.where(power * rise < LARGEST_EXPONENT, np.expm1(np.minimum(power * rise, LARGEST_EXPONENT)), np.inf)
    # g'(a) = 1 / (power (a + offset)) between start and start + 1; small divergences must not cancel out.
    offset = 1 / growth - start
    return _Nodes(power, start, np.minimum(start + 1, largest), lower, growth, offset, offset**2, offset > 0)


@dataclass(frozen=True, eq=False)
class _Far:
    """Coefficients of the bound from NODES on, for each order.

    The bound is ``square a**2 + slope a + constant``.
    """

    square: FloatArray
    slope: FloatArray
    constant: FloatArray


def _far(bound: FairBinomialBound, orders: FloatArray) -> _Far:
    power = orders - 1
    step = bound.square + bound.linear
    steep = power * bound.square * NODES >= 4
    slope = np.where(steep, bound.linear, bound.linear + power * bound.square * step / 2)
    constant = np.where(steep, step, bound.square / 4 + power * step**2 / 8)
    return _Far(bound.square * (1 + power * bound.square / 2), slope, constant)


def _largest_excess(nodes: _Nodes, far: _Far, multiplier: FloatArray, largest: float) -> FloatArray:
    """Return an upper bound on max_a (g(a) - multiplier a**2), for each order."""
    share = 1 / (multiplier * nodes.power)
    root = np.sqrt(nodes.squared_offset + 2 * share)
    best = np.where(nodes.ahead, share / (root + np.abs(nodes.offset)), (root - nodes.offset) / 2)
    best = np.minimum(np.maximum(best, nodes.start), nodes.ends)
    # The result is infinite, not undefined, if a shift of no more than the start has an infinite growth.
    fraction = np.maximum(best - nodes.start, LEAST_FRACTION)
    value = nodes.lower + np.log1p(fraction * nodes.growth) / nodes.power
    # Rounding matters if the difference nearly cancels: coordinates multiply it.
    lagged = multiplier * best**2
    excess = np.asarray((value - lagged + SLACK * (value + lagged)).max(axis=0))
    if largest > NODES:
        curvature = far.square - multiplier
        vertex = np.divide(-far.slope, 2 * curvature, out=np.full_like(curvature, largest), where=curvature < 0)
        point = np.minimum(np.maximum(vertex, NODES), largest)
        leading = curvature + SLACK * (far.square + multiplier)
        beyond = np.maximum(*(leading * at**2 + far.slope * at for at in (point, largest)))
        excess = np.maximum(excess, beyond + far.constant)
    return excess


@dataclass(frozen=True)
class QuantisedSensitivity:
    """Bounds on the distance of two quantised vectors, in grid steps.

    Attributes
    ----------
    l1, l2, linf : float
        Upper bound on the distance in each norm.
    """

    l1: float
    l2: float
    linf: float


def quantised_sensitivity(dimension: int, levels: int, bound: float, distance: float, delta: float) -> QuantisedSensitivity:
    """Return bounds on the distances of two vectors after coupled quantisation.

    The bounds fail with a probability of at most delta. With k levels on [-X, X] a step is 2 X / (k - 1). Let R = distance (k - 1) / (2 X)
    be the distance of the two vectors in steps, and t = ln(2 / delta). Then

        linf = k + 1,    l1 = sqrt(d) R + sqrt(2 sqrt(d) R t) + (4/3) t,    l2 = R + sqrt(l1 + sqrt(2 sqrt(d) R t)).

    The paper writes D (k - 1) / X for R, with D a bound on the vectors' norms: that is the distance 2 D of two vectors that replace each
    other. For a vector and zero the distance is D. The bounds are as published: linf never fails, and k - 1 would be enough.

    The bound holds for coupled rounding only: both vectors use the same uniform numbers. Under independent rounding they can be further
    apart, even if they are equal. Privacy may be proved with the coupling, for any actual uniform numbers: each vector's message has the
    same distribution as with the coupling, and the uniform numbers are independent of the noise.

    Parameters
    ----------
    dimension : int
        Number of coordinates d.
    levels : int
        Number k of levels, 2 to 2**24.
    bound : float
        Bound X: levels reach from -bound to bound, in the vectors' units; 1e-105 to 1e101. All coordinates lie between.
    distance : float
        Largest L2 distance of the two vectors, in the vectors' units; 0 to 1e101.
    delta : float
        Failure probability of all three bounds together, above 0 and below 1.

    Examples
    --------
    >>> sensitivity = quantised_sensitivity(100, levels=17, bound=1.0, distance=2.0, delta=1e-5)
    >>> round(sensitivity.l1, 3), round(sensitivity.l2, 3), sensitivity.linf
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
    """Return a bound on the L2 distance of two vectors after coupled quantisation, in steps.

    The bound fails with probability at most delta. Coordinates that are a_i steps apart, j + f with j whole, are moved to distances j or j
    + 1, on average a_i. The squared distance is on average ``sum a_i**2 + f (1 - f)``, at most R**2 + min(d / 4, sqrt(d) R), R being the
    distance before, from 0 to 1e101. Each square varies by 2 j + 1 <= 2 a_i + 1, and ``sum (2 a_i + 1)**2 <= (2 R + sqrt(d))**2``:
    Hoeffding's inequality adds (2 R + sqrt(d)) sqrt(ln(1 / delta) / 2). The bound errs upward. `quantised_sensitivity` explains the
    coupling. Nor does any coordinate move by more than 1, so that the bound is at most R + sqrt(d).

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
    # The rounding error is below 20 units, as all terms are positive.
    return min(math.sqrt(distance**2 + min(dimension / 4, root * distance) + deviation), distance + root) * (1 + 20 * UNIT)
