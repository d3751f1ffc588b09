"""Exact privacy of a secure sum of binomial answers: the Poisson-binomial mechanism.

Client j sends Bin(L, p_j), 1/2 - theta <= p_j <= 1/2 + theta, and the server sees only the sum (Chen, Özgür, Kairouz 2022, *The Poisson
binomial mechanism for unbiased federated learning with secure aggregation*). Replacing a client replaces its p; the other clients' p hide
it.

The worst case follows from convexity. Every f-divergence of the two distributions of the sum is a convex function of the pair, and each
distribution is affine in the success probability of any single trial of the other clients: if each of their trials could have its own
probability, the maximum would be where each is 1/2 - theta or 1/2 + theta, and only the number at 1/2 + theta would matter. The client's
own two probabilities are the extremes: the sum rises with p in likelihood ratio order (sums of independent Bernoulli variables are
log-concave), so that trade-off functions fall as the two move apart.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..accounting.exact_privacy_loss import ExactPrivacyLoss
from ..accounting.pure_privacy import check_orders
from .binomial_divergence import binomial_window

LongArray = NDArray[np.longdouble]

LARGEST_THETA = 0.499
MOST_CLIENTS, MOST_TRIALS = 10**7, 4096
# Largest number of trials, and logarithm of the smallest probability, of a search over all configurations of the other clients.
MOST_SEARCHED_TRIALS = 128
SMALLEST_LOGARITHM = -640.0
# Logarithm of the smallest kept probability of the other clients' sum: high Rényi orders depend on values of negligible probability.
SMALLEST_WINDOW = -11000.0 if np.finfo(np.longdouble).minexp < -16000 else -690.0
# Largest number of products for a distribution of the sum, and largest number with logarithms, for probabilities that are too small for
# floats.
MOST_PRODUCTS, MOST_LOGARITHMS = 10**9, 10**8
# Largest logarithm that omitted values may add to a sum of order 2, and to a sum of any order that counts as tight.
NEGLIGIBLE_LOGARITHM, TIGHT_LOGARITHM = -40.0, -80.0
# Narrower windows for sums with more values in their widest window than FEW_VALUES, and a smaller largest loss than SMALL_LOSS.
NARROW_WINDOWS, FEW_VALUES, SMALL_LOSS = (-160.0, -600.0), 2**16, 2000.0
# Largest logarithm of the smallest kept probability; a narrower window may have no value.
NARROWEST_WINDOW = -20.0
# Number of values of a sum computed at a time.
BLOCK = 2**16
# Ratio of the distances from the mean at which a stretch of a tail ends and begins; relative margin by which bounds are rounded up, as
# logarithms.
GROWTH, SLACK = 1.05, 1e-6


@dataclass(frozen=True, eq=False)
class SumTails:
    """Values of the sum outside a window, in stretches, with bounds on their contributions.

    Attributes
    ----------
    logs_below, logs_above : ndarray
        Logarithms of bounds on the probability of each stretch, from the window outward, with all clients at the upper extreme.
    losses_below, losses_above : ndarray
        Bounds on the absolute value of the privacy loss in each stretch, unless it has the sign of the other side.
    lowest, highest : float
        Privacy losses at the window's ends.
    """

    logs_below: FloatArray
    logs_above: FloatArray
    losses_below: FloatArray
    losses_above: FloatArray
    lowest: float
    highest: float

    def log_sums(self, exponents: FloatArray) -> FloatArray:
        """Return bounds on ln sum P e^(t loss), for exponents t of one sign."""
        column = exponents[:, None]
        rising = exponents[0] > 0
        above = column * (self.losses_above if rising else self.highest) + self.logs_above
        below = column * (self.lowest if rising else -self.losses_below) + self.logs_below
        stretches = np.hstack([above, below])
        return np.asarray(stretches.max(axis=1, initial=-np.inf) + math.log(max(stretches.shape[1], 1)) + SLACK)


@dataclass(frozen=True)
class PoissonBinomialPairs:
    """Candidates for the worst pair of distributions of the Poisson-binomial mechanism's sum.

    Attributes
    ----------
    losses : tuple of ExactPrivacyLoss
        Privacy loss of each pair.
    log_left_out : float
        Logarithm of a bound on the probability of all omitted values of the sum; minus infinity if there are none.
    proven : bool
        Whether the pairs include every configuration of the other clients that can be the worst. Otherwise the pairs are the two with all
        other clients at the same extreme. They have the largest Rényi divergences wherever all configurations were searched, but not the
        largest hockey-stick divergences.
    largest_loss : float
        Largest privacy loss of any pair: the pure epsilon, ``trials * ln((1/2 + theta) / (1/2 - theta))``.
    tails : SumTails or None
        Bounds on the omitted values, if there are any.
    """

    losses: tuple[ExactPrivacyLoss, ...]
    log_left_out: float
    proven: bool
    largest_loss: float
    tails: SumTails | None = None

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return the largest Rényi divergence of any pair, in nats, per order above 1.

        Infinity gives the pure epsilon. The result is an upper bound at orders that are not `tight`.
        """
        array = check_orders(orders)
        divergences = np.maximum.reduce([self._renyi_divergences(number, array) for number in range(len(self.losses))])
        return np.asarray(np.where(np.isinf(array), self.largest_loss, np.clip(divergences, 0.0, self.largest_loss)))

    def epsilon(self, delta: float) -> float | None:
        """Return epsilon of a coordinate in a round, without Rényi divergences.

        The result is None unless the worst case is proven. Unlike the Rényi divergence, the smallest epsilon at a delta is not the largest
        if all other clients are at the same extreme: a few at the other extreme can be worse. The result is an upper bound, since the
        trials of a client may differ in this function.
        """
        return min(max(loss.epsilon(delta) for loss in self.losses), self.largest_loss) if self.proven else None

    def tight(self, orders: ArrayLike) -> NDArray[np.bool_]:
        """Return, for each order, whether omitted values change the divergences negligibly."""
        array = check_orders(orders)
        added = np.maximum.reduce([self._added(number, array) for number in range(len(self.losses))])
        return np.asarray(np.isinf(array) | (added <= TIGHT_LOGARITHM))

    def _renyi_divergences(self, number: int, orders: FloatArray) -> FloatArray:
        """Return bounds on the Rényi divergences of the whole distributions."""
        finite = np.where(np.isinf(orders), 2.0, orders)
        added = self._added(number, finite)
        # If omitted values may add more than the whole sum, the window's sum does not matter.
        counts = added < (finite - 1) * self.largest_loss
        divergences = np.full(len(finite), self.largest_loss)
        if counts.any():
            few = finite[counts] - 1
            divergences[counts] = np.logaddexp(few * self.losses[number].renyi_divergences(finite[counts]), added[counts]) / few
        return divergences

    def _added(self, number: int, orders: FloatArray) -> FloatArray:
        """Return logarithms of the most that a pair's omitted values add.

        Omitted values add their mass at the largest loss, or bounds by stretches.
        """
        finite = np.where(np.isinf(orders), 2.0, orders)
        whole = np.asarray(self.log_left_out + (finite - 1) * self.largest_loss)
        if self.tails is None:
            return whole
        # P^a Q^(1 - a) is P e^((a - 1) loss) for the first pair, and P e^(-a loss) for the second, which is reversed.
        by_stretches = self.tails.log_sums(finite - 1 if number == 0 else -finite)
        return np.minimum(whole, np.logaddexp(by_stretches, self.log_left_out))


