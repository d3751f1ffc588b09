"""The exact privacy of Gaussian noise, and the noise that a guarantee needs.

Balle, Wang 2018, *Improving the Gaussian mechanism for differential privacy: analytical calibration and optimal denoising*, theorem 8.
The noise multiplier z is the standard deviation over the L2 sensitivity.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...arguments import check_real
from ...arrays import FloatArray
from ...errors import ConvergenceError
from ..numerics.bisection import bisect
from ..numerics.rounding import UNIT

LARGEST_EPSILON = 1e4
SMALLEST_DELTA, LARGEST_DELTA = 1e-300, 0.999
SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER = 1e-3, 1e300
# Relative distance by which a root moves to its safe side, and number of doublings if rounding hides so small a step.
NUDGE, DOUBLINGS = 2e-10, 33
# Number of halvings that lead from the largest float to an interval of adjacent floats.
MOST_HALVINGS = 2200
# Largest number of Newton steps, of which six are usual, and the relative step at which they end: the root then moves by over a hundred
# times that step.
MOST_TANGENTS, CLOSE, MOST_LOG_SLOPE = 12, 5e-13, 300.0
# Number of standard deviations from which delta is below the smallest float.
FAR = 40.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
# Quadrature points of an interval of length 1, divided by the square root of 2.
PLACES = (NODES + 1) / math.sqrt(8)


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the smallest delta at which Gaussian noise is (epsilon, delta)-private.

    delta = Phi(1 / (2 z) - epsilon z) - e^epsilon Phi(-1 / (2 z) - epsilon z), computed without cancellation, to about ten digits, for
    noise multipliers z from 1e-3 to 1e300 and epsilon from 0 to 1e4. Below 1e-340 the result is 0.0.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    multiplier = check_real("noise_multiplier", noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
    return math.exp(_log_delta(multiplier, check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)))


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least Gaussian noise that is (epsilon, delta)-private, over the sensitivity.

    The result is too large by a relative error below 1e-9. Epsilon is from 0 to 1e4 and delta from 1e-300 to 0.999.

    Examples
    --------
    >>> round(gaussian_noise_multiplier(1.0, 1e-5), 6)
    3.730632
    """
    epsilon = check_real("epsilon", epsilon, low=0.0, high=LARGEST_EPSILON)
    target = math.log(check_real("delta", delta, low=SMALLEST_DELTA, high=LARGEST_DELTA))

    def excess(log_multiplier: float) -> float:
        return _log_delta_bound(math.exp(log_multiplier), epsilon) - target

    # Delta falls from 1 to 0 as the noise grows.
    low = high = 0.0
    while excess(low) < 0:
        low -= 2.0
    while excess(high) > 0:
        high += 2.0
    # The function bisects, because SciPy's optimisers take longer to load than all halvings.
    multiplier = math.exp(bisect(lambda value: excess(value) > 0, low, high, MOST_HALVINGS).fails)
    return _nudged(multiplier, lambda value: _log_delta_bound(value, epsilon) <= target)


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the smallest epsilon at which Gaussian noise is (epsilon, delta)-private.

    The result is too large by less than a relative 1e-9, or by 1e-9 if it is below 1; it is 0.0 if delta alone suffices. The noise
    multiplier is from 1e-3 to 1e300 and delta from 1e-300 to 0.999.

    Examples
    --------
    >>> round(gaussian_epsilon(3.730632, 1e-5), 6), gaussian_epsilon(1e6, 1e-5)
    (1.0, 0.0)
    """
    multiplier = check_real("noise_multiplier", noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
    target = math.log(check_real("delta", delta, low=SMALLEST_DELTA, high=LARGEST_DELTA))
    if _log_delta_bound(multiplier, 0.0) <= target:
        return 0.0
    # Delta is below the probability that the loss, normal with mean 1 / (2 z^2) and deviation 1 / z, exceeds epsilon, which is below
    # exp(-t^2 / 2) at t deviations above the mean.
    high = 0.5 / multiplier / multiplier + math.sqrt(-2 * target) / multiplier
    epsilon = _by_tangents(multiplier, target, high)
    if epsilon is None:
        epsilon = bisect(lambda value: _log_delta_bound(multiplier, value) > target, 0.0, high, MOST_HALVINGS).fails
    return _nudged(epsilon, lambda value: _log_delta_bound(multiplier, value) <= target)


def gaussian_epsilon_exceeds(epsilon: float, noise_multiplier: float, delta: float) -> bool:
    """Return whether `gaussian_epsilon` exceeds a number, from a single evaluation.

    The result is True only if `gaussian_epsilon` exceeds `epsilon`.

    Examples
    --------
    >>> gaussian_epsilon_exceeds(0.9, 3.730632, 1e-5), gaussian_epsilon_exceeds(1.1, 3.730632, 1e-5)
    (True, False)
    """
    return epsilon < 0 or (math.isfinite(epsilon) and _log_delta_bound(noise_multiplier, epsilon) > math.log(delta))


def gaussian_epsilons_exceed(epsilons: FloatArray, noise_multipliers: FloatArray, deltas: FloatArray) -> NDArray[np.bool_]:
    """Return `gaussian_epsilon_exceeds` for each entry of three arrays.

    Examples
    --------
    >>> gaussian_epsilons_exceed(np.array([0.9, 1.1]), np.full(2, 3.730632), np.full(2, 1e-5)).tolist()
    [True, False]
    """
    shifts = 1 / noise_multipliers
    lows = epsilons * noise_multipliers - shifts / 2
    usual = (shifts <= 1) & (lows <= FAR) & (epsilons >= 0)
    exceeds = np.empty(len(epsilons), dtype=bool)
    for place in np.flatnonzero(~usual).tolist():
        exceeds[place] = gaussian_epsilon_exceeds(float(epsilons[place]), float(noise_multipliers[place]), float(deltas[place]))
    low, shift = lows[usual], shifts[usual]
    log_deltas = -(low**2) / 2 - math.log(2 * math.pi) / 2 + np.log(shift / 2 * _slopes(low[:, None], shift[:, None]))
    margins = _margin(np.sqrt(np.abs(log_deltas)), noise_multipliers[usual], epsilons[usual])
    exceeds[usual] = log_deltas + margins > np.log(deltas[usual])
    return exceeds


def _by_tangents(multiplier: float, target: float, high: float) -> float | None:
    """Return the epsilon where delta falls to its target, by Newton's steps, or None.

    The relative error is 1e-12; None means that the steps do not show the root.
    """
    value = high
    for _ in range(MOST_TANGENTS):
        log_delta = _log_delta_bound(multiplier, value)
        # The derivative of delta is -e^epsilon Phi(-1 / (2 z) - epsilon z).
        log_slope = value + float(scipy.special.log_ndtr(-value * multiplier - 0.5 / multiplier)) - log_delta
        if not abs(log_slope) < MOST_LOG_SLOPE:
            return None
        step = (log_delta - target) * math.exp(-log_slope)
        value = min(max(value + step, 0.0), high)
        if abs(step) <= CLOSE * value:
            return value if _log_delta_bound(multiplier, value * (1 - 2 * CLOSE)) > target else None
    return None


def _log_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the logarithm of delta.

    With the Mills ratio M(x) = Q(x) / phi(x), u = epsilon z - 1 / (2 z) and v = u + 1 / z, the two terms share the factor
    phi(u) = e^epsilon phi(v), and delta = phi(u) (M(u) - M(v)).
    """
    shift = 1 / noise_multiplier
    low = epsilon * noise_multiplier - shift / 2
    if shift <= 1 and low <= FAR:
        # The difference of two close values is the integral of -M' over a short interval, on which M is smooth.
        return -(low**2) / 2 - math.log(2 * math.pi) / 2 + math.log(shift / 2 * float(_slopes(low, shift)))
    log_first = float(scipy.special.log_ndtr(-low))
    if low > FAR:
        return log_first
    if low > 0:
        ratio = float(scipy.special.erfcx((low + shift) / math.sqrt(2)) / scipy.special.erfcx(low / math.sqrt(2)))
    else:
        ratio = math.exp(epsilon + float(scipy.special.log_ndtr(-low - shift)) - log_first)
    return log_first + math.log1p(-ratio)


