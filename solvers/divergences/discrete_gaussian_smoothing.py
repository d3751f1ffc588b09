"""A sum of discrete Gaussians as Gaussian noise that was rounded at random: its privacy for one delta, nearly as good as a Gaussian's.

Notation: D(s) is the discrete Gaussian of parameter s, rho_s(x) = exp(-x^2 / (2 s^2)), rho_s(Z - x) its sum over whole numbers less x, and
theta(s) the logarithm of the ratio of the largest such sum to the smallest, about 4 exp(-2 pi^2 s^2) (`theta_log_ratios`).

*Rounding at random.* Let X be Gaussian with variance S^2 - s^2, and Y a discrete Gaussian around it, ``P(Y = y | X = x) = rho_s(y - x) /
rho_s(Z - x)`` (Peikert 2010, *An efficient and parallel Gaussian sampler for lattices*). With rho_s(Z - x) constant, Y would be D(S). As
it is, the ratio of probabilities lies between e^-theta(s) and e^theta(s), since it cannot be above 1 everywhere, nor below. Shifting X by a
whole number shifts Y by as much, so that Y is no less private than X is.

*Sums.* For the same reason the probabilities of a sum of n numbers of D(s) are within factors of e^-tau and e^tau of those of
D(sqrt(n) s), with the tau of `discrete_gaussian_tau`.

*Privacy.* If all probabilities of two mechanisms differ by factors of at most e^r, in all coordinates of all rounds together, and one is
(epsilon, delta)-private, then the other is (epsilon + 2 r, e^r delta)-private.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon, gaussian_epsilon_exceeds
from ..numerics.rounding import UNIT
from .discrete_gaussian_divergence import discrete_gaussian_tau, theta_log_ratios

# Squares of the parameter s of random rounding that are tried, and theta(s), which falls from 2e-4 to 2e-34 over them.
SMOOTHING_VARIANCES = tuple(quarter / 4 for quarter in range(2, 17))
ROUNDING_RATIOS = tuple(theta_log_ratios(np.array(SMOOTHING_VARIANCES)).tolist())
# Chains of up to 8 units, and logarithms of ratios that are too small for floating point.
ROUNDING = 8 * UNIT


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

    From the largest ratio to the smallest; empty where the sum has a variance of 1/2 or less. Clients are 1 to 10**9, and sigma, each one's
    parameter in whole numbers, 0.001 to 10**20.

    Examples
    --------
    >>> found = smoothed_sums(100, 4.0)[-1]
    >>> round(found.sigma, 4), found.log_ratio < 1e-14
    (39.95, True)
    """
    total = discrete_gaussian_tau(clients, sigma)
    variance = clients * sigma**2 * (1 - ROUNDING)
    return [
        SmoothedSum(math.sqrt(variance - square) * (1 - ROUNDING), (total + ratio + ROUNDING) * (1 + 1e-9))
        for square, ratio in zip(SMOOTHING_VARIANCES, ROUNDING_RATIOS, strict=True)
        if square < variance
    ]


def rounded_gaussian_epsilon(noise_multiplier: float, log_ratio: float, delta: float, most: float = math.inf) -> float | None:
    """Return epsilon where all probabilities are within factors of e^r of those of rounded Gaussian noise; None where it is too little.

    Errs upward. The noise multiplier and r, which is `log_ratio`, are those of all coordinates and rounds together. An epsilon above `most`
    is not computed, but None.

    Examples
    --------
    >>> round(rounded_gaussian_epsilon(4.0, 1e-9, 1e-5), 4), rounded_gaussian_epsilon(1e-6, 0.0, 1e-5)
    (0.9263, None)
    """
    # The share of 1e-9 that the ratio has more than it needs is far above its rounding.
    allowed = min(delta * math.exp(-log_ratio) * (1 - ROUNDING), LARGEST_DELTA)
    if noise_multiplier < SMALLEST_MULTIPLIER or allowed < SMALLEST_DELTA:
        return None
    if gaussian_epsilon_exceeds(most - 2 * log_ratio, noise_multiplier, allowed):
        return None
    return gaussian_epsilon(noise_multiplier, allowed) + 2 * log_ratio
