"""Numbers of rows with which a random matrix distinguishes histograms, by a union bound.

The matrix S has Bernoulli(1/2) entries, and S mu distinguishes histograms mu. The bound is theorem 4.2 of Chen, Özgür, Cormode, Bharadwaj
2023, *The communication cost of security and privacy in federated frequency estimation*, with all constants.
`docs/proofs/exact-histograms.md` has the proofs. The entries of S are independent of the histogram; all sizes are upper bounds.
"""

import math
import sys

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import MOST_CATEGORIES, check_integer, check_probability
from ...arrays import FloatArray, IntegerArray
from ..numerics.bisection import first_true
from ..numerics.rounding import UNIT

MOST_CLIENTS = 2000
# Largest number of clients for which the sum over k is computed term by term, in time of the third power.
TERMWISE_CLIENTS = 256


def code_size(clients: int, dimension: int, failure_probability: float = 0.01) -> int:
    """Return a number of rows that distinguishes all histograms with probability >= 1 - q.

    The histograms have n items, and the probability is over S; the rows then also distinguish all histograms of fewer items. Up to 256
    clients the union bound's sum is computed exactly; beyond, a sum of n terms is bounded by n times the largest term, which takes about
    log(n) / log(sqrt(n)) more rows.

    Parameters
    ----------
    clients : int
        Number n of items, from 0 to 2000.
    dimension : int
        Number d of categories, from 1 to 2**40.
    failure_probability : float
        Failure probability q, above 0 and below 1.

    Examples
    --------
    >>> code_size(30, 1000), code_size(100, 10_000)
    (120, 390)
    """
    clients, dimension, probability = _checked(clients, dimension, failure_probability)
    if clients == 0 or dimension == 1:
        return 1
    multiplicities = np.full((clients + 1, clients + 1), -np.inf)
    parts = _log_compositions(clients)
    if clients <= TERMWISE_CLIENTS:
        for total in range(1, clients + 1):
            # delta, -delta and all multiples of a vector have the same zeros: with two entries only k = 1 counts.
            pairs = np.add.outer(parts[total, : total + 1], parts[total, : total + 1])
            pairs[1, 1] = 0.0 if total == 1 else -np.inf
            sums = multiplicities[: total + 1, : total + 1]
            np.logaddexp(sums, pairs, out=sums)
    else:
        sizes = np.arange(clients + 1)
        terms = clients + 1 - np.maximum.outer(sizes, sizes)
        multiplicities = np.add.outer(parts[clients], parts[clients]) + np.log(terms)
        multiplicities[1, 1] = 0.0
    multiplicities += _log_supports(dimension, clients) - math.log(2)
    return _least_rows(_by_support(multiplicities), probability)


def code_size_of_histogram(counts: ArrayLike, dimension: int, failure_probability: float = 0.01) -> int:
    """Return a number of rows that identifies a given histogram with probability >= 1 - q.

    The number is about half of `code_size`. S must be drawn after the histogram, or independently of the histogram; then the result of
    `decode_histogram` is right with probability at least 1 - q, whether or not uniqueness was proven.

    Parameters
    ----------
    counts : array_like of int
        Count of each item, in any order, with or without zeros; at most 2000 in all.
    dimension, failure_probability
        The arguments of `code_size`.

    Examples
    --------
    >>> code_size_of_histogram([1] * 30, 1000), code_size_of_histogram([20, 6, 4], 1000)
    (62, 71)
    """
    array = np.asarray(counts)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or (array < 0).any():
        raise ValueError(f"counts must be a list of whole numbers, none negative, got {counts!r}")
    own = array[array > 0].astype(np.int64)
    clients, dimension, probability = _checked(int(own.sum()), dimension, failure_probability)
    if len(own) > dimension:
        raise ValueError(f"counts must be of at most {dimension} items, the dimension, got {len(own)} items")
    if clients == 0 or dimension == 1:
        return 1
    removed = _log_removed(own)
    parts = _log_compositions(clients)
    added = _log_supports_beside(dimension, len(own), clients)
    counted = np.full((clients + 1, clients + 1), -np.inf)
    for total in range(1, clients + 1):
        pairs = np.add.outer(parts[total, : total + 1], removed[: total + 1, total])
        if total > 1:
            # delta = k (e_i - e_j) is a multiple of the delta with k = 1, and has the same zeros.
            pairs[1, 1] = -np.inf
        sums = counted[: total + 1, : total + 1]
        np.logaddexp(sums, pairs, out=sums)
    return _least_rows(_by_support(counted + added), probability)


def zero_probability(support: int) -> float:
    """Return an upper bound on P(b . delta = 0), for fair bits b and integers delta of sum 0.

    `support`, at least 2, is the number of nonzero entries of delta. The bound is C(s, floor(s/2)) / 2^s, by Erdős' form of the
    Littlewood-Offord lemma, and 1/4 for s = 3. Where all entries are 1 or -1, the bound is exact up to rounding.
    """
    return math.exp(float(_log_zero_probabilities(check_integer("support", support, low=2, high=2 * MOST_CLIENTS))[support]))


