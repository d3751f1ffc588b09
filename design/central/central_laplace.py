"""Discrete Laplace noise that a trusted server adds to the sum of rounded vectors, or to a histogram.

The reference for pure privacy.
"""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntegerArray
from ...errors import InfeasibleError
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import Declared, parameter, parts
from ..contracts.privacy import Privacy
from ..noise.discrete_laplace import LARGEST_SCALE, LEAST_SCALE, discrete_laplace_variance, sample_discrete_laplace
from ..noise.discrete_laplace_privacy import RADII, discrete_laplace_privacy
from ..noise.random_words import WordSource
from ..transforms.l1_rounding import MOST_STEPS, largest_rounding_variance, rounded_within, rounding_variance
from .central_noise import BALL, CLIENTS, ROUNDING_SHARE, STEPS, CentralNoise, fewest_steps

SCALE: Declared = {"help": "Scale of the discrete Laplace noise.", "low": LEAST_SCALE, "high": LARGEST_SCALE, "unit": "steps"}


@dataclass(frozen=True)
class CentralLaplaceMechanism(CentralNoise):
    """A trusted server adds discrete Laplace noise to the sum of vectors of the L1 ball.

    Vectors are rounded without raising the bound on their L1 norm (`l1_rounding`). `CentralNoise` describes messages and the other fields.

    Attributes
    ----------
    scale : float
        Scale of the noise, in steps, from 1e-6 to 10**12. Epsilon is the L1 sensitivity over it: `steps`, or twice that for
        ``"replace-one"`` adjacency.

    Examples
    --------
    >>> mechanism = CentralLaplaceMechanism(NormBall(dimension=3, norm=1.0), clients=1000, steps=1000, scale=2000.0)
    >>> print(mechanism.guarantee)
    epsilon = 1, replace-one adjacency, central trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.4], (1000, 1)), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    [0.6, -0.0, -0.4]
    """

    ball: NormBall = parts(NormBall, **BALL, norm={"default": "1"})
    clients: int = parameter(**CLIENTS)
    steps: int = parameter(**STEPS)
    scale: float = parameter(**SCALE)
    adjacency: str = "replace-one"
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "discrete Laplace noise", 1)
        super().__post_init__()

    @property
    def step_noise_variance(self) -> float:
        """Variance of the noise on a coordinate, in squared steps."""
        return discrete_laplace_variance(self.scale)

    @property
    def largest_coordinate(self) -> int:
        """Largest absolute value of a coordinate."""
        return self.steps

    def privacy(self) -> Privacy:
        """Return the privacy of one sum (`discrete_laplace_privacy`)."""
        return discrete_laplace_privacy(self.steps, self.scale, self.adjacency, dimension=self.ball.dimension)

    def _rounded(self, vectors: FloatArray, random_words: WordSource) -> IntegerArray:
        return rounded_within(vectors, self.steps, random_words)

    def _rounding_variance(self, vectors: FloatArray | None) -> FloatArray | float:
        return largest_rounding_variance(self.ball.dimension, self.steps) if vectors is None else rounding_variance(vectors)

    def _noise(self, random_words: WordSource) -> IntegerArray:
        return sample_discrete_laplace(self.scale, self.ball.dimension, random_words)


def calibrate_central_laplace(
    ball: NormBall, clients: int, bits: int | None, epsilon: float, adjacency: str, *, items: bool = False
) -> CentralLaplaceMechanism:
    """Return the mechanism with a pure epsilon of one sum.

    Parameters are those of `calibrate_central_gaussian`, with the epsilon of one sum.

    Examples
    --------
    >>> mechanism = calibrate_central_laplace(NormBall(1, 1.0, 0.5), 10_000, None, 1.0, "replace-one")
    >>> mechanism.steps, round(mechanism.error().of_mean(10_000), 11)
    (32768, 2e-08)
    """

    def made(steps: int) -> CentralLaplaceMechanism:
        # The factor exceeds the rounding that `polya_epsilon` adds.
        scale = max(LEAST_SCALE, RADII[adjacency] * steps / epsilon * (1 + 16 * np.finfo(float).eps))
        return CentralLaplaceMechanism(ball, clients, steps, scale, adjacency)

    def is_fine(steps: int) -> bool:
        rounding = clients * largest_rounding_variance(ball.dimension, steps)
        return rounding <= ROUNDING_SHARE * ball.dimension * made(steps).step_noise_variance

    # A scale of 10**12 steps is the coarsest that is sampled.
    steps = 1 if items else min(fewest_steps(is_fine, MOST_STEPS), max(1, int(LARGEST_SCALE / 2 * epsilon / RADII[adjacency])))
    if bits is not None:
        steps = min(steps, (1 << (bits - 1)) - 1)
    if steps < 1:
        raise InfeasibleError(f"bits must be at least 2 for central-laplace, got {bits}")
    return made(steps)
