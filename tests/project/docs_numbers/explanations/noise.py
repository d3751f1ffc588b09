"""Numbers of docs/explanations/noise.md."""

from fractions import Fraction

import mpmath
import numpy as np

from quietbits.arrays import WordArray
from quietbits.design.noise.discrete_gaussian import GaussianCurve, discrete_gaussian_variance
from quietbits.design.noise.exact_sampler import cover_with_bricks
from quietbits.design.noise.random_words import WordSource


class ZeroWords(WordSource):
    """Source of random words that are all zero, which give the largest noise."""

    def __call__(self, count: int) -> WordArray:
        """Return zeros."""
        return np.zeros(count, dtype=np.uint64)


def largest_normal() -> float:
    """Return the largest normal number from secure words."""
    return float(abs(ZeroWords().normals(1)[0]))


def largest_laplace() -> float:
    """Return the largest Laplace noise of scale 1 from secure words."""
    return float(abs(ZeroWords().laplace(1)[0]))


def variance_below(sigma: int) -> float:
    """Return the relative gap between sigma**2 and the discrete Gaussian's variance."""
    with mpmath.workdps(60):
        masses = [(point, mpmath.exp(-(mpmath.mpf(point) ** 2) / (2 * sigma**2))) for point in range(-40 * sigma, 40 * sigma + 1)]
        variance = mpmath.fsum(point**2 * mass for point, mass in masses) / mpmath.fsum(mass for _, mass in masses)
        return float(1 - variance / sigma**2)


def half_variance_below() -> float:
    """Return the relative gap between sigma**2 and the variance for sigma = 1/2, in percent."""
    return 100 * (1 - float(discrete_gaussian_variance(0.5)) / 0.25)


def fewest_rectangles() -> float:
    """Return the least share of rectangles among discrete Gaussians' bricks, in percent."""
    covers = [cover_with_bricks(GaussianCurve(Fraction(sigma))) for sigma in (1, 10, 64, 100, 1000, 10_000)]
    return min(100 * cover.rectangles / len(cover.starts) for cover in covers)
