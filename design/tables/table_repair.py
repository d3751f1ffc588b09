"""Mending what a solver's absolute tolerances leave open in a table of floats: ratios of tiny entries, sums and means of rows."""

import math

import numpy as np

from ...arrays import FloatArray
from ...solvers.bounds.privacy_constraint import RatioConstraint


def lifted(table: FloatArray, constraint: RatioConstraint) -> FloatArray:
    """Return the smallest table that is nowhere below the given one and meets a ratio constraint.

    An absolute tolerance says nothing about a ratio: entries that a solver left too small, often at zero, are raised to what the
    largest entries of their column allow.

    Parameters
    ----------
    table : ndarray of shape (rows, letters)
        Non-negative entries.
    constraint : RatioConstraint
        Largest ratio within a column, between all rows or between neighbours.

    Returns
    -------
    ndarray of shape (rows, letters)
        The table; rows may sum to more than before.
    """
    decay = math.exp(-constraint.log_ratio)
    if not constraint.neighbours_only:
        return np.asarray(np.maximum(table, table.max(axis=0) * decay))
    result = table.copy()
    for row in range(1, len(result)):
        np.maximum(result[row], result[row - 1] * decay, out=result[row])
    for row in range(len(result) - 2, -1, -1):
        np.maximum(result[row], result[row + 1] * decay, out=result[row])
    return result


def rebalanced(table: FloatArray, alphabet: FloatArray) -> FloatArray:
    """Return a table whose rows sum to one and have the means i / (rows - 1), with the smallest relative changes.

    Row by row, the least sum of squares of d_j / P_j subject to the two equations: d_j = P_j**2 (alpha + beta a_j).

    Parameters
    ----------
    table : ndarray of shape (rows, letters)
        Entries that nearly meet the equations, at least two positive ones in each row.
    alphabet : ndarray of shape (letters,)
        The letters.

    Returns
    -------
    ndarray of shape (rows, letters)
        The table.
    """
    inputs = np.arange(len(table)) / (len(table) - 1)
    offsets = alphabet - inputs[:, None]
    squares = table**2
    mass = squares.sum(axis=1, keepdims=True)
    centred = offsets - (squares * offsets).sum(axis=1, keepdims=True) / mass
    missing_sum = 1 - table.sum(axis=1, keepdims=True)
    # Moving mass between letters changes the mean by d . offsets, which is also d . centred once the sum is settled.
    missing_mean = -(table * offsets).sum(axis=1, keepdims=True) - missing_sum * (offsets - centred)[:, :1]
    slope = missing_mean / (squares * centred**2).sum(axis=1, keepdims=True)
    return np.asarray(table + squares * (missing_sum / mass + slope * centred))
