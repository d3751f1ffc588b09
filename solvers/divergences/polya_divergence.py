"""Pure privacy of Pólya noise: a part of the shares that add up to discrete Laplace noise.

Pólya noise of shape R and scale s is the difference of two independent negative binomial numbers of shape R and ratio q = exp(-1 / s). Its
shapes add up, and shape 1 is discrete Laplace noise. Below shape 1 some clients' shares are missing.

With a = 1 / s, the generating function ((1 - q)^2 / ((1 - q z) (1 - q / z)))^R has a cut from e^a to infinity. Its coefficients are the
integrals along the cut: for 0 < R < 1 and x >= 0 the probability of x is proportional to

    f(x) = integral from a to infinity of exp(-x t) (cosh t - cosh a)^-R dt.

So f falls, and is log-convex on x >= 0, as a mixture of exponentials. The largest loss of a change by x is therefore L(x) = ln f(0) / f(x):
at a point z >= 0, ln f(z) / f(z + x) falls with z, and on the other side of zero the distance grows by less than x. L is concave and
L(0) = 0, so L is subadditive. Changes of several coordinates add up their losses. For a given sum of whole changes the sum of a concave
function is largest for changes that are as equal as possible.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..numerics.rounding import SLACK, UNIT

LEAST_SHAPE = 1e-10
LEAST_SCALE, LARGEST_SCALE = 1e-6, 1e12
MOST_STEPS = 2**62
# The trapezoidal rule in ln y converges as exp(-pi**2 / STEP), as the integrands are analytic for imaginary parts of ln y below pi / 2.
STEP = 1 / 8
# The integrands are below exp(-REACH) of their largest values outside the grid.
REACH = 50.0
# Arguments below which two terms of a series are exact in double precision.
SMALL = 1e-4


def polya_losses(shape: float, scale: float, changes: ArrayLike) -> FloatArray:
    """Return the largest privacy losses of Pólya noise for changes by whole steps, in nats.

    The losses are upper bounds: the integrals have relative errors of some 1e-14, and are raised by 1e-12.

    Parameters
    ----------
    shape : float
        Shape R, 1e-10 to below 1.
    scale : float
        Scale s of the discrete Laplace noise of shape 1, from 1e-6 to 10**12.
    changes : array_like of int
        Changes x, at least 0.

    Examples
    --------
    A change by 1000 steps has a smaller loss than 1000 changes by a step:

    >>> single, all_together = polya_losses(0.8, 1000.0, [1, 1000]).tolist()
    >>> round(1000 * single, 2), round(all_together, 2)
    (11.62, 1.44)
    """
    shape = check_real("shape", shape, low=LEAST_SHAPE, high=1 - 1e-16)
    rate = 1 / check_real("scale", scale, low=LEAST_SCALE, high=LARGEST_SCALE)
    # With t = a + y, f(x) is exp(-a x) times the integral J(x) of exp(-x y) y^-R g(y), where g is finite at 0. So L(x) is a x + ln J(0) /
    # J(x), and J(0) - J(x) is the integral of (1 - exp(-x y)) y^-R g(y), which has no cancellation for small x.
    log_y = STEP * np.arange(math.floor((math.log(rate) - REACH) / STEP), math.ceil(math.log(REACH * (1 / shape + rate)) / STEP) + 1)
    y = np.exp(log_y)
    # cosh(a + y) - cosh a = 2 sinh(a + y / 2) sinh(y / 2); g is 1 at 0 here.
    log_g = -shape * (_log_sinh_ratio(y / 2) + _log_sinh(rate + y / 2) - _log_sinh(np.array(rate)))
    # Integration by parts removes y^-R, which is hardly integrable for R near 1: J(x) = integral of y^(1 - R) (-(exp(-x y) g)') / (1 - R).
    fall = shape * (_half_cotangent_excess(y / 2) + 0.5 / np.tanh(rate + y / 2))

    def log_integral(exponents: FloatArray) -> float:
        largest = float(exponents.max())
        return largest + math.log(STEP * math.fsum(np.exp(exponents - largest)))

    def log_part(change: int) -> float:
        return log_integral((2 - shape) * log_y + log_g - change * y + np.log(fall + change)) - math.log1p(-shape)

    whole = log_part(0)

    def loss(change: int) -> float:
        if change == 0:
            return 0.0
        with np.errstate(divide="ignore"):
            missing = math.exp(log_integral((1 - shape) * log_y + log_g + np.log(-np.expm1(-change * y))) - whole)
        beyond = -math.log1p(-missing) if missing < 0.5 else whole - log_part(change)
        return (change * rate + beyond) * (1 + SLACK)

    every = [check_integer("changes", int(change), low=0, high=MOST_STEPS) for change in np.ravel(np.asarray(changes))]
    return np.array([loss(change) for change in every])


def polya_epsilon(shape: float, scale: float, steps: int, dimension: int) -> float:
    """Return epsilon of Pólya noise on vectors of whole numbers, for any change of a given L1 norm.

    From shape 1 on, the noise is discrete Laplace noise and more, whose epsilon is `steps` over the scale. Below it, the worst change is
    spread over as many coordinates as there are.

    Parameters
    ----------
    shape : float
        Shape of the sum's noise, 1e-10 or more.
    scale : float
        Scale of the discrete Laplace noise of shape 1, in steps.
    steps : int
        L1 sensitivity, at least 1.
    dimension : int
        Number of coordinates, at least 1.

    Examples
    --------
    >>> round(polya_epsilon(1.0, 1000.0, 1000, 1000), 9), round(polya_epsilon(0.8, 1000.0, 1000, 1000), 2)
    (1.0, 11.62)
    """
    steps = check_integer("steps", steps, low=1, high=MOST_STEPS)
    dimension = check_integer("dimension", dimension, low=1, high=MOST_STEPS)
    if shape >= 1:
        return steps / scale * (1 + 4 * UNIT)
    each, larger = divmod(steps, dimension)
    losses = polya_losses(shape, scale, [each, each + 1]).tolist()
    return float((dimension - larger) * losses[0] + larger * losses[1]) * (1 + SLACK)


def _log_sinh(argument: FloatArray) -> FloatArray:
    """Return ln(2 sinh z) for z > 0."""
    return np.asarray(argument + np.log(-np.expm1(-2 * argument)))


def _log_sinh_ratio(argument: FloatArray) -> FloatArray:
    """Return ln(sinh z / z) for z > 0."""
    large = np.maximum(argument, SMALL)
    return np.where(argument < SMALL, argument**2 / 6, _log_sinh(large) - np.log(2 * large))


def _half_cotangent_excess(argument: FloatArray) -> FloatArray:
    """Return (coth z - 1 / z) / 2 for z > 0."""
    large = np.maximum(argument, SMALL)
    return 0.5 * np.where(argument < SMALL, argument / 3, 1 / np.tanh(large) - 1 / large)