def poisson_binomial_pairs(clients: int, trials: int, theta: float, window: float = SMALLEST_WINDOW) -> PoissonBinomialPairs:
    """Return candidates for the worst pair of sums, for replace-one adjacency.

    Up to 128 trials in all (fewer for theta above 0.49) the pairs are every configuration of the other clients: a pair for each number of
    trials at 1/2 + theta. Beyond that they are the two pairs with all other clients at the same extreme, which are not proven to include
    the worst case.

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**7.
    trials : int
        Number L of trials of each client, 1 to 4096.
    theta : float
        Largest distance of a probability from 1/2, from 1e-6 to 0.499; the paper uses at most 1/4.
    window : float
        Logarithm of the smallest kept probability, at most -20: narrower windows are faster, and loose at high orders.

    Raises
    ------
    ValueError
        If an argument is out of range, or clients and trials together are too many, also for a large theta.
    """
    check_real("window", window, low=SMALLEST_WINDOW, high=NARROWEST_WINDOW)
    check_sums(clients, trials, theta)
    others = (clients - 1) * trials
    largest_loss = largest_toss_loss(trials, theta)
    if all_configurations(clients, trials, theta):
        high, low = (np.exp(log_binomial(trials, 0.5 + sign * theta)) for sign in (1, -1))
        # The mirror image of a pair is the same pair in reverse, with as many trials at the other extreme.
        fixed = [np.exp(log_binomial(number, 0.5 + theta)) for number in range(others + 1)]
        noises = (np.convolve(fixed[number], fixed[others - number][::-1]) for number in range(others + 1))
        losses = tuple(_loss(np.log(np.convolve(high, noise)), np.log(np.convolve(low, noise)), 0.0) for noise in noises)
        return PoissonBinomialPairs(losses, -math.inf, True, largest_loss)
    sums = _windowed_sums(others, trials, theta, window)
    if sums.log_left_out + largest_loss <= NEGLIGIBLE_LOGARITHM or window > SMALLEST_WINDOW:
        return PoissonBinomialPairs(sums.losses, sums.log_left_out, False, largest_loss, _tails(sums, clients, trials, theta))
    if others * trials > MOST_LOGARITHMS:
        raise ValueError(f"theta must be smaller, or trials fewer than {trials}, for probabilities to be computed, got {theta!r}")
    noise = log_binomial(others, 0.5 + theta)
    first, second = (_log_convolved(log_binomial(trials, 0.5 + sign * theta), noise) for sign in (1, -1))
    return PoissonBinomialPairs((_loss(first, second, 0.0), _loss(second, first, 0.0)), -math.inf, False, largest_loss)


