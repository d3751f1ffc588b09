"""Privacy and tails of Skellam noise on vectors of whole numbers.

Skellam noise is the difference of two independent Poisson numbers. With variance mu it has the probabilities e^-mu I_k(mu), with I the
modified Bessel function, and the sum of two such numbers is Skellam noise again: results for a message also hold, with the variances added
up, for a sum of messages.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ..accounting.exact_privacy_loss import ExactPrivacyLoss
from ..accounting.pure_privacy import check_orders
from ..accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve, check_delta

LEAST_EPSILON, LARGEST_EPSILON = 1e-3, 1e3
LARGEST_SENSITIVITY = 1e15
LEAST_VARIANCE, LARGEST_VARIANCE = 1e-6, 1e40
# The closed form below and the curve that checks it round differently: the variance grows by this relative step until the two agree.
NUDGE = 1e-13
# Exact divergences: largest variance, shift, order, and product of shift and order.
LARGEST_EXACT_VARIANCE, LARGEST_SHIFT, LARGEST_ORDER, LARGEST_REACH = 1500.0, 64, 512.0, 1024.0
# Up to this multiple of the largest variance, the bound for the largest may be less than the theorem, which rounds orders up.
NEARLY = 2.0
# Relative error of exact divergences. A logarithm of a probability is a sum of up to 10^5 rounded logarithms of ratios, in extended
# precision where there is any: losses are off by less than 1e-10. They are at least 1/40 at a standard deviation, and the largest order is
# 512: as for coin tosses, a divergence is off by at most (4 * 40 + 4 * 512) * 1e-10.
EXACT_ERROR = 1e-6


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


def least_skellam_divergences(variance: float, l1_sensitivity: float, l2_sensitivity: float, orders: ArrayLike) -> FloatArray:
    """Return the smaller of two bounds on the Rényi divergence of Skellam noise, in nats.

    One bound is `skellam_renyi_divergences`. The other, for variances up to 1500, uses the exact divergence r_j of each whole shift j of a
    coordinate. Coordinates' divergences add up, so that a vector s has at most ``max_j (r_j / j^2) sum s_i^2``, and at most
    ``max_j (r_j / j) sum |s_i|``. Both maxima are over the shifts up to the L2 sensitivity. Beyond a shift of 64, the theorem bounds r_j /
    j^2, by a falling function of j, and r_j / j, by a rising one. Parameters are those of `skellam_renyi_divergences`.

    Examples
    --------
    >>> least_skellam_divergences(2.0, 2.0, 2.0**0.5, [2.0]).round(4), skellam_renyi_divergences(2.0, 2.0, 2.0**0.5, [2.0])
    (array([0.9508]), array([2.125]))
    """
    divergences = skellam_renyi_divergences(variance, l1_sensitivity, l2_sensitivity, orders)
    array = check_orders(orders)
    largest = math.floor(l2_sensitivity * (1 + 1e-12))
    exact = min(largest, LARGEST_SHIFT)
    most = min(LARGEST_ORDER, LARGEST_REACH / exact) if exact else 0.0
    usable = array <= most
    if variance > NEARLY * LARGEST_EXACT_VARIANCE or not usable.any():
        return divergences
    # Further noise is post-processing: a bound for less noise holds for more.
    variance = min(variance, LARGEST_EXACT_VARIANCE)
    shifts = np.arange(1, exact + 1)[:, None]
    by_shift = np.array([_shift_divergences(_shifted(variance, shift, most), array[usable]) for shift in shifts[:, 0].tolist()])
    per_square, per_step = (by_shift / shifts**2).max(axis=0), (by_shift / shifts).max(axis=0)
    if largest > exact:
        nearest, furthest = (skellam_renyi_divergences(variance, shift, shift, array[usable]) / shift for shift in (exact + 1, largest))
        per_square, per_step = np.maximum(per_square, nearest / (exact + 1)), np.maximum(per_step, furthest)
    # Equal whole vectors are at distance zero.
    bound = np.minimum(per_square * l2_sensitivity**2, per_step * l1_sensitivity) * (1 + EXACT_ERROR)
    divergences[usable] = np.minimum(divergences[usable], bound)
    return divergences


@lru_cache(maxsize=LARGEST_SHIFT)
def _shifted(variance: float, shift: int, largest_order: float) -> ExactPrivacyLoss:
    """Return the loss of Skellam noise against the same noise shifted by a whole number, on a window.

    Values beyond the window add little, up to the largest order. Let r(x) = P(x) / P(x - 1), which falls for x > 0, and is below v / (2 x)
    for the variance v. The terms P(x - j)^a P(x)^(1 - a) have ratios ``r(x + 1) (r(x + 1 - j) / r(x + 1))^a``, at most ``v / (2 x + 2)
    exp(a j / (x + 1 - j))``, as 1 / r rises by at most 2 j / v over j values. From x = 3 v and x = j (1 + a) on they are below 1/2: what is
    omitted is less than the last term. On the other side terms are smaller than probabilities, which fall as fast.
    """
    extent = math.ceil(max(3 * variance, shift * (2 + largest_order))) + 60 * math.ceil(math.sqrt(variance) + 1)
    logarithms = _log_probabilities(variance, extent)
    return ExactPrivacyLoss(logarithms[:-shift], logarithms[:-shift] - logarithms[shift:], 0.0, 0.0)


def _shift_divergences(loss: ExactPrivacyLoss, orders: FloatArray) -> FloatArray:
    """Return Rényi divergences of Skellam noise from shifted noise, with the bound on the values beyond the window."""
    divergences = loss.renyi_divergences(orders)
    last = np.maximum(loss.log_masses[-1] + (orders - 1) * loss.losses[-1], loss.log_masses[0])
    return np.asarray(np.logaddexp((orders - 1) * divergences, last + math.log(2)) / (orders - 1))


@lru_cache(maxsize=4)
def _log_probabilities(variance: float, extent: int) -> FloatArray:
    """Return the logarithms of Skellam probabilities, from ``-extent`` to ``extent``.

    The ratios r(x) = I_x / I_(x - 1) of Bessel functions obey 1 / r(x) = 2 x / v + r(x + 1). Each step downward multiplies the error of the
    first ratio by less than r(x)^2: it vanishes long before the window, even if the first ratio is taken to be 0.
    """
    ratios = np.empty(extent + 101, dtype=np.longdouble)
    ratio = 0.0
    for value in range(extent + 100, 0, -1):
        ratio = 1 / (2 * value / variance + ratio)
        ratios[value] = ratio
    half = np.concatenate([[0], np.cumsum(np.log(ratios[1 : extent + 1]))])
    half -= np.log(1 + 2 * np.exp(half[1:]).sum())
    return np.concatenate([half[:0:-1], half]).astype(float)


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
