"""Discrete Gaussian noise that a trusted server adds to the sum of rounded vectors.

The reference for mechanisms with a delta: its error is that of Gaussian noise on the sum of real vectors, up to a millionth.
"""

import math
from dataclasses import dataclass, replace

from ...arrays import FloatArray, IntegerArray
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_noise_multiplier
from ...solvers.accounting.renyi_curve import check_delta
from ..contracts.calibration import calibrate_parameter
from ..contracts.gaussian import LARGEST_MULTIPLIER, l2_radius
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import budgeted, parameter, parts
from ..contracts.privacy import Privacy
from ..contracts.task import Budget
from ..noise.discrete_gaussian import LARGEST_SIGMA, discrete_gaussian_variance, sample_discrete_gaussian
from ..noise.random_words import WordSource
from ..secure_sum.noisy_sum import NoisySum, noisy_sum_privacy
from .central_noise import BALL, CLIENTS, ROUNDING_SHARE, STEPS, CentralNoise, dithered, dithering_variance, fewest_steps, whole_norm

# Calibrated noise has this many steps at least, at which its accounts are those of Gaussian noise.
FINE_SIGMA = 1e4


@dataclass(frozen=True)
class CentralGaussianMechanism(CentralNoise):
    """A trusted server adds discrete Gaussian noise to the sum of dithered vectors.

    `CentralNoise` describes messages and the other fields.

    Attributes
    ----------
    noise_multiplier : float
        Parameter of the noise over `l2_sensitivity`, from 0.001 to 10**6.
    delta : float
        Failure probability of the guarantee, above 0 and below 1.
    items : bool
        Whether vectors are unit vectors of items, whose L2 distance is sqrt(2), and not any vectors of the ball.

    Examples
    --------
    >>> import numpy as np
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = CentralGaussianMechanism(ball, clients=1000, steps=2**16, noise_multiplier=4.0, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.926342, delta = 1e-05, replace-one adjacency, central trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.8], (1000, 1)), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    [0.6, 0.0, -0.8]
    """

    ball: NormBall = parts(NormBall, **BALL)
    clients: int = parameter(**CLIENTS)
    steps: int = parameter(**STEPS)
    noise_multiplier: float = parameter("Parameter of the noise over the L2 sensitivity.", SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER)
    delta: float = budgeted()
    items: bool = parameter("Whether vectors are unit vectors of items.", default=False, flags="--items/--vectors")
    adjacency: str = "replace-one"

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "Gaussian noise")
        super().__post_init__()
        object.__setattr__(self, "delta", check_delta(self.delta))

    @property
    def l2_sensitivity(self) -> float:
        """Upper bound on the L2 distance in steps by which a client moves the sum."""
        if self.items:
            return self.steps * (math.sqrt(2) * (1 + 1e-15) if self.adjacency == "replace-one" else 1.0)
        radius = l2_radius(self.ball) / self.granularity
        return whole_norm(radius, self.ball.dimension) * (2 if self.adjacency == "replace-one" else 1)

    @property
    def sigma(self) -> float:
        """Parameter of the noise, in steps."""
        return self.noise_multiplier * self.l2_sensitivity

    @property
    def step_noise_variance(self) -> float:
        """Variance of the noise on a coordinate, in squared steps."""
        return discrete_gaussian_variance(self.sigma)

    @property
    def largest_coordinate(self) -> int:
        """Largest absolute value of a coordinate, which is at most the clip norm in steps."""
        return self.steps

    def privacy(self) -> Privacy:
        """Return the privacy of discrete Gaussian noise on one sum (`noisy_sum_privacy`)."""
        return replace(
            noisy_sum_privacy(1, NoisySum(self.sigma, self.l2_sensitivity, self.ball.dimension), self.adjacency), trust_model="central"
        )

    def _rounded(self, vectors: FloatArray, random_words: WordSource) -> IntegerArray:
        return dithered(vectors, random_words)

    def _rounding_variance(self, vectors: FloatArray | None) -> FloatArray | float:
        if vectors is None:
            return 0.0 if self.items else self.ball.dimension / 4
        return dithering_variance(vectors)

    def _noise(self, random_words: WordSource) -> IntegerArray:
        return sample_discrete_gaussian(self.sigma, self.ball.dimension, random_words)


def calibrate_central_gaussian(
    ball: NormBall, clients: int, bits: int | None, budget: Budget, *, items: bool = False
) -> CentralGaussianMechanism:
    """Return the mechanism with the least noise that keeps a budget.

    Parameters
    ----------
    ball : NormBall
        Ball of the vectors, of any norm.
    clients : int
        Number of clients.
    bits : int or None
        Bits of a coordinate at most; None for as many as make the error that of real numbers, up to a millionth.
    budget : Budget
        Budget of all rounds, with a delta above 0.
    items : bool
        Whether vectors are unit vectors of items.

    Examples
    --------
    >>> mechanism = calibrate_central_gaussian(NormBall(128, 2.0), 10_000, None, Budget(1.0, 1e-5, "replace-one"))
    >>> mechanism.steps, round(mechanism.error().of_mean(10_000), 8)
    (33554432, 7.126e-05)
    """
    # The scale of the noise hardly depends on the steps: a first guess sets them.
    guess = gaussian_noise_multiplier(
        min(max(budget.epsilon / math.sqrt(budget.rounds), 1e-3), 100.0), min(max(budget.delta, SMALLEST_DELTA), LARGEST_DELTA)
    )

    def made(steps: int, multiplier: float) -> CentralGaussianMechanism:
        return CentralGaussianMechanism(ball, clients, steps, multiplier, budget.delta, items, budget.adjacency)

    def is_fine(steps: int) -> bool:
        mechanism = made(steps, guess)
        sigma = mechanism.sigma
        of_rounding = clients * float(mechanism._rounding_variance(None)) / (ball.dimension * sigma**2)
        radius = l2_radius(ball) / mechanism.granularity
        of_norm = 0.0 if items else 2 * math.sqrt(ball.dimension) / radius
        return of_rounding + of_norm <= ROUNDING_SHARE and sigma >= FINE_SIGMA

    steps = fewest_steps(is_fine)
    if bits is not None:
        steps = min(steps, (1 << (bits - 1)) - 1)
    # Rounding must not add more than half of the radius to the norm.
    least = 1 if items else math.ceil(2 * math.sqrt(ball.dimension) * ball.clip_norm / l2_radius(ball))
    if steps < least:
        raise InfeasibleError(
            f"bits must be at least {least.bit_length() + 1} for central-gaussian in {ball.dimension} dimensions, got {bits}"
        )
    largest = min(LARGEST_MULTIPLIER, LARGEST_SIGMA / made(steps, 1.0).l2_sensitivity)

    def epsilon_of(inverse: float) -> float:
        report = made(steps, 1 / inverse).privacy()
        return report.epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, budget.method)

    low, high = (1 + 1e-12) / largest, (1 - 1e-12) / SMALLEST_MULTIPLIER

    def noise_of(inverse: float) -> float:
        return 1 / inverse

    inverse = calibrate_parameter(epsilon_of, budget, low=low, high=high, name="noise_multiplier", start=1 / guess, shown=noise_of)
    return made(steps, 1 / inverse)
