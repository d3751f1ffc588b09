"""Privacy of DP-REC, relative entropy coding with sampled clients.

The module computes the Rényi divergences of a draw, and the cost of few bits in delta.

Triastcyn, Reisser, Louizos 2021, *DP-REC: Private & Communication-Efficient Federated Learning*. A client draws 2**bits samples of the
prior N(0, sigma^2 I) from a shared seed. It sends the index of a sample, chosen by the weights q / p of its own N(update, sigma^2 I). A
round draws clients with replacement. `dp_rec_epsilon` is the published accountant, and its repair.

*Indices.* `index_epsilon` holds for any number of bits and groups: its proof uses the normalised weights. With public samples w_1, ..., w_K
of N(0, I) and an update x, the index k has the probability y_k / K, where y_k is the weight exp(<x, w_k>) over the mean weight. The numbers
<x, w_k> are Gaussian with variance ||x||^2, and less their own mean they have the variance (1 - 1/K) ||x||^2; less the mean, the mean of
their exponentials is at least 1. So y_k is at most the exponential of a Gaussian number of that variance, and

    E[mean of y^j] <= exp(j^2 ||x||^2 / 2)

for any number of samples. Groups have separate weights and samples: y is a product over groups, and the squared norms add up. A bound on a
round covers how much it reveals of whether a client was drawn; `message_divergences` bounds how much a message reveals to its receiver, for
any two updates.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_choice, check_integer, check_probability, check_real
from ...arrays import FloatArray
from ..accounting.pure_privacy import check_orders
from ..accounting.renyi_curve import EpsilonAtDelta, RenyiCurve, check_delta
from ..numerics.bisection import first_true
from ..numerics.rounding import UNIT

# Orders of the account, which are every small order, then a geometric sequence. The smallest orders give epsilon if it is large.
ORDERS = (*range(2, 64), *(round(64 * 2 ** (k / 4)) for k in range(29)))

VARIANTS = ("published", "conservative")
# Largest Rényi order to try. Sampling stops amplifying privacy at much smaller orders, except for tiny clip ratios.
LARGEST_ORDER = 2**14
SMALLEST_CLIP_RATIO, LARGEST_CLIP_RATIO = 1e-6, 100.0
LARGEST_POPULATION = 10**12
MOST_DRAWS = 10**15
MOST_BITS = 10**6
# Constant of the probability that the weights of 2**bits samples differ from their mean (DP-REC, theorem 1 and lemma 2).
WEIGHTS_CONSTANT = 12


@dataclass(frozen=True)
class DpRecEpsilon:
    """Epsilon of DP-REC at a failure probability.

    Attributes
    ----------
    epsilon : float
        Upper bound on epsilon of all draws together; infinite if the bits use up all of delta.
    order : int or None
        Rényi order of the best bound; None if epsilon is infinite.
    at_edge : bool
        Whether the order is the largest order tried, so that larger orders might give less.
    """

    epsilon: float
    order: int | None
    at_edge: bool


def check_clip_ratio(clip_ratio: float) -> float:
    """Return a clip ratio, if it is from 1e-6 to 100.

    The clip ratio is the clip norm of a client's update over the standard deviation of the prior.
    """
    return check_real("clip_ratio", clip_ratio, low=SMALLEST_CLIP_RATIO, high=LARGEST_CLIP_RATIO)


def draw_log_moment(clip_ratio: float, population: int, order: int) -> float:
    """Return a - 1 times the Rényi divergence of a draw with a client from a draw without.

    The order a is whole. With p and q Gaussians of standard deviation 1 whose means are the clip ratio apart, and N the population,

        (a - 1) D_a((1 - 1/N) p + q/N || p) = ln sum_j C(a, j) (1/N)^j (1 - 1/N)^(a - j) exp(j (j - 1) c^2 / 2)

    The sum is that of `sampled_log_moment`. The other direction, D_a(p || (1 - 1/N) p + q/N), is never larger (Mironov, Talwar, Zhang 2019,
    *Rényi differential privacy of the sampled Gaussian mechanism*, theorem 5). The result is an upper bound, too large by a relative 1e-13
    or so at usual orders.

    Parameters
    ----------
    clip_ratio : float
        Clip norm of a client's update over the standard deviation of the prior, from 1e-6 to 100.
    population : int
        Number of clients that a draw chooses from, at least 1.
    order : int
        Rényi order, from 2 to 16384.

    Examples
    --------
    At order 2 the result is ln(1 + (exp(c^2) - 1) / N^2).

    >>> round(draw_log_moment(1.0, 10, 2), 12), round(math.log1p(math.expm1(1.0) / 100), 12)
    (0.017036863236, 0.017036863236)
    """
    clip_ratio = check_clip_ratio(clip_ratio)
    population = check_integer("population", population, low=1, high=LARGEST_POPULATION)
    chosen = np.arange(2.0, check_integer("order", order, low=2, high=LARGEST_ORDER) + 1)
    return sampled_log_moment(chosen * (chosen - 1) * (clip_ratio**2 / 2), population)


def dp_rec_epsilon(clip_ratio: float, population: int, draws: int, bits: int, delta: float, variant: str = "published") -> DpRecEpsilon:
    """Return the smallest epsilon that DP-REC's theorem proves over whole orders.

    With M(a) the log moment of a draw (`draw_log_moment`) and 12 rho / 2**bits the part of delta that the bits cost (`lost_delta`),

        epsilon = min over whole m of  (2 draws M(m + 1) - h ln(delta - 12 rho / 2**bits)) / m

    The privacy loss of a draw is a sum of two terms, the ratio of the targets at the chosen sample and the ratio of the sums of weights.
    The moments of both are at most exp(M), but they are not independent. ``"published"``, h = 1, adds M twice at the same order, as the
    theorem is printed and as independence would allow. ``"conservative"``, h = 2, uses Hölder's inequality with exponents 2 and 2 instead,
    the best exponents because M is convex: the moment of order m / 2 of the sum is at most exp(M(m + 1)).

    Parameters
    ----------
    clip_ratio, population
        Clip ratio and population, as in `draw_log_moment`.
    draws : int
        Number of draws of all rounds together: rounds times clients of a round.
    bits : int
        Number of bits of a message, all groups together.
    delta : float
        Failure probability, above 0 and below 1.
    variant : str
        ``"published"`` or ``"conservative"``.

    Examples
    --------
    The example is FEMNIST with 3500 clients and 4000 rounds of 100, for which the paper states 3.

    >>> [round(dp_rec_epsilon(1.41, 3500, 400_000, 56, 3500**-1.1, variant).epsilon, 3) for variant in VARIANTS]
    [3.016, 4.512]
    """
    check_choice("variant", variant, VARIANTS)
    left = check_delta(delta) - lost_delta(clip_ratio, draws, bits)
    # Round the difference downward.
    left -= 4 * UNIT * delta
    if not left > 0:
        return DpRecEpsilon(math.inf, None, at_edge=False)
    constant = -math.log(left) * (1 if variant == "published" else 2)

    @cache
    def epsilon(moment: int) -> float:
        return (2 * draws * draw_log_moment(clip_ratio, population, moment + 1) + constant) / moment * (1 + 16 * UNIT)

    # Epsilon falls, and then rises, with the order: it is the slope of the chord from a point of the vertical axis below zero to a convex
    # function, the log moment.
    best = first_true(1, LARGEST_ORDER - 1, lambda moment: epsilon(moment + 1) >= epsilon(moment))
    return DpRecEpsilon(epsilon(best), best + 1, at_edge=best == LARGEST_ORDER - 1)


def lost_delta(clip_ratio: float, draws: int, bits: int) -> float:
    """Return an upper bound on the part of delta that coding with 2**bits samples costs.

    The bound is 12 rho / 2**bits, where rho = draws exp(c^2). It bounds the probability that in some draw the mean of the 2**bits weights
    is far from 1: exp(c^2) is their second moment, the exponential of the divergence of order 2 of the target from the prior. A bound above
    1 is void.

    Examples
    --------
    >>> round(lost_delta(1.0, 1000, 40), 12), round(12 * 1000 * math.e / 2**40, 12)
    (2.9667e-08, 2.9667e-08)
    """
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    logarithm = _log_weights(clip_ratio, draws) - bits * math.log(2)
    # Floats end near e^700. Both terms of the logarithm, of at most 8 units each, are at most the bits plus the logarithm itself.
    return math.inf if logarithm > 700 else math.exp(logarithm) * (1 + 16 * UNIT * (1 + bits + abs(logarithm)))


def fewest_dp_rec_bits(clip_ratio: float, draws: int, delta: float) -> int:
    """Return the fewest bits of a message for which DP-REC's epsilon is finite.

    With these bits, `lost_delta` is below delta.

    Examples
    --------
    The example is StackOverflow in the paper's setting, where 6 groups of 7 bits are too few.

    >>> fewest_dp_rec_bits(1.227, 1500 * 60, 342_477**-1.1)
    43
    """
    delta = check_delta(delta)
    bits = math.floor((_log_weights(clip_ratio, draws) - math.log(delta)) / math.log(2))
    # The whole part of a quotient is too few bits, or just enough if rounding has brought a quotient to the next whole number.
    while not _leaves_some(clip_ratio, draws, bits, delta):
        bits += 1
    return bits


def bit_rate_bound(clip_ratio: float, lost: float, messages: int) -> float:
    """Return a sufficient number of bits of a message, by DP-REC's lemma 2.

    The number is log2(12) + D_2 / ln 2 - log2(lost / messages). D_2 is the square of the clip ratio, `lost` the part of delta that coding
    may cost, and `messages` the number of messages that share it: for a whole training, the draws. The next whole number of bits costs at
    most `lost`.

    Examples
    --------
    >>> bits = bit_rate_bound(1.227, 1e-7, 1500 * 60)
    >>> round(bits, 3), lost_delta(1.227, 1500 * 60, math.ceil(bits)) < 1e-7
    (45.468, True)
    """
    lost = check_probability("lost", lost)
    messages = check_integer("messages", messages, low=1, high=MOST_DRAWS)
    return (_log_weights(clip_ratio, messages) - math.log(lost)) / math.log(2)


def _log_weights(clip_ratio: float, draws: int) -> float:
    """Return ln(12 rho), with rho = draws exp(c^2)."""
    ratio = check_clip_ratio(clip_ratio)
    return math.log(WEIGHTS_CONSTANT * check_integer("draws", draws, low=1, high=MOST_DRAWS)) + ratio**2


def _leaves_some(clip_ratio: float, draws: int, bits: int, delta: float) -> bool:
    return delta - lost_delta(clip_ratio, draws, bits) - 4 * UNIT * delta > 0


def index_log_moment(clip_ratio: float, population: int, order: int) -> float:
    """Return a bound on a - 1 times the Rényi divergence of the indices of a draw.

    The bound compares a draw with a client and a draw without, in both directions, at order a. Without the client all indices are equally
    likely, u = 1/K; with it they have the probability (1 - 1/N) u + (1/N) y u. The first direction, E[((1 - 1/N) + y/N)^a], is a binomial
    sum whose moments of y are at most exp(j^2 c^2 / 2), and 1 for the orders 0 and 1 (`sampled_log_moment`). For the second direction, with
    l = a - 1, the function f(y) = ((1 - 1/N) + y/N)^-l is at most

        1 - l (y - 1) / N + l (l + 1) / 2 (1 - 1/N)^-(l + 2) (y - 1)^2 / N^2,    where E[(y - 1)^2] <= exp(2 c^2) - 1,

    by Taylor's theorem, since its second derivative falls, and, because f is convex in the mixture, at most (1 - 1/N) + y^-l / N, where
    E[y^-l] <= exp(l^2 c^2): y_k^-l is at most the mean over i of exp(l (<x, w_i> - <x, w_k>)). The smaller of the two counts.

    Parameters are those of `dp_rec_privacy.draw_log_moment`, with orders up to 8192; the result is an upper bound in nats.

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
    # Rounding errors of terms are at most 8 units each: up to 18 or 28 terms beside `share`, and 60 more units if they cancel.
    return max(there, float(np.logaddexp(0.0, back + 16 * UNIT * (60 + abs(back) + 2 * share))))


