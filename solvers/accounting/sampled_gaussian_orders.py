"""Rényi divergences of a sampled round of Gaussian noise at whole orders: the sums that dp-accounting adds up, without cancellation.

For samples of a fixed size that package's differences are rounding errors where noise is large, and its figures too large by any factor;
elsewhere both agree, save that bounds here are never above those of a round with everyone. All orders together take less time than its
largest one.
"""

import math

import numpy as np

from ...arrays import FloatArray, IntegerArray
from ..numerics.log_sum_exp import log_sum_exp
from .sampled_renyi import ROUNDING, log_binomials, log_expm1

# Up to this order moments of L - 1 are computed; beyond, the bound takes twice those of L in their place.
LARGEST_MOMENT = 256
# The rule of trapezoids for them: standard deviations from one point to the next, and on each side of where the integrand is largest.
STEP, REACH = 1 / 16, 60


def poisson_cumulants(noise_multiplier: float, probability: float, orders: IntegerArray) -> FloatArray:
    """Return (a - 1) r(a), where each client takes part with a probability, for whole orders a from 2 and add-or-remove-one adjacency.

    It is the logarithm of ``sum_i C(a, i) (1 - q)^(a - i) q^i e^((i^2 - i) / (2 z^2))`` (Mironov, Talwar, Zhang 2019, *Rényi differential
    privacy of the sampled Gaussian mechanism*, section 3.3): exact for the mixture from the noise alone, the larger of both directions,
    and rounded upward.

    Examples
    --------
    >>> poisson_cumulants(1.0, 0.01, np.array([2, 32])).round(7).tolist()
    [0.0001718, 348.6345543]
    """
    if probability == 1:
        return np.asarray(orders * (orders - 1) / (2 * noise_multiplier**2))
    # The binomial theorem takes 1 out of the sum; what is left of each term is positive.
    chosen = np.arange(2, int(orders.max()) + 1)
    factors = log_expm1(chosen * (chosen - 1) / (2 * noise_multiplier**2))
    return _cumulants(orders, chosen * math.log(probability) + factors, math.log1p(-probability))


def fixed_size_cumulants(noise_multiplier: float, share: float, orders: IntegerArray) -> FloatArray:
    """Return bounds on (a - 1) r(a), where a share of the clients takes part, for replace-one adjacency; they err upward.

    Orders a are whole, from 2, and increase. Bounds are the logarithms of ``1 + sum_i C(a, i) q^i m_i``. With L the likelihood ratio of a
    round with everyone, M(i) = E[L^i] = e^(i (i - 1) / (2 z^2)), and D(i) = E[(L - 1)^i], m_2 is the smaller of 4 D(2) and 2 M(2), and m_i
    that of 2 M(i) and, for a up to 256, of 4 times the geometric mean of D at the even numbers around i (Wang, Balle, Kasiviswanathan 2019,
    *Subsampled Rényi differential privacy and analytical moments accountant*, theorem 27, where D are the forward differences of M).

    Examples
    --------
    >>> fixed_size_cumulants(1.0, 0.01, np.array([2, 32])).round(7).tolist()
    [0.0005435, 349.3277015]
    """
    chosen = np.arange(2, int(orders.max()) + 1)
    plain = chosen * (chosen - 1) / (2 * noise_multiplier**2) + math.log(2)
    plain[0] = min(plain[0], math.log(4) + float(log_expm1(np.array(noise_multiplier**-2.0))))
    # The means of the moments at the even numbers around 3, 4, ..., 256.
    moments = _log_even_moments(noise_multiplier)
    known = chosen[1 : LARGEST_MOMENT - 1]
    means = (moments[known // 2] + moments[(known + 1) // 2]) / 2
    closer = plain.copy()
    closer[1 : LARGEST_MOMENT - 1] = np.minimum(math.log(4) + means, plain[1 : LARGEST_MOMENT - 1])
    weights, small = chosen * math.log(share), orders <= LARGEST_MOMENT
    bounds = np.concatenate([_cumulants(orders[small], weights + closer), _cumulants(orders[~small], weights + plain)])
    # Nobody is hidden worse by a sample than by taking part.
    return np.asarray(np.minimum(bounds, orders * (orders - 1) / (2 * noise_multiplier**2)))


def _cumulants(orders: IntegerArray, logarithms: FloatArray, stays: float = 0.0) -> FloatArray:
    """Return ln(1 + sum_{i >= 2} C(a, i) e^(logarithms[i - 2] + (a - i) stays)) for each order a, rounded upward."""
    sums = [log_sum_exp(log_binomials(order) + logarithms[: order - 1] + np.arange(order - 2, -1, -1) * stays) for order in orders.tolist()]
    return np.asarray(np.logaddexp(0.0, sums) * (1 + ROUNDING))


def _log_even_moments(noise_multiplier: float) -> FloatArray:
    """Return the logarithms of E[(L - 1)^i] for i = 0, 2, ..., 256: integrals of positive functions, analytic in the whole plane.

    With x normal and t = 1 / z, ln L = t x - t**2 / 2. The integrand is largest between t i and t i + sqrt(i), and again around -sqrt(i)
    where t i is small.
    """
    powers, inverse = np.arange(0, LARGEST_MOMENT + 1, 2)[:, None], 1 / noise_multiplier
    ends = inverse * powers + REACH
    points = ends - STEP * np.arange(int(4 * REACH / STEP))
    losses = inverse * points - inverse**2 / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.maximum(losses, 0.0) + np.log(-np.expm1(-np.abs(losses)))
        exponents = np.where(powers > 0, powers * sizes, 0.0) - points**2 / 2
    return np.asarray(log_sum_exp(exponents, axis=1) + math.log(STEP / math.sqrt(2 * math.pi)))
