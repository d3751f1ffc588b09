"""Rényi divergences of a round in which only some clients take part, chosen in secret: bounds that hold for every mechanism.

For Gaussian noise more is known (`sampled_noise`). These bounds need nothing but the divergences of a round in which everyone
takes part.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy

from ...arguments import check_real
from ...arrays import FloatArray
from ..numerics.log_sum_exp import log_sum_exp
from .renyi_curve import RenyiCurve

# Whole orders that sampled divergences are bounded at.
WHOLE_ORDERS = (*range(2, 32), *range(32, 64, 4), *(round(64 * 2 ** (k / 4)) for k in range(17)))
SMALLEST_PROBABILITY = 1e-9
# Relative error of the sum of exponentials. For orders up to 4096 and probabilities from 1e-12 an exponent is a sum of log-gammas, 60 000
# in all (8 units each), of multiples of logarithms of q and of 1 - q, 151 000 in all (6 units), and of a cumulant (8 units) that is no
# larger than these together, unless the logarithm of the sum is as large as it, and as exact: with the additions 3.1e6 units, and 4100 for
# the sum.
ROUNDING = 7e-10


def poisson_sampled_curve(curve: RenyiCurve, probability: float) -> RenyiCurve:
    """Return bounds on the Rényi divergences where each client takes part with probability q from 1e-9 to 1, independently.

    For whole orders a and cumulants K(l) = (l - 1) r(l) of a round in which everyone takes part, (a - 1) r_q(a) is at most the logarithm
    of ``(1 - q)^(a-1) (a q - q + 1) + C(a, 2) q^2 (1 - q)^(a-2) e^K(2) + 3 sum_{l>=3} C(a, l) (1 - q)^(a-l) q^l e^K(l)`` (Zhu, Wang 2019,
    *Poisson subsampled Rényi differential privacy*, theorem 5). The curve is for add-or-remove-one adjacency and must reach order 2; the
    result is at whole orders, nowhere above the curve itself.

    Examples
    --------
    >>> gaussian = RenyiCurve(np.arange(2.0, 33.0), np.arange(2.0, 33.0) / 8)
    >>> poisson_sampled_curve(gaussian, 0.01).divergences[:2].round(6).tolist()
    [2.8e-05, 4.5e-05]
    """
    rate = check_real("probability", probability, low=SMALLEST_PROBABILITY, high=1.0)
    if rate == 1:
        return curve
    stays = math.log1p(-rate)

    def log_terms(order: int, cumulants: FloatArray) -> FloatArray:
        # The binomial theorem takes 1 out of the sum; what is left of each term is positive.
        chosen = np.arange(2, order + 1)
        factors = np.where(chosen == 2, log_expm1(cumulants), math.log(3) + cumulants + np.log1p(-np.exp(-cumulants) / 3))
        return np.asarray(log_binomials(order) + chosen * math.log(rate) + (order - chosen) * stays + factors)

    return _sampled(curve, log_terms)


def fixed_size_sampled_curve(curve: RenyiCurve, fraction: float) -> RenyiCurve:
    """Return bounds on the Rényi divergences where a share q of the clients takes part, drawn without replacement; q from 1e-9 to 1.

    For whole orders a and cumulants K(l) = (l - 1) r(l) of a round in which everyone takes part, (a - 1) r_q(a) is at most the logarithm
    of ``1 + q^2 C(a, 2) min(4 (e^K(2) - 1), e^K(2) m(2)) + sum_{l>=3} q^l C(a, l) e^K(l) m(l)``, m(l) = min(2, (e^r(inf) - 1)^l) (Wang,
    Balle, Kasiviswanathan 2019, *Subsampled Rényi differential privacy and analytical moments accountant*, theorem 9). The curve is for
    replace-one adjacency and must reach order 2; the result is at whole orders, nowhere above the curve itself.

    Examples
    --------
    >>> gaussian = RenyiCurve(np.arange(2.0, 33.0), np.arange(2.0, 33.0) / 8)
    >>> fixed_size_sampled_curve(gaussian, 0.01).divergences[:2].round(6).tolist()
    [0.000114, 0.000173]
    """
    rate = check_real("fraction", fraction, low=SMALLEST_PROBABILITY, high=1.0)
    if rate == 1:
        return curve
    pure = float(curve.divergences[np.isinf(curve.orders)].min(initial=math.inf))
    log_ratio = math.inf if pure > 700 else float(log_expm1(np.array(pure)))

    def log_terms(order: int, cumulants: FloatArray) -> FloatArray:
        chosen = np.arange(2, order + 1)
        factors = cumulants + np.minimum(math.log(2), chosen * log_ratio)
        factors[0] = min(factors[0], math.log(4) + float(log_expm1(cumulants[0])))
        return np.asarray(log_binomials(order) + chosen * math.log(rate) + factors)

    return _sampled(curve, log_terms)


def _sampled(curve: RenyiCurve, log_terms: Callable[[int, FloatArray], FloatArray]) -> RenyiCurve:
    """Return ln(1 + sum of the terms) / (a - 1) at whole orders a that the curve reaches; ``log_terms(a, cumulants from 2 to a)``."""
    finite = np.isfinite(curve.orders) & np.isfinite(curve.divergences)
    known, divergences = curve.orders[finite], curve.divergences[finite]
    orders = np.array([order for order in WHOLE_ORDERS if order <= known.max(initial=1.0)], dtype=int)
    if orders.size == 0:
        raise ValueError(f"curve must have finite divergences at order 2 or above, got orders {curve.orders!r}")
    # (a - 1) r(a), the cumulant generating function of the loss, is convex and 0 at a = 1: between two orders it lies below the chord.
    rising = np.argsort(known)
    whole = np.arange(2, orders[-1] + 1)
    cumulants = np.interp(whole, [1.0, *known[rising]], [0.0, *((known - 1) * divergences)[rising]])
    sampled = np.array([np.logaddexp(0.0, log_sum_exp(log_terms(order, cumulants[: order - 1]))) for order in orders.tolist()])
    return RenyiCurve(orders.astype(float), np.minimum(sampled * (1 + ROUNDING), cumulants[orders - 2]) / (orders - 1))


def log_binomials(order: int) -> FloatArray:
    """Return the logarithms of the binomial coefficients C(order, l), l = 2 to order."""
    chosen = np.arange(2, order + 1)
    return np.asarray(scipy.special.gammaln(order + 1) - scipy.special.gammaln(chosen + 1) - scipy.special.gammaln(order - chosen + 1))


def log_expm1(values: FloatArray) -> FloatArray:
    """Return ln(e^x - 1) without overflow; minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(values > 30, values, np.log(np.expm1(np.minimum(values, 30.0)))))
