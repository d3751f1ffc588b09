"""Numbers of docs/explanations/limits.md."""

import quietbits
from quietbits.solvers.limits.mean_privacy import central_bound, unbiased_central_bound

SIZES = (2**20, 10**6, 1.0, 1e-5)


def gaussian() -> float:
    """Return the error of Gaussian noise for a million clients."""
    return quietbits.central_gaussian_error(quietbits.NormBall(2**20, 2.0), 10**6, 1.0, 1e-5, "replace-one")


def least(*, unbiased: bool) -> float:
    """Return the lower bound on the error for a million clients."""
    return (unbiased_central_bound if unbiased else central_bound)(*SIZES)
