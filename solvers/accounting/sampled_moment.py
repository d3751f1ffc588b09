"""Log moments of a loss that is there with a small probability: a binomial sum with what is 1 in all of its terms taken out."""

import math

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import UNIT


def sampled_log_moment(exponents: NDArray[np.float64], population: int) -> float:
    """Return ln E[((1 - 1/N) + Y/N)^a] in nats, where Y has mean 1 and its moments of order j from 2 to a are exp(x_j).

    It is ln(1 + sum_j C(a, j) (1/N)^j (1 - 1/N)^(a - j) (exp(x_j) - 1)), summed over j from 2: the terms 0 and 1 of the binomial sum are
    1, and all binomial probabilities sum to 1. What is left is positive, so that nothing cancels where all of it is small. Errs upward, by
    about 1e-13 of itself at usual orders.

    Parameters
    ----------
    exponents : ndarray of shape (order - 1,)
        x_j for j = 2, ..., a, above 0.
    population : int
        N, at least 1.

    Examples
    --------
    >>> round(sampled_log_moment(np.array([1.0]), 10), 12), round(math.log1p(math.expm1(1.0) / 100), 12)
    (0.017036863236, 0.017036863236)
    """
    if population == 1:
        return float(exponents[-1]) * (1 + 8 * UNIT)
    order = len(exponents) + 1
    chosen = np.arange(1.0, order + 1)
    binomials = np.cumsum(np.log((order - chosen + 1) / chosen))
    drawn, others = -chosen * math.log(population), (order - chosen) * math.log1p(-1 / population)
    # ln(exp(x) - 1) = x + ln(1 - exp(-x)).
    excess = np.log(-np.expm1(-exponents))
    terms = (binomials + drawn + others)[1:] + exponents + excess
    # Every logarithm is right to a few units in its last place, and so is every step of the running sum, which never exceeds its peak.
    sizes = (binomials - drawn - others)[1:] + exponents - excess
    terms += 2 * UNIT * (16 + 4 * sizes + (chosen * np.maximum.accumulate(binomials))[1:])
    largest = float(terms.max())
    return float(np.logaddexp(0.0, largest + math.log(np.exp(terms - largest).sum()))) * (1 + 8 * UNIT)
