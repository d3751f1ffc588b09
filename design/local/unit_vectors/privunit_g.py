"""PrivUnitG: Gaussian vectors that point more often toward the client's vector than away."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ....arrays import FloatArray
from ...contracts.error import VarianceParts
from ...contracts.mechanism import check_vector_epsilon
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...noise.random_words import WordsLike, WordSource
from ..uncompressed_vector import UncompressedVectorMechanism
from .privunit import CapPrivacy
from .random_direction import direction_variance, random_directions

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Number of thresholds in the grid that precedes the refined search.
THRESHOLDS = 400


@dataclass(frozen=True)
class PrivUnitGMechanism(UncompressedVectorMechanism):
    """Every client sends a Gaussian vector, likelier on its own vector's side.

    The component along the client's vector is above a threshold more often than by chance.

    Asi, Feldman, Talwar 2022, *Optimal algorithms for mean estimation under local differential privacy*. For a unit vector v, a message x
    has the density of independent standard normal coordinates, times e^epsilon where <x, v> is at least the threshold, over the constant
    Z = e^epsilon Phi(-threshold) + Phi(threshold). Any threshold gives epsilon privacy; the mechanism's threshold minimises the variance.
    With m the mean of <x, v>, x clip_norm / m is an unbiased estimate of clip_norm v.

    A vector inside the ball is first replaced by clip_norm times its direction or the opposite direction, at random and without bias. The
    message is not compressed (64-bit floats): the mechanism is a reference for comparisons, since the low bits of floating-point numbers
    give away more than the real-valued mechanism does.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    >>> mechanism = PrivUnitGMechanism(5.0, NormBall(dimension=128, norm=2.0))
    >>> round(mechanism.threshold, 4), round(mechanism.keep_probability, 4), round(mechanism.variance_bound, 2)
    (1.8435, 0.8335, 38.37)
    """

    epsilon: float
    ball: NormBall
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        check_ball(self.ball, "PrivUnitG", 2)

    @cached_property
    def threshold(self) -> float:
        """Threshold of <x, v> that minimises the variance, up to the accuracy of a search.

        Privacy does not depend on the threshold.
        """
        reach = math.sqrt(2 * self.epsilon) + 3
        grid = np.linspace(-reach, reach, THRESHOLDS)
        values = [self._log_variance(float(threshold)) for threshold in grid]
        best = int(np.clip(np.argmin(values), 1, THRESHOLDS - 2))

        minimum = scipy.optimize.minimize_scalar(
            self._log_variance, bounds=(grid[best - 1], grid[best + 1]), method="bounded", options={"xatol": 1e-10}
        )
        return float(minimum.x)

    @property
    def keep_probability(self) -> float:
        """Probability ``e^epsilon Phi(-threshold) / Z`` that <x, v> is at least the threshold."""
        return 1 - self._other_probability(self.threshold)

    @property
    def projection_mean(self) -> float:
        """Mean m of <x, v>, ``phi(threshold) (e^epsilon - 1) / Z``."""
        return self._projection_mean(self.threshold)

    def privacy(self) -> Privacy:
        """Return the pure local privacy of the real-valued mechanism.

        Over rounds the account is better than that of randomised response (`CapPrivacy`).
        """
        return self.stated(self._cap_privacy.privacy())

    def privacy_loss(self) -> "PrivacyLossDistribution":
        """Return the loss distribution of two opposite vectors; losses are rounded upward.

        The pair dominates every two vectors.
        """
        return self._cap_privacy.loss()

    @property
    def variance_bound(self) -> float:
        """Largest variance, at the ball's centre: ``clip_norm**2 (dimension + threshold m) / m**2``."""
        return self.ball.clip_norm**2 * math.exp(self._log_variance(self.threshold))

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Return a random message per vector, without its factor ``clip_norm / m``."""
        random_words = self.checked_words(random_words)
        directions = random_directions(self.ball, vectors, random_words)
        messages = random_words.normals(directions.shape)
        shifts = self._projections(len(messages), random_words) - np.einsum("ij,ij->i", messages, directions)
        messages += shifts[:, None] * directions
        return messages

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the exact variance ``variance_bound - ||x||**2`` for each vector."""
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance by rounding to the sphere, ``clip_norm**2 - ||x||**2``, and noise."""
        return VarianceParts.split(self.variance(vectors), rounding=direction_variance(self.ball, vectors))

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return the exact Rényi divergence of two opposite vectors, in nats, per order above 1."""
        return self._cap_privacy.renyi_divergences(orders)

    @property
    def _cap_privacy(self) -> CapPrivacy:
        return CapPrivacy.of_cap(
            self.epsilon, float(scipy.special.log_ndtr(-self.threshold)), float(scipy.special.log_ndtr(self.threshold))
        )

    @property
    def _message_unit(self) -> float:
        """Factor ``clip_norm / m`` of a message."""
        return self.ball.clip_norm / self.projection_mean

    def _log_constant(self, threshold: float) -> float:
        """Return the logarithm of Z."""
        return float(np.logaddexp(self.epsilon + scipy.special.log_ndtr(-threshold), scipy.special.log_ndtr(threshold)))

    def _other_probability(self, threshold: float) -> float:
        """Return the probability that <x, v> is below the threshold."""
        return math.exp(float(scipy.special.log_ndtr(threshold)) - self._log_constant(threshold))

    def _projection_mean(self, threshold: float) -> float:
        log_density = -(threshold**2) / 2 - math.log(2 * math.pi) / 2
        return math.exp(log_density + self.epsilon - self._log_constant(threshold)) * -math.expm1(-self.epsilon)

    def _log_variance(self, threshold: float) -> float:
        """Return the logarithm of the second moment of x / m.

        The mean of <x, v>**2 is 1 + threshold m, and that of the other squares is 1.
        """
        mean = self._projection_mean(threshold)
        return math.log(self.ball.dimension + threshold * mean) - 2 * math.log(mean)

    def _projections(self, clients: int, random_words: WordSource) -> FloatArray:
        """Return random <x, v> by the quantile function of each tail, from the tail's own side."""
        threshold = self.threshold
        below = random_words.uniforms(clients) < self._other_probability(threshold)
        # The mass stays above 0, where the quantile is finite.
        uniforms = 1 - random_words.uniforms(clients)
        upper = np.maximum(-scipy.special.ndtri(uniforms * scipy.special.ndtr(-threshold)), threshold)
        lower = np.minimum(scipy.special.ndtri(uniforms * scipy.special.ndtr(threshold)), threshold)
        return np.asarray(np.where(below, lower, upper))
