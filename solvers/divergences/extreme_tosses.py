"""Bounds on the privacy of a sum of coin tosses that hold for all configurations of the other clients.

Each of n clients tosses L coins of probabilities from 1/2 - theta to 1/2 + theta, and the server sees only the total number of successes. A
client's own coins change from one extreme to the other. By the argument of `poisson_binomial_divergence`, each of the M = (n - 1) L other
coins is at one of the extremes; j of them are at the upper extreme. The worst j is unknown (j = 0 or M, wherever all were computed), and
all of them are too many to compute. But if j is from a to b, the others' sum is that of a coins at the upper extreme and M - b at the lower
one, and further noise, which cannot raise a divergence. So M + 1 configurations are covered by a few cells, each of which gives away the
noise of b - a coins: with g cells, about 1/g of the noise. For the same reason fewer coins than M may be counted.

*Values outside a window.* The distribution X of the others' sum is computed where it is not tiny. Let P and Q be the sum with the client at
the upper and the lower extreme, h = 1/2 + theta, l = 1/2 - theta. The loss ln(P/Q) rises. Let r(x) = X(x) / X(x - 1), which falls, as X is
log-concave. The client's successes k have weights X(x - k), which fall with k relative to r(x)^-k. P/Q is a mean of a rising function of
k, so it is at most the mean for the weights r(x)^-k:

    ln P(x)/Q(x) <= L ln( (1 - h + h / r(x)) / (1 - l + l / r(x)) ).

Now X is the sum of A of a coins, and of B of b coins with the other odds. As A(y + 1) = (h/l) (a - y) / (y + 1) A(y), r(x) is at least the
mean of (h/l) (a - y) / (y + 1), given the sum x - 1, and at least that of (l/h) (b - z) / (z + 1), y + z = x - 1. Both are convex: by
Jensen's inequality they may be taken at the means of y and of z, and their maximum is least where they are equal, which is the root of

    (x + 1) (r + h/l) (r + l/h) = (a + 1) (1 + r h/l) + (b + 1) (1 + r l/h).

Chernoff's inequality bounds the probabilities beyond the window.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..accounting.exact_privacy_loss import ExactPrivacyLoss
from ..accounting.pure_privacy import check_orders
from ..numerics.rounding import UNIT
from .binomial_divergence import binomial_window
from .poisson_binomial_divergence import LARGEST_THETA, MOST_CLIENTS, MOST_TRIALS, largest_toss_loss, log_binomial

# Logarithm of the smallest kept probability of the sum of all coins; and logarithms of those of the other coins at either extreme: the
# first for small losses, the last for large losses, which matter at a few deviations from the mean.
SMALLEST_KEPT, NARROWEST, WIDEST = -700.0, -130.0, -650.0
# Sums of e^30 times the smallest kept probability lack a relative 2 e^-30 or less, where windows are cut.
COMPLETE = 30.0
# Up to this many other coins, each number of them at the upper extreme is a separate cell; beyond, at most 64 cells cover up to half of
# the coins, whose number the products of all convolutions limit.
MOST_ALONE, MOST_CELLS, MOST_PRODUCTS = 128, 64, 10**9
# Number of stretches of a tail, and the largest slope of Chernoff's bound.
STRETCHES, LARGEST_SLOPE = 64, 300.0


@dataclass(frozen=True, eq=False)
class TossLoss:
    """The privacy loss of one configuration in one direction.

    Attributes
    ----------
    loss : ExactPrivacyLoss
        Losses in a window.
    log_tails : ndarray of shape (stretches,)
        Logarithms of bounds on the probabilities of stretches outside the window.
    tail_losses : ndarray of shape (stretches,)
        Bounds on the losses of these stretches.
    """

    loss: ExactPrivacyLoss
    log_tails: FloatArray
    tail_losses: FloatArray

    def log_left_out(self, orders: FloatArray) -> FloatArray:
        """Return logarithms of the most that the stretches add to sum P^a Q^(1 - a), for finite orders."""
        terms = self.log_tails + (orders[:, None] - 1) * self.tail_losses
        return np.asarray(np.logaddexp.reduce(terms, axis=1, initial=-np.inf))


@dataclass(frozen=True)
class ExtremeTosses:
    """Privacy losses that bound those of every configuration of the other clients.

    Attributes
    ----------
    losses : tuple of TossLoss
        Losses in both directions of every cell; mirror images of cells, which have the same losses, are omitted.
    largest_loss : float
        Largest privacy loss of all: the pure epsilon, ``trials * ln((1/2 + theta) / (1/2 - theta))``.
    rounding : float
        Bound on the rounding error of a loss.
    typical_loss : float
        Lower bound on the root mean square of the losses, up to a factor of 2.
    exact : bool
        Whether each configuration was computed, so that the bounds are exact.
    """

    losses: tuple[TossLoss, ...]
    largest_loss: float
    rounding: float
    typical_loss: float
    exact: bool

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return upper bounds on the Rényi divergences, in nats, for orders above 1.

        Infinity gives the pure epsilon. The divergence is a sum of a convex function of the losses (`ExactPrivacyLoss.renyi_divergences`),
        about a (a - 1) l^2 / 2 for small losses l and exponential for large losses: so its relative error is at most that of a loss, over
        the losses' root mean square or over 1/a, a few times.
        """
        array = check_orders(orders)
        finite = np.where(np.isinf(array), 2.0, array)
        margin = 1 + self.rounding * (4 / self.typical_loss + 4 * finite)
        bounds = []
        for toss in self.losses:
            divergences = toss.loss.renyi_divergences(finite) * margin
            bounds.append(np.logaddexp((finite - 1) * divergences, toss.log_left_out(finite)) / (finite - 1))
        largest = np.clip(np.maximum.reduce(bounds), 0.0, self.largest_loss)
        return np.asarray(np.where(np.isinf(array), self.largest_loss, largest))


