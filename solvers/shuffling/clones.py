"""The published closed form of privacy amplification by shuffling."""

import math

from ...arguments import check_integer, check_real
from ..accounting.renyi_curve import check_delta

MOST_CLIENTS = 10**12
LARGEST_EPSILON = 100.0


def largest_clones_epsilon(clients: int, delta: float) -> float:
    """Return the largest local epsilon that the closed form is stated for: ln(n / (8 ln(2 / delta)) - 1); minus infinity for none."""
    clients, delta = check_integer("clients", clients, low=1, high=MOST_CLIENTS), check_delta(delta)
    ratio = clients / (8 * math.log(2 / delta)) - 1
    return math.log(ratio) if ratio > 0 else -math.inf


def clones_epsilon(local_epsilon: float, clients: int, delta: float) -> float:
    """Return what n shuffled messages with a local epsilon are said to reveal; infinite above `largest_clones_epsilon`.

    ln(1 + (e^e0 - 1) (4 sqrt(2 ln(4 / delta)) / sqrt((e^e0 + 1) n) + 4 / n)), for replace-one adjacency (Feldman, McMillan, Talwar 2023,
    *Stronger privacy amplification by shuffling for Rényi and approximate differential privacy*, theorem 3.2). As published: its proof is
    not repeated here.

    Examples
    --------
    >>> round(clones_epsilon(1.0, 10_000, 1e-6), 4), clones_epsilon(8.0, 10_000, 1e-6)
    (0.18, inf)
    """
    local = check_real("local_epsilon", local_epsilon, low=0.0, high=LARGEST_EPSILON)
    if local > largest_clones_epsilon(clients, delta):
        return math.inf
    share = 4 * math.sqrt(2 * math.log(4 / delta) / ((math.exp(local) + 1) * clients)) + 4 / clients
    return math.log1p(math.expm1(local) * share)
