"""The expected sum of the largest of some independent standard normal numbers."""

import math

import numpy as np
import scipy

# Steps of the trapezoidal rule in the narrowest width of the integrand, and where it ends, in standard deviations.
STEPS_PER_WIDTH = 2.5
REACH = 12.0


def largest_normals_sum(count: int, largest: int) -> float:
    """Return the expected sum of the `largest` largest of `count` independent standard normal numbers.

    Each of them is among the largest with probability P(Binomial(count - 1, 1 - Phi(z)) < largest) where it is z: the sum is the integral
    of z phi(z) times that, times `count`, by the trapezoidal rule, which converges exponentially for such functions.

    Parameters
    ----------
    count : int
        From 1 to 2**20.
    largest : int
        From 0 to `count`.

    Examples
    --------
    Of two, the larger one has the mean 1 / sqrt(pi).

    >>> round(largest_normals_sum(2, 1), 12), round(1 / math.sqrt(math.pi), 12), round(largest_normals_sum(128, 16), 4)
    (0.564189583548, 0.564189583548, 26.0866)
    """
    if largest in (0, count):
        return 0.0
    if largest > count / 2:
        # All together have the mean 0, and the smallest are the largest with the other sign.
        return largest_normals_sum(count, count - largest)
    # As a function of the tail the probability falls within sqrt(largest) / count about largest / count, whose logarithm has the slope z.
    width = 1 / (math.sqrt(largest) * (1 + math.sqrt(2 * math.log(count / largest))))
    points = np.linspace(-REACH, REACH, 2 * math.ceil(REACH * STEPS_PER_WIDTH / min(width, 0.5)) + 1)
    chosen = scipy.special.bdtr(largest - 1, count - 1, scipy.special.ndtr(-points))
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    return float(count * (points[1] - points[0]) * np.sum(points * density * chosen))
