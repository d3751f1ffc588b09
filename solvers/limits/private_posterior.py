"""The largest information of a purely private message about a vector on a sphere.

The mechanism's messages make all vectors e^epsilon indistinguishable; the vector is a uniformly random unit vector. Given a message, the
posterior density is between a and a e^epsilon for some a, and the posterior mean is longest where the density is a e^epsilon on a cap. That
mean m solves (e^epsilon - 1) E (X - m)^+ = m, X a coordinate of a uniformly random unit vector (`docs/proofs/privacy-limits.md`).
"""

import functools
import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ...arrays import FloatArray
from ...errors import ConvergenceError
from .prior_risk import ROUNDING

# Dimension above which a series gives the ratio of Gamma functions, because logarithms of Gamma functions would lose digits.
SERIES_FROM = 1e4
# Largest logarithm of odds. Means so close to 1 that their odds overflow do not improve the bound.
LARGEST_LOG_ODDS = 700.0
# The last of Newton's steps leaves an error of about its square. Five steps are usual.
LAST_STEP, MOST_STEPS = 1e-7, 100


def posterior_odds(dimension: int, epsilon: ArrayLike) -> FloatArray:
    """Return an upper bound on m**2/(1 - m**2) for the longest posterior mean m.

    Parameters
    ----------
    dimension : int
        Number of coordinates, at least 1.
    epsilon : array_like
        Privacy parameters, above 0.

    Returns
    -------
    ndarray of the shape of epsilon
        Upper bounds, infinite if they exceed the range of floats.

    Examples
    --------
    >>> bool(posterior_odds(1, 1.0).round(8) == round(math.sinh(0.5) ** 2, 8)), posterior_odds(100, [0.1, 1.0, 10.0]).round(5).tolist()
    (True, [2e-05, 0.00159, 0.11271])
    """
    given = np.asarray(epsilon, dtype=float)
    if dimension == 1:
        with np.errstate(over="ignore"):
            return np.asarray(np.sinh(given / 2) ** 2 * (1 + ROUNDING))
    budgets = given.ravel()
    gain = _log_expm1(budgets)
    # Newton's steps solve the condition's logarithm. They start from bounds on the odds, which are the odds of one dimension and an
    # information bound.
    log_odds = 2 * gain - budgets - math.log(4)
    if dimension > 2:
        log_odds = np.minimum(log_odds, _log_expm1(2 * private_information(budgets) / (dimension - 2)))
    log_odds = np.minimum(log_odds, LARGEST_LOG_ODDS)
    for _ in range(MOST_STEPS):
        log_excess, log_mean = _log_mean_excess(dimension, log_odds)
        condition = gain + log_excess + 0.5 * np.logaddexp(0.0, -log_odds)
        # The derivative of the condition by the log-odds is -(1 - m**2)/2 E X 1{X > m} / E (X - m)^+.
        step = 2 * condition * np.exp(log_excess - log_mean + np.logaddexp(0.0, log_odds))
        before, log_odds = log_odds, np.minimum(log_odds + step, LARGEST_LOG_ODDS)
        if np.abs(log_odds - before).max(initial=0.0) <= LAST_STEP:
            return np.where(log_odds >= LARGEST_LOG_ODDS, np.inf, np.exp(log_odds) * (1 + ROUNDING)).reshape(given.shape)
    raise ConvergenceError(f"the longest posterior mean in {dimension} dimensions was not found in {MOST_STEPS} steps")


def private_information(epsilon: ArrayLike) -> FloatArray:
    """Return an upper bound on the nats that a purely private message shares with its data.

    The bound for each epsilon is ``x - 1 - log(x)`` with ``x = epsilon / (1 - exp(-epsilon))``: about epsilon**2 / 8 for a small epsilon.
    """
    budgets = np.asarray(epsilon, dtype=float)
    excess = -budgets / np.expm1(-budgets) - 1
    series = excess**2 / 2 - excess**3 / 3 + excess**4 / 4
    return np.asarray(np.where(excess < 1e-2, series, excess - np.log1p(excess)) * (1 + ROUNDING))


def _log_expm1(values: FloatArray) -> FloatArray:
    return np.asarray(values + np.log(-np.expm1(-values)))


@functools.cache
def _rules() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return nodes and weights for `_log_mean_excess`, on the half-line and on [0, 1]."""
    # Both rules were compared with 40-digit sums for dimensions 2 to 10**9: the error is below 1e-11 in their ranges.
    half_line, interval = scipy.special.roots_laguerre(64), scipy.special.roots_legendre(48)
    return half_line[0], half_line[1], 0.5 * (interval[0] + 1), 0.5 * interval[1]


def _log_mean_excess(dimension: int, log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an upper bound on log E (X - t)^+, and log E X 1{X > t}; t**2 has the given odds.

    X is a coordinate of a random unit vector.
    """
    half = (dimension - 1) / 2
    log_rest = -np.logaddexp(0.0, log_odds)  # This is the logarithm of 1 - t**2.
    ratio = np.exp(-log_odds)  # This is (1 - t**2)/t**2.
    squared = np.exp(-np.logaddexp(0.0, -log_odds))
    # E X 1{X > t} = (1 - t**2)**half / (2 half Beta(half, 1/2)).
    log_mean = half * log_rest - math.log(2 * half) - _log_beta(half)
    far_nodes, far_weights, near_nodes, near_weights = _rules()
    far = ratio <= 0.5 * half
    result = np.empty_like(log_mean)
    # E (X - t)^+ is this mean times E [1 - (1 + ratio S)**(-1/2)] with S = 1 - exp(-V/half), V exponential.
    steps = -np.expm1(-far_nodes / half)
    result[far] = log_mean[far] + np.log(-np.expm1(-0.5 * np.log1p(ratio[far][:, None] * steps)) @ far_weights)
    # Near the equator, the excess is E X 1{X > t} - t (1/2 - P(0 < X < t)).
    near_squared = np.minimum(squared[~far], 0.9)
    density = np.exp((half - 1) * np.log1p(-near_squared[:, None] * near_nodes**2)) @ near_weights
    threshold = np.sqrt(near_squared)
    inside = threshold * density * math.exp(-_log_beta(half))
    near = np.exp(log_mean[~far]) - threshold * (0.5 - inside)
    result[~far] = np.log(np.maximum(near, 1e-300))
    return result + ROUNDING, log_mean


def _log_beta(half: float) -> float:
    """Return log Beta(half, 1/2)."""
    if half < SERIES_FROM:
        return 0.5 * math.log(math.pi) + math.lgamma(half) - math.lgamma(half + 0.5)
    return 0.5 * math.log(math.pi / half) - math.log1p(-1 / (8 * half) + 1 / (128 * half**2))
