"""Unbiased estimates of squared z-scores from counts of supporters, and variance factors.

A count of supporters has the generating function ``(1 - p + p s)**k (1 - q + q s)**(n - k)``, where k of n clients hold the item. Its
derivative is a multiple of the function itself except for the two factors. For every function g, this gives ``E[k (p - q) g(count)]`` as
the mean of a function of the count alone: Stein's identity for sums of two binomials (Hudson 1978, *A natural identity for exponential
families*, for Poisson counts). Applied twice, the identity gives the mean of the squared error over any variance that is a function of the
count.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray

OfCount = Callable[[FloatArray], FloatArray]
OfCounts = Callable[[FloatArray, FloatArray], FloatArray]

# Number of supporters with a relative error of a fifth. With more supporters, an item's count and its variance hardly depend on the same
# noise.
FEW_SUPPORTERS = 25
# Share of the number of items that the sum of the items' scores must exceed for a level other than 1.
LEAST_SHARE = 0.1
# Limits of the level, as unbiased estimates of a ratio of variances may even be negative.
LEAST_LEVEL, LARGEST_LEVEL = 0.25, 4.0


@dataclass(frozen=True)
class SupportLaw:
    """Law of an item's number of supporters: probability p for holders, q for other clients.

    Attributes
    ----------
    clients : float or ndarray
        Number n of clients, the same for all items or one per item.
    held_support, other_support : float
        The probabilities p and q.
    """

    clients: float | FloatArray
    held_support: float
    other_support: float

    def times_holders(self, function: OfCount) -> OfCount:
        """Return a function of the count whose mean is E[k (p - q) `function`(count)], for every k."""
        p, q, others = self.held_support, self.other_support, self.clients * self.other_support

        def product(counts: FloatArray) -> FloatArray:
            here, above = function(counts), function(counts + 1)
            below = (1 - p) * (1 - q) * function(counts - 1)
            return counts * (below + ((1 - p) * q + p * (1 - q)) * here + p * q * above) - others * ((1 - p) * here + p * above)

        return product

    def squared_scores(self, counts: FloatArray, variance: OfCount) -> FloatArray:
        """Return unbiased estimates of the squared z-scores of counts.

        A squared z-score is a count's squared error over `variance`, a function of the count.

        Examples
        --------
        >>> law = SupportLaw(100, held_support=0.5, other_support=0.1)
        >>> law.squared_scores(np.array([8.0, 10.0]), lambda counts: np.full(counts.shape, 9.0)).round(3).tolist()
        [0.911, 1.0]
        """

        def excess(counts: FloatArray) -> FloatArray:
            return counts - self.clients * self.other_support

        def precision(counts: FloatArray) -> FloatArray:
            return 1 / variance(counts)

        linear = self.times_holders(lambda counts: excess(counts) * precision(counts))
        square = self.times_holders(self.times_holders(precision))
        return np.asarray(excess(counts) ** 2 * precision(counts) - 2 * linear(counts) + square(counts))


@dataclass(frozen=True)
class SignLaw:
    """Law of messages for and against an item; other clients send both equally often.

    With S messages for the item and R against it, only holders contribute to the difference of the generating function's two derivatives,
    which gives ``E[k (p - r) g(S, R)]``, as above.

    Attributes
    ----------
    held_support, held_denial : float
        Probabilities p and r with which a client that holds the item sends a message for it and against it.
    """

    held_support: float
    held_denial: float

    def times_holders(self, function: OfCounts) -> OfCounts:
        """Return a function of the counts whose mean is E[k (p - r) `function`(S, R)], for every k."""
        p, r = self.held_support, self.held_denial
        other = 1 - p - r

        def product(inside: FloatArray, outside: FloatArray) -> FloatArray:
            here = function(inside, outside)
            fewer_inside = r * function(inside - 1, outside + 1) + other * function(inside - 1, outside)
            fewer_outside = p * function(inside + 1, outside - 1) + other * function(inside, outside - 1)
            return inside * (p * here + fewer_inside) - outside * (r * here + fewer_outside)

        return product

    def squared_scores(self, inside: FloatArray, outside: FloatArray, variance: OfCounts) -> FloatArray:
        """Return unbiased estimates of the squared z-scores of differences ``S - R``.

        A squared z-score is the squared error of ``S - R`` over `variance`, a function of S and R.

        Examples
        --------
        >>> law = SignLaw(held_support=0.7, held_denial=0.1)
        >>> law.squared_scores(np.array([8.0]), np.array([2.0]), lambda inside, outside: np.full(inside.shape, 9.0)).round(3).tolist()
        [0.711]
        """

        def precision(inside: FloatArray, outside: FloatArray) -> FloatArray:
            return 1 / variance(inside, outside)

        linear = self.times_holders(lambda inside, outside: (inside - outside) * precision(inside, outside))
        square = self.times_holders(self.times_holders(precision))
        score = (inside - outside) ** 2 * precision(inside, outside) - 2 * linear(inside, outside) + square(inside, outside)
        return np.asarray(score)


def calibrating_levels(scores: FloatArray, counts: FloatArray, standing: NDArray[np.bool_]) -> FloatArray:
    """Return factors of the items' variances that make the mean squared z-score 1.

    A common level applies to all items except for precise items, which are above the noise and have 25 supporters or more. The difference
    of the level from 1 is shrunk by its sampling error (James, Stein 1961, positive part).

    Parameters
    ----------
    scores : ndarray, shape (items,)
        Unbiased estimates of squared z-scores.
    counts : ndarray, shape (items,)
        Numbers of supporters.
    standing : ndarray of bool, shape (items,)
        Whether items are above the noise.
    """
    mean, sampling = float(scores.mean()), float(scores.var()) / len(scores)
    excess = (mean - 1) * max(0.0, 1 - sampling / max((mean - 1) ** 2, 1e-300))
    few = (counts < FEW_SUPPORTERS) | ~standing
    of_few = float(scores[few].sum())
    level = 1.0
    if of_few > LEAST_SHARE * len(scores):
        left = of_few - excess * len(scores)
        level = min(max(of_few / left, LEAST_LEVEL), LARGEST_LEVEL) if left > 0 else LARGEST_LEVEL
    return np.where(few, level, 1.0)


def likely_shift(decoded: FloatArray, likely: FloatArray, standing: NDArray[np.bool_]) -> float:
    """Return the shift that lowers the items within the noise, but not below 0."""
    others = ~standing
    return float(decoded[others].max() - likely[others].max()) if others.any() else float(decoded.max())
