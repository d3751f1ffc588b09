"""Exact pricing of privacy rays: the column and the letter that violate dual values most.

A column of a table that obeys the ratio constraint is a non-negative combination of extreme rays: staircases v in {1, exp(eps)}**B for
local privacy, walks with v[i+1] = exp(+-step) v[i] for metric privacy. With w_i(a) = normalisation_i + unbiasedness_i (a - x_i)
- weight_i (a - x_i)**2, a ray v with letter a violates the dual constraints by v . w(a). For a fixed letter the best ray takes its large
entries where that pays, so that phi(a) = max_v v . w(a) is a sum (local) or a Horner recursion (metric) of quadratics under
h(t) = max(c t, t / c'), convex and increasing. Hence phi is piecewise quadratic and concave on each piece, its kinks are convex, and every
local maximum is the vertex of a piece. The vertices are a finite list, in closed form, without a grid or a search.
"""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from .privacy_constraint import RatioConstraint

# A vertex this close to its piece (share of 1 plus the letter's size) may lie in it: rounding errors move vertices and ends of pieces by
# less, as their squares are of the order of the rounding errors of violations.
NEAR_PIECE = 1e-6


@dataclass(frozen=True)
class DualValues:
    """Prices of a table's constraints, a price of each kind per input.

    Attributes
    ----------
    normalisation : ndarray of shape (inputs,)
        Prices of the rows' sums; their sum is the dual objective.
    unbiasedness : ndarray of shape (inputs,)
        Prices of sum_j P[i, j] (a_j - x_i) = 0.
    input_weights : ndarray of shape (inputs,)
        Weights of the rows' variances in the objective, non-negative, summing to one.
    """

    normalisation: FloatArray
    unbiasedness: FloatArray
    input_weights: FloatArray


@dataclass(frozen=True)
class PricedRays:
    """Best ray on every piece of phi.

    Attributes
    ----------
    letters : ndarray of shape (rays,)
        Letter of each ray.
    rays : ndarray of shape (rays, inputs)
        The rays, with entries of at most one.
    violations : ndarray of shape (rays,)
        Product v . w(a) of each ray, positive if it violates the dual values; all are at most 0 if no ray with any letter violates them.
        For local privacy their maximum is that over all rays and letters; for metric privacy, with rays scaled to a first entry of 1.
    magnitudes : ndarray of shape (rays,)
        Product of v with the sum of the absolute terms of w, to which a bound on the rounding error of `violations` is proportional.
    """

    letters: FloatArray
    rays: FloatArray
    violations: FloatArray
    magnitudes: FloatArray


def price_rays(duals: DualValues, inputs: FloatArray, constraint: RatioConstraint) -> PricedRays:
    """Return the best ray of every piece of phi, at most a few rays per input."""
    weights = duals.input_weights
    quadratics = np.stack(
        [
            duals.normalisation - duals.unbiasedness * inputs - weights * inputs**2,
            duals.unbiasedness + 2 * weights * inputs,
            -weights,
        ]
    )
    if constraint.neighbours_only:
        letters = _walk_pieces(quadratics, constraint.log_ratio)
        rays = best_walks(duals, inputs, letters, constraint.log_ratio)
    else:
        letters = _staircase_pieces(quadratics, constraint.log_ratio)
        rays = best_staircases(duals, inputs, letters, constraint.log_ratio)
    offsets = letters[:, None] - inputs
    linear, square = duals.unbiasedness * offsets, weights * offsets**2
    violations = (rays * (duals.normalisation + linear - square)).sum(axis=1)
    magnitudes = (rays * (np.abs(duals.normalisation) + np.abs(linear) + square)).sum(axis=1)
    return PricedRays(letters, rays, violations, magnitudes)


def best_staircases(duals: DualValues, inputs: FloatArray, letters: FloatArray, log_ratio: float) -> FloatArray:
    """Return the best local-privacy ray for each letter.

    A ray is 1 where w is positive, and exp(-log_ratio) elsewhere.
    """
    rays: FloatArray = np.where(_gains(duals, inputs, letters) > 0, 1.0, np.exp(-log_ratio))
    return rays


def best_walks(duals: DualValues, inputs: FloatArray, letters: FloatArray, log_step: float) -> FloatArray:
    """Return the best metric-privacy ray for each letter, scaled to a largest entry of 1.

    The Horner recursion runs from the last input to the first; `log_step` is the logarithm of the ratio between neighbours.
    """
    # Each row is an input: the recursion then runs over whole rows.
    gains = np.ascontiguousarray(_gains(duals, inputs, letters).T)
    rises = np.zeros(gains.shape, dtype=bool)
    up, down = np.exp(log_step), np.exp(-log_step)
    tail = gains[-1]
    for i in range(len(inputs) - 2, -1, -1):
        np.greater(tail, 0, out=rises[i + 1])
        tail = gains[i] + np.maximum(up * tail, down * tail)
    heights = 2 * np.cumsum(rises, axis=0, dtype=np.int32) - np.arange(len(inputs), dtype=np.int32)[:, None]
    powers = np.exp(-log_step * np.arange(len(inputs)))
    rays: FloatArray = np.ascontiguousarray(powers[heights.max(axis=0) - heights].T)
    return rays


