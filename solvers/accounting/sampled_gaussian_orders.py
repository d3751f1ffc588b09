"""Rényi divergences of a sampled round of Gaussian noise at whole orders: the bounds of dp-accounting, summed as arrays.

That package adds up one term at a time, and all differences again for every order, which takes half a second. Where those are lost in
rounding, which errs upward, ours are lost differently.
"""

import math

import numpy as np
import scipy

from ...arrays import FloatArray, IndexArray

# Up to this order dp-accounting bounds moments by differences, and above it by the noise's own moments.
LARGEST_BY_DIFFERENCES = 256


def poisson_cumulants(noise_multiplier: float, probability: float, orders: IndexArray) -> FloatArray:
    """Return (a - 1) r(a) of a round in which each client takes part with a probability, at whole orders a above 1.

    For add-or-remove-one adjacency: ln E[(1 - q + q L)^a] by the binomial theorem, with L the likelihood ratio of the noise (Mironov,
    Talwar, Zhang 2019, *Rényi differential privacy of the sampled Gaussian mechanism*, section 3.3).

    Examples
    --------
    >>> poisson_cumulants(1.0, 0.01, np.array([2, 32])).round(7).tolist()
    [0.0001718, 348.634554]
    """
    if probability == 1:
        return _moments(noise_multiplier, orders)
    rate, rest = math.log(probability), math.log1p(-probability)

    def cumulant(order: int) -> float:
        k = np.arange(order + 1)
        return log_sum(_log_binomials(order) + k * rate + (order - k) * rest + _moments(noise_multiplier, k))

    return np.array([cumulant(order) for order in orders.tolist()])


def fixed_size_cumulants(noise_multiplier: float, share: float, orders: IndexArray) -> FloatArray:
    """Return a bound on (a - 1) r(a) of a round with a sample of a fixed size, a share of all clients, at whole orders a above 1.

    For replace-one adjacency: Wang, Balle, Kasiviswanathan 2019, *Subsampled Rényi differential privacy and analytical moments accountant*,
    theorem 27.

    Examples
    --------
    >>> fixed_size_cumulants(1.0, 0.01, np.array([2, 32])).round(7).tolist()
    [0.0005435, 349.3277012]
    """
    if share == 1:
        return _moments(noise_multiplier, orders)
    # Of each term's factor beside q^j and the binomial coefficient: for j = 2, four times e^r(2) - 1 or twice e^r(2).
    j, two = np.arange(int(orders.max()) + 1), 1 / noise_multiplier**2
    plain = math.log(2) + _moments(noise_multiplier, j)
    plain[2] = min(math.log(4) + two + math.log1p(-math.exp(-two)), plain[2])
    few = j[3 : LARGEST_BY_DIFFERENCES + 1]
    differences = _log_differences(_moments(noise_multiplier, np.arange(LARGEST_BY_DIFFERENCES + 1)))
    closer = plain.copy()
    closer[few] = np.minimum(math.log(4) + (differences[few // 2 * 2] + differences[(few + 1) // 2 * 2]) / 2, plain[few])

    def cumulant(order: int) -> float:
        factors = (closer if order <= LARGEST_BY_DIFFERENCES else plain)[2 : order + 1]
        terms = factors + j[2 : order + 1] * math.log(share) + _log_binomials(order)[2:]
        return float(np.logaddexp(0.0, log_sum(terms)))

    return np.array([cumulant(order) for order in orders.tolist()])


def log_sum(logarithms: FloatArray) -> float:
    """Return the logarithm of a sum; SciPy's takes ten times as long for a few numbers."""
    largest = float(logarithms.max())
    return largest + math.log(float(np.exp(logarithms - largest).sum()))


def _moments(noise_multiplier: float, orders: IndexArray) -> FloatArray:
    """Return ln E[L^j] of the noise alone."""
    return np.asarray(orders * (orders - 1) / (2 * noise_multiplier**2))


def _log_binomials(order: int) -> FloatArray:
    k = np.arange(order + 1)
    return np.asarray(scipy.special.gammaln(order + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(order - k + 1))


def _log_differences(logarithms: FloatArray) -> FloatArray:
    """Return the logarithms of the magnitudes of a sequence's forward differences at 0, of every order."""
    values, positive = logarithms, np.ones(len(logarithms), dtype=bool)
    found = [float(values[0])]
    while len(values) > 1:
        before, after, alike = values[:-1], values[1:], positive[:-1] == positive[1:]
        larger, smaller = np.maximum(before, after), np.minimum(before, after)
        # Equal magnitudes that cancel leave nothing.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.isneginf(smaller), 0.0, np.exp(smaller - larger))
            values = larger + np.where(alike, np.log1p(-ratio), np.log1p(ratio))
        positive = np.where(alike, positive[1:] == (after >= before), positive[1:])
        found.append(float(values[0]))
    return np.array(found)
