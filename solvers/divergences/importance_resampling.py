"""Exact moments and divergences of a resampled particle among K normal samples.

The particle is drawn by its importance weight. The weights w_k = r(x_k) / sum_j r(x_j), with r(x) = exp(m x - m^2 / 2) the density ratio of
N(m, 1) to N(0, 1), have a sum in their denominator. With 1 / S^a = integral of t^(a-1) exp(-t S) / Gamma(a) over t > 0, expectations over K
independent samples become products of K expectations over a single sample, and a K-dimensional integral becomes a two-dimensional integral.
Both come from the trapezoidal rule, which converges exponentially here: integrands are analytic, and vanish at either end (Trefethen,
Weideman 2014).

In more dimensions the weights depend on the samples' projections on the target's mean alone, so that one dimension is enough.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..numerics.log_sum_exp import log_sum_exp
from ..numerics.rounding import SLACK

LARGEST_SHIFT = 3.0
MOST_SAMPLES = 2**20
LARGEST_ORDER = 16
LARGEST_SHARE = 0.999
# Point at which the normal density is 1e-32 of its peak, and point at which exp(-y) is as small.
_NORMAL_REACH = 12.0
_EXPONENTIAL_REACH = 72.0
# Distances of points and of log t. The function exp(-t exp(m x)) is analytic for |Im x| < pi / (2 m), which gives an error of 1e-14. The
# sum over log t of t^a exp(-t S) has the relative error 2 |Gamma(a + 2 pi i / step)| / Gamma(a), which is below 1e-9 up to order 16.
_POINT_STEP = 0.3
_LOG_T_STEP = 0.2


@dataclass(frozen=True)
class ResampledMoments:
    """Moments of the drawn particle, for the target N(shift, 1).

    Attributes
    ----------
    mean : float
        Expectation of the particle, which approaches `shift` with more samples.
    squared_error : float
        Expectation of its squared distance from `shift`, which approaches 1.
    """

    mean: float
    squared_error: float


@dataclass(frozen=True)
class TwoWayDivergences:
    """Rényi divergences between a resampling for N(shift, 1) and a uniform draw, per order.

    Some divergences are upper bounds.

    Attributes
    ----------
    added, removed : ndarray of float64, shape (orders,)
        Divergences of the first from the second, and of the second from the first; in nats.
    """

    added: FloatArray
    removed: FloatArray


def resampled_moments(shift: float, samples: int) -> ResampledMoments:
    """Return mean and squared error of the particle drawn from K samples of N(0, 1).

    The weights are those for N(shift, 1), with shifts from 0 to 3 and K from 1 to 2**20; the absolute error is below 1e-7.

    Examples
    --------
    The bias is nearly exp(shift**2) * shift / K once K is larger than exp(shift**2).

    >>> law = resampled_moments(1.0, samples=128)
    >>> round(1 - law.mean, 4), round(math.e / 128, 4)
    (0.0202, 0.0212)
    """
    shift = check_real("shift", shift, low=0.0, high=LARGEST_SHIFT)
    samples = check_integer("samples", samples, low=1, high=MOST_SAMPLES)
    points, log_density = _normal_grid(-_NORMAL_REACH, shift + _NORMAL_REACH, shift)
    log_ratios = shift * points - shift**2 / 2
    log_t = _laplace_grid(log_ratios, samples)
    decay = -np.exp(log_t[:, None] + log_ratios)
    log_others = (samples - 1) * log_sum_exp(decay + log_density, axis=1)
    weights = np.exp(log_t + math.log(samples) + log_others) * _LOG_T_STEP
    # The probability is that of the particle at each of the points.
    particle = weights @ np.exp(decay) * np.exp(log_density + log_ratios)
    return ResampledMoments(mean=float(particle @ points), squared_error=float(particle @ (points - shift) ** 2))


def resampling_renyi_divergences(target: float, reference: float, samples: int, orders: ArrayLike) -> FloatArray:
    """Return Rényi divergences of the samples and the drawn index for two inputs.

    An observer sees only the K samples and the drawn index. The samples have the same distribution for both inputs, so that this is ``log
    E[sum_k w_k^a v_k^(1 - a)] / (a - 1)``, with w the weights for N(target, 1) and v those for N(reference, 1). The result is in nats; a
    computed value and no bound, with an error below 1e-6.

    Parameters
    ----------
    target, reference : float
        Means of the two targets on a line, -3 to 3; zero has equal weights. For vectors: two opposite, or parallel, means.
    samples : int
        Number K of samples, from 1 to 2**20.
    orders : array_like of int, shape (orders,)
        Orders a, whole numbers from 2 to 16.

    Examples
    --------
    With many samples the result is nearly the divergence a target**2 / 2 of the two Gaussian distributions.

    >>> resampling_renyi_divergences(0.5, 0.0, samples=4096, orders=[2, 8]).round(3).tolist()
    [0.25, 0.999]
    """
    target = check_real("target", target, low=-LARGEST_SHIFT, high=LARGEST_SHIFT)
    reference = check_real("reference", reference, low=-LARGEST_SHIFT, high=LARGEST_SHIFT)
    samples = check_integer("samples", samples, low=1, high=MOST_SAMPLES)
    whole = _check_orders(orders)
    most = max(whole, default=2)
    # The expectations are of r^a v^-j and v^j. Their means bound the relevant samples.
    tilts = [0.0, most * target, most * target - (most - 1) * reference, (most - 1) * reference]
    points, log_density = _normal_grid(min(tilts) - _NORMAL_REACH, max(tilts) + _NORMAL_REACH, target)
    log_ratios = target * points - target**2 / 2
    log_references = reference * points - reference**2 / 2
    log_t = _laplace_grid(log_ratios, samples)
    decay = -np.exp(log_t[:, None] + log_ratios)
    base = decay + log_density

    others = _log_power_sums(base, log_references, samples - 1, most)
    divergences = []
    for order in whole:
        terms = [
            scipy.special.gammaln(order)
            - scipy.special.gammaln(order - power)
            + others[power]
            + log_sum_exp(base + order * log_ratios - power * log_references, axis=1)
            for power in range(order)
        ]
        log_integrand = order * log_t - scipy.special.gammaln(order) + log_sum_exp(np.stack(terms), axis=0)
        moment = math.log(samples) + math.log(_LOG_T_STEP) + float(log_sum_exp(log_integrand))
        divergences.append(max(0.0, moment / (order - 1)))
    return np.array(divergences)


def resampling_mixture_divergences(shift: float, samples: int, share: float, orders: ArrayLike) -> FloatArray:
    """Return Rényi divergences of a uniform draw from a mixture with a resampling.

    The mixture has the weights for N(shift, 1) with probability g. With r the density ratio at the drawn sample and T the sum of the other
    ratios, the moment is ``E[((1 - g) + g K r / (r + T))^(1 - a)]``: a power of r + T, over a power of ``(1 - g + g K) r + (1 - g) T``. The
    result is in nats; a computed value and no bound, with an absolute error below 1e-8 for up to 2**14 samples.

    Parameters
    ----------
    shift : float
        Mean m of the target, 0 to 3.
    samples : int
        Number K of samples, from 1 to 2**20.
    share : float
        Probability g, from 0 to 0.999.
    orders : array_like of int, shape (orders,)
        Orders a, whole numbers from 2 to 16.

    Examples
    --------
    >>> resampling_mixture_divergences(1.0, samples=128, share=0.1, orders=[2, 8]).round(4).tolist()
    [0.0111, 0.0294]
    """
    shift = check_real("shift", shift, low=0.0, high=LARGEST_SHIFT)
    samples = check_integer("samples", samples, low=1, high=MOST_SAMPLES)
    share = check_real("share", share, low=0.0, high=LARGEST_SHARE)
    whole = _check_orders(orders)
    most = max(whole, default=2)
    points, log_density = _normal_grid(-_NORMAL_REACH, (most - 1) * shift + _NORMAL_REACH, shift)
    log_ratios = shift * points - shift**2 / 2
    # The drawn sample counts for more in the denominator.
    excess = (1 - share + share * samples) / (1 - share)
    log_t = _laplace_grid(log_ratios, samples * excess)
    others = _log_power_sums(-np.exp(log_t[:, None] + log_ratios) + log_density, log_ratios, samples - 1, most)
    base = -np.exp(log_t[:, None] + math.log(excess) + log_ratios) + log_density
    own = np.stack([log_sum_exp(base + power * log_ratios, axis=1) - scipy.special.gammaln(power + 1) for power in range(most)])
    divergences = []
    for order in whole:
        # The factor l comes from l! sum_j r^(l - j) / (l - j)! T^j / j!, with l = a - 1, over Gamma(l).
        log_sums = log_sum_exp(own[order - 1 :: -1] + others[:order], axis=0) + math.log(order - 1)
        moment = log_sum_exp((order - 1) * log_t + log_sums) + math.log(_LOG_T_STEP) - (order - 1) * math.log1p(-share)
        divergences.append(max(0.0, float(moment) / (order - 1)))
    return np.array(divergences)


def proven_divergences(shift: float, samples: int, orders: ArrayLike) -> TwoWayDivergences:
    """Return bounds on a resampling's Rényi divergences for every number of samples.

    With r the density ratio at a sample, r' that at another one, and R the mean of all K ratios: R is at least their geometric mean, so
    that ln(r / R) is at most m times the sample less the mean of the samples, a normal number of variance (1 - 1/K) m^2. And R^(a - 1),
    for a >= 2, is convex, so that Jensen's inequality holds.

        E[r^a / R^a]            <=  exp(a^2 m^2 (1 - 1/K) / 2)
        E[r^(1 - a) R^(a - 1)]  <=  1/K + (1 - 1/K) E[r^(1 - a)] E[r'^(a - 1)]  =  1/K + (1 - 1/K) exp((a - 1)^2 m^2)

    Groups are independent: their bounds add up, and so do the squares of their norms.

    The results are upper bounds, and are at most a^2 m^2 / (2 (a - 1)) and (a - 1) m^2: neither is more than a m^2.

    Parameters
    ----------
    shift : float
        Mean m of the target over that of equal weights, 0 to 3: DP-REC's clip ratio c.
    samples : int
        Number K of samples, from 1.
    orders : array_like of int, shape (orders,)
        Orders a, from 2.

    Examples
    --------
    >>> bounds = proven_divergences(0.5, samples=128, orders=[2, 4])
    >>> bounds.added.round(4).tolist(), bounds.removed.round(4).tolist()
    ([0.4961, 0.6615], [0.2483, 0.7477])
    """
    shift = check_real("shift", shift, low=0.0, high=LARGEST_SHIFT)
    samples = check_integer("samples", samples, low=1, high=MOST_SAMPLES)
    order = np.array([check_integer("orders", a, low=2, high=2**20) for a in np.asarray(orders).tolist()], dtype=float)
    added = order**2 * (shift**2 * (1 - 1 / samples) / 2)
    # The factor e^x is taken out of ln(1/K + (1 - 1/K) e^x) for large x, so that nothing cancels.
    exponent = ((order - 1) * shift) ** 2
    near = (exponent <= 1) | (samples == 1)
    taken_out_of_one = np.log1p((1 - 1 / samples) * np.expm1(np.where(near, np.minimum(exponent, 1.0), 0.0)))
    removed = np.where(near, taken_out_of_one, exponent + np.log1p(np.expm1(-exponent) / max(samples, 2)))
    # The rounding error is below 100 units: exponents are at most 1 if their exponentials matter.
    added, removed = (np.maximum(moment, 0.0) / (order - 1) * (1 + SLACK) for moment in (added, removed))
    return TwoWayDivergences(added=added, removed=removed)


def _check_orders(orders: ArrayLike) -> list[int]:
    return [check_integer("orders", order, low=2, high=LARGEST_ORDER) for order in np.asarray(orders).tolist()]


def _normal_grid(low: float, high: float, shift: float) -> tuple[FloatArray, FloatArray]:
    """Return points and log weights of an expectation over N(0, 1), by the trapezoidal rule."""
    step = _POINT_STEP / max(1.0, abs(shift))
    points = np.arange(low, high + step, step)
    return points, -(points**2) / 2 + math.log(step / math.sqrt(2 * math.pi))


def _laplace_grid(log_ratios: FloatArray, samples: float) -> FloatArray:
    """Return values of log t at which exp(-t S) t matters.

    S is from the least ratio of a sample to K times the largest.
    """
    low = -log_ratios.max() - math.log(samples) - _EXPONENTIAL_REACH / 2
    return np.arange(low, -log_ratios.min() + math.log(_EXPONENTIAL_REACH) + 2, _LOG_T_STEP)


def _log_power_sums(base: FloatArray, log_values: FloatArray, count: int, powers: int) -> FloatArray:
    """Return ln E[V^j exp(-t S) / j!] for each power j and each t.

    V and S are sums over independent samples with the law of `base`. For a single sample these are the coefficients of a power series, and
    for all of them, those of its power.
    """
    single_sample = np.stack([log_sum_exp(base + power * log_values, axis=1) - scipy.special.gammaln(power + 1) for power in range(powers)])
    return _series_power(single_sample, count)


def _series_power(logs: FloatArray, exponent: int) -> FloatArray:
    """Return log coefficients of a power of a power series, given the series' coefficients.

    No coefficient is negative, so that nothing cancels.
    """
    result = np.full_like(logs, -np.inf)
    result[0] = 0.0
    while exponent:
        if exponent & 1:
            result = _series_product(result, logs)
        exponent >>= 1
        if exponent:
            logs = _series_product(logs, logs)
    return result


def _series_product(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.stack([log_sum_exp(first[: power + 1] + second[power::-1], axis=0) for power in range(len(first))])
