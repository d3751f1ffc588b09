"""The grid that a vector's coordinates are dithered to: where it lies in a ball, and which row of a table a grid point takes."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...arrays import FloatArray
from ..contracts.norm_ball import NormBall


@dataclass(frozen=True)
class VectorGrid:
    """As many grid points for each coordinate as a table has inputs.

    For finite p zero is a grid point: N = 2**(bits_in - 1) - 1 grid steps reach the clip norm on either side, and position k, counted in
    steps from zero, takes row k + N of the table; its last row is not used. (With an even number of inputs from -clip_norm to clip_norm,
    zero would lie between two of them, and the dithered zero vector would have an L1 norm of d/2 steps.) For p = infinity all rows are
    used, the grid runs from -clip_norm to clip_norm, and positions are counted from its low end.

    Attributes
    ----------
    ball : NormBall
        The ball of the vectors.
    bits_in : int
        The table has 2**bits_in inputs.

    Raises
    ------
    ValueError
        If the norm is finite and bits_in is less than 2.

    Examples
    --------
    >>> grid = VectorGrid(NormBall(dimension=2, norm=1.0, clip_norm=6.0), bits_in=3)
    >>> grid.positions(np.array([[4.0, -1.0]])).tolist(), grid.zero, grid.step
    ([[2.0, -0.5]], 3, 2.0)
    """

    ball: NormBall
    bits_in: int

    def __post_init__(self) -> None:
        """Refuse a grid with nothing but zero."""
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
        """Grid steps that the clip norm is long: N for finite p, half of all steps for p = infinity."""
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
        """Return where vectors lie on the grid; those outside the ball are clipped first.

        Parameters
        ----------
        vectors : ndarray of shape (clients, dimension)
            Finite vectors.
        shrinkage : float
            Factor that clipped vectors are multiplied by, at most 1.

        Returns
        -------
        ndarray of shape (clients, dimension)
            Positions in steps: from -N to N for finite p, from 0 to `steps` for p = infinity.
        """
        scaled = self.ball.clip(vectors) / self.ball.clip_norm * shrinkage
        return np.asarray(np.clip(scaled, -1.0, 1.0) * self.radius if self.centred else (scaled + 1) / 2 * self.steps)
