"""Laplace noise on every coordinate of a vector, uncompressed: a purely private reference."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import ArrayLike

from ...arrays import FloatArray
from ...solvers.accounting.privacy_loss import pure_privacy_loss
from ...solvers.divergences.laplace_divergence import laplace_vector_divergences
from ..contracts.guarantee import Guarantee
from ..contracts.norm_ball import NormBall
from ..contracts.vector_epsilon import check_vector_epsilon
from ..contracts.vector_protocol import COMPOSABLE_DIMENSION
from ..noise.random_words import WordSource
from .uncompressed_vector import AddedNoiseMechanism

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Losses of one coordinate lie on a grid of at most so wide steps, and at least so many of them.
LOSS_STEP, FEWEST_LOSSES = 1e-4, 20


@dataclass(frozen=True)
class VectorLaplaceMechanism(AddedNoiseMechanism):
    """Every client adds Laplace noise to each coordinate of its vector and sends 64-bit floats.

    The scale is the largest L1 distance of two vectors of the ball, over epsilon. A reference for comparisons, not for releases: the low
    bits of a floating-point sum give away more than the real-valued mechanism does (Mironov 2012, *On significance of the least
    significant bits for differential privacy*).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        Ball of the vectors, of any norm.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> VectorLaplaceMechanism(2.0, NormBall(dimension=128, norm=1.0)).worst_variance
    256.0
    """

    epsilon: float
    ball: NormBall

    def __post_init__(self) -> None:
        """Refuse arguments out of range."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 distance of two vectors of the ball: 2 clip_norm dimension**(1 - 1/p)."""
        return 2 * self.ball.clip_norm * math.pow(self.ball.dimension, 1 - 1 / self.ball.norm)

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate, in the vectors' units."""
        return self.l1_sensitivity / self.epsilon

    @property
    def guarantee(self) -> Guarantee:
        """Pure local privacy, of the real-valued mechanism."""
        return Guarantee(self.epsilon, adjacency="replace-one", trust_model="local")

    @property
    def worst_variance(self) -> float:
        """Variance of the noise, the same for every vector: ``2 dimension scale**2``."""
        return 2 * self.ball.dimension * self.scale**2

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return, for each order above 1, the largest Rényi divergence of one client's message for two vectors.

        Parameters
        ----------
        orders : array_like of shape (orders,)
            Rényi orders above 1; infinity gives epsilon.

        Returns
        -------
        ndarray of float64, shape (orders,)
            Divergences in nats; exact for p = 1 and p >= 2, erring upward in between (`laplace_vector_divergences`).

        Raises
        ------
        ValueError
            If an order is not above 1.
        """
        return laplace_vector_divergences(self.epsilon, self.ball.dimension, self.ball.norm, orders)

    def privacy_loss(self) -> "PrivacyLossDistribution":
        """Return the loss distribution of a pair that dominates every two vectors, losses rounded upward.

        Returns
        -------
        PrivacyLossDistribution
            For one coordinate, and for p = infinity, where all coordinates differ most at once, that of the noise itself, up to 4096
            coordinates; otherwise what pure privacy implies. Where coordinates are composed, losses of a total probability of at most
            1e-15 are taken to be infinite: then no epsilon holds at delta = 0, where `guarantee` is the answer.
        """
        dimension = self.ball.dimension
        if dimension > 1 and (math.isfinite(self.ball.norm) or dimension > COMPOSABLE_DIMENSION):
            return pure_privacy_loss(self.epsilon)
        step = min(LOSS_STEP, self.epsilon / dimension / FEWEST_LOSSES)
        loss = pld.from_laplace_mechanism(self.scale, sensitivity=2 * self.ball.clip_norm, value_discretization_interval=step)
        return loss if dimension == 1 else loss.self_compose(dimension)

    def _noise(self, shape: tuple[int, ...], words: WordSource) -> FloatArray:
        return self.scale * words.laplace(shape)