def check_sums(clients: int, trials: int, theta: float) -> None:
    """Refuse sums of more products than can be computed."""
    others = (clients - 1) * trials
    if not all_configurations(clients, trials, theta) and min(others, _widest(others, theta)) * trials > MOST_PRODUCTS:
        raise ValueError(f"clients and trials must be fewer: {clients} clients of {trials} trials are too many to account for exactly")


def windows(clients: int, trials: int, theta: float) -> tuple[float, ...]:
    """Return the windows to try, narrow windows first; the last is the widest."""
    if all_configurations(clients, trials, theta):
        return (SMALLEST_WINDOW,)
    largest = largest_toss_loss(trials, theta)
    few = min(clients * trials, _widest((clients - 1) * trials, theta)) <= FEW_VALUES
    if few or largest > SMALL_LOSS or NARROW_WINDOWS[-1] - SMALL_LOSS < SMALLEST_WINDOW:
        return (SMALLEST_WINDOW,)
    return (*NARROW_WINDOWS, SMALLEST_WINDOW)


def largest_toss_loss(trials: int, theta: float) -> float:
    """Return the largest privacy loss of a client's tosses, the pure epsilon of a coordinate."""
    return trials * (math.log1p(2 * theta) - math.log1p(-2 * theta))


def all_configurations(clients: int, trials: int, theta: float) -> bool:
    """Return whether `poisson_binomial_pairs` computes every configuration of the other clients."""
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    trials = check_integer("trials", trials, low=1, high=MOST_TRIALS)
    theta = check_real("theta", theta, low=1e-6, high=LARGEST_THETA)
    return clients * trials <= MOST_SEARCHED_TRIALS and clients * trials * math.log(0.5 - theta) >= SMALLEST_LOGARITHM


