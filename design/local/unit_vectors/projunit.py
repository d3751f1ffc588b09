"""ProjUnit with uniformly random subspaces."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ....arrays import FloatArray
from ...contracts.norm_ball import NormBall
from .projected_privunit import ProjectedPrivUnitMechanism
from .shared_frames import frame_coordinates, frame_sum


@dataclass(frozen=True)
class ProjUnitMechanism(ProjectedPrivUnitMechanism):
    """ProjUnit (`ProjectedPrivUnitMechanism`) whose P is uniformly random among all orthonormal rows: unbiased, with an exact variance.

    By symmetry the mean of ``P^T P v / |P v|`` is c v. Estimates have the norm clip_norm / (m c). A client takes time in proportion to
    dimension * projected.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    projected : int
        Number k of projections, from 1 to the dimension.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    PrivUnit has 87.35, uncompressed.

    >>> ball = NormBall(dimension=200, norm=2.0)
    >>> [round(ProjUnitMechanism(4.0, projected, ball).worst_variance, 2) for projected in (16, 64, 200)]
    [93.54, 88.43, 87.35]
    """

    epsilon: float
    projected: int
    ball: NormBall

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check("ProjUnit")

    @property
    def space(self) -> int:
        """The dimension."""
        return self.ball.dimension

    @property
    def worst_variance(self) -> float:
        """Variance at the centre of the ball, the largest: ``(clip_norm / (m c))**2``."""
        return (self.ball.clip_norm / self.scale) ** 2

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - ||x||**2`` for each vector: exact, over seeds and messages."""
        return np.asarray(self.worst_variance - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def _numbers(self) -> int:
        return self.ball.dimension * self.projected

    def _project(self, seeds: list[int], directions: FloatArray) -> FloatArray:
        return frame_coordinates(seeds, directions, self.projected)

    def _lift(self, seeds: list[int], points: FloatArray) -> FloatArray:
        return frame_sum(seeds, points, self.ball.dimension)
