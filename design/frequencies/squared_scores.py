"""Unbiased estimates of squared z-scores from counts of supporters, and the level of standard errors that makes their mean 1.

A count of supporters has the generating function ``(1 - p + p s)**k (1 - q + q s)**(n - k)``, where k of n clients hold the item. Its
derivative is a multiple of itself but for the two factors, which gives ``E[k (p - q) g(count)]`` as the mean of a function of the count
alone, for every function g: Stein's identity for sums of two binomials (Hudson 1978, *A natural identity for exponential families*, for
Poisson counts). Applied twice, it gives the mean of the squared error over any variance that is a function of the count.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray

OfCount = Callable[[FloatArray], FloatArray]

# A relative error of a fifth: where an item has more supporters, its count and its variance hardly depend on the same noise.
FEW_SUPPORTERS = 25
# The level is read from items with few supporters if they are at least this share of all.
LEAST_SHARE = 0.1
# Unbiased estimates of a ratio of variances may be as little as negative.
LEAST_LEVEL, LARGEST_LEVEL = 0.25, 4.0


@dataclass(frozen=True)
class SupportLaw:
    """Law of an item's number of supporters among clients: each that holds it supports it with probability p, each other with q.

    Attributes
    ----------
    clients : int
        Number n of clients.
    held_support, other_support : float
        The probabilities p and q.
    """

    clients: int
    held_support: float
    other_support: float

    def times_holders(self, function: OfCount) -> OfCount:
        """Return a function of the count whose mean is that of ``k (p - q) function``, for every number k of holders."""
        p, q, others = self.held_support, self.other_support, self.clients * self.other_support

        def product(counts: FloatArray) -> FloatArray:
            here, above = function(counts), function(counts + 1)
            below = (1 - p) * (1 - q) * function(counts - 1)
            return counts * (below + ((1 - p) * q + p * (1 - q)) * here + p * q * above) - others * ((1 - p) * here + p * above)

        return product

    def squared_scores(self, counts: FloatArray, variance: OfCount) -> FloatArray:
        """Return unbiased estimates of the squared error of counts over a variance that is a function of them.

        Examples
        --------
        >>> law = SupportLaw(100, held_support=0.5, other_support=0.1)
        >>> law.squared_scores(np.array([8.0, 10.0]), lambda counts: np.full(counts.shape, 9.0)).round(3).tolist()
        [0.844, 1.0]
        """

        def excess(counts: FloatArray) -> FloatArray:
            return counts - self.clients * self.other_support

        def precision(counts: FloatArray) -> FloatArray:
            return 1 / variance(counts)

        linear = self.times_holders(lambda counts: excess(counts) * precision(counts))
        square = self.times_holders(self.times_holders(precision))
        return excess(counts) ** 2 * precision(counts) - 2 * linear(counts) + square(counts)


def calibrating_levels(law: SupportLaw, counts: FloatArray, variance: OfCount, standing: float) -> FloatArray:
    """Return what to multiply each item's variance by, for the mean squared z-score over all items to be 1.

    One level is for all items but those with 25 supporters and more that also are above the count `standing`, whose variance is well
    known. It differs from 1 by as much as it stands out of its own sampling error (James, Stein 1961, positive part).
    """
    values, places, numbers = np.unique(counts, return_inverse=True, return_counts=True)
    scores = law.squared_scores(values, variance)
    mean = float(np.average(scores, weights=numbers))
    sampling = float(np.average((scores - mean) ** 2, weights=numbers)) / len(counts)
    excess = (mean - 1) * max(0.0, 1 - sampling / max((mean - 1) ** 2, 1e-300))
    few = (values < FEW_SUPPORTERS) | (values <= standing)
    levels, of_few = np.ones(len(values)), float(np.sum((scores * numbers)[few]))
    if of_few > LEAST_SHARE * len(counts):
        left = of_few - excess * len(counts)
        levels[few] = min(max(of_few / left, LEAST_LEVEL), LARGEST_LEVEL) if left > 0 else LARGEST_LEVEL
    return np.asarray(levels[places.ravel()])
