"""The exact composition of pure epsilon privacy over rounds.

Binary randomised response dominates every epsilon-private mechanism, so its composition is the worst case.
"""

import math
from bisect import bisect_left

import numpy as np
import scipy

from ...arguments import check_integer, check_real
from ..numerics.rounding import UNIT
from .pure_privacy import LARGEST_EPSILON
from .renyi_curve import check_delta

MOST_COMPOSED_ROUNDS = 10**6
# Smallest delta; below it, probabilities too small for floats could add up to delta.
LEAST_DELTA = 1e-300


def composed_pure_epsilon(epsilon: float, rounds: int, delta: float) -> float:
    """Return the epsilon of several uses of an epsilon-private mechanism, at a given delta.

    The number of uses is from 1 to 10**6. After T rounds of binary randomised response the privacy loss is (2 K - T) epsilon with K
    binomial, so that

        delta(e) = sum over losses above e of P(K = k) (1 - exp(e - (2 k - T) epsilon)),

    The function solves this for e in closed form between two losses (Kairouz, Oh, Viswanath 2015, *The composition theorem for differential
    privacy*, theorem 3.3, which states it at the losses only). There is no grid: the result is exact for a mechanism of which only epsilon
    is known, even if mechanisms are chosen adaptively. It is rounded up, and is at most ``rounds * epsilon``.

    Examples
    --------
    >>> round(composed_pure_epsilon(0.1, 100, 1e-5), 4), round(composed_pure_epsilon(0.1, 100, 1e-300), 4)
    (4.3068, 10.0)
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_COMPOSED_ROUNDS)
    delta = check_delta(delta)
    if epsilon == 0 or delta < LEAST_DELTA:
        return rounds * epsilon
    count = np.arange(rounds + 1)
    # These are the logarithms of the probabilities of 0, 1, ... truthful answers; the largest terms are about (rounds ln rounds), with the
    # rounding error of such numbers.
    kept, flipped = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    logs = (
        scipy.special.gammaln(rounds + 1)
        - scipy.special.gammaln(count + 1)
        - scipy.special.gammaln(rounds - count + 1)
        + count * kept
        + (rounds - count) * flipped
    )
    probabilities = np.exp(logs)
    # Relative error of a sum of probabilities: log-gammas of 8 units each, products of 6, four sums, and as many terms as rounds. The error
    # of the quotient below counts as an error of delta.
    slack = 32 * UNIT * (scipy.special.gammaln(rounds + 1) + rounds * epsilon + rounds)
    allowed = delta * (1 - min(slack, 0.5))

    def failure(index: int) -> float:
        """Return delta at the privacy loss of `index` truthful answers, by positive terms only.

        That loss is (2 index - rounds) epsilon.
        """
        above = np.arange(rounds + 1 - index)
        return float(probabilities[index:] @ -np.expm1(-2 * epsilon * above))

    # Take the smallest loss whose failure probability is allowed; the largest loss always qualifies.
    high = bisect_left(range(rounds), True, key=lambda index: failure(index) <= allowed)
    loss = (2 * high - rounds) * epsilon
    weight = float(probabilities[high:] @ np.exp(-2 * epsilon * np.arange(rounds + 1 - high)))
    spare = allowed - failure(high)
    # Below that loss, delta rises by (1 - e^(e - loss)) times this weight.
    rise = math.log1p(-spare / weight) if spare < weight else (0.0 if weight == 0 else -2 * epsilon)
    # Rounding errors of terms are at most 8 units each, relative to the loss and 2 epsilon, and may nearly cancel.
    return min(max(loss + rise + 8 * UNIT * (abs(loss) + 2 * epsilon), 0.0), rounds * epsilon)
