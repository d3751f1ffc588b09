"""The best table with two letters in closed form, for all objectives and kinds of privacy.

Unbiased rows with letters a < b have the probabilities (b - x)/(b - a) and (x - a)/(b - a), and the variance (x - a)(b - x), which rises as
a falls and as b rises. Letters must reach a least distance beyond [0, 1] for any table to exist, and two letters at that distance form a
table. So no two-letter table has a smaller variance at any input.
"""

import math

import numpy as np

from ...arrays import FloatArray
from .privacy_constraint import RatioConstraint


def least_reach(inputs_count: int, constraint: RatioConstraint) -> float:
    """Return the least reach of the letters beyond [0, 1], on both sides, for a table to exist.

    A table exists if and only if they reach this far. Let s be minus the lowest letter. Unbiased rows have E[a + s | x] = x + s with a + s
    >= 0, and privacy bounds the ratio of that at two inputs: with h the distance from input 0 to the farthest input that is constrained
    with it, h + s <= exp(log_ratio) s. The same holds at the upper end by symmetry. Two letters at -s and 1 + s are enough: their
    probabilities are linear in x. (This is the one-bit mechanism, which for local privacy has letters 1/2 +- (E+1)/(E-1)/2, E =
    exp(epsilon).)

    Examples
    --------
    >>> round(least_reach(8, RatioConstraint(1.0, False)), 6)
    0.581977
    """
    farthest = 1 / (inputs_count - 1) if constraint.neighbours_only else 1.0
    return farthest / math.expm1(constraint.log_ratio)


def two_letter_bound(inputs_count: int, constraint: RatioConstraint, input_weights: FloatArray | None) -> float:
    """Return a lower bound on the objective of unbiased private tables with two letters.

    The bound is the least objective up to rounding.

    Parameters
    ----------
    inputs_count : int
        Number of grid inputs, at least 2.
    constraint : RatioConstraint
        Local or metric privacy.
    input_weights : ndarray of shape (inputs_count,) or None
        Weights of the rows' variances, non-negative with sum 1; None for the largest variance.

    Examples
    --------
    >>> round(two_letter_bound(8, RatioConstraint(1.0, False), None), 6)
    1.165572
    """
    reach = least_reach(inputs_count, constraint)
    beyond = np.arange(inputs_count) / (inputs_count - 1) + reach
    variances = beyond * beyond[::-1]
    value = float(variances.max()) if input_weights is None else float(input_weights @ variances)
    # Every term is positive. Expm1 multiplies the relative error of the log ratio by at most 1 + log_ratio, a sum of B products adds at
    # most B + 4 units, and the allowance is several times the total.
    return value * (1 - (8 * (1 + constraint.log_ratio) + 4 * inputs_count + 64) * 2.0**-53)
