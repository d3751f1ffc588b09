"""Numbers of docs/explanations/poisson-binomial.md."""

import math
from functools import cache

import numpy as np
from scipy.stats import binom

import quietbits
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_renyi as poisson_binomial_renyi


def tosses(clients: int, trials: int, theta: float, dimension: int, account: str = "rdp") -> float:
    """Return epsilon of a Poisson-binomial sum; the dimension is that of the vectors, half of D."""
    report = quietbits.account("poisson-binomial", clients=clients, trials=trials, theta=theta, dimension=dimension, delta=1e-5)
    return report.epsilon_by(account)


@cache
def extremes_are_worst() -> tuple[int, int]:
    """Return the number of settings where the extremes are worst, and the number of settings.

    The extremes are worst if all other clients at one extreme attain the largest divergence of all configurations.
    """
    largest = []
    for clients, trials in ((7, 3), (20, 2), (40, 1), (4, 30)):
        for theta in (0.001, 0.02, 0.1, 0.25, 0.45):
            pairs = poisson_binomial_pairs(clients, trials, theta)
            assert pairs.proven
            rows = np.array([loss.renyi_divergences([1.01, 1.1, 2.0, 8.0, 64.0, 1e4]) for loss in pairs.losses])
            extreme = np.maximum(rows[0], rows[-1])
            largest.append(bool(np.all(extreme >= rows.max(axis=0) * (1 - 1e-9))))
    return sum(largest), len(largest)


def middle_renyi() -> float:
    """Return the divergence of order 2 if all other clients are at 1/2.

    Each of 10 clients has two trials, and theta = 1/4.
    """
    noise = binom.pmf(np.arange(19), 18, 0.5)
    upper, lower = (np.convolve(binom.pmf(np.arange(3), 2, 0.5 + sign / 4), noise) for sign in (1, -1))
    return math.log(float(np.sum(upper**2 / lower)))


def mixture_epsilon(*, extremes: bool) -> float:
    """Return epsilon of 40 clients' single tosses, by their privacy losses.

    Set `extremes` for other clients that are all at one extreme; otherwise every configuration counts.
    """
    epsilons = [loss.epsilon(0.01) for loss in poisson_binomial_pairs(40, 1, 0.4).losses]
    return max(epsilons[0], epsilons[-1]) if extremes else max(epsilons)
