"""Numbers of docs/limits.md."""

import math

import quietbits
from quietbits.solvers.limits.central_privacy import central_bound, unbiased_central_bound

SIZES = (2**20, 10**6, 1.0, 1e-5)


def above_shannon(dimension: int) -> float:
    """Return the factor of the ball's bound over Shannon's."""
    return 2 * math.e / (dimension + 2) * math.exp(2 / dimension * math.lgamma(dimension / 2 + 1))


def gaussian() -> float:
    """Return the error of Gaussian noise for a million clients."""
    return quietbits.central_gaussian_error(quietbits.NormBall(2**20, 2.0), 10**6, 1.0, 1e-5, "replace-one")


def least(*, unbiased: bool) -> float:
    """Return the bound for the same."""
    return (unbiased_central_bound if unbiased else central_bound)(*SIZES)
