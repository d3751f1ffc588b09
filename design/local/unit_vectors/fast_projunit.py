"""FastProjUnit: ProjUnit with random rows of a Hadamard matrix whose columns have random signs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arrays import FloatArray
from ....solvers.numerics.projected_norm import hadamard_bias
from ....solvers.numerics.walsh_hadamard import padded_dimension, walsh_hadamard
from ...contracts.norm_ball import NormBall
from ...relative_entropy.shared_randomness import philox_words
from .projected_privunit import ProjectedPrivUnitMechanism

WORD_BITS = 64


@dataclass(frozen=True)
class FastProjUnitMechanism(ProjectedPrivUnitMechanism):
    """ProjUnit (`ProjectedPrivUnitMechanism`) by the Walsh-Hadamard transform: P is k different rows of H D, D random signs.

    Vectors are padded with zeros to `space`, a power of two. What the server takes for the mean of ``P^T P v / |P v|`` is that of uniformly
    random subspaces: the estimate of one vector may have a bias, of which `bias_bound` is proven, and which is on average zero over
    uniformly random vectors of the padded space. It falls with the number of projections, and more clients do not lower it. A client takes
    time in proportion to dimension * log(dimension).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    projected : int
        Number k of projections, from 1 to the padded dimension.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    PrivUnit has 87.35, uncompressed.

    >>> mechanism = FastProjUnitMechanism(4.0, 64, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.worst_variance, 2), round(mechanism.bias_bound, 3)
    (89.36, 0.053)
    """

    epsilon: float
    projected: int
    ball: NormBall

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check("FastProjUnit")

    @property
    def space(self) -> int:
        """The dimension, or the next power of two."""
        return padded_dimension(self.ball.dimension)

    @property
    def bias_bound(self) -> float:
        """``hadamard_bias(space, projected) clip_norm``, for every vector."""
        return hadamard_bias(self.space, self.projected) * self.ball.clip_norm

    @property
    def worst_variance(self) -> float:
        """Bound on the variance at the centre of the ball, the largest; exact where nothing is padded.

        The mean square of a message along its direction is (1 + (k - 1) m**2) / k, and (1 - m**2) / k across. Of P^T u, of norm 1, the part
        on the padding is left out of the estimate, and here counted in; that of P^T P is d / space by the signs of H.
        """
        square, share = self.cap.mean**2, self.ball.dimension / self.space
        return (self.ball.clip_norm / self.scale) ** 2 * (square + (1 - square) * share)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - ||x||**2`` for each vector, as where the estimate has no bias.

        A vector's own variance differs by at most ``2 bias_bound ||x|| + bias_bound**2``, and that of uniformly random vectors by
        `bias_bound` squared.
        """
        return np.asarray(self.worst_variance - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def _numbers(self) -> int:
        return self.space

    def _project(self, seeds: list[int], directions: FloatArray) -> FloatArray:
        signs, rows = self._shared(seeds)
        padded = np.zeros((len(seeds), self.space))
        padded[:, : self.ball.dimension] = directions * signs
        return np.asarray(np.take_along_axis(walsh_hadamard(padded), rows, axis=1) / np.sqrt(self.space))

    def _lift(self, seeds: list[int], points: FloatArray) -> FloatArray:
        signs, rows = self._shared(seeds)
        spread = np.zeros((len(seeds), self.space))
        np.put_along_axis(spread, rows, points, axis=1)
        lifted = walsh_hadamard(spread)[:, : self.ball.dimension] * signs
        return np.asarray(lifted.sum(axis=0) / np.sqrt(self.space))

    def _shared(self, seeds: list[int]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Return the signs of the coordinates and the rows of H for each seed: from Philox, the same on every machine."""
        sign_words = -(-self.ball.dimension // WORD_BITS)
        words = philox_words(seeds, sign_words + self.space)
        bits = np.unpackbits(words[:, :sign_words].astype("<u8").view(np.uint8), axis=1)
        signs = 2 * bits[:, : self.ball.dimension].view(np.int8) - 1
        # The rows with the smallest words: all subsets are equally likely.
        rows = np.argpartition(words[:, sign_words:], self.projected - 1, axis=1)[:, : self.projected]
        return signs, np.sort(rows, axis=1)
