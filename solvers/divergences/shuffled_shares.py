"""How far the shuffled shares of secret numbers are from shares that show only their sum.

Each of n clients splits a number modulo q into m shares, uniformly random except that they add up to the number, and a shuffler mixes all
n m shares. The page of proofs on shuffled shares shows that the chi-square divergence of the mixed shares from uniform shares of the same
sum is at most E[q^(C - 1)] - 1 for all numbers, with C the components of a random bipartite graph: n groups on either side, and the n m
shares as edges between random places. With w_s = (s m)! / (s!)^2,

    E[q^(C - 1)] = (1 / q) sum over j of binomial(q, j) sum over s_1 + ... + s_j = n, all positive, of w_(s_1) ... w_(s_j) / w_n.

The term j = 1 is 1. The term j = 2 has the pairs (s, n - s), whose weights fall toward the middle, as w is log-convex. In a further term,
the weight of (n - j + 1, 1, ..., 1) is the largest, and that of (n - j, 2, 1, ..., 1) the next. Terms beyond a few thousand are bounded by
the ends of a sequence that falls and then rises.
"""

import math

import numpy as np

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...errors import InfeasibleError
from ..numerics.bisection import first_true
from ..numerics.rounding import SLACK

MOST_CLIENTS = 10**9
MOST_MESSAGES = 256
LARGEST_MODULUS = 2**62
# Number of terms that are added up one by one.
LISTED = 4096


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
    ends = _exponential(float(_log_ratios(np.array([n]), m)[0]))
    # The second pair has the weight w_2 w_(n - 2) / w_n.
    inner = (n - 3) * _exponential(2 * math.log(n * (n - 1) / 2) - _log_binomial(n * m, 2 * m)) if n > 3 else 0.0
    pairs = (q - 1) / 2 * (min(n - 1, 2) * ends + inner)
    # The logarithms are sums of at most 512 positive terms, below 2e4, with errors of 1e-12 of the sum.
    return min(1.0, math.sqrt(pairs + _further_terms(n, m, q)) / 2 * (1 + 2e4 * SLACK))


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


def _further_terms(n: int, m: int, q: int) -> float:
    """Bound the terms j from 3 on."""
    last = min(n, q, LISTED)
    if last < 3:
        return 0.0
    j = np.arange(3, last + 1)
    ratios = _log_ratios(n + 1 - j, m)
    first = math.log((q - 1) / 2 * ((q - 2) / 3) * math.comb(n - 1, 2)) + float(_log_ratios(np.array([n, n - 1]), m).sum())
    # The largest weight times the number of sums, and the logarithm of its growth from j to j + 1.
    growth = np.log((q - j) / (j + 1.0) * ((n - j) / j), out=np.full(len(j), -math.inf), where=(j < q) & (j < n)) + ratios
    terms = first + np.concatenate([[0.0], np.cumsum(growth[:-1])])
    # All but j of the sums have at most the next weight; their number is binomial(n - 1, j - 1).
    sums = np.concatenate([[0.0], np.cumsum(np.log((n - j[:-1]) / j[:-1]))]) + math.log(math.comb(n - 1, 2))
    shares = np.minimum(1.0, np.exp(np.log(j) - sums) + np.exp(np.minimum(0.0, ratios - float(_log_ratios(np.array([2]), m)[0]))))
    listed = math.fsum(np.exp(np.minimum(terms, 700.0)) * shares)
    if last == min(n, q):
        return listed
    # Growth of at most q n / (j (j + 1)) times the ratio is log-convex in j: terms that do not rise at first are largest at an end.
    if math.log(q * n / (last * (last + 1))) + float(ratios[-1]) > 0:
        return math.inf
    gamma = math.lgamma
    parts = ((n - 3) * math.log(q * n), 2 * gamma(n - 1), (n - 2) * gamma(m + 1))
    losses = (gamma(n) + gamma(n + 1), gamma((n - 2) * m + 1))
    end = first + math.log(12) + math.fsum(parts) - math.fsum(losses) + SLACK * math.fsum((*parts, *losses))
    return listed + (n - last) * _exponential(max(float(terms[-1]), end))


def _log_ratios(counts: IntegerArray, messages: int) -> FloatArray:
    """Return the logarithms of w_1 w_(s - 1) / w_s for numbers s of clients."""
    chosen = np.arange(messages)
    return np.asarray(2 * np.log(counts) - np.log((counts[:, None] * messages - chosen) / (chosen + 1.0)).sum(axis=1))


def _log_binomial(items: int, chosen: int) -> float:
    """Return the logarithm of a binomial coefficient with a small lower index."""
    places = np.arange(min(chosen, items - chosen))
    return math.fsum(np.log((items - places) / (places + 1.0)).tolist())


def _exponential(logarithm: float) -> float:
    return math.exp(min(logarithm, 700.0))
