"""Secret samples of coordinates, to whose sum a trusted server adds discrete Gaussian noise.

The mechanism is the coordinate-subsampled Gaussian mechanism of Chen, Song, Özgür, Kairouz 2023, *Privacy amplification via compression:
achieving the optimal privacy-accuracy-communication trade-off in distributed mean estimation*, with a few bits for each coordinate.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_choice
from ...arrays import FloatArray, IntegerArray, WordArray
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_noise_multiplier
from ...solvers.accounting.renyi_curve import RenyiCurve, check_delta
from ...solvers.accounting.subsampled_coordinates import subsampled_coordinate_curve
from ...solvers.divergences.discrete_gaussian_divergence import smoothed_sums
from ..contracts.accounts import renyi_account
from ..contracts.calibration import calibrate_parameter
from ..contracts.error import VarianceParts
from ..contracts.gaussian import LARGEST_MULTIPLIER
from ..contracts.mechanism import MessageScore
from ..contracts.norm_ball import LARGEST_CLIP_NORM, NormBall, check_ball
from ..contracts.options import budgeted, check_parameters, parameter, parts
from ..contracts.privacy import Privacy
from ..contracts.task import Budget
from ..noise.discrete_gaussian import discrete_gaussian_variance, sample_discrete_gaussian
from ..noise.random_words import WordsLike, WordSource, word_source
from ..secure_sum.rounded_secure_sum import ROTATION_SEED
from ..transforms.rotation import Rotation, rotated_dimension, rotation_of
from ..transforms.vector_dithering import row_blocks
from .central_gaussian import FINE_SIGMA
from .central_noise import BALL, CLIENTS, KEY_WORDS, CentralNoise, dithered, dithering_variance

MOST_LEVELS = 127
SMALLEST_SHARE, LARGEST_SHARE = 1e-6, 0.99
# Largest absolute value of a sum in fine steps, without its noise.
LARGEST_SUM = 2**61
# Share by which floating-point rotation may change a squared norm.
ROTATION_ROUNDING = 1e-12


@dataclass(frozen=True)
class SubsampledGaussianMechanism(CentralNoise):
    """Clients send a few bits of a secret sample of coordinates; a trusted server adds discrete Gaussian noise.

    A client rotates its vector, clips each coordinate, and rounds it at random to a level. It sends each coordinate with the probability
    `coordinate_share`, independently. The server alone may know which: it derives the sample from a key that it shares with the client, so
    that messages need not name coordinates. Letters are levels, with one more letter for coordinates that are not sent. As `CentralNoise`
    describes, four random words per message are the key of the server's noise.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients.
    levels : int
        Number of levels above zero, from 1 to 127; as many are below zero.
    coordinate_share : float
        Probability that a client sends a coordinate, from 1e-6 to 0.99.
    coordinate_clip : float
        Largest absolute value of a rotated coordinate, which is the largest level.
    noise_multiplier : float
        Parameter of the noise of a coordinate of the estimated sum, over the clip norm.
    delta : float
        Failure probability of the guarantee.
    rotation_seed : int
        Public seed of the Fourier rotation.
    adjacency : str
        Adjacency of the guarantee, ``"add-or-remove-one"``.

    Examples
    --------
    >>> ball = NormBall(dimension=4096, norm=2.0)
    >>> mechanism = SubsampledGaussianMechanism(ball, 1000, 7, 0.125, coordinate_clip=0.0625, noise_multiplier=4.0, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 1.03199, delta = 1e-05, add-or-remove-one adjacency, central trust model
    >>> mechanism.bits_per_client / 4096
    0.5
    """

    ball: NormBall = parts(NormBall, **BALL)
    clients: int = parameter(**CLIENTS)
    levels: int = parameter("Number of levels above zero.", 1, MOST_LEVELS)
    coordinate_share: float = parameter("Probability that a client sends a coordinate.", SMALLEST_SHARE, LARGEST_SHARE)
    coordinate_clip: float = parameter(
        "Largest absolute value of a rotated coordinate.", 1 / LARGEST_CLIP_NORM, LARGEST_CLIP_NORM, unit="vectors' units"
    )
    noise_multiplier: float = parameter(
        "Parameter of the noise of the estimated sum over the clip norm.", SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER
    )
    delta: float = budgeted()
    rotation_seed: int = parameter(**ROTATION_SEED)
    adjacency: str = "add-or-remove-one"

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "subsampled Gaussian noise", 2)
        check_parameters(self)
        check_choice("adjacency", self.adjacency, ("add-or-remove-one",))
        object.__setattr__(self, "delta", check_delta(self.delta))
        if self.clients * self.levels * self._fineness > LARGEST_SUM:
            raise ValueError(f"noise_multiplier must be larger for {self.clients} clients, got {self.noise_multiplier:g}: take more noise")

    @property
    def padded_dimension(self) -> int:
        """Number of rotated coordinates."""
        return self._rotation.padded_dimension

    @property
    def granularity(self) -> float:
        """Distance of neighbouring levels, in the vectors' units."""
        return self.coordinate_clip / self.levels

    @property
    def largest_coordinate(self) -> int:
        """Number of the largest level."""
        return self.levels

    @property
    def bits_per_client(self) -> float:
        """Expected number of bits of the sampled coordinates' levels."""
        return self.coordinate_share * self.padded_dimension * self._letter_bits

    def bits_of_messages(self, messages: NDArray[np.uint64]) -> FloatArray:
        """Return the bits of each message's sampled coordinates."""
        return np.asarray(np.count_nonzero(messages[:, :-KEY_WORDS] != self._absent, axis=1) * float(self._letter_bits))

    @property
    def sigma(self) -> float:
        """Parameter of the noise, in fine steps."""
        return self._level_sigma * self._fineness

    @property
    def step_noise_variance(self) -> float:
        """Variance of the noise on a coordinate of the estimated sum, in squared distances of levels."""
        return discrete_gaussian_variance(self.sigma) / (self._fineness * self.coordinate_share) ** 2

    @property
    def bias_bound(self) -> float:
        """Upper bound on the bias from clipping coordinates, over the rotation's seed.

        With D the padded dimension and c the clip norm, a rotated coordinate exceeds v with a probability of at most ``2 exp(-D v**2 / (2
        c**2))``. So the expected squared loss is at most ``4 c**2 / k**2 exp(-k**2 / 2)``, with k the largest level times ``sqrt(D) / c``.
        """
        if self.coordinate_clip >= self.ball.clip_norm:
            return 0.0
        factor = self.coordinate_clip * math.sqrt(self.padded_dimension) / self.ball.clip_norm
        return self.ball.clip_norm * min(1.0, 2 / factor * math.exp(-(factor**2) / 4))

    @property
    def seed_bias_bound(self) -> float:
        """The clip norm, as clipping coordinates takes away no more than the vector."""
        return 0.0 if self.coordinate_clip >= self.ball.clip_norm else self.ball.clip_norm

    def known_bias(self, vectors: ArrayLike) -> FloatArray:
        """Return each rotated vector's loss by clipping coordinates, rotated back."""
        clipped = self.ball.clip(vectors)
        return self._rotation.inverse(self._in_levels(clipped) * self.granularity) - clipped

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance of sampling and rounding, and of a client's share of the noise, over the ball."""
        return float(self._sampled(self.ball.clip_norm**2, self._rounding_variance(None))) + self.granularity**2 * self._share

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of sampling and rounding each vector, with a client's share of the noise.

        Rotating back drops the padding's part of the variance, on average over the seed.
        """
        rotated = self._in_levels(self.ball.clip(self.ball.check(vectors)))
        squares = (rotated**2).sum(axis=1) * self.granularity**2
        kept = self.ball.dimension / self.padded_dimension
        return kept * self._sampled(squares, dithering_variance(rotated)) + self.granularity**2 * self._share

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by sampled coordinates, rounding, and a client's share of the noise."""
        rotated = self._in_levels(self.ball.clip(self.ball.check(vectors)))
        compression = self.ball.dimension / self.padded_dimension * self._sampled((rotated**2).sum(axis=1) * self.granularity**2, 0.0)
        variance = self.variance(vectors)
        rounding = variance - compression - self.granularity**2 * self._share
        return VarianceParts.split(variance, compression=compression, rounding=np.maximum(rounding, 0.0))

    def privacy(self) -> Privacy:
        """Return the privacy of one noisy sum, by the Rényi divergences of independently sampled coordinates."""
        smoothed = smoothed_sums(1, self.sigma)[-1]

        def curve() -> RenyiCurve:
            return subsampled_coordinate_curve(
                smoothed.sigma / (self._fineness * self.levels),
                self.levels,
                self.coordinate_share,
                (self.ball.clip_norm / self.coordinate_clip) ** 2 * (1 + ROTATION_ROUNDING),
                self.padded_dimension,
                smoothed.log_ratio,
            )

        return Privacy("central", (renyi_account(curve, self.adjacency),))

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> WordArray:
        """Return the letters of sampled coordinates, and random words for the server's key."""
        array, random_words = self.ball.check(vectors), word_source(random_words)
        messages = np.empty((len(array), self.padded_dimension + KEY_WORDS), dtype=np.uint64)
        for rows in row_blocks(len(array), self.padded_dimension):
            letters = self._rounded(self._in_levels(self.ball.clip(array[rows])), random_words) + self.levels
            sent = random_words.uniforms(letters.shape) < self.coordinate_share
            messages[rows, :-KEY_WORDS] = np.where(sent, letters, self._absent).astype(np.uint64)
        messages[:, -KEY_WORDS:] = random_words(len(array) * KEY_WORDS).reshape(-1, KEY_WORDS)
        return messages

    def aggregate(self, messages: NDArray[np.uint64]) -> WordArray:
        """Return the sum of the messages modulo 2**64, coordinates that were not sent counting as zero."""
        letters = np.asarray(messages, dtype=np.uint64).copy()
        levels = letters[:, :-KEY_WORDS]
        levels[levels == self._absent] = self.levels
        return super().aggregate(letters)

    def noisy_steps(self, aggregate: NDArray[np.uint64], clients: int) -> IntegerArray:
        """Return the sum of some clients' levels in fine steps, with the server's noise."""
        return self._noisy_sum(aggregate, clients, self.padded_dimension, self._fineness)

    def decode(self, aggregate: NDArray[np.uint64], clients: int) -> FloatArray:
        """Return the noisy mean of the vectors, whose noise the summed words determine."""
        self._check_clients(clients)
        scale = self.granularity / (self._fineness * self.coordinate_share * clients)
        return self._rotation.inverse(self.noisy_steps(aggregate, clients) * scale)

    def message_score(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> MessageScore:
        """Return the projection of the noisy sum on the inputs' difference, rotated."""
        difference = self.ball.clip(first).sum(axis=0) - self.ball.clip(second).sum(axis=0)
        direction = self._rotation.forward(difference)

        def scores(messages: NDArray[np.uint64]) -> FloatArray:
            return np.array([float(self.noisy_steps(self.aggregate(every), len(every)) @ direction) for every in messages])

        return scores

    @cached_property
    def _rotation(self) -> Rotation:
        return rotation_of("fourier", self.ball.dimension, self.rotation_seed)

    @property
    def _letter_bits(self) -> int:
        return (2 * self.levels).bit_length()

    @property
    def _absent(self) -> int:
        """Letter of a coordinate that is not sent."""
        return 2 * self.levels + 1

    @property
    def _level_sigma(self) -> float:
        """Parameter of the noise of the sum of sampled levels."""
        return self.noise_multiplier * self.coordinate_share * self.ball.clip_norm / self.granularity

    @property
    def _fineness(self) -> int:
        """Number of fine steps between neighbouring levels, with which the noise is Gaussian up to rounding."""
        return 1 << max(0, math.ceil(math.log2(FINE_SIGMA / self._level_sigma)))

    def _sampled(self, squares: FloatArray | float, rounding: FloatArray | float) -> FloatArray:
        """Return the variance of sampling vectors of these squared norms, with a rounding variance in squared levels."""
        return np.asarray(squares * (1 / self.coordinate_share - 1) + rounding * self.granularity**2 / self.coordinate_share)

    def _in_levels(self, vectors: FloatArray) -> FloatArray:
        rotated = self._rotation.forward(vectors) / self.granularity
        return np.clip(rotated, -self.levels, self.levels)

    def _rounded(self, vectors: FloatArray, random_words: WordSource) -> IntegerArray:
        return dithered(vectors, random_words)

    def _rounding_variance(self, vectors: FloatArray | None) -> FloatArray | float:
        if vectors is None:
            # A coordinate of x levels has at most the variances 1/4 and |x|.
            return min(self.padded_dimension / 4, math.sqrt(self.padded_dimension) * self.ball.clip_norm / self.granularity)
        return dithering_variance(vectors)

    def _noise(self, random_words: WordSource) -> IntegerArray:
        return sample_discrete_gaussian(self.sigma, self.padded_dimension, random_words)


def calibrate_subsampled_gaussian(
    ball: NormBall, clients: int, bits: int, coordinate_share: float, clip_factor: float, budget: Budget, rotation_seed: int = 0
) -> SubsampledGaussianMechanism:
    """Return the mechanism with the least noise that keeps a budget.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients.
    bits : int
        Bits of a coordinate that is sent, from 2: its letters are an odd number of levels.
    coordinate_share : float
        Probability that a client sends a coordinate.
    clip_factor : float
        Largest level over the root of a rotated coordinate's mean square, for a longest vector.
    budget : Budget
        Budget of all rounds, for add-or-remove-one adjacency.
    rotation_seed : int
        Public seed of the rotation.

    Examples
    --------
    >>> budget = Budget(1.0, 1e-5, "add-or-remove-one")
    >>> mechanism = calibrate_subsampled_gaussian(NormBall(4096, 2.0), 1000, 4, 0.125, 4.0, budget)
    >>> round(mechanism.noise_multiplier, 2), round(mechanism.coordinate_clip, 4)
    (4.12, 0.0625)
    """
    if budget.adjacency != "add-or-remove-one":
        raise InfeasibleError(f"adjacency must be add-or-remove-one for subsampled-gaussian, got {budget.adjacency}")
    padded = rotated_dimension("fourier", ball.dimension)
    clip = ball.clip_norm * min(1.0, clip_factor / math.sqrt(padded))

    def made(multiplier: float) -> SubsampledGaussianMechanism:
        return SubsampledGaussianMechanism(
            ball, clients, (1 << (bits - 1)) - 1, coordinate_share, clip, multiplier, budget.delta, rotation_seed
        )

    def epsilon_of(inverse: float) -> float:
        return made(1 / inverse).privacy().epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, budget.method)

    guess = gaussian_noise_multiplier(
        min(max(budget.epsilon / math.sqrt(budget.rounds), 1e-3), 100.0), min(max(budget.delta, SMALLEST_DELTA), LARGEST_DELTA)
    )
    # Fewer fine steps than the largest sum has room for bound the noise from below.
    least = max(SMALLEST_MULTIPLIER, clients * 2 * FINE_SIGMA * clip / (LARGEST_SUM * coordinate_share * ball.clip_norm))
    low, high = (1 + 1e-12) / LARGEST_MULTIPLIER, (1 - 1e-12) / least
    inverse = calibrate_parameter(
        epsilon_of, budget, low=low, high=high, name="noise_multiplier", start=0.95 / guess, shown=lambda inverse: 1 / inverse
    )
    return made(1 / inverse)
