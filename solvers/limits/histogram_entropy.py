"""Entropy in bits of the histogram of n items of d categories, a lower bound on messages.

A result is a lower and an upper bound on the entropy, with rounding and truncation included.
`docs/proofs/frequency-limits.md` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ...arguments import LARGEST_EXACT_INTEGER, MOST_CLIENTS, check_integer
from ...arrays import FloatArray, IntegerArray
from ..numerics.rounding import UNIT

# The sum over counts takes time proportional to the square root of clients times categories.
MOST_COUNTED_CLIENTS = 10**9
# Number from which Stirling's series is used, with an error below 1/(1680 n**7).
SERIES_FROM = 16
# Limits of counts. Counts farther from their mean than 10.8 standard deviations plus 40 have a mass below 1e-24 (Bernstein's inequality).
TAIL_DEVIATIONS, TAIL_COUNTS, TAIL_MASS = 10.8, 40.0, 1e-24
CELLS_AT_ONCE = 2**21


@dataclass(frozen=True)
class EntropyBounds:
    """Lower and upper bound on an entropy, in bits.

    Attributes
    ----------
    lower : float
        Lower bound on the entropy.
    upper : float
        Upper bound on the entropy.
    """

    lower: float
    upper: float


def uniform_histogram_entropy(categories: int, clients: int) -> EntropyBounds:
    """Return log2 of the number of histograms: the entropy if all are equally likely.

    There are C(clients + categories - 1, clients) histograms.

    Parameters
    ----------
    categories : int
        Number of items, up to 2**53.
    clients : int
        Number of counted items, up to 2**53.

    Examples
    --------
    >>> round(uniform_histogram_entropy(10_000, 100).lower, 1), round(uniform_histogram_entropy(100_000, 1000).lower)
    (804.7, 8087)
    """
    categories = check_integer("categories", categories, low=1, high=LARGEST_EXACT_INTEGER)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    if categories == 1:
        return EntropyBounds(0.0, 0.0)
    logarithms = log_multisets(categories, np.array([clients]))
    return EntropyBounds(float(logarithms.lower[0]) / math.log(2), float(logarithms.upper[0]) / math.log(2))


@dataclass(frozen=True, eq=False)
class LogarithmBounds:
    """Lower and upper bounds on logarithms, in nats."""

    lower: FloatArray
    upper: FloatArray


def log_multisets(categories: int, parts: ArrayLike) -> LogarithmBounds:
    """Return ln C(parts + categories - 1, parts) for each number of parts and >= 2 categories.

    With R = parts, m = categories - 1 and N = R + m, the logarithm is R ln(N/R) + m ln(1 + R/m) + ln(N/(2 pi R m))/2 + r(N) - r(R) - r(m),
    r being the rest of Stirling's formula: no large numbers cancel.
    """
    chosen = np.asarray(parts, dtype=float)
    rest = float(categories - 1)
    total = chosen + rest
    terms = (
        chosen * np.log1p(rest / chosen),
        rest * np.log1p(chosen / rest),
        0.5 * np.log(total / (2 * np.pi * chosen * rest)),
        _stirling_rest(total) - _stirling_rest(chosen) - _stirling_rest(np.array([rest])),
    )
    # Each term, and the bits, have at most 12 units of rounding; the rests have less than 7e-12 of truncation, and 1e-13 of rounding.
    nats = np.asarray(sum(terms))
    error = 16 * UNIT * sum(np.abs(term) for term in terms) + 1e-11
    return LogarithmBounds(np.maximum(nats - error, 0.0), nats + error)


def _stirling_rest(numbers: FloatArray) -> FloatArray:
    """Return ln n! - (n + 1/2) ln n + n - ln(2 pi)/2."""
    small = np.minimum(numbers, SERIES_FROM)
    exact = scipy.special.gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    inverse = 1 / np.maximum(numbers, SERIES_FROM)
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260)))
    return np.asarray(np.where(numbers < SERIES_FROM, exact, series))


def multinomial_histogram_entropy(probabilities: ArrayLike, clients: int, multiplicities: ArrayLike | None = None) -> EntropyBounds:
    """Return the entropy of the histogram of independent, identically distributed items.

    The entropy is exact for any number of categories: H = n H(p) - log2 n! + sum_i E log2 X_i!, where X_i is binomial.

    Parameters
    ----------
    probabilities : array_like
        Probabilities of the items; with their multiplicities they must add up to 1, to 1e-9.
    clients : int
        Number of counted items, up to 10**9.
    multiplicities : array_like of int, optional
        Number of items of each probability; by default 1 each. Time does not depend on the multiplicities.

    Returns
    -------
    EntropyBounds
        Bounds that are at most about 1e-12 of n log2(n) apart.

    Examples
    --------
    >>> coin = multinomial_histogram_entropy([0.5, 0.5], 2)
    >>> round(coin.lower, 9), round(coin.upper, 9)
    (1.5, 1.5)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_COUNTED_CLIENTS)
    masses, counts = _checked(probabilities, multiplicities)
    if masses.size == 1 and counts[0] == 1:
        return EntropyBounds(0.0, 0.0)
    surprise = -np.log(masses)
    each = clients * math.fsum(masses * surprise * counts)
    factorial = float(scipy.special.gammaln(clients + 1.0))
    first, widths = _windows(clients, masses)
    expected, start = 0.0, 0
    while start < masses.size:
        # Windows of similar width are summed together.
        stop = min(int(np.searchsorted(widths, 2 * widths[start], side="right")), start + max(1, CELLS_AT_ONCE // int(2 * widths[start])))
        chunk = slice(start, stop)
        expected += math.fsum(_expected_log_factorials(clients, masses[chunk], first[chunk], int(widths[stop - 1])) * counts[chunk])
        start = stop
    nats = each - factorial + expected
    # A window's weights have errors of 6 units for each count, sums have a unit for each term, and logarithms of factorials have 8 units.
    error = UNIT * (16 * each + 16 * factorial + (16 * float(widths[-1]) + 64) * expected) + 2 * TAIL_MASS * factorial * float(counts.sum())
    # The allowance includes the division of the probabilities by their sum.
    error += 4 * UNIT * clients * (1 + float(surprise.max()))
    bits, allowance = nats / math.log(2), error / math.log(2)
    return EntropyBounds(max(0.0, bits - allowance), max(0.0, bits) + allowance)


def _checked(probabilities: ArrayLike, multiplicities: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return distinct probabilities above 0 with multiplicities, narrowest windows first."""
    masses = np.asarray(probabilities, dtype=float)
    if masses.ndim != 1 or masses.size == 0 or not np.all((masses >= 0) & (masses <= 1)):
        raise ValueError(f"probabilities must be a list of numbers from 0 to 1, got {probabilities!r}")
    counts = np.ones(masses.shape) if multiplicities is None else np.asarray(multiplicities, dtype=float)
    if counts.shape != masses.shape or not np.all((counts >= 1) & (counts <= LARGEST_EXACT_INTEGER) & (counts == np.floor(counts))):
        raise ValueError(f"multiplicities must be a whole number from 1 for each probability, got {multiplicities!r}")
    total = math.fsum(masses * counts)
    if abs(total - 1) > 1e-9:
        raise ValueError(f"probabilities must add up to 1 with their multiplicities, got a sum of {total!r}; divide by it")
    values, places = np.unique(masses, return_inverse=True)
    summed = np.bincount(places, weights=counts)
    order = np.argsort(values * (1 - values), kind="stable")
    order = order[values[order] > 0]
    return np.asarray(values[order] / total), np.asarray(summed[order], dtype=float)


def _windows(clients: int, masses: FloatArray) -> tuple[FloatArray, IntegerArray]:
    """Return the first count and the width of each window that holds all but `TAIL_MASS`.

    Widths do not decrease.
    """
    reach = TAIL_DEVIATIONS * np.sqrt(clients * masses * (1 - masses)) + TAIL_COUNTS
    first = np.maximum(np.floor(clients * masses - reach), 0.0)
    widths = np.minimum(np.ceil(clients * masses + reach), clients) - first + 1
    return first, np.maximum.accumulate(widths).astype(np.int64)


def _expected_log_factorials(clients: int, masses: FloatArray, first: FloatArray, width: int) -> FloatArray:
    """Return E ln X! for binomial X, over windows of counts that begin with `first`."""
    steps = np.arange(width)
    counts = first[:, None] + steps
    with np.errstate(divide="ignore"):
        # Odds give each weight relative to the previous weight; there are no weights beyond the number of clients.
        odds = np.where(masses < 1, masses / (1 - masses), 0.0)
    ratios = np.maximum(clients - counts[:, :-1], 0.0) / (counts[:, :-1] + 1) * odds[:, None]
    weights = np.cumprod(np.concatenate([np.ones((masses.size, 1)), ratios], axis=1), axis=1)
    logs = scipy.special.gammaln(steps + 1.0) if not np.any(first) else scipy.special.gammaln(counts + 1)
    return np.asarray((weights * logs).sum(axis=1) / weights.sum(axis=1))
