"""The grid that a vector's coordinates are dithered to, the table row for each of its points, and the variance of a letter."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...arrays import FloatArray
from ...solvers.numerics.separable_budget import largest_piecewise_sum
from ..contracts.norm_ball import NormBall
from ..tables.lookup_table import LookupTable


@dataclass(frozen=True)
class VectorGrid:
    """The grid of each coordinate, with a point for every input of a table.

    For finite p zero is a grid point: N = 2**(bits_in - 1) - 1 grid steps reach the clip norm on either side, and position k, counted in
    steps from zero, takes row k + N of the table; its last row is not used. (With an even number of inputs from -clip_norm to clip_norm,
    zero would lie between two of them, and the dithered zero vector would have an L1 norm of d/2 steps.) For p = infinity all rows are
    used, the grid runs from -clip_norm to clip_norm, and positions are counted from its low end.

    Attributes
    ----------
    ball : NormBall
        The ball of the vectors.
    bits_in : int
        The table has 2**bits_in inputs; at least 2 for finite p.

    Examples
    --------
    >>> grid = VectorGrid(NormBall(dimension=2, norm=1.0, clip_norm=6.0), bits_in=3)
    >>> grid.positions(np.array([[4.0, -1.0]])).tolist(), grid.zero, grid.step
    ([[2.0, -0.5]], 3, 2.0)
    """

    ball: NormBall
    bits_in: int

    def __post_init__(self) -> None:
        """Refuse a grid whose only point is zero."""
        if self.centred and self.bits_in < 2:
            raise ValueError(f"table must have bits_in of 2 or more for a finite norm, got {self.bits_in}")

    @property
    def centred(self) -> bool:
        """Whether zero is a grid point and positions are counted from it: for finite p."""
        return math.isfinite(self.ball.norm)

    @property
    def steps(self) -> int:
        """Grid steps from the table's first input to its last."""
        return int(2**self.bits_in - 1)

    @property
    def half_width(self) -> Fraction:
        """Length of the clip norm in grid steps: N for finite p, half of all steps for p = infinity."""
        return Fraction(self.steps // 2) if self.centred else Fraction(self.steps, 2)

    @property
    def radius(self) -> float:
        """The ball's radius in steps, `half_width` as a float."""
        return float(self.half_width)

    @property
    def zero(self) -> int:
        """Row that position 0 takes: N for finite p, 0 for p = infinity."""
        return self.steps // 2 if self.centred else 0

    @property
    def step(self) -> float:
        """Length of a step, in the vectors' units."""
        return self.ball.clip_norm / self.radius

    def positions(self, vectors: FloatArray, shrinkage: float = 1.0) -> FloatArray:
        """Return where vectors, clipped and multiplied by a shrinkage of at most 1, lie on the grid, shape (clients, dimension).

        Positions are in steps: from -N to N for finite p, from 0 to `steps` for p = infinity.
        """
        scaled = self.ball.clip(vectors) / self.ball.clip_norm * shrinkage
        return np.asarray(np.clip(scaled, -1.0, 1.0) * self.radius if self.centred else (scaled + 1) / 2 * self.steps)


@dataclass(frozen=True, eq=False)
class VectorGridVariance:
    """Variances of a table's letters, in the vectors' squared units, on the grid and between its points.

    A fraction f of a step from one row to the next, the variance is V + f (V' - V) + f (1 - f) step**2, by the law of total variance. The
    table must be exactly unbiased.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> grid = VectorGrid(NormBall(dimension=2, norm=1.0), bits_in=2)
    >>> variance = VectorGridVariance(generalised_randomised_response(3.0, 2), grid)
    >>> at_zero, at_vertex = variance.of_positions(np.array([[0.0, 0.0], [1.0, 0.0]]))
    >>> bool(max(at_zero, at_vertex) <= variance.largest(1.0))
    True
    """

    table: LookupTable
    grid: VectorGrid

    @cached_property
    def rows(self) -> FloatArray:
        """Variance of each row, in squared units of the vectors. Shape (2**bits_in,)."""
        scale = (self.grid.steps * Fraction(self.grid.step)) ** 2
        return np.array([float(scale * variance) for variance in self.table.moments.variances])

    def of_positions(self, positions: FloatArray) -> FloatArray:
        """Return the sum of the coordinates' variances for each vector, shape (clients,), from its `VectorGrid.positions`.

        These are expected squared L2 distances between letters, decoded, and positions, in squared units of the vectors.
        """
        rows = positions + self.grid.zero
        lower = np.minimum(rows.astype(np.intp), len(self.rows) - 2)
        fraction = rows - lower
        terms = self.rows[lower] + fraction * (np.diff(self.rows)[lower] + self.grid.step**2 * (1 - fraction))
        return np.asarray(terms.sum(axis=1))

    def largest(self, radius: float) -> float:
        """Return a bound on the sum of the coordinates' variances for every vector of a ball of this radius, in steps.

        For p = infinity the radius is that of the grid, and the bound is exact. Otherwise it is the value of the concave envelope of a
        coordinate's variance, as a function of the p-th power that it costs; errs upward.
        """
        growths, step_square = np.diff(self.rows), self.grid.step**2
        dimension = self.grid.ball.dimension
        if not self.grid.centred:
            tops = np.clip(0.5 + growths / (2 * step_square), 0.0, 1.0)
            return float(dimension * (self.rows[:-1] + (growths + step_square * (1 - tops)) * tops).max())
        zero = self.grid.zero
        # A coordinate may lie on either side of zero; on the left the row at distance k is zero - k.
        right, left = self.rows[zero : 2 * zero + 1], self.rows[zero::-1]
        return largest_piecewise_sum(
            lefts=np.tile(np.arange(zero, dtype=float), 2),
            constants=np.concatenate([right[:-1], left[:-1]]),
            slopes=np.concatenate([np.diff(right), np.diff(left)]) + step_square,
            curvatures=np.full(2 * zero, step_square),
            dimension=dimension,
            norm=self.grid.ball.norm,
            radius=radius,
        )
