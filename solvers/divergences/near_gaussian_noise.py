"""Accounts of binomial and Skellam noise by the Gaussian noise that they nearly are.

The intermediate step is discrete Gaussian noise of the same variance. Let P be one coordinate's noise, G the discrete Gaussian on the same
whole numbers with its mean and variance v, and L = ln(P / G). For n independent coordinates, of all rounds together, and every window E of
values and every t > 1, Markov's inequality gives

    P(S) <= e^x G(S) + e,  with  x = (n ln sum_E G e^(t L) + ln(2 / e)) / (t - 1)  and  n P(not E) <= e / 2,

and the same with P and G exchanged for t < 0, where t - 1 becomes -t. Noise that is shifted by a whole vector has the same ratios. So with
x, e one way, x', e' the other, and G (epsilon, d)-private, P is (epsilon + x + x', e + e^x d + e^(x + epsilon) e')-private. G is
accounted for as in `quietbits.solvers.divergences.discrete_gaussian_divergence`.

The release of all rounds is a function of the noise and of all other random numbers: the vectors in the sums, and earlier releases. Given
all else, P(S) <= e^x G(S) + e holds for events of the noise, and so, averaged, for events of the release. The function does not matter:
with G (epsilon, d)-private for clients that are sampled in secret, so is P, as above.

L is about He4(u) / (24 v), u in standard deviations, for Skellam noise, and a few times less for binomial noise with p = 1/2: x is of the
order of sqrt(n ln(1 / e)) / v, which is negligible except for very little noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ...arrays import FloatArray
from ..accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon
from ..accounting.renyi_curve import MOST_ROUNDS, check_delta
from ..numerics.rounding import UNIT
from .cpsgd_theorem import check_rate, check_trials
from .discrete_gaussian_divergence import rounded_gaussian_epsilon, smoothed_sums

LEAST_VARIANCE, LARGEST_VARIANCE = 1000.0, 1e30
# Number of points on either side of the mean of a sum over whole numbers, by the largest number of deviations of the window. The distance
# of points is at most a sixteenth of a deviation. For functions this smooth the error is far below floating point (Poisson's summation
# formula), except at the ends, which are added. The points move with the noise, so that results do not jump as the noise grows.
POINTS = {16.0: 256, 40.0: 640}
# Share of delta for events that P(S) <= e^x G(S) does not cover, each way.
SPARED = 1e-4
# Exponents t - 1 of the sums in one direction, and -t in the other direction.
EXPONENTS = 2.0 ** np.arange(0.5, 44, 0.5)
LARGEST_EXPONENT = 600.0
# Error of L, over 1 and twice the largest values of the series in it. A series has at most 61 terms, whose absolute values add up to
# 1.7 times its value at most; together they are off by 19 units as powers of a rounded slope, by 9 as products, and by less than 61 as
# Horner's rule adds them, the k-th by 2 k and at most half as large as the one before: 1.7 (61 + 28) < 2 * 90 units. The logarithms
# beside them, below 1, are off by 6 units, and the expansions leave out less than 5.
ROUNDING = 90 * UNIT
SERIES = np.arange(3, 64)
# Largest log-ratio of sampled rounds to those of Gaussian noise, all coordinates together.
NEGLIGIBLE_RATIO = 1e-8
# Largest offset, relative to the mean numbers, for which the series converge; and the widest window.
LARGEST_SLOPE = 0.5
MOST_DEVIATIONS = 40.0

GaussianEpsilon = Callable[[float, float], float | None]
"""Epsilon of all rounds of Gaussian noise from its multiplier in one round and delta, or None if unknown."""


@dataclass(frozen=True, eq=False)
class NoiseRatio:
    """A coordinate's noise beside the discrete Gaussian of its mean and variance.

    Attributes
    ----------
    variance : float
        Variance v.
    deviations : float
        Half the width of the window, in standard deviations.
    offsets : ndarray of shape (points,)
        Points of the window, less the mean, equally far apart.
    log_ratios : ndarray of shape (points,)
        Log-ratios ln(P / G) at the points.
    log_tail : float
        Logarithm of a bound on the probability of all values outside the window, under either distribution.
    rounding : float
        Bound on the error of a log ratio.
    """

    variance: float
    deviations: float
    offsets: FloatArray
    log_ratios: FloatArray
    log_tail: float
    rounding: float


def skellam_noise_ratio(variance: float, deviations: float) -> NoiseRatio:
    """Return the ratio of Skellam noise to a discrete Gaussian of the same variance.

    Skellam noise is the difference of two Poisson numbers of the same mean: P(x) = e^(-v) I_x(v), by Debye's expansion of the Bessel
    function (Abramowitz, Stegun 1964, 9.7.7) to four terms.

    Parameters
    ----------
    variance : float
        Variance v, the sum of both means, from 1000 to 10**30.
    deviations : float
        Half the width of the window, in standard deviations; from 1 to 40, and at most half of the standard deviation.

    Examples
    --------
    The fourth Hermite polynomial is 3 at zero.

    >>> ratio = skellam_noise_ratio(1e6, 5.0)
    >>> middle = len(ratio.offsets) // 2
    >>> float(ratio.offsets[middle]), round(float(ratio.log_ratios[middle]) * 24e6, 4)
    (0.0, 3.0)
    """
    mean = check_real("variance", variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
    offsets = _window(mean, deviations, narrowest=mean)
    slope = offsets / mean
    squared = np.sqrt(1 + slope**2)
    # With s = sqrt(x^2 + v^2), the expansion in powers of 1 / s has coefficients that depend on p = x / s.
    p2, inverse = (slope / squared) ** 2, 1 / (mean * squared)
    expansion = inverse * (3 - 5 * p2) / 24
    expansion += inverse**2 * (81 - 462 * p2 + 385 * p2**2) / 1152
    expansion += inverse**3 * (30375 - 369603 * p2 + 765765 * p2**2 - 425425 * p2**3) / 414720
    expansion += inverse**4 * (4465125 - 94121676 * p2 + 349922430 * p2**2 - 446185740 * p2**3 + 185910725 * p2**4) / 39813120
    # The integral of z - asinh(z), sqrt(1 + z^2) - 1 - z asinh(z) + z^2 / 2, comes from the series of asinh.
    order = np.arange(1, 40)
    coefficients = np.cumprod((2 * order - 1) / (2 * order)) * (-1.0) ** (order + 1) / ((2 * order + 1) * (2 * order + 2))
    excess = mean * slope**4 * np.polynomial.polynomial.polyval(slope**2, coefficients)
    log_ratios = excess - np.log1p(slope**2) / 4 + np.log1p(expansion)
    # Chernoff's exponent v (sqrt(1 + z^2) - 1 - z asinh z) is the excess less half the squared deviations.
    log_tail = math.log(2) + max(float(excess[-1]) - deviations**2 / 2, -(deviations**2) / 2)
    return NoiseRatio(mean, deviations, offsets, log_ratios, log_tail, ROUNDING * (1 + 2 * float(np.abs(excess).max())))


def binomial_noise_ratio(trials: int, probability: float, deviations: float) -> NoiseRatio:
    """Return the ratio of binomial noise to a discrete Gaussian.

    The probabilities come from Stirling's series to four terms; the squares of the offsets cancel in ln(P / G) and are omitted.

    Parameters
    ----------
    trials : int
        Number of trials N, 1 to 10**15.
    probability : float
        Probability p of success, from 1e-9 to 1 - 1e-9, with N p (1 - p) at least 1000.
    deviations : float
        Half the width of the window, in standard deviations; from 1 to 40, and small enough for successes and failures to stay within
        half of their mean numbers.

    Examples
    --------
    >>> ratio = binomial_noise_ratio(4 * 10**6, 0.5, 5.0)
    >>> middle = len(ratio.offsets) // 2
    >>> float(ratio.offsets[middle]), round(float(ratio.log_ratios[middle]) * 24e6, 4)
    (0.0, -1.5)
    """
    trials = check_trials(trials)
    rate = check_rate(probability)
    variance = check_real("trials * probability * (1 - probability)", trials * rate * (1 - rate), low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
    successes, failures = trials * rate, trials * (1 - rate)
    offsets = _window(variance, deviations, narrowest=min(successes, failures))
    log_ratios = np.full(len(offsets), _stirling(trials))
    exponents = np.zeros(len(offsets))
    largest = 0.0
    for expected, sign in ((successes, 1), (failures, -1)):
        relative = sign * offsets / expected
        # The series is `expected` times (1 + y) ln(1 + y) - y - y**2 / 2.
        series = expected * relative**3 * np.polynomial.polynomial.polyval(relative, (-1.0) ** SERIES / (SERIES * (SERIES - 1)))
        exponents -= series
        largest += float(np.abs(series).max())
        log_ratios -= np.log1p(relative) / 2 + _stirling(expected * (1 + relative))
    # Chernoff's exponent at either end is -N KL.
    log_tail = math.log(2) + max(float(exponents[0]), float(exponents[-1]), 0.0) - deviations**2 / 2
    # A rounded mean moves the offsets by a rounding error. `shifted` is this error in standard deviations, times the window's deviations.
    shifted = 0.0 if rate == 0.5 else 2 * deviations * float(np.spacing(max(successes, failures))) / math.sqrt(variance)
    return NoiseRatio(variance, deviations, offsets, log_ratios + exponents, log_tail, ROUNDING * (1 + 2 * largest) + shifted)


def skellam_near_gaussian_epsilon(
    variance: float, l2_sensitivity: float, dimension: int, delta: float, rounds: int = 1, sampled: GaussianEpsilon | None = None
) -> float | None:
    """Return epsilon of whole vectors with Skellam noise, by that of Gaussian noise.

    Parameters
    ----------
    variance : float
        Variance of a coordinate's noise, all clients together; above 0.
    l2_sensitivity : float
        Largest L2 distance of two neighbours' vectors of whole numbers; at least 0.
    dimension : int
        Number of coordinates.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    sampled : callable or None
        Accounts of all rounds of Gaussian noise for secretly sampled clients; None if all clients take part.

    Returns
    -------
    float or None
        Upper bound on epsilon; None if the noise is too little, or too different from Gaussian noise, for this account.

    Examples
    --------
    >>> round(skellam_near_gaussian_epsilon(1e6, 270.0, 1024, 1e-5), 3), round(gaussian_epsilon(1000 / 270, 1e-5), 3)
    (1.008, 1.008)
    """
    check_real("variance", variance, low=1e-6, high=1e40)
    if not LEAST_VARIANCE <= variance <= LARGEST_VARIANCE:
        return None
    widest = LARGEST_SLOPE * math.sqrt(variance)
    return _epsilon(lambda width: skellam_noise_ratio(variance, width), variance, widest, l2_sensitivity, dimension, delta, rounds, sampled)


def binomial_near_gaussian_epsilon(
    trials: int,
    probability: float,
    l2_sensitivity: float,
    dimension: int,
    delta: float,
    rounds: int = 1,
    sampled: GaussianEpsilon | None = None,
) -> float | None:
    """Return epsilon of whole vectors with binomial noise, by that of Gaussian noise.

    Parameters are those of `skellam_near_gaussian_epsilon`. The noise of a coordinate, of all clients together, has 1 to 10**15 trials with
    a probability of success from 1e-9 to 1 - 1e-9.

    Examples
    --------
    >>> round(binomial_near_gaussian_epsilon(4 * 10**6, 0.5, 270.0, 1024, 1e-5), 3)
    1.008
    """
    trials = check_trials(trials)
    rate = check_rate(probability)
    variance = trials * rate * (1 - rate)
    if variance < LEAST_VARIANCE:
        return None
    widest = LARGEST_SLOPE * trials * min(rate, 1 - rate) / math.sqrt(variance)
    return _epsilon(
        lambda width: binomial_noise_ratio(trials, rate, width), variance, widest, l2_sensitivity, dimension, delta, rounds, sampled
    )


def _epsilon(
    noise: Callable[[float], NoiseRatio],
    variance: float,
    widest: float,
    l2_sensitivity: float,
    dimension: int,
    delta: float,
    rounds: int,
    sampled: GaussianEpsilon | None,
) -> float | None:
    """Return epsilon of noise from its ratio to a discrete Gaussian, per window width.

    The width is at most `widest`.
    """
    l2 = check_real("l2_sensitivity", l2_sensitivity, low=0.0, high=1e100)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    delta = check_delta(delta)
    if l2 == 0:
        return 0.0
    deviation = math.sqrt(variance)
    multiplier = deviation / (l2 * math.sqrt(rounds))
    spared = delta * SPARED
    if multiplier <= SMALLEST_MULTIPLIER or not SMALLEST_DELTA <= spared <= LARGEST_DELTA:
        return None
    # Mass removed from the reverse direction counts e^epsilon times.
    log_spared = math.log(spared)
    coordinates = dimension * rounds
    roughly = gaussian_epsilon(multiplier, min(delta, LARGEST_DELTA))
    width = math.sqrt(2 * (math.log(8 * coordinates) - log_spared + roughly)) + 2
    if width > min(widest, MOST_DEVIATIONS):
        return None
    ratio = noise(width)
    log_outside = math.log(coordinates) + ratio.log_tail
    forth, back = (coordinates * ratio_log_moments(ratio, sign) for sign in (1, -1))
    if log_outside > log_spared - math.log(2):
        return None
    first = _excess(forth, EXPONENTS, log_spared) + coordinates * ratio.rounding
    # Events of the discrete Gaussian keep this delta.
    allowed = delta * (1 - 2 * SPARED) * math.exp(-first)
    choices, least = smoothed_sums(1, deviation), math.inf
    if sampled is None:
        # The best choice by an estimate comes first: the other choices are then rejected without a root.
        for smooth in sorted(choices, key=lambda smooth: roughly * deviation / smooth.sigma + 2 * coordinates * smooth.log_ratio):
            total = rounded_gaussian_epsilon(smooth.sigma / (l2 * math.sqrt(rounds)), coordinates * smooth.log_ratio, allowed, least)
            least = least if total is None else min(least, total)
    else:
        # A single choice is nearly as good as the best, and sampled rounds take long to account for.
        first_near = next((smooth for smooth in choices if coordinates * smooth.log_ratio <= NEGLIGIBLE_RATIO), None)
        if first_near is None or allowed * math.exp(-NEGLIGIBLE_RATIO) < SMALLEST_DELTA:
            return None
        total = sampled(first_near.sigma / l2, allowed * math.exp(-coordinates * first_near.log_ratio))
        least = math.inf if total is None else total + 2 * coordinates * first_near.log_ratio
    epsilon = least + first
    log_share = log_spared - epsilon
    if not log_outside <= log_share - math.log(2):
        return None
    best = epsilon + _excess(back, EXPONENTS, log_share) + coordinates * ratio.rounding
    return best if math.isfinite(best) else None


def ratio_log_moments(ratio: NoiseRatio, sign: int) -> FloatArray:
    """Return the logarithms of the ratio's moments over the window, for each exponent t.

    The sums are of G e^((t + 1) L), or with sign -1 of G e^(-t L): the sum of P^a G^(1 - a) with a = t + 1, or of G^a P^(1 - a). The
    function sums G (e^x - 1), so that nothing cancels near 1. The result is an upper bound, and infinite if an exponent is too large.
    """
    distance = float(ratio.offsets[1] - ratio.offsets[0])
    masses = np.exp(-(ratio.offsets**2) / (2 * ratio.variance)) / math.sqrt(2 * math.pi * ratio.variance) * distance
    exponents = EXPONENTS + 1 if sign > 0 else -EXPONENTS
    usable = np.maximum(exponents * ratio.log_ratios.min(), exponents * ratio.log_ratios.max()) < LARGEST_EXPONENT
    terms = masses * np.expm1(np.outer(exponents[usable], ratio.log_ratios))
    # Each end has the weight of a spacing of at least 1, the distance of whole numbers.
    ends = (np.abs(terms[:, 0]) + np.abs(terms[:, -1])) * max(1.0, 1 / distance)
    log_moments = np.full_like(EXPONENTS, math.inf)
    log_moments[usable] = np.log1p(terms.sum(axis=1) + ends)
    return log_moments


def _excess(log_moments: FloatArray, exponents: FloatArray, log_spared: float) -> float:
    """Return the least x with P(S) <= e^x G(S) + half of the spared mass.

    The other half covers the outside of the window.
    """
    return max(0.0, float(np.min((log_moments + math.log(2) - log_spared) / exponents)))


def _window(variance: float, deviations: float, narrowest: float) -> FloatArray:
    """Return equally spaced offsets from the mean, up to a number of deviations on each side."""
    deviation = math.sqrt(variance)
    width = check_real("deviations", deviations, low=1.0, high=min(MOST_DEVIATIONS, LARGEST_SLOPE * narrowest / deviation))
    count = next(points for widest, points in POINTS.items() if width <= widest)
    return width * deviation / count * np.arange(-count, count + 1, dtype=float)


def _stirling(number: float | FloatArray) -> float | FloatArray:
    """Return ln(n!) less ln(sqrt(2 pi n) (n / e)^n), for n of some hundreds and more."""
    return 1 / (12 * number) - 1 / (360 * number**3) + 1 / (1260 * number**5) - 1 / (1680 * number**7)
