"""The Lasso's penalty from the noise in the observations."""

import math

from ...arguments import check_integer, check_probability, check_real

LARGEST_DIMENSION = 2**62
LARGEST_SCALE = 1e150


def noise_penalty(
    dimension: int, noise_deviation: float, largest_column_norm: float, measurements: int, failure_probability: float = 0.05
) -> float:
    """Return a penalty that noise w is below: |S^T w|_inf / m <= penalty, except with probability q, for a matrix S of m rows, d columns.

    penalty = sqrt(2 ln(2 d / q)) * noise deviation * largest column norm / m; errs upward. It holds for independent Gaussian numbers w_i of
    mean 0, and for sub-Gaussian ones, E exp(s w_i) <= exp(s^2 deviation^2 / 2) for every s, such as discrete Gaussian noise; S may be
    random, if it is independent of w. Proof: s_j.w, for a column s_j, is a sum of independent terms, hence sub-Gaussian with t = |s_j|
    deviation. By Chernoff's bound |s_j.w| >= u has a probability of at most 2 exp(-u^2 / (2 t^2)), which is q / d for u = t sqrt(2 ln(2 d /
    q)); there are d columns, and each has at most the largest norm.

    Chen, Choquette-Choo, Kairouz, Suresh 2022, corollary H.6, as printed, is larger by a factor of about sqrt(m) / 2.

    Parameters
    ----------
    dimension : int
        d, the number of columns.
    noise_deviation : float
        Standard deviation of the noise of one measurement, or its sub-Gaussian parameter; above 0.
    largest_column_norm : float
        Largest Euclidean norm of a column, about sqrt(m) for entries of variance 1; above 0.
    measurements : int
        m, the number of rows.
    failure_probability : float
        q, above 0 and below 1.

    Examples
    --------
    >>> round(noise_penalty(dimension=1000, noise_deviation=1.0, largest_column_norm=200**0.5, measurements=200), 3)
    0.326
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    deviation = check_real("noise_deviation", noise_deviation, low=1 / LARGEST_SCALE, high=LARGEST_SCALE)
    norm = check_real("largest_column_norm", largest_column_norm, low=1 / LARGEST_SCALE, high=LARGEST_SCALE)
    measurements = check_integer("measurements", measurements, low=1, high=LARGEST_DIMENSION)
    probability = check_probability("failure_probability", failure_probability)
    return math.sqrt(2 * math.log(2 * dimension / probability)) * deviation * norm / measurements