def poisson_binomial_renyi(clients: int, trials: int, theta: float, orders: ArrayLike) -> FloatArray:
    """Return the largest Rényi divergence of a coordinate over the pairs of configurations.

    Divergences are in nats, to about ten digits; at the highest orders, which depend on sums of negligible probability, they are upper
    bounds. Infinite order gives the pure epsilon. Parameters are those of `poisson_binomial_pairs`, which tells when the pairs are proven
    to include the worst case.

    Examples
    --------
    >>> poisson_binomial_renyi(10, 1, 0.25, [2.0, float("inf")]).round(6).tolist()
    [0.162801, 1.098612]
    """
    for window in windows(clients, trials, theta):
        pairs = poisson_binomial_pairs(clients, trials, theta, window)
        if pairs.tight(orders).all():
            break
    return pairs.renyi_divergences(orders)


def _widest(others: int, theta: float) -> float:
    """Return an approximate bound on the number of values of the other clients' sum."""
    return 2 * (math.sqrt(-2 * SMALLEST_WINDOW * others * (0.25 - theta * theta)) - SMALLEST_WINDOW)


@dataclass(frozen=True, eq=False)
class _WindowedSums:
    """Privacy losses of a window in both directions, and the logarithm of the omitted mass."""

    losses: tuple[ExactPrivacyLoss, ExactPrivacyLoss]
    first: int
    last: int
    log_left_out: float


def _windowed_sums(others: int, trials: int, theta: float, smallest: float) -> _WindowedSums:
    """Return the privacy losses of the sum for either extreme of the client.

    All other clients are at the upper extreme. The sum of these clients lies in a window. The function omits incomplete sums of the client
    and the other clients at the cut ends of the window.
    """
    window = binomial_window(others, 0.5 + theta, smallest)
    values = len(window.logarithms) + trials
    logarithms, losses, kept = np.empty((2, values)), np.empty(values), np.zeros(values, dtype=bool)
    tosses = [np.exp(log_binomial(trials, 0.5 + sign * theta)) for sign in (1, -1)]
    complete = (trials if window.first > 0 else 0, values - (trials if window.first + len(window.logarithms) <= others else 0))
    threshold = np.exp(np.longdouble(smallest))
    dropped = np.zeros(2, dtype=np.longdouble)
    for start in range(0, values, BLOCK):
        stop = min(start + BLOCK, values)
        # The probability of x is the sum over k of the client's k and the other clients' x - k.
        begin = max(start - trials, 0)
        masses = np.exp(window.logarithms[begin:stop])
        rows = np.array([np.convolve(toss, masses)[start - begin : stop - begin] for toss in tosses])
        number = np.arange(start, stop)
        keeps = (rows.min(axis=0) > threshold) & (number >= complete[0]) & (number < complete[1])
        dropped += rows[:, ~keeps].sum(axis=1)
        rows = np.log(np.where(keeps, rows, 1.0))
        kept[start:stop], logarithms[:, start:stop], losses[start:stop] = keeps, rows, rows[0] - rows[1]
    log_left_out = float(np.logaddexp(window.log_remainder, np.log(dropped.max()) if dropped.any() else -math.inf))
    left_out = math.exp(log_left_out)
    # Both distributions are log-concave, so the kept values are neighbours.
    lowest, count = int(np.argmax(kept)), int(np.count_nonzero(kept))
    (first, second), losses = logarithms[:, lowest : lowest + count], losses[lowest : lowest + count]
    pair = ExactPrivacyLoss(first, losses, left_out, left_out), ExactPrivacyLoss(second, -losses, left_out, left_out)
    return _WindowedSums(pair, window.first + lowest, window.first + lowest + count - 1, log_left_out)


