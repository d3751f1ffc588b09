"""Privacy of the indices that DP-REC sends, for any number of bits and groups: derived from the weights as they are normalised.

With public samples w_1, ..., w_K of N(0, I) and an update x, the index k has the probability y_k / K, where y_k is the weight
exp(<x, w_k>) over the mean weight. The numbers <x, w_k> are Gaussian with variance ||x||^2, and less their own mean they have the variance
(1 - 1/K) ||x||^2; less the mean, the mean of their exponentials is at least 1. So y_k is at most the exponential of such a number, and

    E[mean of y^j] <= exp(j^2 ||x||^2 / 2)

for any number of samples. Groups have weights and samples of their own: y is a product over groups, and the squared norms add up. Beside
what a round reveals of whether a client was drawn, there is what one message reveals to who receives it, between any two updates.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer
from ...arrays import FloatArray
from ..accounting.pure_privacy import check_orders
from ..accounting.renyi_curve import EpsilonAtDelta, RenyiCurve
from ..accounting.sampled_moment import sampled_log_moment
from ..numerics.rounding import UNIT
from .dp_rec_privacy import LARGEST_POPULATION, MOST_DRAWS, check_clip_ratio

# Every small order, then geometrically. The smallest give epsilon where it is large.
ORDERS = (*range(2, 64), *(round(64 * 2 ** (k / 4)) for k in range(29)))


def index_log_moment(clip_ratio: float, population: int, order: int) -> float:
    """Return a bound on a - 1 times the Rényi divergence, at order a, of the indices of a draw with a client from one without, both ways.

    Without the client all indices are as likely, u = 1/K; with it they have the probability (1 - 1/N) u + (1/N) y u. There,
    E[((1 - 1/N) + y/N)^a] is a binomial sum whose moments of y are at most exp(j^2 c^2 / 2), those of order 0 and 1 being 1
    (`sampled_log_moment`). Back, with l = a - 1, the function f(y) = ((1 - 1/N) + y/N)^-l is at most

        1 - l (y - 1) / N + l (l + 1) / 2 (1 - 1/N)^-(l + 2) (y - 1)^2 / N^2,    where E[(y - 1)^2] <= exp(2 c^2) - 1,

    by Taylor's theorem, since its second derivative falls, and, because f is convex in the mixture, at most (1 - 1/N) + y^-l / N, where
    E[y^-l] <= exp(l^2 c^2): y_k^-l is at most the mean over i of exp(l (<x, w_i> - <x, w_k>)). The smaller of the two counts.

    Parameters are those of `dp_rec_privacy.draw_log_moment`, with orders up to 8192; in nats, errs upward.

    Examples
    --------
    >>> round(index_log_moment(1.0, 10, 2), 6), round(math.log1p(math.expm1(2.0) / 100), 6)
    (0.084011, 0.061933)
    """
    ratio = check_clip_ratio(clip_ratio)
    population = check_integer("population", population, low=1, high=LARGEST_POPULATION)
    order = check_integer("order", order, low=2, high=ORDERS[-1])
    there = sampled_log_moment(np.arange(2.0, order + 1) ** 2 * (ratio**2 / 2), population)
    less, share = order - 1, math.log(population)
    back = _log_expm1(less**2 * ratio**2) - share
    if population > 1:
        curved = math.log(less * order / 2) - (less + 2) * math.log1p(-1 / population) + _log_expm1(2 * ratio**2) - 2 * share
        back = min(back, curved)
    # Terms of at most 8 units each: beside `share`, up to 18, 28, and 60 more where they cancel.
    return max(there, float(np.logaddexp(0.0, back + 16 * UNIT * (60 + abs(back) + 2 * share))))


def message_divergences(clip_ratio: float, orders: ArrayLike) -> FloatArray:
    """Return bounds on the Rényi divergence of one message for any two updates, for any number of bits and any groups.

    With y and y' the weights of updates x and x' over their means, y_k <= exp(<x, w_k> - mean over j of <x, w_j>) and, for a >= 2,
    y'_k^(1 - a) is at most the mean over i of exp((a - 1) <x', w_i - w_k>). The exponents of the product are Gaussian, with at most the
    variance a^2 |x|^2 + 2 (a - 1)^2 |x'|^2 + 2 a (a - 1) |x| |x'|. Groups are independent, and their variances add up. So

        D_a <= (5 a^2 - 6 a + 2) / (2 (a - 1)) c^2,

    where infinitely many samples would have, at opposite updates, 2 a c^2. Divergences rise with their order: those below 2 are at most
    that of order 2; infinity gives infinity. In nats, for replace-one adjacency; err upward.

    Examples
    --------
    >>> message_divergences(0.5, [1.5, 2, 8]).round(6).tolist()
    [1.25, 1.25, 4.892857]
    """
    ratio = check_clip_ratio(clip_ratio)
    order = np.maximum(check_orders(orders), 2.0)
    finite = np.where(np.isinf(order), 2.0, order)
    bounds = (5 * finite**2 - 6 * finite + 2) / (2 * (finite - 1)) * ratio**2 * (1 + 32 * UNIT)
    return np.asarray(np.where(np.isinf(order), math.inf, bounds))


def index_epsilon(clip_ratio: float, population: int, draws: int, delta: float) -> EpsilonAtDelta:
    """Return epsilon of DP-REC by the indices that it sends, for any number of bits and any groups.

    Parameters
    ----------
    clip_ratio : float
        Clip norm of a client's whole update over the standard deviation of the prior, from 1e-6 to 100.
    population : int
        Number of clients that a draw chooses from, at least 1.
    draws : int
        Number of draws of all rounds together.
    delta : float
        Failure probability, above 0 and below 1.

    Returns
    -------
    EpsilonAtDelta
        Epsilon, by the optimal conversion; errs upward.

    Examples
    --------
    >>> found = index_epsilon(0.545, 100, 10_000, 100**-1.1)
    >>> round(found.epsilon, 3), found.order
    (2.645, 4.0)
    """
    draws = check_integer("draws", draws, low=1, high=MOST_DRAWS)
    orders = np.array(ORDERS, dtype=float)
    moments = np.array([index_log_moment(clip_ratio, population, order) for order in ORDERS])
    return RenyiCurve(orders, draws * moments / (orders - 1)).epsilon(delta)


def _log_expm1(exponent: float) -> float:
    """Return ln(exp(x) - 1) of a number above 0."""
    return exponent + math.log(-math.expm1(-exponent))