def _checked(clients: int, dimension: int, failure_probability: float) -> tuple[int, int, float]:
    return (
        check_integer("clients", clients, low=0, high=MOST_CLIENTS),
        check_integer("dimension", dimension, low=1, high=MOST_CATEGORIES),
        check_probability("failure_probability", failure_probability),
    )


def _least_rows(log_counts: FloatArray, failure_probability: float) -> int:
    """Return the least m with sum_s count_s p_s^m <= q, with `log_counts` for s = 0, 1, ..."""
    support = np.flatnonzero(log_counts > -np.inf)
    counts, zeros = log_counts[support], _log_zero_probabilities(len(log_counts) - 1)[support]
    # The sums have at most 3 s + 8 logarithms, none off by more than 4 units; the sum of their magnitudes is below the factor of `chain`.
    chain = UNIT * 4 * (3 * len(log_counts) + 8)

    def bound(rows: int) -> float:
        exponents = counts + rows * zeros
        slack = chain * (3 * np.abs(counts) + rows * np.abs(zeros) + len(log_counts))
        top = float((exponents + slack).max())
        return top + math.log(float(np.exp(exponents + slack - top).sum())) + 1e-12

    return first_true(1, sys.maxsize, lambda rows: bound(rows) <= math.log(failure_probability))


def _log_zero_probabilities(largest: int) -> FloatArray:
    """Return ln p_s for s = 0..largest.

    p_2j = p_(2j-1) = C(2j, j) / 4^j = prod_(i <= j) (2i - 1) / (2i).
    """
    halves = np.arange(1, largest // 2 + 2)
    even = np.concatenate([[0.0], np.cumsum(np.log1p(-1 / (2 * halves)))])
    logs: FloatArray = even[(np.arange(largest + 1) + 1) // 2]
    if largest >= 3:
        logs[3] = -math.log(4)
    return logs


def _log_binomials(top: int, largest: int) -> FloatArray:
    """Return ln C(top, j) for j = 0..largest, -inf beyond `top`."""
    logs = np.full(largest + 1, -np.inf)
    count = min(top, largest)
    ratios = np.log((top - np.arange(count)) / np.arange(1.0, count + 1))
    logs[: count + 1] = np.concatenate([[0.0], np.cumsum(ratios)])
    return logs


def _log_compositions(clients: int) -> FloatArray:
    """Return ln C(k - 1, a - 1), the ways to write k as a sum of a positive numbers.

    The axes are k and a, both 0..n.
    """
    logs = np.full((clients + 1, clients + 1), -np.inf)
    for total in range(1, clients + 1):
        logs[total, 1:] = _log_binomials(total - 1, clients - 1)
    return logs


def _log_supports(dimension: int, clients: int) -> FloatArray:
    """Return ln C(d, a) C(d - a, b), the supports of a positive and b negative entries.

    The logarithm is -inf if either support is empty.
    """
    logs = np.full((clients + 1, clients + 1), -np.inf)
    own = _log_binomials(dimension, clients)
    for size in range(1, min(clients, dimension) + 1):
        logs[size, 1:] = own[size] + _log_binomials(dimension - size, clients)[1:]
    return logs


def _log_supports_beside(dimension: int, distinct: int, clients: int) -> FloatArray:
    """Return ln C(d - b, a), the supports of a positive entries beside b negative entries.

    The logarithm is -inf if either support is empty or b is too large.
    """
    logs = np.full((clients + 1, clients + 1), -np.inf)
    for size in range(1, distinct + 1):
        logs[1:, size] = _log_binomials(dimension - size, clients)[1:]
    return logs


def _log_removed(counts: IntegerArray) -> FloatArray:
    """Return ln of the number of ways to take k items away of b kinds, at least one of each.

    The axes are b and k, both 0..n.
    """
    clients = int(counts.sum())
    ways = [[0] * (clients + 1) for _ in range(clients + 1)]
    ways[0][0] = 1
    for seen, count in enumerate(counts.tolist()):
        for kinds in range(seen + 1, 0, -1):
            # A window of `count` entries of the previous row counts the ways to take 1..count of this item.
            window, before = 0, ways[kinds - 1]
            row = ways[kinds]
            for total in range(1, clients + 1):
                window += before[total - 1] - (before[total - 1 - count] if total > count else 0)
                row[total] += window
    return np.array([[math.log(way) if way else -math.inf for way in row] for row in ways])


def _by_support(logs: FloatArray) -> FloatArray:
    """Return the sums over all a + b = s."""
    size = len(logs)
    sums = np.full(2 * size - 1, -np.inf)
    for first in range(size):
        part = sums[first : first + size]
        np.logaddexp(part, logs[first], out=part)
    return sums
