"""Rényi divergences of a Poisson-sampled round of Gaussian noise at orders that are not whole: a series, summed on the safe side.

Mironov, Talwar, Zhang 2019, *Rényi differential privacy of the sampled Gaussian mechanism*, section 3.3. With the likelihood ratio
L = e^((2 x - 1) / (2 z^2)), x normal with deviation z, the cumulant (a - 1) r(a) is ln E[(1 - q + q L)^a]. Below x0 = z^2 ln(1 / q - 1) +
1/2 the power is expanded by u = q L / (1 - q), above by 1 / u, both at most 1. From the term ceil(a) on, the signs alternate and the
magnitudes fall, for each x, so that what is cut off is less than any of the terms before. As dp-accounting does, we add up magnitudes:
a negative term that counts as a positive one makes up for all that is cut off, and the figures are those of that package. It stops where
terms are small, or gives up; this sums the same number of terms everywhere, in a form in which large exponents do not cancel.
"""

import math

import numpy as np
import scipy

from ...arrays import FloatArray
from ..numerics.log_sum_exp import log_sum_exp
from ..numerics.rounding import UNIT

TERMS_AFTER_ORDER = 1000


def sampled_gaussian_cumulants(noise_multiplier: float, probability: float, orders: FloatArray) -> FloatArray:
    """Return (a - 1) r(a) of a round of Gaussian noise in which each client takes part with a probability below 1; errs upward.

    For add-or-remove-one adjacency. The divergence is that of the mixture from the noise alone, the larger of both directions (theorem 5
    there). It is close where z is at most about 1; where noise is large, the chord between whole orders is lower.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity.
    probability : float
        Probability q, above 0 and below 1.
    orders : ndarray of shape (orders,)
        Orders a above 1, none of them whole, up to 100.

    Examples
    --------
    >>> sampled_gaussian_cumulants(1.0, 0.01, np.array([1.5, 2.5])).round(7).tolist()
    [6.62e-05, 0.0003267]
    """
    square, log_odds = noise_multiplier**2, math.log1p(-probability) - math.log(probability)
    middle = square * log_odds + 0.5
    rows = [_logarithm(order, noise_multiplier, probability, middle) for order in orders.tolist()]
    # Exponents are sums of a dozen numbers of at most this size, and a binomial coefficient is off by two units for each of its factors.
    # The moment is at least 1, and terms with a factor exp(-500), too small to count, are the only ones with larger exponents.
    sizes = orders**2 / square + orders * (abs(math.log(probability)) + abs(math.log1p(-probability))) + min(middle**2 / square, 1000.0)
    return np.maximum(np.array(rows) + UNIT * (4 * TERMS_AFTER_ORDER + 32 * sizes), 0.0)


def _logarithm(order: float, deviation: float, probability: float, middle: float) -> float:
    count = math.ceil(order) + TERMS_AFTER_ORDER + 1
    number = np.arange(count)
    coefficients = np.concatenate([[1.0], np.cumprod(np.abs(order - number[:-1]) / (number[:-1] + 1))])
    log_rate, log_rest = math.log(probability), math.log1p(-probability)
    total = []
    # u^i below the middle, and u^(a - i) above it: a normal integral, of which Mills' ratio is left where exponents cancel.
    for powers, sign in ((number, 1.0), (order - number, -1.0)):
        room = sign * (middle - powers) / deviation
        inside = powers * log_rate + (order - powers) * log_rest + powers * (powers - 1) / (2 * deviation**2) + scipy.special.log_ndtr(room)
        beyond = order * log_rest - (middle / deviation) ** 2 / 2 + np.log(scipy.special.erfcx(np.maximum(-room, 0.0) / math.sqrt(2)) / 2)
        total.append(np.where(room > 0, inside, beyond))
    return float(log_sum_exp(np.concatenate(total), weights=np.tile(coefficients, 2)))
