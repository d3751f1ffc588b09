"""Expected positive part of a sum of independent, identical variables with few values: an upper bound that is close to it.

Every value is split between its two neighbours on a lattice so that its mean stays, which raises the expectation of every
convex function; the law of the sum is tilted towards zero, so that a tail is computed with full relative precision; and it is found by a
fast Fourier transform. Rounding errors, and what lies beyond the lattice, are bounded and added.
"""

import math

import numpy as np

from ...arrays import FloatArray
from ..numerics.rounding import UNIT

# Points of the lattice: at least, and at most. Fewer than the accuracy asks for err further upward.
FEWEST_POINTS, MOST_POINTS = 2**10, 2**22
# How far the lattice reaches, in standard deviations of the tilted sum and in lengths on which the tilt falls by a factor of e.
DEVIATIONS, DECAYS = 11.0, 42.0
# Relative error of a fast Fourier transform in the L2 norm, for each doubling of its length. Higham 2002, *Accuracy and stability of
# numerical algorithms*, theorem 24.2, has 7 units where roots of unity are good to a unit.
FFT_UNITS = 16
# Powers of a transform below exp(-90) are left out, and their norm is counted as an error.
NEGLIGIBLE = 90.0
# Steps of Newton's method, or of halving, and the size of the last one.
MOST_STEPS, LAST_STEP = 60, 1e-12
# Exponents beyond this are cut off where they can only be too large to matter.
LARGEST_EXPONENT = 700.0


def positive_part_bound(values: FloatArray, probabilities: FloatArray, rest: float, count: int, accuracy: float) -> float:
    """Return an upper bound on E[max(0, sum)] / count, by a share of about `accuracy`, or twice that where sums are often exactly 0.

    Parameters
    ----------
    values : ndarray of shape (values,)
        Values of a variable, beside 0.
    probabilities : ndarray of shape (values,)
        Their probabilities.
    rest : float
        Probability of 0. With the others it may be more than 1: a larger measure gives a larger bound.
    count : int
        Number of variables.
    accuracy : float
        What splitting values may add, as a share, where there are points enough: from 1e-6 to 1.

    Examples
    --------
    The mean absolute deviation of heads among 100 tosses, halved and per toss:

    >>> bound = positive_part_bound(np.array([-0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 100, 1e-4)
    >>> exact = math.comb(100, 50) / 2**102
    >>> 1 <= bound / exact < 1.002
    True
    """
    if values.max(initial=0.0) <= 0:
        return 0.0
    deviation = math.sqrt(float(probabilities @ values**2) - float(probabilities @ values) ** 2) if len(values) else 0.0
    tilt = max(_centring_tilt(values, probabilities), 1 / (max(deviation, 1e-300) * math.sqrt(count)))
    tilt = min(tilt, LARGEST_EXPONENT / float(values.max()))
    weights = probabilities * np.exp(np.maximum(tilt * values, -LARGEST_EXPONENT))
    total = float(weights.sum()) + rest
    # Shares first: a weight times a square may be beyond the largest float.
    shares = weights / total
    mean = float(shares @ values)
    spread = math.sqrt(count * max(float(shares @ values**2) - mean**2, 0.0))
    # A split over a step h multiplies each variable's moment by cosh(t h / 2) <= exp((t h)^2 / 8) at most; it adds h^2 / 4 to its variance.
    step = math.sqrt(4 * accuracy / count) / tilt
    reach = abs(count * mean) + DEVIATIONS * spread + DECAYS / tilt
    points = int(min(max(2.0 ** math.ceil(math.log2(reach / step)), FEWEST_POINTS), MOST_POINTS))
    step = max(step, reach / points)

    law = _lattice_law(values, probabilities, rest, tilt, step, points)
    mass = float(law.sum())
    law /= mass
    transform = np.fft.rfft(law)
    # Errors in the L2 norm: of the inverse transform, and of a power whose base is off by the error of the forward one.
    doublings = FFT_UNITS * UNIT * math.log2(points)
    base_error = doublings * math.sqrt(points) * float(np.linalg.norm(law)) + 64 * UNIT
    sizes = np.abs(transform)
    logs = np.log(np.minimum(sizes + base_error, 1.0 + base_error))
    alive = count * logs > -NEGLIGIBLE
    # Sizes and angles apart: complex logarithms and exponentials take twice as long.
    raised, turned = np.exp(count * np.log(np.maximum(sizes[alive], UNIT))), count * np.angle(transform[alive])
    power = np.zeros(len(transform), dtype=complex)
    power.real[alive], power.imag[alive] = raised * np.cos(turned), raised * np.sin(turned)
    summed = np.fft.irfft(power, points)
    squares = float(np.exp(2 * (count - 1) * logs[alive]).sum()) + len(transform) * math.exp(-2 * NEGLIGIBLE * (1 - 1 / count))
    error = doublings * float(np.linalg.norm(summed)) + count * base_error * math.sqrt(2 * squares / points) + math.exp(-NEGLIGIBLE)

    # Sums above zero, up to where the tilt has left nothing of them; what lies above or far below wraps around, and is only added.
    above = min(points - 1, math.ceil(DECAYS / (tilt * step)))
    sums = step * np.arange(1, above + 1)
    untilted = sums * np.exp(-tilt * sums)
    beyond = (sums[-1] + step) * math.exp(-tilt * sums[-1])
    value = float(untilted @ summed[1 : above + 1]) + float(np.linalg.norm(untilted)) * error + beyond
    # Exponents of at most 700 and masses are good to 2000 units each, for every variable.
    slack = count * UNIT * (4000 + 16 / max(rest, 1e-12) * (rest > 0))
    exponent = count * math.log(mass) + math.log(value / count) + slack
    return math.exp(min(exponent, _each_alone(values, probabilities, rest, count), LARGEST_EXPONENT))