def _tails(sums: _WindowedSums, clients: int, trials: int, theta: float) -> SumTails | None:
    """Return bounds on the sum's values outside a window, or None for an empty window.

    With all clients at the upper extreme, the successes K of the client among x of all N trials are hypergeometric, and the ratio of the
    sum's probabilities for the lower extreme to those for the upper one is that of E[s^K], s = ((1/2 - theta) / (1/2 + theta))^2. One
    success more is the client's with probability (L - K) / (N - x), one fewer with K / x, so that the losses of x and x + 1 differ by at
    most -ln(1 - (1 - s) L / (N - x)), and ln(1 + (1 / s - 1) L / (x + 1)). Chernoff's inequality bounds probabilities.
    """
    losses = sums.losses[0].losses
    if len(losses) == 0:
        return None
    total, mean = clients * trials, clients * trials * (0.5 + theta)
    largest, share = largest_toss_loss(trials, theta), ((0.5 - theta) / (0.5 + theta)) ** 2

    def chernoff(value: FloatArray) -> FloatArray:
        failures = total - value
        parts = ((value, mean), (failures, total - mean))
        # A part is zero at its end, where the logarithm of the least positive number serves as well.
        return np.asarray(-sum(part * np.log(np.maximum(part, 1e-300) / expected) for part, expected in parts))

    def bounded(starting: float, edges: FloatArray, steps: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(starting + np.cumsum(np.abs(np.diff(edges)) * steps), largest))

    above, below = _stretches(mean, sums.last, total), _stretches(mean, sums.first, 0)
    taken, gained = (1 - share) * trials, (1 / share - 1) * trials

    def slopes(edges: FloatArray) -> FloatArray:
        free = total - np.maximum(edges[1:], edges[:-1])
        by_failures = -np.log1p(-taken / np.where(free > taken, free, np.inf))
        by_successes = np.log1p(gained / np.maximum(np.minimum(edges[1:], edges[:-1]), 1e-300))
        return np.asarray(np.minimum(np.where(free > taken, by_failures, np.inf), by_successes))

    return SumTails(
        logs_below=np.where(below[:-1] < mean, chernoff(below[:-1]), 0.0),
        logs_above=np.where(above[:-1] > mean, chernoff(above[:-1]), 0.0),
        losses_below=bounded(-float(losses[0]), below, slopes(below)),
        losses_above=bounded(float(losses[-1]), above, slopes(above)),
        lowest=float(losses[0]),
        highest=float(losses[-1]),
    )


def _stretches(mean: float, start: int, end: int) -> FloatArray:
    """Return the edges of stretches that divide one tail of the sum."""
    distance, furthest = max(abs(start - mean), 1.0), abs(end - mean)
    count = max(0, math.ceil(math.log(furthest / distance) / math.log(GROWTH)))
    between = mean + math.copysign(1.0, end - mean) * distance * GROWTH ** np.arange(1, count)
    between = between[(between > min(start, end)) & (between < max(start, end))]
    return np.array([start, *between, end] if start != end else [start])


def _log_convolved(own: LongArray, noise: LongArray) -> LongArray:
    """Return the logarithms of a convolution, also of tiny values."""
    total = np.full(len(own) + len(noise) - 1, -np.inf, dtype=np.longdouble)
    for start, logarithm in enumerate(own):
        part = total[start : start + len(noise)]
        np.logaddexp(part, noise + logarithm, out=part)
    return total


def log_binomial(trials: int, probability: float) -> LongArray:
    """Return the logarithms of the whole distribution of a binomial number."""
    number = np.arange(trials, dtype=np.longdouble)
    failing = np.log1p(-np.longdouble(probability))
    ratios = np.log((trials - number) / (number + 1)) + (np.log(np.longdouble(probability)) - failing)
    return np.asarray(np.append(np.longdouble(0), np.cumsum(ratios)) + trials * failing)


def _loss(own: LongArray, other: LongArray, left_out: float) -> ExactPrivacyLoss:
    return ExactPrivacyLoss(own.astype(np.float64), (own - other).astype(np.float64), left_out, left_out)