def extreme_tosses(clients: int, trials: int, theta: float, *, first_cell: bool = False, whole_clients: bool = False) -> ExtremeTosses:
    """Return privacy losses that bound what the number of successes reveals about a client.

    The adjacency is replace-one.

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**7.
    trials : int
        Number L of coins of each client, 1 to 4096.
    theta : float
        Largest distance of a coin's probability from 1/2, from 1e-6 to 0.499.
    first_cell : bool
        Whether to compute only the cell with the fewest other coins at the upper extreme, the worst cell wherever all cells were
        computed. The result is no bound for all configurations, but the start of a search.
    whole_clients : bool
        Whether all coins of another client are at the same extreme, as for items: with few clients, fewer configurations are possible.

    Examples
    --------
    The divergence is exact for few clients, and an upper bound for many.

    >>> extreme_tosses(10, 1, 0.25).renyi_divergences([2.0]).round(6).tolist()
    [0.162801]
    >>> tosses = extreme_tosses(1000, 1, 0.25)
    >>> tosses.exact, (tosses.renyi_divergences([2.0]) / 8 / 2 / 0.25**2 * 1000).round(2).tolist()
    (False, [1.35])
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    trials = check_integer("trials", trials, low=1, high=MOST_TRIALS)
    theta = check_real("theta", theta, low=1e-6, high=LARGEST_THETA)
    largest_loss = largest_toss_loss(trials, theta)
    others = clients - 1 if whole_clients and clients - 1 <= MOST_ALONE else (clients - 1) * trials
    of_each = trials if others == clients - 1 else 1
    typical, smallest = _typical_loss(others * of_each, trials, theta), _smallest(others * of_each, trials, theta)
    counted, cells = _lower_cells(others, trials, theta)
    losses: list[TossLoss] = []
    for low, high in cells[: 1 if first_cell else None]:
        losses += _pair(low * of_each, (counted - high) * of_each, trials, theta, smallest)
    values = max(len(toss.loss.losses) for toss in losses)
    # A probability of the sum is off by two units for each of its terms, which the two distributions share up to those of the client.
    rounding = UNIT * (4 * (trials + 4) + 8 * theta * trials * (values + 1000))
    return ExtremeTosses(tuple(losses), largest_loss, rounding, typical, exact=others <= MOST_ALONE and not first_cell)


def affordable_cells(clients: int, trials: int, theta: float) -> bool:
    """Return whether `extreme_tosses` has more than one cell, so that less than half of the noise is given away."""
    return len(_lower_cells((clients - 1) * trials, trials, theta)[1]) > 1


def _typical_loss(others: int, trials: int, theta: float) -> float:
    """Return half of the change of the sum's mean, in standard deviations."""
    return trials * theta / math.sqrt((others + trials) * (0.25 - theta**2))


def _smallest(others: int, trials: int, theta: float) -> float:
    """Return the logarithm of the smallest kept probability of the coins at either extreme."""
    return max(NARROWEST * (1 + 10 * _typical_loss(others, trials, theta)), WIDEST)