def _each_alone(values: FloatArray, probabilities: FloatArray, rest: float, count: int) -> float:
    """Return the logarithm of a bound that does without the others: the positive part of a sum is at most the sum of positive parts.

    It is what holds where values are so large and so rare that the lattice is too coarse for them.
    """
    alone = float(probabilities @ np.maximum(values, 0.0))
    together = max(float(probabilities.sum()) + rest, 1.0)
    slack = count * UNIT * (16 + 4 * len(values))
    return (math.log(alone) if alone > 0 else -math.inf) + (count - 1) * math.log(together) + slack


def _centring_tilt(values: FloatArray, probabilities: FloatArray) -> float:
    """Return the tilt with which the mean is zero, nearly; 0 where it is not negative to begin with, or no value is positive."""
    possible = probabilities > 0
    values, probabilities = values[possible], probabilities[possible]
    if values.max(initial=0.0) <= 0 or float(probabilities @ values) >= 0:
        return 0.0

    def newton_step(tilt: float) -> float:
        """Return the tilted mean over its derivative; a factor that both have does not matter."""
        exponents = tilt * values
        weighed = probabilities * np.exp(exponents - exponents.max()) * values
        return float(weighed.sum() / (weighed @ values))

    low, high = 0.0, LARGEST_EXPONENT / float(values.max())
    if newton_step(high) < 0:
        return high
    tilt = 0.0
    for _ in range(MOST_STEPS):
        step = newton_step(tilt)
        if abs(step) <= LAST_STEP * tilt:
            break
        low, high = (tilt, high) if step < 0 else (low, tilt)
        tilt -= step
        if not low < tilt < high:
            tilt = math.sqrt(low * high) if low > 0 else high / 16
    return tilt


def _lattice_law(values: FloatArray, probabilities: FloatArray, rest: float, tilt: float, step: float, points: int) -> FloatArray:
    """Return tilted weights of the lattice's points, modulo their number, after each value was split between its two neighbours."""
    lower = np.floor(values / step)
    share = values / step - lower
    law = np.zeros(points)
    law[0] = rest
    for place, part in ((lower, 1 - share), (lower + 1, share)):
        weights = probabilities * part * np.exp(np.maximum(tilt * step * place, -LARGEST_EXPONENT))
        np.add.at(law, np.mod(place, points).astype(np.int64), weights)
    return law