def message_divergences(clip_ratio: float, orders: ArrayLike) -> FloatArray:
    """Return bounds on the Rényi divergence of a message for any two updates.

    The bounds hold for any number of bits and any groups. With y and y' the weights of updates x and x' over their means, y_k <= exp(<x,
    w_k> - mean over j of <x, w_j>) and, for a >= 2, y'_k^(1 - a) is at most the mean over i of exp((a - 1) <x', w_i - w_k>). The exponents
    of the product are Gaussian, with at most the variance a^2 |x|^2 + 2 (a - 1)^2 |x'|^2 + 2 a (a - 1) |x| |x'|. Groups are independent,
    and their variances add up. So

        D_a <= (5 a^2 - 6 a + 2) / (2 (a - 1)) c^2,

    while infinitely many samples would have, at opposite updates, 2 a c^2. Divergences rise with their order: at orders below 2 they are at
    most that of order 2; infinity gives infinity. The upper bounds are in nats, for replace-one adjacency.

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
    """Return epsilon of DP-REC by its indices, for any number of bits and any groups.

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
        Upper bound on epsilon, by the optimal conversion.

    Examples
    --------
    >>> bound = index_epsilon(0.545, 100, 10_000, 100**-1.1)
    >>> round(bound.epsilon, 3), bound.order
    (2.645, 4.0)
    """
    draws = check_integer("draws", draws, low=1, high=MOST_DRAWS)
    orders = np.array(ORDERS, dtype=float)
    moments = np.array([index_log_moment(clip_ratio, population, order) for order in ORDERS])
    return RenyiCurve(orders, draws * moments / (orders - 1)).epsilon(delta)


def _log_expm1(exponent: float) -> float:
    """Return ln(exp(x) - 1) of a number above 0."""
    return exponent + math.log(-math.expm1(-exponent))


def sampled_log_moment(exponents: NDArray[np.float64], population: int) -> float:
    """Return ln E[((1 - 1/N) + Y/N)^a] in nats, given the moments of Y.

    Y has mean 1 and its moments of order j from 2 to a are exp(x_j). The result is ln(1 + sum_j C(a, j) (1/N)^j (1 - 1/N)^(a - j) (exp(x_j)
    - 1)), summed over j from 2: the terms 0 and 1 of the binomial sum are 1, and all binomial probabilities sum to 1. The rest is positive,
    so that small sums do not cancel. The result is an upper bound, too large by a relative 1e-13 or so at usual orders.

    Parameters
    ----------
    exponents : ndarray of shape (order - 1,)
        Logarithms x_j of the moments for j = 2, ..., a, above 0.
    population : int
        Population N, at least 1.

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
    # The identity ln(exp(x) - 1) = x + ln(1 - exp(-x)) avoids overflow.
    excess = np.log(-np.expm1(-exponents))
    terms = (binomials + drawn + others)[1:] + exponents + excess
    # Every logarithm is right to a few units in its last place, and so is every step of the running sum, which never exceeds its peak.
    sizes = (binomials - drawn - others)[1:] + exponents - excess
    terms += 2 * UNIT * (16 + 4 * sizes + (chosen * np.maximum.accumulate(binomials))[1:])
    largest = float(terms.max())
    return float(np.logaddexp(0.0, largest + math.log(np.exp(terms - largest).sum()))) * (1 + 8 * UNIT)