def _slopes(low: Any, shift: Any) -> Any:
    """Return the weighted sum of -M'(x) = 1 - x M(x) from u = `low` to u + `shift`, for numbers or for columns of them."""
    points = low / math.sqrt(2) + shift * PLACES
    return (1 - math.sqrt(math.pi) * points * scipy.special.erfcx(points)).dot(WEIGHTS)


def _log_delta_bound(noise_multiplier: float, epsilon: float) -> float:
    """Return the logarithm of delta, rounded upward by more units than its error.

    `low` is off by 3 units of its own and half the shift, and twice its square over 2 is at most -ln(delta) where the error matters. The
    terms of an integrand or a ratio cancel to a 1 / `low`**2 share. A ratio's exponent has two terms of about epsilon each, of 8 units.
    """
    log_delta = _log_delta(noise_multiplier, epsilon)
    return log_delta + float(_margin(math.sqrt(abs(log_delta)), noise_multiplier, epsilon))


def _margin(size: Any, noise_multiplier: Any, epsilon: Any) -> Any:
    """Return the margin of `_log_delta_bound`, for numbers or for arrays."""
    return UNIT * (100 + 30 * size**2 + 5 * size / noise_multiplier + 32 * epsilon)


def _nudged(root: float, is_safe: Callable[[float], bool]) -> float:
    """Return a number a little above a root, on its safe side."""
    for doublings in range(DOUBLINGS):
        above = root * (1 + NUDGE * 2.0**doublings)
        if is_safe(above):
            return above
    raise ConvergenceError(f"the calibration of Gaussian noise ended at {root!r}, and is not safe a little above it")
