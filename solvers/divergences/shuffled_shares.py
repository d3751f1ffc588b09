"""How far the shuffled shares of secret numbers are from shares that show only their sum.

Each of n clients splits a number modulo q into m shares, uniformly random except that they add up to the number, and a shuffler mixes all
n m shares. The page of proofs on shuffled shares shows that the chi-square divergence of the mixed shares from uniform shares of the same
sum is at most E[q^(C - 1)] - 1 for all numbers, with C the components of a random bipartite graph: n groups on either side, and the n m
shares as edges between random places. With w_s = (s m)! / (s!)^2,

    E[q^(C - 1)] = (1 / q) sum over j of binomial(q, j) sum over s_1 + ... + s_j = n, all positive, of w_(s_1) ... w_(s_j) / w_n.

The term j = 1 is 1. The term j = 2 has the pairs (s, n - s), whose weights fall toward the middle, as w is log-convex. The further terms
are bounded by their number times the largest weight, that of (n - j + 1, 1, ..., 1), and by a geometric series.
"""

import math

import numpy as np

from ...arguments import check_integer, check_real
from ...errors import InfeasibleError
from ..numerics.bisection import first_true
from ..numerics.rounding import SLACK

MOST_CLIENTS = 10**9
MOST_MESSAGES = 256
LARGEST_MODULUS = 2**62


def shuffled_shares_distance(clients: int, messages: int, modulus: int) -> float:
    """Bound the total variation distance of mixed shares from uniform shares of the same sum.

    Parameters
    ----------
    clients : int
        Number n of clients whose shares are mixed, from 1 to 10**9.
    messages : int
        Number m of shares of a client, from 1 to 256.
    modulus : int
        Modulus q of the shares, from 2 to 2**62.

    Returns
    -------
    float
        Upper bound for all numbers of the clients; 1.0 says nothing.

    Examples
    --------
    >>> shuffled_shares_distance(10_000, 10, 2**32) < 2**-40
    True
    """
    n = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    m = check_integer("messages", messages, low=1, high=MOST_MESSAGES)
    q = check_integer("modulus", modulus, low=2, high=LARGEST_MODULUS)
    if n == 1:
        return 0.0
    if m == 1:
        # The weights are not log-convex for unsplit numbers.
        return 1.0
    ends, inner = 2 * math.log(n) - _log_binomial(n * m, m), 0.0
    if n > 3:
        inner = (n - 3) * _exponential(2 * math.log(n * (n - 1) / 2) - _log_binomial(n * m, 2 * m))
    pairs = (q - 1) / 2 * (min(n - 1, 2) * _exponential(ends) + inner)
    more = 0.0
    if n > 2:
        triples = (q - 1) * (q - 2) / 6 * math.comb(n - 1, 2)
        more = triples * _exponential(ends + _log_ratio(n - 1, m))
    if n > 3:
        # The ratio of subsequent terms is log-convex in j, so that the first or the last ratio is the largest.
        ratio = max(q * (n / 12) * _exponential(_log_ratio(n - 2, m)), q / (n - 1) * _exponential(_log_ratio(2, m)))
        if ratio >= 1:
            return 1.0
        more /= 1 - ratio
    # The logarithms are sums of at most 512 positive terms, below 2e4, with errors of 1e-12 of the sum.
    return min(1.0, math.sqrt(pairs + more) / 2 * (1 + 2e4 * SLACK))


def messages_for_distance(clients: int, modulus: int, distance: float) -> int:
    """Return the fewest shares whose `shuffled_shares_distance` is at most a distance.

    Raises
    ------
    InfeasibleError
        If 256 shares do not suffice.

    Examples
    --------
    >>> messages_for_distance(10_000, 2**32, 2**-40)
    10
    """
    distance = check_real("distance", distance, low=0.0, high=1.0)
    fewest = first_true(1, MOST_MESSAGES + 1, lambda messages: shuffled_shares_distance(clients, messages, modulus) <= distance)
    if fewest > MOST_MESSAGES:
        raise InfeasibleError(
            f"clients must be more than {clients} to mix {MOST_MESSAGES} shares modulo {modulus} within a distance of {distance:.3g}"
        )
    return fewest


def _log_ratio(count: int, messages: int) -> float:
    """Return the logarithm of w_1 w_(count - 1) / w_count."""
    return 2 * math.log(count) - _log_binomial(count * messages, messages)


def _log_binomial(items: int, chosen: int) -> float:
    """Return the logarithm of a binomial coefficient with a small lower index."""
    places = np.arange(min(chosen, items - chosen))
    return math.fsum(np.log((items - places) / (places + 1.0)).tolist())


def _exponential(logarithm: float) -> float:
    return math.exp(min(logarithm, 700.0))
