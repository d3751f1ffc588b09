"""Numbers of docs/proofs/frequency-limits.md."""

import math

import scipy


def sign_factor() -> float:
    """Return the factor of d/(n eps)**2 in the lower bound by signs.

    It is a quarter of the largest value of x**2 / cosh(x / 2)**2.
    """
    return -float(scipy.optimize.minimize_scalar(lambda x: -((x / math.cosh(x / 2)) ** 2), bounds=(0, 10), method="bounded").fun) / 4
