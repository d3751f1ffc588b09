"""Clauses of dual vectors: sets of letters that every better table hits.

A dual vector y = (lambda, mu) has w_i(a) = lambda_i + mu_i (a - x_i) - r_i (x_i - a)**2, and F_y(a) is the largest product of w(a) with a
privacy ray: a staircase in {1, exp(epsilon)}**B for local privacy, a walk with first entry 1 for metric privacy. A table whose letters all
have F_y(a) <= 0 has a variance of at least sum_i lambda_i (weak duality). So if that sum is a target T, every table with a variance below T
has a letter in the clause {a : F_y(a) > 0}. For the largest variance each dual vector has weights r of its own. F_y is a parabola on each
of a few pieces (`ray_value`), so that a clause is a union of intervals in closed form. The intervals are widened outward by more than all
rounding errors; docs/proofs/letter-bound.md has the proof.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import FloatArray, IndexArray
from .privacy_constraint import EPSILON_HIGH, RatioConstraint
from .ray_value import MOST_PIECES_PER_INPUT, UNIT_ROUNDING, Gains, RayValue, positive_interval, staircase_value, walk_value
from .two_letters import least_reach

# Largest number of intervals of a clause. Intervals with the shortest gaps between them are merged, which keeps the clause valid.
MOST_INTERVALS = 12

# Weights below this share of the largest weight count as 0, and no price is nearer to 0 than the least price, unless it is 0: roots then
# neither overflow nor underflow. Dual vectors may be any numbers.
LEAST_WEIGHT_SHARE, LEAST_PRICE = 1e-9, 1e-100
# Most inputs: the time of a clause grows with their square.
MOST_INPUTS = 1024
# Weights have the sum 1 within this error.
SUM_ERROR = 1e-9
# Least log ratio over the whole grid, below which letters are too far out for double precision.
LEAST_SPREAD = 1e-12
# Clauses are computed for as many dual vectors at a time as have together this many pieces times inputs.
BLOCK = 8_000_000


@dataclass(frozen=True, eq=False)
class TableVariance:
    """The variance of tables: its objective, its grid and its privacy.

    Attributes
    ----------
    inputs : ndarray of shape (inputs,)
        The grid x_i = i / (inputs - 1).
    input_weights : ndarray of shape (inputs,) or None
        Weights r_i of the rows' variances, non-negative, with sum 1; None for the largest variance.
    constraint : RatioConstraint
        Local or metric privacy, with a log ratio of at most 20 over the whole grid.
    """

    inputs: FloatArray
    input_weights: FloatArray | None
    constraint: RatioConstraint

    def __post_init__(self) -> None:
        """Check the grid, the weights and the constraint."""
        count = len(self.inputs)
        if not 2 <= count <= MOST_INPUTS or np.any(self.inputs != np.arange(count) / (count - 1)):
            raise ValueError(f"inputs must be i / (B - 1) for i = 0, ..., B - 1, at most {MOST_INPUTS}, got {self.inputs!r}")
        spread = self.constraint.log_ratio * (count - 1 if self.constraint.neighbours_only else 1)
        if not LEAST_SPREAD <= spread <= EPSILON_HIGH * (1 + 1e-9):
            raise ValueError(f"constraint must have a log ratio of {LEAST_SPREAD:g} to {EPSILON_HIGH:g} over the grid, got {spread!r}")
        if self.input_weights is not None:
            check_weights(self.input_weights, (count,))

    @property
    def symmetric(self) -> bool:
        """Whether a table and its mirror image under x -> 1-x have the same variance."""
        return self.input_weights is None or bool(np.all(self.input_weights == self.input_weights[::-1]))

    @cached_property
    def used_weights(self) -> FloatArray | None:
        """Input weights that count in clauses, as a row; None for the largest variance."""
        return None if self.input_weights is None else _used(self.input_weights[None, :])

    @cached_property
    def unit(self) -> float:
        """Size of a letter: the width of the unit interval and the least reach beyond it."""
        return 1 + least_reach(len(self.inputs), self.constraint)


def check_weights(weights: FloatArray, shape: tuple[int, ...]) -> None:
    """Check the shape of input weights, and that each row is non-negative with sum 1."""
    if weights.shape != shape or not np.all(weights >= 0) or not np.all(np.abs(weights.sum(axis=-1) - 1) <= SUM_ERROR):
        raise ValueError(f"input_weights must be non-negative, of shape {shape} and with sum 1, got {weights!r}")


@dataclass(frozen=True, eq=False)
class DualVectors:
    """Prices of a table's constraints: a row of each array is one dual vector.

    Attributes
    ----------
    normalisation : ndarray of shape (vectors, inputs)
        Prices lambda of the rows' sums.
    unbiasedness : ndarray of shape (vectors, inputs)
        Prices mu of sum_j P[i, j] (a_j - x_i) = 0.
    input_weights : ndarray of shape (vectors, inputs) or None
        Weights of the rows' variances for the largest variance, non-negative, with sum 1 in each row; None for other objectives.
    """

    normalisation: FloatArray
    unbiasedness: FloatArray
    input_weights: FloatArray | None = None

    def __len__(self) -> int:
        """Return the number of dual vectors."""
        return len(self.normalisation)

    def take(self, rows: IndexArray | slice) -> "DualVectors":
        """Return some of the dual vectors."""
        weights = self.input_weights
        return DualVectors(self.normalisation[rows], self.unbiasedness[rows], None if weights is None else weights[rows])

    def mirrored(self) -> "DualVectors":
        """Return the mirror images under x -> 1-x."""
        weights = self.input_weights
        return DualVectors(self.normalisation[:, ::-1], -self.unbiasedness[:, ::-1], None if weights is None else weights[:, ::-1])

    def with_mirrors(self) -> "DualVectors":
        """Return the dual vectors, followed by their mirror images under x -> 1-x."""
        return joined([self, self.mirrored()])


def joined(parts: list[DualVectors]) -> DualVectors:
    """Return the dual vectors of all parts; either all or none have input weights."""
    weights = [part.input_weights for part in parts if part.input_weights is not None]
    return DualVectors(
        np.concatenate([part.normalisation for part in parts]),
        np.concatenate([part.unbiasedness for part in parts]),
        np.concatenate(weights) if weights else None,
    )


def no_vectors(variance: TableVariance) -> DualVectors:
    """Return no dual vectors, for an objective."""
    none = np.empty((0, len(variance.inputs)))
    return DualVectors(none, none, none if variance.input_weights is None else None)


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


def at_target(vectors: DualVectors, target: float) -> DualVectors:
    """Return the dual vectors with their normalisation prices shifted, so that their exact sum is at least the target.

    For the largest variance the target of a dual vector is the target times the sum of its weights: a table whose largest variance is below
    the target has a weighted variance below that.
    """
    prices = vectors.normalisation
    count = prices.shape[1]
    targets = np.full(len(prices), target)
    if vectors.input_weights is not None:
        targets *= _used(vectors.input_weights).sum(axis=1) * (1 + 4 * (count + 2) * UNIT_ROUNDING)
    shifted = prices + ((targets - prices.sum(axis=1)) / count)[:, None]
    # Summation and shift are off by less than 2 (B + 2) units in the last place of the largest terms.
    allowance = 4 * (count + 2) * UNIT_ROUNDING * (np.abs(prices).max(axis=1) + np.abs(shifted).max(axis=1) + np.abs(targets))
    return DualVectors(shifted + allowance[:, None], vectors.unbiasedness, vectors.input_weights)


def ray_value(vectors: DualVectors, variance: TableVariance) -> RayValue:
    """Return the pieces of F_y for each dual vector; for local privacy, of exp(-epsilon) F_y."""
    inputs = variance.inputs
    weights = weights_of(vectors, variance)
    prices = np.where(np.abs(vectors.normalisation) < LEAST_PRICE, LEAST_PRICE, vectors.normalisation)
    slopes = np.where(np.abs(vectors.unbiasedness) < LEAST_PRICE, 0.0, vectors.unbiasedness)
    pulls = weights * inputs
    offsets, squares = slopes * inputs, pulls * inputs
    gains = Gains(
        prices - offsets - squares,
        slopes + 2 * pulls,
        weights,
        np.abs(prices) + np.abs(offsets) + squares,
        np.abs(slopes) + 2 * pulls,
        variance.unit,
    )
    value = walk_value if variance.constraint.neighbours_only else staircase_value
    return value(gains, variance.constraint.log_ratio)


def weights_of(vectors: DualVectors, variance: TableVariance) -> FloatArray:
    """Return the input weights that count in clauses, a row per dual vector, or one row for all."""
    weights = variance.used_weights
    if weights is not None:
        return weights
    assert vectors.input_weights is not None  # noqa: S101 - dual vectors of the largest variance have weights
    return _used(vectors.input_weights)


def _used(weights: FloatArray) -> FloatArray:
    """Return weights with 0 in place of tiny weights: a lower bound for a smaller objective holds for the objective itself."""
    used: FloatArray = np.where(weights < LEAST_WEIGHT_SHARE * weights.max(axis=-1, keepdims=True), 0.0, weights)
    return used


def clauses_of(vectors: DualVectors, variance: TableVariance, target: float) -> Clauses:
    """Return the clauses of dual vectors for a target: every table with a variance below it has a letter in each clause.

    Every table with a variance below the target has a letter in each clause. Intervals are closed and widened outward: a clause contains
    all letters with F_y > 0.
    """
    inputs = len(variance.inputs)
    block = max(1, BLOCK // (MOST_PIECES_PER_INPUT * inputs**2))
    blocks = [_clauses_of(vectors.take(slice(first, first + block)), variance, target) for first in range(0, len(vectors), block)]
    if len(blocks) == 1:
        return blocks[0]
    none = np.empty((0, MOST_INTERVALS))
    return Clauses(
        np.concatenate([none, *(part.starts for part in blocks)]),
        np.concatenate([none, *(part.ends for part in blocks)]),
    )


def _clauses_of(vectors: DualVectors, variance: TableVariance, target: float) -> Clauses:
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


def _where_positive(pieces: RayValue) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each piece in which its parabola is positive; an empty interval starts after its end."""
    # A parabola that rounding has made convex tells nothing about its piece.
    unclear = pieces.square >= 0
    lows, highs = positive_interval(pieces.constant, pieces.linear, np.where(unclear, 1.0, -pieces.square))
    starts = np.where(unclear, pieces.lefts, np.maximum(lows, pieces.lefts))
    ends = np.where(unclear, pieces.rights, np.minimum(highs, pieces.rights))
    wide = pieces.lefts < pieces.rights
    return np.where(wide, starts, np.inf), np.where(wide, ends, -np.inf)


def _merge_closest(starts: FloatArray, ends: FloatArray, count: int) -> None:
    """Merge the intervals of a row in place until at most MOST_INTERVALS are left.

    Intervals with the shortest gaps between them merge first.
    """
    gaps = starts[1:count] - ends[: count - 1]
    kept = np.sort(np.argsort(gaps)[count - MOST_INTERVALS :])
    starts[1:MOST_INTERVALS], ends[MOST_INTERVALS - 1] = starts[kept + 1], ends[count - 1]
    ends[: MOST_INTERVALS - 1] = ends[kept]
    starts[MOST_INTERVALS:], ends[MOST_INTERVALS:] = np.inf, -np.inf
