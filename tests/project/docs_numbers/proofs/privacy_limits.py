"""Numbers of docs/proofs/privacy-limits.md."""

import math

import numpy as np
import scipy

import quietbits
from quietbits.solvers.limits.mean_privacy import unbiased_local_bound


def over_bound(dimension: int) -> float:
    """Return the excess of PrivUnit's variance over the bound for epsilon = 6, in percent."""
    task = quietbits.Task(quietbits.NormBall(dimension, 2.0), clients=1, epsilon=6.0, delta=0.0, adjacency="replace-one")
    variance = float(quietbits.build_mechanism("privunit-g", task, {}).variance(np.eye(1, dimension))[0])
    return 100 * (variance / unbiased_local_bound(dimension, 1, 6.0) - 1)


def largest_sign_factor() -> float:
    """Return the largest value of x**2 / cosh(x / 2)**2."""
    return -float(scipy.optimize.minimize_scalar(lambda x: -((x / math.cosh(x / 2)) ** 2), bounds=(0, 10), method="bounded").fun)


def best_cap() -> tuple[float, float]:
    """Return the maximum and maximiser of x**2 / (exp(2 x) - 1), the factor of the caps' bound."""
    best = scipy.optimize.minimize_scalar(lambda x: -(x**2) / math.expm1(2 * x), bounds=(0.01, 10), method="bounded")
    return float(best.x), -float(best.fun)
