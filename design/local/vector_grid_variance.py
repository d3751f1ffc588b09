"""The squared error of vectors dithered to a grid and sent through a table: at given vectors, and at the worst ones of a ball."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...arrays import FloatArray
from ...solvers.numerics.separable_budget import largest_piecewise_sum
from ..tables.lookup_table import LookupTable
from .vector_grid import VectorGrid


@dataclass(frozen=True, eq=False)
class VectorGridVariance:
    """Variances of a table's letters, in the vectors' squared units, on the grid and between its points.

    A fraction f of a step from one row to the next, the variance is V + f (V' - V) + f (1 - f) step**2, by the law of total variance.

    Attributes
    ----------
    table : LookupTable
        The table, exactly unbiased.
    grid : VectorGrid
        The grid that its rows stand for.

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
        """Return the sum of the coordinates' variances for each vector.

        Parameters
        ----------
        positions : ndarray of shape (clients, dimension)
            Where vectors lie on the grid, as `VectorGrid.positions` gives them.

        Returns
        -------
        ndarray of shape (clients,)
            Expected squared L2 distances between letters, decoded, and positions, in squared units of the vectors.
        """
        rows = positions + self.grid.zero
        lower = np.minimum(rows.astype(np.intp), len(self.rows) - 2)
        fraction = rows - lower
        terms = self.rows[lower] + fraction * (np.diff(self.rows)[lower] + self.grid.step**2 * (1 - fraction))
        return np.asarray(terms.sum(axis=1))

    def largest(self, radius: float) -> float:
        """Return a bound on the sum of the coordinates' variances for every vector of a ball.

        Parameters
        ----------
        radius : float
            Radius of the ball, in steps, above 0; not used for p = infinity, where it is that of the grid.

        Returns
        -------
        float
            For p = infinity exact. Otherwise the value of the concave envelope of a coordinate's variance, as a function of the p-th
            power that it costs; errs upward.
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
