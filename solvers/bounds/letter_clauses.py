"""Clauses of dual vectors: sets of letters that every better table hits.

A dual vector y = (lambda, mu) has w_i(a) = lambda_i + mu_i (a - x_i) - r_i (x_i - a)**2, and F_y(a) is the largest product of w(a) with a
staircase ray in {1, exp(epsilon)}**B. A table whose letters all have F_y(a) <= 0 has a variance of at least sum_i lambda_i (weak duality).
So if that sum is a target T, every table with a variance below T has a letter in the clause {a : F_y(a) > 0}. F_y is a concave parabola
between two neighbouring roots of the w_i, so that a clause is a union of at most 2 B + 1 intervals in closed form. The intervals are
widened outward by more than all rounding errors; docs/proofs/letter-bound.md has the proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IndexArray

# Largest number of intervals of a clause. Intervals with the shortest gaps between them are merged, which keeps the clause valid.
MOST_INTERVALS = 12

# Smallest share of the largest weight; with smaller weights, roots would overflow.
LEAST_WEIGHT_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class LocalVariance:
    """The weighted variance of tables under local privacy.

    Attributes
    ----------
    inputs : ndarray of shape (inputs,)
        The grid x_i = i / (inputs - 1).
    input_weights : ndarray of shape (inputs,)
        Weights r_i of the rows' variances, positive, with sum 1.
    log_ratio : float
        Epsilon of local privacy.
    """

    inputs: FloatArray
    input_weights: FloatArray
    log_ratio: float

    def __post_init__(self) -> None:
        """Check the grid and the weights."""
        count = len(self.inputs)
        if count < 2 or np.any(self.inputs != np.arange(count) / (count - 1)):
            raise ValueError(f"inputs must be i / (B - 1) for i = 0, ..., B - 1, got {self.inputs!r}")
        weights = self.input_weights
        if weights.shape != (count,) or not np.all(weights >= LEAST_WEIGHT_SHARE * weights.max()) or abs(weights.sum() - 1) > 1e-9:
            raise ValueError(
                f"input_weights must be {count} numbers with sum 1, each at least {LEAST_WEIGHT_SHARE:g} times the largest, got {weights!r}"
            )

    @property
    def symmetric(self) -> bool:
        """Whether a table and its mirror image under x -> 1-x have the same variance."""
        return bool(np.all(self.input_weights == self.input_weights[::-1]))

    @property
    def unit(self) -> float:
        """Size of a letter: the width of the unit interval and the least reach beyond it."""
        return 1 + 1 / math.expm1(self.log_ratio)


@dataclass(frozen=True, eq=False)
class DualVectors:
    """Prices of a table's constraints: a row of each array is one dual vector.

    Attributes
    ----------
    normalisation : ndarray of shape (vectors, inputs)
        Prices lambda of the rows' sums.
    unbiasedness : ndarray of shape (vectors, inputs)
        Prices mu of sum_j P[i, j] (a_j - x_i) = 0.
    """

    normalisation: FloatArray
    unbiasedness: FloatArray

    def __len__(self) -> int:
        """Return the number of dual vectors."""
        return len(self.normalisation)

    def with_mirrors(self) -> "DualVectors":
        """Return the dual vectors, followed by their mirror images under x -> 1-x."""
        return DualVectors(
            np.concatenate([self.normalisation, self.normalisation[:, ::-1]]),
            np.concatenate([self.unbiasedness, -self.unbiasedness[:, ::-1]]),
        )


@dataclass(frozen=True, eq=False)
class Clauses:
    """Unions of closed intervals, a row per clause; unused places have start inf and end -inf.

    Attributes
    ----------
    starts, ends : ndarray of shape (clauses, MOST_INTERVALS)
        Ends of the intervals, increasing within each row.
    """

    starts: FloatArray
    ends: FloatArray

    def __len__(self) -> int:
        """Return the number of clauses."""
        return len(self.starts)

    def take(self, rows: IndexArray) -> "Clauses":
        """Return some of the clauses."""
        return Clauses(self.starts[rows], self.ends[rows])


@dataclass(frozen=True, eq=False)
class RayValue:
    """Upper bounds on F_y, a concave parabola on each piece, per dual vector.

    Attributes
    ----------
    lefts, rights : ndarray of shape (vectors, pieces)
        Ends of the pieces, which cover the line from -inf to inf.
    constant, linear, square : ndarray of shape (vectors, pieces)
        Coefficients of the parabola on each piece, scaled by exp(-epsilon); each parabola exceeds exp(-epsilon) F_y by a little more than
        all rounding errors.
    """

    lefts: FloatArray
    rights: FloatArray
    constant: FloatArray
    linear: FloatArray
    square: FloatArray


def at_target(vectors: DualVectors, target: float) -> DualVectors:
    """Return the dual vectors, shifted so that they prove at least a target.

    The shift of the normalisation prices makes their exact sum at least the target.
    """
    prices = vectors.normalisation
    count = prices.shape[1]
    shifted = prices + ((target - prices.sum(axis=1)) / count)[:, None]
    # Summation and shift are off by less than 2 (B + 2) units in the last place of the largest terms.
    allowance = 4 * (count + 2) * 2.0**-53 * (np.abs(prices).max(axis=1) + np.abs(shifted).max(axis=1) + abs(target))
    return DualVectors(shifted + allowance[:, None], vectors.unbiasedness)


def ray_value(vectors: DualVectors, variance: LocalVariance) -> RayValue:
    """Return the pieces of F_y for each dual vector."""
    inputs, weights = variance.inputs, variance.input_weights
    prices, slopes = vectors.normalisation, vectors.unbiasedness
    constant = prices - slopes * inputs - weights * inputs**2
    linear = slopes + 2 * weights * inputs
    lows, highs = _roots(constant, linear, weights)
    edges = np.sort(np.concatenate([lows, highs], axis=1), axis=1)
    ends = np.full((len(vectors), 1), np.inf)
    lefts, rights = np.concatenate([-ends, edges], axis=1), np.concatenate([edges, ends], axis=1)
    positive = (lefts[:, :, None] >= lows[:, None, :]) & (rights[:, :, None] <= highs[:, None, :])
    factors = np.where(positive, 1.0, math.exp(-variance.log_ratio))
    # Each coefficient is a sum of B terms, whose relative errors are a few units in the last place. |a| is at most
    # (unit + a**2 / unit) / 2.
    rounding = 16 * (len(inputs) + 8) * 2.0**-53
    unit = variance.unit
    size_linear = (np.abs(slopes) + 2 * weights * inputs).sum(axis=1)
    slack_constant = rounding * ((np.abs(prices) + np.abs(slopes * inputs) + weights * inputs**2).sum(axis=1) + unit * size_linear / 2)
    slack_square = rounding * (weights.sum() + size_linear / (2 * unit))
    return RayValue(
        lefts,
        rights,
        np.matmul(factors, constant[:, :, None])[:, :, 0] + slack_constant[:, None],
        np.matmul(factors, linear[:, :, None])[:, :, 0],
        slack_square[:, None] - factors @ weights,
    )


def clauses_of(vectors: DualVectors, variance: LocalVariance, target: float) -> Clauses:
    """Return the clauses of dual vectors for a target.

    Every table with a variance below the target has a letter in each clause. Intervals are closed and widened outward: a clause contains
    all letters with F_y > 0.
    """
    pieces = ray_value(at_target(vectors, target), variance)
    starts, ends = _where_positive(pieces)
    rows, columns = np.nonzero(starts <= ends)
    starts, ends = np.nextafter(starts[rows, columns], -np.inf), np.nextafter(ends[rows, columns], np.inf)
    # Pieces come in increasing order: an interval that touches the previous one continues it.
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]) | (starts[1:] > ends[:-1])
    rows, starts, ends = rows[new], starts[new], ends[np.append(np.flatnonzero(new)[1:], len(rows)) - 1] if len(rows) else ends
    counts = np.bincount(rows, minlength=len(vectors))
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = max(MOST_INTERVALS, int(counts.max(initial=0)))
    padded = np.full((len(vectors), width), np.inf), np.full((len(vectors), width), -np.inf)
    padded[0][rows, places], padded[1][rows, places] = starts, ends
    for row in np.flatnonzero(counts > MOST_INTERVALS):
        _merge_closest(padded[0][row], padded[1][row], int(counts[row]))
    return Clauses(padded[0][:, :MOST_INTERVALS], padded[1][:, :MOST_INTERVALS])


def _roots(constant: FloatArray, linear: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return where constant + linear a - weights a**2 is positive.

    The result is an interval, or (inf, -inf) without positive values.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        half = 0.5 * (linear + np.where(linear >= 0, 1.0, -1.0) * np.sqrt(linear**2 + 4 * weights * constant))
        first, second = half / weights, -constant / half
    real = np.isfinite(first) & np.isfinite(second)
    return np.where(real, np.minimum(first, second), np.inf), np.where(real, np.maximum(first, second), -np.inf)


def _where_positive(pieces: RayValue) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each piece in which its parabola is positive.

    An empty interval starts after its end.
    """
    lows, highs = _roots(pieces.constant, pieces.linear, -pieces.square)
    # A parabola that rounding has made convex bounds nothing on its piece, so the whole piece counts.
    unclear = pieces.square >= 0
    return (
        np.where(unclear, pieces.lefts, np.maximum(lows, pieces.lefts)),
        np.where(unclear, pieces.rights, np.minimum(highs, pieces.rights)),
    )


def _merge_closest(starts: FloatArray, ends: FloatArray, count: int) -> None:
    """Merge the intervals of a row in place until at most MOST_INTERVALS are left.

    Intervals with the shortest gaps between them merge first.
    """
    gaps = starts[1:count] - ends[: count - 1]
    kept = np.sort(np.argsort(gaps)[count - MOST_INTERVALS :])
    starts[1:MOST_INTERVALS], ends[MOST_INTERVALS - 1] = starts[kept + 1], ends[count - 1]
    ends[: MOST_INTERVALS - 1] = ends[kept]
    starts[MOST_INTERVALS:], ends[MOST_INTERVALS:] = np.inf, -np.inf
