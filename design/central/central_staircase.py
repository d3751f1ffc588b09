"""Staircase noise that a trusted server adds to the sum of rounded numbers: the least error of pure privacy.

Geng, Viswanath 2016, *The optimal noise-adding mechanism in differential privacy*.
"""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntegerArray
from ...errors import InfeasibleError
from ..contracts.accounts import pure_privacy
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import parameter, parts
from ..contracts.privacy import Privacy
from ..noise.discrete_laplace_privacy import RADII
from ..noise.random_words import WordSource
from ..noise.staircase_noise import LARGEST_EPSILON, LEAST_EPSILON, best_width, sample_staircase, staircase_variance
from ..transforms.l1_rounding import MOST_STEPS
from .central_noise import CLIENTS, ROUNDING_SHARE, STEPS, CentralNoise, dithered, dithering_variance, fewest_steps


@dataclass(frozen=True)
class CentralStaircaseMechanism(CentralNoise):
    """A trusted server adds staircase noise to the sum of numbers, vectors of one coordinate.

    `CentralNoise` describes messages and the other fields.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, from 1e-6 to 700.
    width : int
        Steps of the first stair on either side, from 1 to the sensitivity: `steps`, or twice that for ``"replace-one"`` adjacency.

    Examples
    --------
    >>> mechanism = CentralStaircaseMechanism(NormBall(1, 1.0), clients=1000, steps=512, epsilon=5.0, width=157)
    >>> print(mechanism.guarantee)
    epsilon = 5, replace-one adjacency, central trust model
    >>> messages = mechanism.encode(np.full((1000, 1), 0.6), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 1000).round(2).tolist()
    [0.6]
    """

    ball: NormBall = parts(NormBall, dimension={"high": 1, "default": 1}, norm={"default": "1"})
    clients: int = parameter(**CLIENTS)
    steps: int = parameter(**STEPS)
    epsilon: float = parameter("Pure privacy parameter of one round.", LEAST_EPSILON, LARGEST_EPSILON, unit="nats")
    width: int = parameter("Steps of the first stair of the noise on either side.", 1, 2 * MOST_STEPS, unit="steps")
    adjacency: str = "replace-one"
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "staircase noise")
        super().__post_init__()
        if self.ball.dimension != 1:
            raise ValueError(f"dimension must be 1 for staircase noise, got {self.ball.dimension}")
        if self.width > self.sensitivity:
            raise ValueError(f"width must be at most the sensitivity, {self.sensitivity}, got {self.width}")

    @property
    def sensitivity(self) -> int:
        """Steps by which a client moves the sum at most."""
        return RADII[self.adjacency] * self.steps

    @property
    def step_noise_variance(self) -> float:
        """Variance of the noise, in squared steps."""
        return staircase_variance(self.epsilon, self.sensitivity, self.width)

    @property
    def largest_coordinate(self) -> int:
        """Largest absolute value of a number in steps."""
        return self.steps

    def privacy(self) -> Privacy:
        """Return the privacy of any noise with this pure epsilon."""
        return pure_privacy(self.epsilon, "central", self.adjacency)

    def _rounded(self, vectors: FloatArray, random_words: WordSource) -> IntegerArray:
        # Rounding in floating point must not take a number out of the interval.
        return np.clip(dithered(vectors, random_words), -self.steps, self.steps)

    def _rounding_variance(self, vectors: FloatArray | None) -> FloatArray | float:
        return 0.25 if vectors is None else dithering_variance(vectors)

    def _noise(self, random_words: WordSource) -> IntegerArray:
        return np.array([sample_staircase(self.epsilon, self.sensitivity, self.width, random_words)])


def calibrate_central_staircase(
    ball: NormBall, clients: int, bits: int | None, epsilon: float, adjacency: str
) -> CentralStaircaseMechanism:
    """Return the mechanism with a pure epsilon of one sum; parameters are those of `calibrate_central_laplace`.

    Examples
    --------
    >>> mechanism = calibrate_central_staircase(NormBall(1, 1.0, 0.5), 10_000, None, 5.0, "replace-one")
    >>> mechanism.steps, round(mechanism.error().of_mean(10_000), 12)
    (262144, 2.97e-10)
    """

    def made(steps: int) -> CentralStaircaseMechanism:
        width = best_width(epsilon, RADII[adjacency] * steps)
        return CentralStaircaseMechanism(ball, clients, steps, epsilon, width, adjacency)

    steps = fewest_steps(lambda steps: clients / 4 <= ROUNDING_SHARE * made(steps).step_noise_variance)
    if bits is not None:
        steps = min(steps, (1 << (bits - 1)) - 1)
    if steps < 1:
        raise InfeasibleError(f"bits must be at least 2 for central-staircase, got {bits}")
    return made(steps)