def _gains(duals: DualValues, inputs: FloatArray, letters: FloatArray) -> FloatArray:
    offsets = letters[:, None] - inputs
    return duals.normalisation + offsets * (duals.unbiasedness - duals.input_weights * offsets)


def _roots(quadratics: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both real roots of c0 + c1 a + c2 a**2 per column, without cancellation.

    Missing roots are NaN or infinite.
    """
    constant, linear, square = quadratics
    with np.errstate(divide="ignore", invalid="ignore"):
        # A double root (discriminant zero) is no change of sign and counts as none.
        discriminant = np.where(linear**2 > 4 * constant * square, linear**2 - 4 * constant * square, np.nan)
        half = -0.5 * (linear + np.where(linear >= 0, 1.0, -1.0) * np.sqrt(discriminant))
        return half / square, constant / half


def _vertices(edges: FloatArray, quadratics: FloatArray) -> FloatArray:
    """Return the maximiser of each piece, which is a concave quadratic between two edges.

    A vertex is clipped to its piece, not dropped, when it lies outside: rounding then never loses a maximum.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        vertices = np.clip(-quadratics[1] / (2 * quadratics[2]), edges[:-1], edges[1:])
    finite: FloatArray = vertices[np.isfinite(vertices)]
    return finite


def _staircase_pieces(quadratics: FloatArray, log_ratio: float) -> FloatArray:
    """Return the maximiser of every piece of sum_i max(w_i, exp(-eps) w_i)."""
    decay = np.exp(-log_ratio)
    first, second = _roots(quadratics)
    # The sign of w_i differs between the left and the right of a root: the slope there determines it.
    roots = np.concatenate([first, second])
    owners = np.concatenate([quadratics, quadratics], axis=1)
    finite = np.isfinite(roots)
    roots, owners = roots[finite], owners.compress(finite, axis=1)
    order = np.argsort(roots)
    roots, owners = roots[order], owners.take(order, axis=1)
    rising = owners[1] + 2 * owners[2] * roots > 0
    # At minus infinity w_i has the sign of its leading term.
    leading = np.where(quadratics[2] != 0, quadratics[2], np.where(quadratics[1] != 0, -quadratics[1], quadratics[0]))
    start = (quadratics * np.where(leading > 0, 1.0, decay)).sum(axis=1)
    changes = owners * np.where(rising, 1.0, -1.0) * (1 - decay)
    pieces = start[:, None] + np.concatenate([np.zeros((3, 1)), np.cumsum(changes, axis=1)], axis=1)
    return _vertices(np.concatenate([[-np.inf], roots, [np.inf]]), pieces)


def _walk_pieces(quadratics: FloatArray, log_step: float) -> FloatArray:
    """Return every local maximiser of F_0.

    The recursion is F_i = w_i + max(e^step F_{i+1}, e^-step F_{i+1}).
    """
    edges = np.array([-np.inf, np.inf])
    pieces = quadratics[:, -1:].copy()
    up, down = np.exp(log_step), np.exp(-log_step)
    for i in range(quadratics.shape[1] - 2, -1, -1):
        owners = np.arange(pieces.shape[1])
        starts, owner_of_start = [edges[:-1]], [owners]
        for roots in _roots(pieces):
            inside = (roots > edges[:-1]) & (roots < edges[1:])
            starts.append(roots[inside])
            owner_of_start.append(owners[inside])
        lefts = np.concatenate(starts)
        order = np.argsort(lefts, kind="stable")
        lefts = lefts[order]
        pieces = pieces.take(np.concatenate(owner_of_start)[order], axis=1)
        edges = np.append(lefts, np.inf)
        rises = _values(pieces, _inner_points(edges)) > 0
        pieces = pieces * np.where(rises, up, down) + quadratics[:, i : i + 1]
    return _peaks(edges, pieces)


def _peaks(edges: FloatArray, quadratics: FloatArray) -> FloatArray:
    """Return the vertices that lie in their pieces, or near enough that rounding may have moved them out, clipped to the pieces.

    On a piece whose vertex lies elsewhere the function is monotone. Its kinks are convex, so that no local maximum lies at an end.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        vertices = -quadratics[1] / (2 * quadratics[2])
    clipped = np.clip(vertices, edges[:-1], edges[1:])
    near = np.abs(vertices - clipped) <= NEAR_PIECE * (1 + np.abs(clipped))
    peaks: FloatArray = clipped[near & np.isfinite(clipped)]
    # Without any input weight the function is piecewise linear and has no vertices.
    return peaks if len(peaks) else _vertices(edges, quadratics)


def _inner_points(edges: FloatArray) -> FloatArray:
    """Return a point strictly inside each piece; the outermost pieces are half-lines."""
    if len(edges) == 2:
        return np.zeros(1)
    lefts, rights = edges[:-1].copy(), edges[1:].copy()
    lefts[0] = rights[0] - 1 - abs(rights[0])
    rights[-1] = lefts[-1] + 1 + abs(lefts[-1])
    return (lefts + rights) / 2


def _values(quadratics: FloatArray, points: FloatArray) -> FloatArray:
    values: FloatArray = quadratics[0] + points * (quadratics[1] + points * quadratics[2])
    return values