def _lower_cells(others: int, trials: int, theta: float) -> tuple[int, list[tuple[int, int]]]:
    """Return how many of the other coins count, and the first and the last number at the upper extreme of each cell.

    Cells cover up to half of the coins: the rest are mirror images.
    """
    if others <= MOST_ALONE:
        return others, [(number, number) for number in range(others // 2 + 1)]

    # If half of the other coins are at either extreme, the windows of both halves have about this many values.
    smallest = _smallest(others, trials, theta)
    window = 2 * math.sqrt(-smallest * others * (0.25 - theta**2)) - 2 * smallest

    def affordable(count: int) -> int:
        return min(others, int(others * MOST_PRODUCTS / (count * window * (window + 4 * trials))))

    count = max(range(1, MOST_CELLS + 1), key=lambda count: affordable(count) * (1 - 0.5 / count))
    counted = others if count == 1 else affordable(count)
    edges = [part * (counted // 2 + 1) // count for part in range(count + 1)]
    return counted, [(first, last - 1) for first, last in pairwise(edges)]


def _pair(upper: int, lower: int, trials: int, theta: float, smallest: float = WIDEST) -> tuple[TossLoss, TossLoss]:
    """Return the losses of the sum in both directions, for numbers of the other coins at either extreme."""
    masses, first_value, cut = np.ones(1), 0, False
    for count, probability in ((upper, 0.5 + theta), (lower, 0.5 - theta)):
        if count:
            window = binomial_window(count, probability, smallest)
            masses = np.convolve(masses, np.exp(window.logarithms).astype(float))
            first_value += window.first
            cut |= len(window.logarithms) <= count
    own, other = (np.convolve(np.exp(log_binomial(trials, 0.5 + sign * theta)).astype(float), masses) for sign in (1, -1))
    kept = np.minimum(own, other) > math.exp(SMALLEST_KEPT)
    if cut:
        # All sums of the other coins that a sum of all coins may come from must be complete.
        incomplete = np.pad(masses < math.exp(smallest + COMPLETE), trials, constant_values=True)
        counts = np.concatenate([[0], np.cumsum(incomplete)])
        kept &= counts[trials + 1 :] == counts[: -trials - 1]
    # Both distributions are log-concave: the kept values are neighbours.
    start, values = int(np.argmax(kept)), int(np.count_nonzero(kept))
    own, other = own[start : start + values], other[start : start + values]
    start += first_value
    total = upper + lower + trials
    return (
        _toss_loss(own, other, start, upper, lower, trials, theta),
        # The mirror image of the reverse direction has the extremes exchanged.
        _toss_loss(other[::-1], own[::-1], total - start - values + 1, lower, upper, trials, theta),
    )


def _toss_loss(own: FloatArray, other: FloatArray, start: int, upper: int, lower: int, trials: int, theta: float) -> TossLoss:
    """Return the loss of a window of sums that begins at `start`, with bounds beyond it."""
    total, high, low = upper + lower + trials, 0.5 + theta, 0.5 - theta
    largest = largest_toss_loss(trials, theta)

    def log_probability(value: int, count: int, chance: float, others: int) -> float:
        """Return a bound on the probability of at least a value, of `count` coins of a chance, and other coins."""
        # Chernoff's bound holds for every slope.
        slope = min(_steepest(value, count, others, chance), LARGEST_SLOPE)
        moments = count * math.log1p(chance * math.expm1(slope)) + others * math.log1p((1 - chance) * math.expm1(slope))
        return min(moments - slope * value, 0.0) + 1e-6

    if len(own) == 0:
        nothing = ExactPrivacyLoss(np.empty(0), np.empty(0), 1.0, 1.0)
        return TossLoss(nothing, np.zeros(1), np.array([largest]))
    # The logarithm of a ratio near 1 is more accurate than a difference of logarithms.
    logarithms, losses = np.log(own), np.log(own / other)
    log_tails, tail_losses = [], []
    if start > 0:
        # Failures of the mirror image.
        log_tails.append(log_probability(total - start + 1, upper + trials, low, lower))
        tail_losses.append(float(losses[0]))
    last = start + len(own) - 1
    if last < total:
        distances = np.unique(np.rint(np.geomspace(1, total - last, STRETCHES)).astype(int)).tolist()
        for nearest, following in pairwise([*distances, total - last + 1]):
            log_tails.append(log_probability(last + nearest, upper + trials, high, lower))
            steepest = _steepest(last + following - 1, upper, lower, high)
            ratio = math.expm1(min(steepest, LARGEST_SLOPE))
            bound = trials * (math.log1p(high * ratio) - math.log1p(low * ratio)) if steepest <= LARGEST_SLOPE else largest
            tail_losses.append(min(max(bound + 1e-9, float(losses[-1])), largest))
    return TossLoss(ExactPrivacyLoss(logarithms, losses, 0.0, 0.0), np.array(log_tails), np.array(tail_losses))


def _steepest(value: int, count: int, others: int, chance: float) -> float:
    """Return an upper bound, from 0, on ln X(x - 1) / X(x) for coins of a chance and other coins of the opposite chance.

    At most rounding makes it smaller, which the callers' slacks exceed.
    """
    odds = chance / (1 - chance)
    linear = (value + 1) * (odds + 1 / odds) - (count + 1) * odds - (others + 1) / odds
    constant = count + others + 1 - value
    if constant <= 0:
        return math.inf
    # The positive root of (x + 1) r^2 + linear r - constant, without cancellation.
    root = math.sqrt(linear**2 + 4 * (value + 1) * constant)
    ratio = 2 * constant / (linear + root) if linear > 0 else (root - linear) / (2 * (value + 1))
    return max(-math.log(ratio), 0.0)
