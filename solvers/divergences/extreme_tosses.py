"""Bounds on the privacy of a sum of coin tosses of two extreme probabilities.

The bounds hold for all data sets. Each of n clients tosses L coins of probability 1/2 + theta or 1/2 - theta, and the server sees only the
total number of successes. A client's own coins change from one extreme to the other; j of the m = n - 1 other clients are at the upper
extreme. The worst j is unknown (j = 0 or m, wherever all were computed), and computing every j takes too long. But if j is from a to b, the
other clients' sum is that of a clients at the upper extreme and m - b at the lower extreme, and further noise, which cannot raise a
divergence. So m + 1 configurations are covered by a few cells, each of which gives away the noise of b - a clients: with g cells, about 1/g
of the noise.

By the argument of `poisson_binomial_divergence`, coins between the extremes are no worse than coins at them: with m L coins in place of m
clients, the same cells bound every configuration of the Poisson-binomial mechanism.
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
from .binomial_divergence import binomial_window
from .poisson_binomial_divergence import LARGEST_THETA, MOST_CLIENTS, MOST_TRIALS, log_binomial

# Logarithms of the smallest kept probabilities of the other clients at either extreme, and of the sum of all clients.
SMALLEST_LOGARITHM, SMALLEST_KEPT = -200.0, -700.0
# With at most MOST_ALONE other clients, each number of them at the upper extreme is a separate cell. With more clients, there are from 2 to
# MOST_CELLS cells, whose number the products limit.
MOST_ALONE, MOST_CELLS, MOST_PRODUCTS = 64, 64, 8 * 10**9
# Relative error of sums of MOST_PRODUCTS products, in the divergence of a coin.
ROUNDING = 1e-8


@dataclass(frozen=True)
class ExtremeTosses:
    """Privacy losses that bound those of every configuration of the other clients.

    Attributes
    ----------
    losses : tuple of ExactPrivacyLoss
        Losses in both directions of every cell; mirror images of cells, which have the same losses, are omitted.
    logs_left_out : tuple of float
        Logarithms of bounds on the omitted probabilities of each loss; minus infinity for none.
    largest_loss : float
        Largest privacy loss of all: the pure epsilon, ``trials * ln((1/2 + theta) / (1/2 - theta))``.
    exact : bool
        Whether each configuration was computed, so that the bounds are exact.
    """

    losses: tuple[ExactPrivacyLoss, ...]
    logs_left_out: tuple[float, ...]
    largest_loss: float
    exact: bool

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return upper bounds on the Rényi divergences, in nats, for orders above 1.

        Infinity gives the pure epsilon.
        """
        array = check_orders(orders)
        finite = np.where(np.isinf(array), 2.0, array)
        bounds = []
        for loss, left_out in zip(self.losses, self.logs_left_out, strict=True):
            # sum P^a Q^(1 - a) is jointly convex and homogeneous: omitted values add at most their mass at the largest loss.
            divergences = loss.renyi_divergences(finite) * (1 + ROUNDING)
            added = left_out + (finite - 1) * self.largest_loss
            bounds.append(np.logaddexp((finite - 1) * divergences, added) / (finite - 1))
        largest = np.clip(np.maximum.reduce(bounds), 0.0, self.largest_loss)
        return np.asarray(np.where(np.isinf(array), self.largest_loss, largest))


def extreme_tosses(clients: int, trials: int, theta: float, *, first_cell: bool = False) -> ExtremeTosses:
    """Return privacy losses that bound what the number of successes reveals about a client.

    The adjacency is replace-one.

    Parameters
    ----------
    clients : int
        Number n of clients, 1 to 10**7.
    trials : int
        Number L of coins of each client, 1 to 4096.
    theta : float
        Distance of a coin's probability from 1/2, from 1e-6 to 0.499.
    first_cell : bool
        Whether to compute only the cell with the fewest other clients at the upper extreme, the worst cell wherever all cells were
        computed. The result is no bound for all configurations, but the start of a search.

    Examples
    --------
    The divergence is exact for few clients, and an upper bound for many.

    >>> extreme_tosses(10, 1, 0.25).renyi_divergences([2.0]).round(6).tolist()
    [0.162801]
    >>> tosses = extreme_tosses(1000, 1, 0.25)
    >>> tosses.exact, (tosses.renyi_divergences([2.0]) / 8 / 2 / 0.25**2 * 1000).round(2).tolist()
    (False, [1.36])
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    trials = check_integer("trials", trials, low=1, high=MOST_TRIALS)
    theta = check_real("theta", theta, low=1e-6, high=LARGEST_THETA)
    others = clients - 1
    largest_loss = trials * (math.log1p(2 * theta) - math.log1p(-2 * theta))
    cells = _lower_cells(others, trials, theta)[: 1 if first_cell else None]
    losses, left_out = [], []
    for low, high in cells:
        first, second, log_left_out = _pair(low, others - high, trials, theta, largest_loss)
        losses += [_loss(first, second), _loss(second, first)]
        left_out += [log_left_out, log_left_out]
    return ExtremeTosses(tuple(losses), tuple(left_out), largest_loss, exact=others <= MOST_ALONE and not first_cell)


def _lower_cells(others: int, trials: int, theta: float) -> list[tuple[int, int]]:
    """Return the first and the last number at the upper extreme of each cell.

    Cells cover up to half of the others: the rest are mirror images.
    """
    lower = others // 2 + 1
    if others <= MOST_ALONE:
        return [(number, number) for number in range(lower)]
    # If half of the other clients are at either extreme, the windows of both halves have about this many values.
    window = 2 * math.sqrt(-SMALLEST_LOGARITHM * others * trials * (0.25 - theta**2)) - 2 * SMALLEST_LOGARITHM
    count = int(min(max(MOST_PRODUCTS / window**2, 1), MOST_CELLS // 2))
    edges = [part * lower // count for part in range(count + 1)]
    return [(first, last - 1) for first, last in pairwise(edges)]


def _pair(upper: int, lower: int, trials: int, theta: float, largest_loss: float) -> tuple[FloatArray, FloatArray, float]:
    """Return the sum's distribution at either extreme of the client, and an omitted mass.

    The result has the logarithm of an upper bound on the mass.
    """
    masses, log_left_out = np.ones(1), -math.inf
    for count, probability in ((upper, 0.5 + theta), (lower, 0.5 - theta)):
        if count:
            window = binomial_window(count * trials, probability, SMALLEST_LOGARITHM)
            masses = np.convolve(masses, np.exp(window.logarithms).astype(float))
            log_left_out = float(np.logaddexp(log_left_out, window.log_remainder))
    first, second = (np.convolve(np.exp(log_binomial(trials, 0.5 + sign * theta)).astype(float), masses) for sign in (1, -1))
    kept = np.minimum(first, second) > math.exp(SMALLEST_KEPT)
    if not kept.all():
        # Neither distribution exceeds e^largest_loss times the other.
        log_left_out = float(np.logaddexp(log_left_out, SMALLEST_KEPT + largest_loss + math.log(len(kept))))
    return first[kept], second[kept], log_left_out


def _loss(own: FloatArray, other: FloatArray) -> ExactPrivacyLoss:
    logarithms = np.log(own)
    return ExactPrivacyLoss(logarithms, logarithms - np.log(other), 0.0, 0.0)
