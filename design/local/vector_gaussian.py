"""Gaussian noise on every coordinate of a vector, uncompressed, as little as a promise allows; and the error of a trusted server."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, gaussian_noise_multiplier
from ...solvers.accounting.privacy_loss import gaussian_privacy_loss
from ...solvers.accounting.pure_privacy import check_orders
from ..contracts.guarantee import ADJACENCIES, Guarantee
from ..contracts.mean_protocol import MOST_CLIENTS
from ..contracts.norm_ball import NormBall
from ..contracts.vector_epsilon import check_vector_epsilon
from ..noise.random_words import WordSource
from .uncompressed_vector import AddedNoiseMechanism

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


def l2_radius(ball: NormBall) -> float:
    """Return the largest L2 norm of a vector of a ball.

    Parameters
    ----------
    ball : NormBall
        Ball of any norm p.

    Returns
    -------
    float
        ``clip_norm`` for p <= 2, else ``clip_norm * dimension**(1/2 - 1/p)``. The ball's L2 diameter is twice that.

    Examples
    --------
    >>> l2_radius(NormBall(dimension=16, norm=1.0)), l2_radius(NormBall(dimension=16, norm=float("inf")))
    (1.0, 4.0)
    """
    return ball.clip_norm * math.pow(ball.dimension, max(0.0, 0.5 - 1 / ball.norm))


def central_gaussian_error(ball: NormBall, clients: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the expected squared L2 error of the mean where a trusted server adds the noise: the reference for all that trust less.

    Parameters
    ----------
    ball : NormBall
        Ball of the vectors.
    clients : int
        Number of clients, which is public.
    epsilon, delta : float
        Promise that the noise keeps, as in `VectorGaussianMechanism`.
    adjacency : str
        ``"replace-one"``: the sum moves by the ball's diameter at most; ``"add-or-remove-one"``: by its radius.

    Returns
    -------
    float
        ``dimension * (noise_multiplier * sensitivity / clients)**2``, in squared units of the vectors; errs upward, by a relative 2e-9.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(central_gaussian_error(NormBall(dimension=128, norm=2.0), 10_000, 1.0, 1e-5, "replace-one"), 8)
    7.126e-05
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    multiplier = gaussian_noise_multiplier(check_vector_epsilon(epsilon), delta)
    sensitivity = l2_radius(ball) * (2 if adjacency == "replace-one" else 1)
    return ball.dimension * (multiplier * sensitivity / clients) ** 2


@dataclass(frozen=True)
class VectorGaussianMechanism(AddedNoiseMechanism):
    """Every client adds Gaussian noise to each coordinate of its vector and sends 64-bit floats.

    The noise is the least that keeps the promise (Balle, Wang 2018). A reference for comparisons, not for releases: floating-point noise
    gives away more than the real-valued mechanism does.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    delta : float
        Failure probability, from 1e-300 to `LARGEST_DELTA`, a little below 1.
    ball : NormBall
        Ball of the vectors, of any norm.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> mechanism = VectorGaussianMechanism(1.0, 1e-5, NormBall(dimension=128, norm=2.0))
    >>> round(mechanism.noise_multiplier, 4), round(mechanism.worst_variance, 1)
    (3.7306, 7125.8)
    """

    epsilon: float
    delta: float
    ball: NormBall

    def __post_init__(self) -> None:
        """Refuse arguments out of range."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=SMALLEST_DELTA, high=LARGEST_DELTA))

    @cached_property
    def noise_multiplier(self) -> float:
        """Standard deviation over the L2 sensitivity; errs upward, by less than a relative 1e-9."""
        return gaussian_noise_multiplier(self.epsilon, self.delta)

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of two vectors of the ball."""
        return 2 * l2_radius(self.ball)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on each coordinate, in the vectors' units."""
        return self.noise_multiplier * self.l2_sensitivity

    @property
    def guarantee(self) -> Guarantee:
        """Local privacy, of the real-valued mechanism."""
        return Guarantee(self.epsilon, adjacency="replace-one", trust_model="local", delta=self.delta)

    @property
    def worst_variance(self) -> float:
        """Variance of the noise, the same for every vector: ``dimension standard_deviation**2``."""
        return self.ball.dimension * self.standard_deviation**2

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return, for each order a above 1, the largest divergence of one client's message for two vectors, a / (2 noise_multiplier**2).

        Parameters
        ----------
        orders : array_like of shape (orders,)
            Rényi orders above 1; infinity gives infinity.

        Returns
        -------
        ndarray of float64, shape (orders,)
            Divergences in nats; exact (Mironov 2017, *Rényi differential privacy*, proposition 7).

        Raises
        ------
        ValueError
            If an order is not above 1.
        """
        return check_orders(orders) / (2 * self.noise_multiplier**2)

    def privacy_loss(self) -> "PrivacyLossDistribution":
        """Return the loss distribution of the two vectors that are furthest apart, losses rounded upward.

        Returns
        -------
        PrivacyLossDistribution
            It dominates every two vectors.
        """
        return gaussian_privacy_loss(self.noise_multiplier)

    def _noise(self, shape: tuple[int, ...], words: WordSource) -> FloatArray:
        return self.standard_deviation * words.normals(shape)
