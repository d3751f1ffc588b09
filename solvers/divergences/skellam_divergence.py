"""Privacy and tails of Skellam noise on vectors of whole numbers.

Skellam noise is the difference of two independent Poisson numbers. With variance mu it has the probabilities e^-mu I_k(mu), with I the
modified Bessel function, and the sum of two such numbers is Skellam noise again: results for a message also hold, with the variances added
up, for a sum of messages.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ..accounting.pure_privacy import check_orders
from ..accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve, check_delta

LEAST_EPSILON, LARGEST_EPSILON = 1e-3, 1e3
LARGEST_SENSITIVITY = 1e15
LEAST_VARIANCE, LARGEST_VARIANCE = 1e-6, 1e40
# The closed form below and the curve that checks it round differently: the variance grows by this relative step until the two agree.
NUDGE = 1e-13


def skellam_renyi_divergences(variance: float, l1_sensitivity: float, l2_sensitivity: float, orders: ArrayLike) -> FloatArray:
    """Return bounds on the Rényi divergence of Skellam noise on two vectors, in nats.

    The results are upper bounds for vectors of whole numbers. They are the theorem on the multi-dimensional mechanism of Agarwal, Kairouz,
    Liu 2021, *The Skellam mechanism for differentially private federated learning*, at scale 1: with mu the variance of a coordinate's
    noise, the divergence of order a is at most

        a l2**2 / (2 mu) + min{ ((2 a - 1) l2**2 + 6 l1) / (4 mu**2), 3 l1 / (2 mu) }

    The theorem covers whole orders from 2. Divergences grow with their order: any other order gets the bound of the next higher whole
    order.

    Parameters
    ----------
    variance : float
        Variance of the noise of one coordinate, from 1e-6 to 1e40.
    l1_sensitivity, l2_sensitivity : float
        Largest L1 and L2 distance of two neighbours' vectors, at least 0. For vectors of whole numbers the L1 distance is at most the
        square of the L2 distance.
    orders : array_like of shape (orders,)
        Rényi orders above 1; infinity gives infinity, because Skellam noise has no pure privacy.

    Examples
    --------
    >>> skellam_renyi_divergences(100.0, 4.0, 2.0, [2.0, 2.5, float("inf")]).round(6).tolist()
    [0.0409, 0.0611, inf]
    """
    variance = check_real("variance", variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
    array = np.ceil(check_orders(orders))
    linear, quadratic, alternative = _coefficients(l1_sensitivity, l2_sensitivity, array)
    divergences = linear / variance + np.minimum(quadratic / variance**2, alternative / variance)
    # Equal neighbours need no noise: the limit of infinite order would be 0 times infinity.
    return np.where(np.isinf(array), 0.0 if l2_sensitivity == 0 else math.inf, divergences)


def skellam_variance(
    epsilon: float, delta: float, l1_sensitivity: float, l2_sensitivity: float, orders: ArrayLike = DEFAULT_ORDERS
) -> float:
    """Return the smallest variance of Skellam noise whose Rényi curve proves a guarantee.

    The guarantee is (epsilon, delta); the variance is too large by less than a relative 1e-9. Epsilon is from 0.001 to 1000, and the
    sensitivities are those of `skellam_renyi_divergences`.

    Raises
    ------
    InfeasibleError
        If no order is large enough to prove this epsilon at this delta.

    Examples
    --------
    >>> round(skellam_variance(1.0, 1e-5, 2.0, 2.0), 4)
    66.4996
    """
    epsilon = check_real("epsilon", epsilon, low=LEAST_EPSILON, high=LARGEST_EPSILON)
    delta = check_delta(delta)
    check_real("l2_sensitivity", l2_sensitivity, low=1e-9, high=LARGEST_SENSITIVITY)
    finite = check_orders(orders)
    finite = finite[np.isfinite(finite)]
    # Take the largest divergence of each order that proves epsilon: by the conversion of Canonne, Kamath, Steinke 2020, or, as the total
    # variation distance is at most sqrt(1 - e^-r), because it proves epsilon 0 already.
    budgets = np.maximum(epsilon - np.log1p(-1 / finite) + np.log(delta * finite) / (finite - 1), -math.log1p(-(delta**2)))
    if not np.any(budgets > 0):
        raise InfeasibleError(
            f"epsilon must be larger, or delta, for Skellam noise: no Rényi order up to {finite.max():g} proves epsilon = {epsilon:g} at "
            f"delta = {delta:g}"
        )
    finite, budgets = finite[budgets > 0], budgets[budgets > 0]
    linear, quadratic, alternative = _coefficients(l1_sensitivity, l2_sensitivity, np.ceil(finite))
    # Both bounds grow with x = 1 / variance: the larger of the two roots is enough.
    reached = np.maximum(2 * budgets / (linear + np.sqrt(linear**2 + 4 * quadratic * budgets)), budgets / (linear + alternative))
    variance = max(1 / float(reached.max()), LEAST_VARIANCE)
    while True:
        curve = RenyiCurve(finite, skellam_renyi_divergences(variance, l1_sensitivity, l2_sensitivity, finite))
        if curve.epsilon(delta).epsilon <= epsilon:
            return variance
        variance *= 1 + NUDGE


def skellam_tail(variance: float, threshold: float) -> float:
    """Return an upper bound on the probability that Skellam noise reaches a threshold.

    The threshold is 0 or more. The bound is Chernoff's, exp( mu (sqrt(1 + y**2) - 1 - y asinh y) ), y = threshold / mu: the cumulant
    generating function is mu (cosh t - 1), least at sinh t = y.

    Examples
    --------
    >>> skellam_tail(100.0, 0.0), round(skellam_tail(100.0, 60.0) * 1e8, 4)
    (1.0, 2.4849)
    """
    variance = check_real("variance", variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
    ratio = check_real("threshold", threshold, low=0.0, high=LARGEST_VARIANCE) / variance
    return math.exp(variance * (ratio * ratio / (1 + math.hypot(1.0, ratio)) - ratio * math.asinh(ratio)))


def _coefficients(l1_sensitivity: float, l2_sensitivity: float, orders: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the coefficients of the bound on the divergence.

    The coefficients are the factors of 1 / mu, of 1 / mu**2 and of the alternative 1 / mu.
    """
    l1 = check_real("l1_sensitivity", l1_sensitivity, low=0.0, high=LARGEST_SENSITIVITY**2)
    l2 = check_real("l2_sensitivity", l2_sensitivity, low=0.0, high=LARGEST_SENSITIVITY)
    finite = np.where(np.isinf(orders), 2.0, orders)
    return finite * l2**2 / 2, ((2 * finite - 1) * l2**2 + 6 * l1) / 4, 1.5 * l1
