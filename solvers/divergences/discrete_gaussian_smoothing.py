"""A sum of discrete Gaussians as Gaussian noise that was rounded at random: its privacy for one delta, nearly as good as a Gaussian's.

Notation: D(s) is the discrete Gaussian of parameter s, rho_s(x) = exp(-x^2 / (2 s^2)), and rho_s(Z - x) its sum over whole numbers less x.
By Poisson's summation formula ``rho_s(Z - x) = s sqrt(2 pi) (1 + 2 sum_j cos(2 pi j x) e^(-2 pi^2 s^2 j^2))``: the same for all x up to
factors ``1 - e(s)`` and ``1 + e(s)``, with ``e(s) = 2 sum_j e^(-2 pi^2 s^2 j^2)``.

*Rounding at random.* Let X be Gaussian with variance S^2 - s^2, and Y a discrete Gaussian around it, ``P(Y = y | X = x) = rho_s(y - x) /
rho_s(Z - x)`` (Peikert 2010, *An efficient and parallel Gaussian sampler for lattices*). With rho_s(Z - x) constant, Y would be D(S). As
it is, the ratio of probabilities lies between ``(1 - e) / (1 + e)`` and ``(1 + e) / (1 - e)``, since it cannot be above 1 everywhere, nor
below. Shifting X by a whole number shifts Y by as much, so that Y is no less private than X is.

*Sums.* ``rho_s(x) rho_t(y - x) = rho_u(y) rho_v(x - y s^2 / u^2)`` with ``u^2 = s^2 + t^2`` and ``v = s t / u``, so that, for the same
reason, the distribution of a sum of D(s) and D(t) is within the same factors, with e(v), of D(u). For n of them, one after the other,
``v^2 = s^2 k / (k + 1)``, k = 1 to n - 1 (the argument of Kairouz, Liu, Steinke 2021, theorem 5, whose constants are larger).

*Privacy.* If all probabilities of two mechanisms differ by factors of at most e^r, in all coordinates of all rounds together, and one is
(epsilon, delta)-private, then the other is (epsilon + 2 r, e^r delta)-private.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon
from ..accounting.renyi_curve import MOST_ROUNDS, check_delta
from ..numerics.rounding import UNIT
from .discrete_gaussian_divergence import DIRECT_TERMS, LARGEST_DIMENSION, LARGEST_SIGMA, MOST_CLIENTS, SMALLEST_SIGMA

# Squares of the parameter s of random rounding that are tried: e(s) falls from 1e-4 to 1e-34 over them.
SMOOTHING_VARIANCES = tuple(quarter / 4 for quarter in range(2, 17))
# Chains of up to 8 units, and logarithms of ratios of numbers that are both too small for floating point.
ROUNDING = 8 * UNIT
# The largest e that a ratio is computed of. Its logarithm is off by as many units as e is, at most 750 * 8, where e is small, and by up to
# 150 times as many where it is near this, but there the exponent in e is 1 and not 750: far below the share of 1e-9 that is added.
LARGEST_DEVIATION = 0.999


@dataclass(frozen=True)
class SmoothedSum:
    """Gaussian noise which a sum of discrete Gaussians nearly is a randomised rounding of.

    Attributes
    ----------
    sigma : float
        Standard deviation of the Gaussian noise, in whole numbers.
    log_ratio : float
        Bound on the logarithm of the ratio of the probabilities of one coordinate, either way; errs upward. It adds up over coordinates
        and rounds.
    """

    sigma: float
    log_ratio: float


def smoothed_sums(clients: int, sigma: float) -> list[SmoothedSum]:
    """Return Gaussian noise that sums of discrete Gaussians can be accounted for by: the more of it, the larger the ratios.

    From the largest ratio to the smallest; empty where there is too little noise. Clients are 1 to 10**9, and sigma, each one's parameter
    in whole numbers, 0.001 to 10**20.

    Examples
    --------
    >>> found = smoothed_sums(100, 4.0)[-1]
    >>> round(found.sigma, 4), found.log_ratio < 1e-14
    (39.95, True)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    sigma = check_real("sigma", sigma, low=SMALLEST_SIGMA, high=LARGEST_SIGMA)
    term = np.arange(1, min(clients, DIRECT_TERMS + 1))
    total = float(_log_ratios(sigma**2 * term / (term + 1)).sum())
    if clients - 1 > DIRECT_TERMS:
        # Ratios fall with the number of terms: the last one stands for all that follow.
        total += (clients - 1 - DIRECT_TERMS) * float(_log_ratios(np.array(sigma**2 * DIRECT_TERMS / (DIRECT_TERMS + 1))))
    variance = clients * sigma**2 * (1 - ROUNDING)
    return [
        SmoothedSum(math.sqrt(variance - square) * (1 - ROUNDING), (total + ratio + ROUNDING) * (1 + 1e-9))
        for square, ratio in zip(SMOOTHING_VARIANCES, _log_ratios(np.array(SMOOTHING_VARIANCES)).tolist(), strict=True)
        if square < variance and math.isfinite(total)
    ]


def smoothed_gaussian_epsilon(
    clients: int, sigma: float, l2_sensitivity: float, dimension: int, delta: float, rounds: int = 1
) -> float | None:
    """Return epsilon of a sum of whole vectors with discrete Gaussian noise from every client, by that of Gaussian noise.

    Errs upward; None where there is too little noise for this way of accounting. Parameters are those of
    `discrete_gaussian_divergence.discrete_gaussian_renyi`, with the failure probability and the number of all rounds together.

    Examples
    --------
    Gaussian noise of the same variance has 0.90635; a grid costs little here.

    >>> round(smoothed_gaussian_epsilon(1000, 4.0, 31.0, 1024, 1e-5), 4)
    0.9064
    """
    l2 = check_real("l2_sensitivity", l2_sensitivity, low=0.0, high=1e100)
    coordinates = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION) * check_integer(
        "rounds", rounds, low=1, high=MOST_ROUNDS
    )
    delta = check_delta(delta)
    found = []
    for smoothed in smoothed_sums(clients, sigma):
        ratio = coordinates * smoothed.log_ratio
        allowed = min(delta * math.exp(-ratio) * (1 - ROUNDING), LARGEST_DELTA)
        multiplier = math.inf if l2 == 0 else smoothed.sigma / (l2 * math.sqrt(rounds))
        if multiplier == math.inf:
            found.append(2 * ratio)
        elif multiplier >= SMALLEST_MULTIPLIER and allowed >= SMALLEST_DELTA:
            found.append(gaussian_epsilon(multiplier, allowed) + 2 * ratio)
    return min(found, default=None)


def _log_ratios(variances: FloatArray) -> FloatArray:
    """Return ln((1 + e) / (1 - e)) for discrete Gaussians of these squared parameters: errs upward, infinite where e may be 1."""
    decays = np.exp(-2 * math.pi**2 * variances)
    # j^2 >= j: the series is below a geometric one.
    deviations = 2 * decays / (1 - decays)
    return np.where(deviations <= LARGEST_DEVIATION, 2 * np.arctanh(np.minimum(deviations, LARGEST_DEVIATION)), math.inf)
