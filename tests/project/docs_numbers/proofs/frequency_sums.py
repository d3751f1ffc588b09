"""Numbers of docs/proofs/frequency-sums.md."""

from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs


def cells_cost(clients: int, theta: float = 0.05) -> float:
    """Return the excess, in percent, of the bound by cells over the divergence at one extreme.

    The divergence is of order 2, with all other clients at the same extreme.
    """
    cells, extremes = (function(clients, 1, theta).renyi_divergences([2.0])[0] for function in (extreme_tosses, poisson_binomial_pairs))
    return 100 * (cells / extremes - 1)
