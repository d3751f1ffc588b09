"""The largest violation of dual vectors over privacy rays, as a function of the letter, bounded by a parabola on each piece of the line.

A dual vector has w_i(a) = lambda_i + mu_i (a - x_i) - r_i (x_i - a)**2 for every input. Its value F(a) is the largest product of w(a) with
a privacy ray: a sum over staircases (local privacy), or a recursion over walks (metric privacy). Between the roots of the w_i, or of the
recursion's terms, F is a positive combination of the w_i. Each computed parabola exceeds F on its piece by a little more than all rounding
errors; docs/proofs/letter-bound.md has the proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray

# A value with more pieces than this per input counts as positive everywhere, which is valid and says nothing. In searches on 8 inputs the
# most were 7 pieces per input, at epsilon 20.
MOST_PIECES_PER_INPUT = 16

UNIT_ROUNDING = 2.0**-53


@dataclass(frozen=True, eq=False)
class Gains:
    """The parabolas w_i of dual vectors, and the sizes of their terms.

    Attributes
    ----------
    constant, linear : ndarray of shape (vectors, inputs)
        Coefficients of w_i(a) = constant + linear a - weights a**2.
    weights : ndarray of shape (vectors, inputs) or (1, inputs)
        Non-negative weights, for each vector or for all.
    constant_size, linear_size : ndarray of shape (vectors, inputs)
        Sums of the absolute terms of `constant` and `linear`.
    unit : float
        Size of a letter.
    """

    constant: FloatArray
    linear: FloatArray
    weights: FloatArray
    constant_size: FloatArray
    linear_size: FloatArray
    unit: float


@dataclass(frozen=True, eq=False)
class RayValue:
    """The value of each dual vector on its pieces: an upper bound by a parabola per piece.

    Attributes
    ----------
    lefts, rights : ndarray of shape (vectors, pieces)
        Ends of the pieces, in increasing order, which cover the line from -inf to inf; pieces without width count for nothing.
    constant, linear, square : ndarray of shape (vectors, pieces)
        Coefficients of the parabola on each piece; each parabola exceeds the value by a little more than all rounding errors.
    """

    lefts: FloatArray
    rights: FloatArray
    constant: FloatArray
    linear: FloatArray
    square: FloatArray


def staircase_value(gains: Gains, log_ratio: float) -> RayValue:
    """Return the largest product of w with rays in {exp(-log_ratio), 1}**inputs."""
    lows, highs = positive_interval(gains.constant, gains.linear, gains.weights)
    edges = np.sort(np.concatenate([lows, highs], axis=1), axis=1)
    ends = np.full((len(edges), 1), np.inf)
    lefts, rights = np.concatenate([-ends, edges], axis=1), np.concatenate([edges, ends], axis=1)
    positive = (lefts[:, :, None] >= lows[:, None, :]) & (rights[:, :, None] <= highs[:, None, :])
    factors = np.where(positive, 1.0, math.exp(-log_ratio))
    coefficients = np.empty((*gains.constant.shape, 3))
    coefficients[:, :, 0], coefficients[:, :, 1], coefficients[:, :, 2] = gains.constant, gains.linear, gains.weights
    coefficients = np.matmul(factors, coefficients)
    # Each coefficient is a sum of B terms, whose relative errors are a few units in the last place. |a| is at most
    # (unit + a**2 / unit) / 2.
    rounding = 16 * (lows.shape[1] + 8) * UNIT_ROUNDING
    linear_size = gains.linear_size.sum(axis=1)
    constant_slack = rounding * (gains.constant_size.sum(axis=1) + gains.unit * linear_size / 2)
    square_slack = rounding * (gains.weights.sum(axis=1) + linear_size / (2 * gains.unit))
    return RayValue(
        lefts,
        rights,
        coefficients[:, :, 0] + constant_slack[:, None],
        coefficients[:, :, 1],
        square_slack[:, None] - coefficients[:, :, 2],
    )


def walk_value(gains: Gains, log_step: float) -> RayValue:
    """Return the largest product of w with walks of first entry 1, whose neighbouring entries have the ratio exp(+-log_step).

    The recursion runs from the last input to the first: value_i = w_i + max(exp(step) value_(i+1), exp(-step) value_(i+1)).
    """
    vectors, inputs = gains.constant.shape
    up, down, unit = math.exp(log_step), math.exp(-log_step), gains.unit
    most_pieces = MOST_PIECES_PER_INPUT * inputs
    crowded = np.zeros(vectors, dtype=bool)
    lefts, rights = np.full((vectors, 1), -np.inf), np.full((vectors, 1), np.inf)
    pieces, factors = np.zeros((3, vectors, 1)), np.ones((vectors, 1))
    for i in range(inputs - 1, -1, -1):
        if i < inputs - 1:
            lefts, rights, pieces, factors = _cut(lefts, rights, pieces, up, down)
            kept = lefts < rights
            counts = kept.sum(axis=1)
            crowded |= counts > most_pieces
            order = np.argsort(~kept, axis=1, kind="stable")[:, : min(int(counts.max(initial=1)), most_pieces)]
            kept = np.take_along_axis(kept, order, axis=1)
            lefts = np.where(kept, np.take_along_axis(lefts, order, axis=1), np.inf)
            rights = np.where(kept, np.take_along_axis(rights, order, axis=1), np.inf)
            factors = np.take_along_axis(factors, order, axis=1)
            pieces = np.take_along_axis(pieces, order[None], axis=2)
        # A step's rounding errors, and those of the roots that decide its factor, are below the size of its terms times 64 roundings.
        sizes = up * np.abs(pieces)
        linear_slack = gains.linear_size[:, i, None] + sizes[1]
        pieces = factors * pieces
        pieces[0] += gains.constant[:, i, None]
        pieces[0] += 64 * UNIT_ROUNDING * (gains.constant_size[:, i, None] + sizes[0] + unit * linear_slack / 2)
        pieces[1] += gains.linear[:, i, None]
        pieces[2] += 64 * UNIT_ROUNDING * (gains.weights[:, i, None] + sizes[2] + linear_slack / (2 * unit)) - gains.weights[:, i, None]
    lefts[crowded, 0], rights[crowded, 0] = -np.inf, np.inf
    lefts[crowded, 1:], rights[crowded, 1:] = np.inf, np.inf
    pieces[2, crowded, 0] = np.inf
    return RayValue(lefts, rights, *pieces)


def _cut(
    lefts: FloatArray, rights: FloatArray, pieces: FloatArray, up: float, down: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Cut each piece at the roots of its parabola; return the parts, their parabolas, and `up` where positive, `down` elsewhere."""
    # A slack on zero weights makes parabolas slightly convex: between the roots they are then negative.
    signs = np.where(pieces[2] <= 0, 1.0, -1.0)
    lows, highs = positive_interval(signs * pieces[0], signs * pieces[1], np.abs(pieces[2]))
    empty = lows > highs
    lows, highs = np.clip(np.where(empty, rights, lows), lefts, rights), np.clip(np.where(empty, rights, highs), lefts, rights)
    shape = len(lefts), -1
    inside, outside = np.where(signs > 0, up, down), np.where(signs > 0, down, up)
    return (
        np.stack([lefts, lows, highs], axis=-1).reshape(shape),
        np.stack([lows, highs, rights], axis=-1).reshape(shape),
        np.repeat(pieces, 3, axis=2),
        np.stack([outside, inside, outside], axis=-1).reshape(shape),
    )


def positive_interval(constant: FloatArray, linear: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the interval in which constant + linear a - weights a**2 is positive, or (inf, -inf); weights are non-negative.

    A straight line, of weight 0, is positive on a half-line, everywhere or nowhere.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        half = 0.5 * (linear + np.where(linear >= 0, 1.0, -1.0) * np.sqrt(linear**2 + 4 * weights * constant))
        first, second = half / weights, -constant / half
    # A line's second root is finite, and its first root infinite with the sign of its slope; a constant has no root.
    real = ~np.isnan(first) & np.isfinite(second)
    everywhere = (half == 0) & (constant > 0)
    nowhere = ~(real | everywhere)
    lows, highs = np.minimum(first, second), np.maximum(first, second)
    lows[everywhere], highs[everywhere] = -np.inf, np.inf
    lows[nowhere], highs[nowhere] = np.inf, -np.inf
    return lows, highs
