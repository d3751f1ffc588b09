"""How much a secure sum of binomial answers reveals about one client: the Poisson-binomial mechanism, exactly.

Client j sends Bin(L, p_j), 1/2 - theta <= p_j <= 1/2 + theta, and only the sum is seen (Chen, Özgür, Kairouz 2022, *The Poisson binomial
mechanism for unbiased federated learning with secure aggregation*). Replacing a client replaces its p; the other clients' p hide it.

What is the worst case? Every f-divergence of the two distributions of the sum is a convex function of the pair, and each distribution is
affine in the success probability of any single trial of the other clients: if each of their trials could have its own probability, the
maximum would be where each is 1/2 - theta or 1/2 + theta, and only how many are at which would matter. The client's own two
probabilities are the extremes: the sum rises with p in likelihood ratio order (sums of independent Bernoulli variables are log-concave), so
that trade-off functions fall as the two move apart.
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
# Sums of more trials than this, or with probabilities below this, are not searched over all configurations of the other clients.
MOST_SEARCHED_TRIALS = 128
SMALLEST_LOGARITHM = -640.0
# Logarithm of the smallest probability of the others' sum that is kept: high Rényi orders depend on values of negligible probability.
SMALLEST_WINDOW = -11000.0 if np.finfo(np.longdouble).minexp < -16000 else -690.0
# Products that one distribution of the sum may take, and with logarithms, where probabilities are too small.
MOST_PRODUCTS, MOST_LOGARITHMS = 10**9, 10**8
# What is left out of the sum may add this, as a logarithm, to a sum of order 2.
NEGLIGIBLE_LOGARITHM = -40.0


@dataclass(frozen=True)
class PoissonBinomialPairs:
    """Pairs of distributions of the sum, one of which is the worst case of the Poisson-binomial mechanism.

    Attributes
    ----------
    losses : tuple of ExactPrivacyLoss
        The privacy loss of each pair.
    log_left_out : float
        Logarithm of a bound on the probability of all values of the sum that they leave out; minus infinity if there are none.
    proven : bool
        Whether they are all configurations of the other clients that can be the worst. If not, they are the two where all others are at
        the same extreme: those with the largest Rényi divergences wherever all configurations were searched, but not with the largest
        hockey-stick divergences.
    largest_loss : float
        Largest privacy loss of any pair: the pure epsilon, ``trials * ln((1/2 + theta) / (1/2 - theta))``.
    """

    losses: tuple[ExactPrivacyLoss, ...]
    log_left_out: float
    proven: bool
    largest_loss: float

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return the largest Rényi divergence of any pair, in nats, for orders above 1; infinity gives the pure epsilon."""
        array = check_orders(orders)
        divergences = np.maximum.reduce([self._renyi_divergences(loss, array) for loss in self.losses])
        return np.asarray(np.where(np.isinf(array), self.largest_loss, np.clip(divergences, 0.0, self.largest_loss)))

    def epsilon(self, delta: float) -> float | None:
        """Return epsilon of one coordinate in one round, without Rényi divergences; None unless the worst case is proven.

        Unlike the Rényi divergence, the smallest epsilon at a delta is not the largest where all others are at the same extreme: a few at
        the other one can be worse. Errs upward, since the trials of one client may differ here.
        """
        return min(max(loss.epsilon(delta) for loss in self.losses), self.largest_loss) if self.proven else None

    def _renyi_divergences(self, loss: ExactPrivacyLoss, orders: FloatArray) -> FloatArray:
        """Return Rényi divergences of the whole distributions: what is left out adds at most its mass at the largest loss."""
        finite = np.where(np.isinf(orders), 2.0, orders)
        added = self.log_left_out + (finite - 1) * self.largest_loss
        return np.asarray(np.logaddexp((finite - 1) * loss.renyi_divergences(finite), added) / (finite - 1))


