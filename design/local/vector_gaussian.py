"""Gaussian noise on every coordinate of a vector, uncompressed.

The noise has a given size, or the least size that a budget allows.
"""

from dataclasses import dataclass
from typing import Self

from ...arguments import check_real
from ...arrays import FloatArray
from ...solvers.accounting.gaussian_privacy import (
    LARGEST_DELTA,
    SMALLEST_DELTA,
    SMALLEST_MULTIPLIER,
    gaussian_noise_multiplier,
)
from ...solvers.accounting.sampling import Sampling
from ..contracts.calibration import calibrate_parameter
from ..contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy, l2_radius
from ..contracts.guarantee import ADJACENCIES
from ..contracts.mechanism import check_vector_epsilon
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..contracts.registry import usual_adjacency
from ..contracts.task import Budget
from ..noise.random_words import WordSource
from .uncompressed_vector import AddedNoiseMechanism


@dataclass(frozen=True)
class VectorGaussianMechanism(AddedNoiseMechanism):
    """Every client adds Gaussian noise to each coordinate of its vector and sends 64-bit floats.

    The mechanism is a reference for comparisons, not for releases: floating-point noise gives away more than the real-valued mechanism
    does.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise on each coordinate, over the largest L2 distance of two vectors of the ball.
    delta : float
        Failure probability of the stated `guarantee`, from 1e-300 to `LARGEST_DELTA`, a little below 1.
    ball : NormBall
        Ball of the vectors, of any norm.

    Examples
    --------
    >>> mechanism = VectorGaussianMechanism.of_epsilon(1.0, 1e-5, NormBall(dimension=128, norm=2.0))
    >>> round(mechanism.noise_multiplier, 4), round(mechanism.variance_bound, 1)
    (3.7306, 7125.8)
    """

    noise_multiplier: float
    delta: float
    ball: NormBall

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "Gaussian noise")
        check_real("noise_multiplier", self.noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=SMALLEST_DELTA, high=LARGEST_DELTA))

    @classmethod
    def of_epsilon(cls, epsilon: float, delta: float, ball: NormBall) -> Self:
        """Return the mechanism with the least (epsilon, delta)-private noise (Balle, Wang 2018).

        The noise exceeds the least noise by less than a relative 1e-9.

        Parameters
        ----------
        epsilon : float
            Privacy parameter of one message, 1e-3 to 100.
        delta, ball
            Failure probability and ball of the mechanism.
        """
        delta = check_real("delta", delta, low=SMALLEST_DELTA, high=LARGEST_DELTA)
        return cls(gaussian_noise_multiplier(check_vector_epsilon(epsilon), delta), delta, ball)

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of two vectors of the ball."""
        return 2 * l2_radius(self.ball)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on each coordinate, in the vectors' units."""
        return self.noise_multiplier * self.l2_sensitivity

    def privacy(self) -> Privacy:
        """Return the local privacy of the real-valued mechanism."""
        return self.stated(gaussian_privacy(self.noise_multiplier))

    @property
    def variance_bound(self) -> float:
        """Variance of every vector: ``dimension standard_deviation**2``."""
        return self.ball.dimension * self.standard_deviation**2

    def _noise(self, shape: tuple[int, ...], random_words: WordSource) -> FloatArray:
        return self.standard_deviation * random_words.normals(shape)


def calibrate_noise_multiplier(budget: Budget, trust_model: str) -> float:
    """Return the least noise multiplier that keeps a budget, rounded up.

    The multiplier is the standard deviation over the L2 sensitivity for the budget's adjacency.

    Examples
    --------
    >>> round(calibrate_noise_multiplier(Budget(1.0, 1e-5, "add-or-remove-one", rounds=100), "central"), 4)
    37.3063
    """
    adjacency = noise_adjacency(budget.adjacency, budget.sampling, trust_model)

    def epsilon_of(inverse: float) -> float:
        privacy = gaussian_privacy(1 / inverse, adjacency, trust_model)
        return privacy.epsilon(budget.delta, adjacency, budget.rounds, budget.sampling, account=budget.method)

    low, high = 1 / LARGEST_MULTIPLIER, 1 / SMALLEST_MULTIPLIER
    return 1 / calibrate_parameter(epsilon_of, budget, low=low, high=high, name="one over the noise multiplier")


def noise_adjacency(adjacency: str | None, sampling: Sampling | None, trust_model: str) -> str:
    """Return the requested adjacency, or the trust model's usual adjacency.

    The sampling has no effect if the server sees each message, and so its sender.
    """
    if (trust_model, adjacency) == ("local", "add-or-remove-one"):
        raise ValueError(
            "adjacency must be replace-one in the local trust model, where the server sees who sends a message, got 'add-or-remove-one': "
            "give another trust_model, such as central"
        )
    return usual_adjacency(adjacency, sampling, ("replace-one",) if trust_model == "local" else ADJACENCIES)
