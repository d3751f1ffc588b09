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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import check_integer, check_real
from .binomial_divergence import binomial_window
from .exact_privacy_loss import ExactPrivacyLoss, FloatArray
from .pure_privacy import check_orders

LARGEST_THETA = 0.499
MOST_CLIENTS, MOST_TRIALS = 10**7, 4096
# Sums of more trials than this, or with probabilities below this, are not searched over all configurations of the other clients.
MOST_SEARCHED_TRIALS = 128
SMALLEST_LOGARITHM = -640.0
# Logarithm of the smallest probability of the others' sum that is kept: high Rényi orders look at next to impossible values.
SMALLEST_WINDOW = -11000.0 if np.finfo(np.longdouble).minexp < -16000 else -690.0
# Products that one distribution of the sum may take.
MOST_PRODUCTS = 10**9


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
        """Return the largest Rényi divergence of any pair.

        Parameters
        ----------
        orders : array_like of shape (orders,)
            Rényi orders above 1; infinity gives the pure epsilon.

        Returns
        -------
        ndarray of shape (orders,)
            Divergences in nats.

        Raises
        ------
        ValueError
            If an order is not above 1.
        """
        array = check_orders(orders)
        divergences = np.maximum.reduce([self._renyi_divergences(loss, array) for loss in self.losses])
        return np.asarray(np.where(np.isinf(array), self.largest_loss, np.clip(divergences, 0.0, self.largest_loss)))

    def epsilon(self, delta: float) -> float | None:
        """Return epsilon of one coordinate in one round, without Rényi divergences.

        Unlike the Rényi divergence, the smallest epsilon at a delta is not the largest where all others are at the same extreme: a few at
        the other one can be worse. Where not all configurations are there, nothing is returned.

        Parameters
        ----------
        delta : float
            Failure probability, above 0 and below 1.

        Returns
        -------
        float or None
            The largest one of any pair; errs upward, since trials of one client are let differ. None unless the worst case is proven.

        Raises
        ------
        ValueError
            If delta is out of range.
        """
        return min(max(loss.epsilon(delta) for loss in self.losses), self.largest_loss) if self.proven else None

    def _renyi_divergences(self, loss: ExactPrivacyLoss, orders: FloatArray) -> FloatArray:
        """Return Rényi divergences of the whole distributions: what is left out adds at most its mass at the largest loss."""
        finite = np.where(np.isinf(orders), 2.0, orders)
        added = self.log_left_out + (finite - 1) * self.largest_loss
        return np.asarray(np.logaddexp((finite - 1) * loss.renyi_divergences(finite), added) / (finite - 1))


def poisson_binomial_pairs(clients: int, trials: int, theta: float) -> PoissonBinomialPairs:
    """Return the pairs of sums that the worst case of the Poisson-binomial mechanism is among, for replace-one adjacency.

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**7.
    trials : int
        Number L of trials of each, 1 to 4096.
    theta : float
        Largest distance of a probability from 1/2, from 1e-6 to 0.499; the mechanism uses at most 1/4.

    Returns
    -------
    PoissonBinomialPairs
        Up to 128 trials in all (fewer for theta above 0.49) every configuration of the other clients: one for each number of trials at
        1/2 + theta; beyond that the two where all of them are at the same extreme.

    Raises
    ------
    ValueError
        If an argument is out of range, or clients and trials together are too many.
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    trials = check_integer("trials", trials, low=1, high=MOST_TRIALS)
    theta = check_real("theta", theta, low=1e-6, high=LARGEST_THETA)
    others = (clients - 1) * trials
    proven = others + trials <= MOST_SEARCHED_TRIALS and (others + trials) * math.log(0.5 - theta) >= SMALLEST_LOGARITHM
    log_left_out = -math.inf
    if trials * math.log(0.5 - theta) < SMALLEST_WINDOW:
        raise ValueError(f"theta must be further below 1/2, or trials fewer than {trials}, for probabilities to be computed, got {theta!r}")
    high, low = _binomial(trials, 0.5 + theta), _binomial(trials, 0.5 - theta)
    if proven:
        # The mirror image of a pair is the same pair in the other direction, with as many trials at the other extreme.
        fixed = [_binomial(number, 0.5 + theta) for number in range(others + 1)]
        noises = (np.convolve(fixed[number], fixed[others - number][::-1]) for number in range(others + 1))
        losses = [_loss(np.convolve(high, noise), np.convolve(low, noise), 0.0) for noise in noises]
    else:
        spread = math.sqrt(-2 * SMALLEST_WINDOW * others * (0.25 - theta * theta)) - SMALLEST_WINDOW
        if min(others, 2 * spread) * trials > MOST_PRODUCTS:
            raise ValueError(f"clients and trials must be fewer: {clients} clients of {trials} trials are too many to account for exactly")
        logarithms, log_remainder = binomial_window(others, 0.5 + theta, SMALLEST_WINDOW)
        masses = np.exp(logarithms)
        if not math.isinf(log_remainder) and len(masses) <= trials:
            raise ValueError(
                f"theta must be further below 1/2, or trials fewer than {trials}, for probabilities to be computed, got {theta!r}"
            )
        whole = math.isinf(log_remainder)
        first, second = (np.convolve(own, masses, "full" if whole else "valid") for own in (high, low))
        # At the ends of the window some of the sums would be incomplete: they belong to what is left out.
        if not whole:
            ends = max(float(logarithms[0]), float(logarithms[-1])) + math.log(2 * trials)
            log_left_out = float(np.logaddexp(log_remainder, ends))
        losses = [_loss(first, second, math.exp(log_left_out)), _loss(second, first, math.exp(log_left_out))]
    return PoissonBinomialPairs(tuple(losses), log_left_out, proven, trials * (math.log1p(2 * theta) - math.log1p(-2 * theta)))


def poisson_binomial_renyi(clients: int, trials: int, theta: float, orders: ArrayLike) -> FloatArray:
    """Return the Rényi divergence of one coordinate of the Poisson-binomial mechanism, in the worst case over the other clients.

    Parameters
    ----------
    clients, trials, theta
        As in `poisson_binomial_pairs`.
    orders : array_like of shape (orders,)
        Rényi orders above 1; infinity gives the pure epsilon.

    Returns
    -------
    ndarray of shape (orders,)
        Divergences in nats, to about ten digits.

    Raises
    ------
    ValueError
        If an argument is out of range, or clients and trials together are too many.

    Examples
    --------
    >>> poisson_binomial_renyi(10, 1, 0.25, [2.0, float("inf")]).round(6).tolist()
    [0.162801, 1.098612]
    """
    return poisson_binomial_pairs(clients, trials, theta).renyi_divergences(orders)


def _binomial(trials: int, probability: float) -> NDArray[np.longdouble]:
    """Return the whole distribution of a binomial number."""
    number = np.arange(trials, dtype=np.longdouble)
    odds = np.log(np.longdouble(probability)) - np.log1p(-np.longdouble(probability))
    logarithms = np.cumsum(np.log((trials - number) / (number + 1)) + odds)
    return np.asarray(np.exp(np.append(np.longdouble(0), logarithms) + trials * np.log1p(-np.longdouble(probability))))


def _loss(own: NDArray[Any], other: NDArray[Any], left_out: float) -> ExactPrivacyLoss:
    return ExactPrivacyLoss(np.log(own).astype(np.float64), np.log(own / other).astype(np.float64), left_out, left_out)