def poisson_binomial_pairs(clients: int, trials: int, theta: float) -> PoissonBinomialPairs:
    """Return the pairs of sums that the worst case of the Poisson-binomial mechanism is among, for replace-one adjacency.

    Up to 128 trials in all (fewer for theta above 0.49) these are every configuration of the other clients: one for each number of trials
    at 1/2 + theta; beyond that the two where all of them are at the same extreme.

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**7.
    trials : int
        Number L of trials of each, 1 to 4096.
    theta : float
        Largest distance of a probability from 1/2, from 1e-6 to 0.499; the mechanism uses at most 1/4.

    Raises
    ------
    ValueError
        Also if clients and trials together are too many, or too many for a large theta.
    """
    searched = all_configurations(clients, trials, theta)
    others = (clients - 1) * trials
    largest_loss = trials * (math.log1p(2 * theta) - math.log1p(-2 * theta))
    if searched:
        high, low = (np.exp(log_binomial(trials, 0.5 + sign * theta)) for sign in (1, -1))
        # The mirror image of a pair is the same pair in the other direction, with as many trials at the other extreme.
        fixed = [np.exp(log_binomial(number, 0.5 + theta)) for number in range(others + 1)]
        noises = (np.convolve(fixed[number], fixed[others - number][::-1]) for number in range(others + 1))
        losses = tuple(_loss(np.log(np.convolve(high, noise)), np.log(np.convolve(low, noise)), 0.0) for noise in noises)
        return PoissonBinomialPairs(losses, -math.inf, True, largest_loss)
    if min(others, _widest(others, theta)) * trials > MOST_PRODUCTS:
        raise ValueError(f"clients and trials must be fewer: {clients} clients of {trials} trials are too many to account for exactly")
    first, second, log_left_out = _windowed_sums(others, trials, theta)
    if log_left_out + largest_loss > NEGLIGIBLE_LOGARITHM:
        if others * trials > MOST_LOGARITHMS:
            raise ValueError(f"theta must be smaller, or trials fewer than {trials}, for probabilities to be computed, got {theta!r}")
        noise = log_binomial(others, 0.5 + theta)
        first, second = (_log_convolved(log_binomial(trials, 0.5 + sign * theta), noise) for sign in (1, -1))
        log_left_out = -math.inf
    left_out = math.exp(log_left_out)
    return PoissonBinomialPairs((_loss(first, second, left_out), _loss(second, first, left_out)), log_left_out, False, largest_loss)


def all_configurations(clients: int, trials: int, theta: float) -> bool:
    """Return whether `poisson_binomial_pairs` computes every configuration of the other clients."""
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    trials = check_integer("trials", trials, low=1, high=MOST_TRIALS)
    theta = check_real("theta", theta, low=1e-6, high=LARGEST_THETA)
    return clients * trials <= MOST_SEARCHED_TRIALS and clients * trials * math.log(0.5 - theta) >= SMALLEST_LOGARITHM


def poisson_binomial_renyi(clients: int, trials: int, theta: float, orders: ArrayLike) -> FloatArray:
    """Return the Rényi divergence of one coordinate of the Poisson-binomial mechanism, in the worst case over the other clients.

    In nats, to about ten digits; at the highest orders, which depend on sums of negligible probability, they err upward. Infinite order
    gives the pure epsilon. Parameters are those of `poisson_binomial_pairs`.

    Examples
    --------
    >>> poisson_binomial_renyi(10, 1, 0.25, [2.0, float("inf")]).round(6).tolist()
    [0.162801, 1.098612]
    """
    return poisson_binomial_pairs(clients, trials, theta).renyi_divergences(orders)


def _widest(others: int, theta: float) -> float:
    """Return a bound on the number of values that the window of the others' sum has, about."""
    return 2 * (math.sqrt(-2 * SMALLEST_WINDOW * others * (0.25 - theta * theta)) - SMALLEST_WINDOW)


def _windowed_sums(others: int, trials: int, theta: float) -> tuple[LongArray, LongArray, float]:
    """Return logarithms of the sum's probabilities for either extreme of the client, all others at the upper one, and of what is left out.

    The others' sum is that of a window. Where it has been cut off, sums of the client and the others that would be incomplete are left out.
    """
    window = binomial_window(others, 0.5 + theta, SMALLEST_WINDOW)
    masses = np.exp(window.logarithms)
    sums = [np.convolve(np.exp(log_binomial(trials, 0.5 + sign * theta)), masses) for sign in (1, -1)]
    kept = np.minimum(*sums) > np.exp(np.longdouble(SMALLEST_WINDOW))
    if window.first > 0:
        kept[:trials] = False
    if window.first + len(masses) <= others:
        kept[-trials:] = False
    dropped = np.log(max(row[~kept].sum() for row in sums)) if not kept.all() else -math.inf
    first, second = (np.log(row[kept]) for row in sums)
    return first, second, float(np.logaddexp(window.log_remainder, dropped))


def _log_convolved(own: LongArray, noise: LongArray) -> LongArray:
    """Return the logarithms of a convolution, however small its values are."""
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
