"""The Laplace mechanism for numbers and for vectors, uncompressed.

The mechanism is the purely private reference for mechanisms that send a few bits.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_interval, check_norm, check_real
from ...arrays import FloatArray
from ...solvers.accounting.composed_losses import LossPair
from ...solvers.accounting.loss_grid import LossGrid
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.accounting.sampled_noise import sampled_laplace_loss
from ...solvers.accounting.sampling import PoissonSampling, Sampling, amplified_epsilon
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.divergences.laplace_divergence import laplace_loss_grid, laplace_vector_divergences
from ...solvers.divergences.vector_composition import LARGEST_NORM
from ...solvers.numerics.rounding import UNIT
from ..contracts.accounts import composed_loss, loss_account, pure_account, renyi_account, repeated_losses
from ..contracts.error import VarianceParts
from ..contracts.guarantee import Guarantee
from ..contracts.mechanism import MessageScore, ScalarMechanism, check_vector_epsilon
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..contracts.real_numbers import RealNumberMechanism
from ..noise.random_words import WordsLike, WordSource
from ..transforms.dithering import finite_values
from .uncompressed_vector import AddedNoiseMechanism

LARGEST_PURE_EPSILON = 100.0
# The losses of one coordinate among many lie on a grid of FEWEST_LOSSES or more steps, each at most LOSS_STEP wide; the losses of a single
# coordinate lie on USUAL_LOSSES steps.
LOSS_STEP, FEWEST_LOSSES, USUAL_LOSSES = 1e-4, 20, 1_000


@dataclass(frozen=True)
class LaplaceMechanism(RealNumberMechanism, ScalarMechanism):
    """Every client adds Laplace noise to its value and sends a 64-bit float.

    The scale of the noise is (high - low) / epsilon.

    The mechanism is a reference for comparisons, not for releases: the low bits of a floating-point sum give away more than the real-valued
    mechanism does (Mironov 2012, *On significance of the least significant bits for differential privacy*).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    interval : tuple of float
        Public interval (low, high) of the values.
    metric : str or None
        Metric of the stated guarantee: None for local privacy, ``"l1"`` for the stronger metric privacy with ``|y - y'|``; the noise is
        the same for both.
    delta : float
        Failure probability of the stated `guarantee`, from 0, for pure privacy, to below 1.

    Examples
    --------
    >>> LaplaceMechanism(2.0, (-1.0, 1.0)).variance_bound
    2.0
    """

    epsilon: float
    interval: tuple[float, float] = (0.0, 1.0)
    metric: str | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "interval", check_interval("interval", self.interval))
        if self.metric not in (None, "l1"):
            raise ValueError(f"metric must be l1, or left out, for Laplace noise, got {self.metric!r}")
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=0.0, high=1 - 1e-16))

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of the values."""
        low, high = self.interval
        return (high - low) / self.epsilon

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a double-precision number."""
        return 64.0

    def privacy(self) -> Privacy:
        """Return the local privacy of the real-valued mechanism, pure or with a delta."""
        return self.stated(laplace_privacy(self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of local privacy at `delta`, with the metric if the mechanism states one."""
        return replace(super().guarantee, metric=self.metric)

    @property
    def variance_bound(self) -> float:
        """Variance of the noise, the same for every value."""
        return 2 * self.scale**2

    def encode(self, values: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Return each value with noise added."""
        random_words = self.checked_words(random_words)
        clipped = np.clip(finite_values("values", values), *self.interval)
        return clipped + self.scale * random_words.laplace(clipped.shape)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return messages times the difference of the inputs."""
        difference = float(first - second)
        return lambda messages: np.asarray(messages * difference)

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the noisy values, shape (1,)."""
        return np.array([messages.sum()])

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the average of the noisy values, which may lie outside the interval."""
        return float(aggregate[0]) / check_integer("clients", clients, low=1, high=MOST_CLIENTS)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return ``2 scale**2`` for each value."""
        return np.full(finite_values("values", values).shape, self.variance_bound)

    def variance_parts(self, values: ArrayLike) -> VarianceParts:
        """Return `variance` as noise."""
        return VarianceParts.split(self.variance(values))


def laplace_privacy(
    epsilon: float, *, adjacency: str = "replace-one", trust_model: str = "local", dimension: int = 1, norm: float = 1.0
) -> Privacy:
    """Return the privacy of Laplace noise added to every coordinate.

    The scale of the noise is the L1 sensitivity over epsilon.

    For finite p a shift of one coordinate by the whole sensitivity dominates every other shift. A path from one input to another changes
    one coordinate at a time; group privacy (Dong, Roth, Su 2022, *Gaussian differential privacy*, theorem 2.14) bounds the whole path from
    below by a composition of the steps' trade-off functions. For noise of log-concave density this composition is the trade-off function of
    one shift by the sum of the steps. For p = infinity all coordinates can differ most at once, each by its share of the sensitivity.

    Parameters
    ----------
    epsilon : float
        Pure privacy parameter of one round in which every client takes part, from 1e-6 to 100.
    adjacency, trust_model : str
        Adjacency of the data sets that the sensitivity refers to, and the trust model of the guarantee.
    dimension : int
        Number of coordinates.
    norm : float
        Order p of the ball's norm.

    Examples
    --------
    >>> report = laplace_privacy(0.1).report(1e-5, rounds=100)
    >>> report.best.name, report.epsilon < report.account("rdp").bound.epsilon < 10
    ('pld', True)
    """
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=LARGEST_PURE_EPSILON)
    shares = dimension if math.isinf(check_norm(norm, high=LARGEST_NORM)) else 1

    def curve() -> RenyiCurve:
        return RenyiCurve(np.array(DEFAULT_ORDERS), laplace_vector_divergences(epsilon, dimension, norm, DEFAULT_ORDERS))

    def sampled_curve(_: RenyiCurve, sampling: Sampling) -> RenyiCurve:
        return RenyiCurve(np.array([math.inf]), np.array([amplified_epsilon(epsilon, sampling.share)]))

    def unsampled_loss() -> LossGrid:
        steps = USUAL_LOSSES if shares == 1 else max(FEWEST_LOSSES, math.ceil(epsilon / shares / LOSS_STEP))
        return laplace_loss_grid(epsilon / shares, steps)

    def by_loss(rounds: int, delta: float) -> float | None:
        if rounds * shares == 1:
            # The divergence of one shift is 1 - e^((x - epsilon) / 2) at x; the masses are rounded upward.
            return max(0.0, epsilon + 2 * math.log1p(-delta) + 4 * UNIT * epsilon)
        return composed_loss(unsampled_loss(), rounds * shares, delta)

    def by_sampled_loss(rounds: int, delta: float, sampling: Sampling) -> float | None:
        return composed_loss(sampled_laplace_loss(1 / epsilon, sampling, adjacency), rounds, delta) if shares == 1 else None

    def losses(delta: float, rounds: int, sampling: Sampling | None) -> LossPair | None:
        if sampling is None:
            return repeated_losses(unsampled_loss(), rounds * shares, delta)
        if not isinstance(sampling, PoissonSampling) or shares > 1:
            return None
        return repeated_losses(sampled_laplace_loss(1 / epsilon, sampling, adjacency), rounds, delta)

    return Privacy(
        trust_model,
        (
            pure_account(epsilon, adjacency),
            renyi_account(curve, adjacency, sampled=sampled_curve),
            loss_account("pld", by_loss, adjacency, sampled=by_sampled_loss, losses=losses),
        ),
    )


@dataclass(frozen=True)
class VectorLaplaceMechanism(AddedNoiseMechanism):
    """Every client adds Laplace noise to each coordinate of its vector and sends 64-bit floats.

    The scale is the largest L1 distance of two vectors of the ball, over epsilon. The mechanism is a reference for comparisons, not for
    releases: the low bits of a floating-point sum give away more than the real-valued mechanism does (Mironov 2012, *On significance of
    the least significant bits for differential privacy*).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        Ball of the vectors, of any norm.
    delta : float
        Failure probability of the stated `guarantee`, from 0, for pure privacy, to below 1.

    Examples
    --------
    >>> VectorLaplaceMechanism(2.0, NormBall(dimension=128, norm=1.0)).variance_bound
    256.0
    """

    epsilon: float
    ball: NormBall
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "Laplace noise")
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=0.0, high=1 - 1e-16))

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 distance of two vectors of the ball: 2 clip_norm dimension**(1 - 1/p)."""
        return 2 * self.ball.clip_norm * math.pow(self.ball.dimension, 1 - 1 / self.ball.norm)

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate, in the vectors' units."""
        return self.l1_sensitivity / self.epsilon

    def privacy(self) -> Privacy:
        """Return the local privacy of the real-valued mechanism, pure or with a delta."""
        return self.stated(laplace_privacy(self.epsilon, dimension=self.ball.dimension, norm=self.ball.norm))

    @property
    def variance_bound(self) -> float:
        """Variance of the noise, the same for every vector: ``2 dimension scale**2``."""
        return 2 * self.ball.dimension * self.scale**2

    def _noise(self, shape: tuple[int, ...], random_words: WordSource) -> FloatArray:
        return self.scale * random_words.laplace(shape)
