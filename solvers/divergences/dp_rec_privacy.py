"""Privacy of DP-REC, relative entropy coding with sampled clients: Rényi divergences of a draw, and what too few bits cost in delta.

Triastcyn, Reisser, Louizos 2021, *DP-REC: Private & Communication-Efficient Federated Learning*. A client shows 2**bits samples of the
prior N(0, sigma^2 I), drawn from a shared seed, and sends the index of one, chosen by the weights q / p of its own N(update, sigma^2 I).
A round draws clients with replacement.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...arguments import check_choice, check_integer, check_probability, check_real
from ..accounting.renyi_curve import check_delta
from ..accounting.sampled_moment import sampled_log_moment
from ..numerics.bisection import first_true
from ..numerics.rounding import UNIT

VARIANTS = ("published", "conservative")
# Largest Rényi order that is tried. Sampling stops to help long before, except where clip ratios are tiny.
LARGEST_ORDER = 2**14
SMALLEST_CLIP_RATIO, LARGEST_CLIP_RATIO = 1e-6, 100.0
LARGEST_POPULATION = 10**12
MOST_DRAWS = 10**15
MOST_BITS = 10**6
# Constant of the probability with which the weights of 2**bits samples are not as their mean (DP-REC, theorem 1 and lemma 2).
WEIGHTS_CONSTANT = 12


@dataclass(frozen=True)
class DpRecEpsilon:
    """Epsilon of DP-REC at a failure probability.

    Attributes
    ----------
    epsilon : float
        Privacy parameter of all draws together; errs upward. Infinite where the bits leave nothing of delta.
    order : int or None
        The Rényi order that gave it; None where epsilon is infinite.
    at_edge : bool
        Whether that order is the largest that was tried, so that others might give less.
    """

    epsilon: float
    order: int | None
    at_edge: bool


def check_clip_ratio(clip_ratio: float) -> float:
    """Return the clip norm of a client's update over the standard deviation of the prior, if it is from 1e-6 to 100."""
    return check_real("clip_ratio", clip_ratio, low=SMALLEST_CLIP_RATIO, high=LARGEST_CLIP_RATIO)


def draw_log_moment(clip_ratio: float, population: int, order: int) -> float:
    """Return a - 1 times the Rényi divergence, at whole order a, of one draw with a client from one without.

    With p and q Gaussians of standard deviation 1 whose means are the clip ratio apart, and N the population,

        (a - 1) D_a((1 - 1/N) p + q/N || p) = ln sum_j C(a, j) (1/N)^j (1 - 1/N)^(a - j) exp(j (j - 1) c^2 / 2)

    (`sampled_log_moment`). The other direction, D_a(p || (1 - 1/N) p + q/N), is never larger (Mironov, Talwar, Zhang
    2019, *Rényi differential privacy of the sampled Gaussian mechanism*, theorem 5). Errs upward, by about 1e-13 of itself at usual orders.

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
    At order 2 it is ln(1 + (exp(c^2) - 1) / N^2).

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
    theorem is printed and as independence would allow. ``"conservative"``, h = 2, puts Hölder's inequality with exponents 2 and 2 in
    between, the best ones because M is convex: the moment of order m / 2 of the sum is at most exp(M(m + 1)).

    Parameters
    ----------
    clip_ratio, population
        As in `draw_log_moment`.
    draws : int
        Number of draws of all rounds together: rounds times clients of a round.
    bits : int
        Bits of a message, all groups together.
    delta : float
        Failure probability, above 0 and below 1.
    variant : str
        ``"published"`` or ``"conservative"``.

    Examples
    --------
    FEMNIST at 3500 clients, 4000 rounds of 100, where the paper says 3.

    >>> [round(dp_rec_epsilon(1.41, 3500, 400_000, 56, 3500**-1.1, variant).epsilon, 3) for variant in VARIANTS]
    [3.016, 4.512]
    """
    check_choice("variant", variant, VARIANTS)
    left = check_delta(delta) - lost_delta(clip_ratio, draws, bits)
    # The difference is rounded downward.
    left -= 4 * UNIT * delta
    if not left > 0:
        return DpRecEpsilon(math.inf, None, at_edge=False)
    constant = -math.log(left) * (1 if variant == "published" else 2)

    @cache
    def epsilon(moment: int) -> float:
        return (2 * draws * draw_log_moment(clip_ratio, population, moment + 1) + constant) / moment * (1 + 16 * UNIT)

    # It falls, and then rises, with the order: it is the slope of the chord from a point of the vertical axis below zero to a convex
    # function, the log moment.
    best = first_true(1, LARGEST_ORDER - 1, lambda moment: epsilon(moment + 1) >= epsilon(moment))
    return DpRecEpsilon(epsilon(best), best + 1, at_edge=best == LARGEST_ORDER - 1)


def lost_delta(clip_ratio: float, draws: int, bits: int) -> float:
    """Return the part of delta that coding with 2**bits samples costs: 12 rho / 2**bits, where rho = draws exp(c^2).

    It bounds the probability that in some draw the mean of the 2**bits weights is far from 1: exp(c^2) is their second moment, the
    exponential of the divergence of order 2 of the target from the prior. Errs upward; above 1, or infinite, it says nothing.

    Examples
    --------
    >>> round(lost_delta(1.0, 1000, 40), 12), round(12 * 1000 * math.e / 2**40, 12)
    (2.9667e-08, 2.9667e-08)
    """
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    logarithm = _log_weights(clip_ratio, draws) - bits * math.log(2)
    # Beyond e^700 there are no floats. Both terms of the logarithm, of at most 8 units each, are at most the bits and itself together.
    return math.inf if logarithm > 700 else math.exp(logarithm) * (1 + 16 * UNIT * (1 + bits + abs(logarithm)))


def fewest_dp_rec_bits(clip_ratio: float, draws: int, delta: float) -> int:
    """Return the fewest bits of a message with which DP-REC's epsilon is finite: `lost_delta` is below delta.

    Examples
    --------
    StackOverflow in the paper's setting, where 6 groups of 7 bits are too few.

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
    """Return how many bits of a message are enough: log2(12) + D_2 / ln 2 - log2(lost / messages), DP-REC's lemma 2.

    D_2 is the square of the clip ratio, `lost` the part of delta that coding may cost, and `messages` the number of messages that share it:
    for a whole training, the draws. The next whole number of bits costs at most `lost`.

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
