"""Tables for many letters on fine grids: the best table of a coarser grid, whose rows the finer grid's inputs are dithered to."""

import numpy as np

from ...arrays import FloatArray
from ..bounds.privacy_constraint import RatioConstraint
from ..bounds.staircase import solve_staircase
from .table import Table


def dithered_staircase(bits_in: int, bits_out: int, constraint: RatioConstraint, input_weights: FloatArray | None) -> Table:
    """Return the globally optimal table of the grid with 2**(bits_out - 1) inputs, dithered to a finer one.

    Dithering keeps rows unbiased and adds at most a quarter of a squared coarse step to the variance. There are at most 2**bits_out letters
    for weighted variances, perhaps more for the largest variance. The fine grid has at least as many inputs, and two letters or more.
    """
    fine, coarse = 2**bits_in, 2 ** (bits_out - 1)
    weights = None if input_weights is None else input_weights.reshape(coarse, -1).sum(axis=1)
    table = solve_staircase(bits_out - 1, coarse_constraint(fine, coarse, constraint), weights)
    return Table(dithering_matrix(fine, coarse) @ table.probabilities, table.alphabet)


def coarse_constraint(fine: int, coarse: int, constraint: RatioConstraint) -> RatioConstraint:
    """Return what a table on a coarse grid must keep, so that dithered to a fine grid it keeps the fine grid's constraint.

    Local privacy is kept as it is. Metric privacy is kept if the coarse neighbours' ratio is at most 1 + (exp(step) - 1) / share, where
    share is a fine step over a coarse one: along a straight line from p to p (1 + g), and over a corner of two such lines, a step of
    that share changes the probability by a factor of at most 1 + share g. Errs toward more privacy.
    """
    if not constraint.neighbours_only:
        return constraint
    share = (coarse - 1) / (fine - 1)
    return RatioConstraint(float(np.log1p(np.expm1(constraint.log_ratio) / share)), neighbours_only=True)


def dithered_randomised_response(bits_in: int, bits_out: int, log_ratio: float) -> Table:
    """Return generalised randomised response on 2**bits_out inputs, dithered to a grid at least as fine; for local privacy."""
    count = 2**bits_out
    excess = np.expm1(log_ratio)
    response = (excess * np.eye(count) + 1) / (excess + count)
    alphabet = (np.linspace(0.0, 1.0, count) * (excess + count) - count / 2) / excess
    return Table(dithering_matrix(2**bits_in, count) @ response, alphabet)


def dithering_matrix(fine: int, coarse: int) -> FloatArray:
    """Return with what probability each point of a fine grid on [0, 1] is dithered to each point of a coarse one; at most two a row."""
    positions = np.arange(fine) * (coarse - 1)
    lower = np.minimum(positions // (fine - 1), coarse - 2)
    fraction = positions / (fine - 1) - lower
    matrix = np.zeros((fine, coarse))
    matrix[np.arange(fine), lower] = 1 - fraction
    matrix[np.arange(fine), lower + 1] = fraction
    return matrix
