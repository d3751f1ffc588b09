"""Mechanisms only of trainings: floats, scalar quantisation, central noise, and noisy signs."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.accounts import pure_account
from ...design.contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy, l2_radius
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.mechanism import VectorMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Privacy
from ...design.contracts.real_numbers import RealNumberMechanism
from ...design.federated.adaptive_clipping import adaptive_clipping_privacy
from ...design.noise.random_words import WordsLike, WordSource, word_source
from ...design.transforms.vector_dithering import row_blocks
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER

# Rounding to float32 may lengthen a vector by a relative 2**-24.
FLOAT_MARGIN = 1 - 2.0**-20
FLOAT_BITS, MOST_LEVEL_BITS = 32, 16
# Names of the value of the outermost levels: a client's largest coordinate, or the public clip norm.
LARGEST, CLIP_NORM = "largest-coordinate", "clip-norm"
REACHES = (LARGEST, CLIP_NORM)


def nothing_private() -> Privacy:
    """Return a privacy report without any guarantee, for either adjacency."""
    return Privacy("local", tuple(pure_account(math.inf, adjacency) for adjacency in ADJACENCIES))


class SummedVectors(VectorMechanism):
    """Mechanisms whose aggregate is a sum of vectors."""

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the messages, shape (dimension,)."""
        return np.asarray(messages.sum(axis=0, dtype=float))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the mean."""
        return np.asarray(aggregate / check_integer("clients", clients, low=1, high=MOST_CLIENTS))


@dataclass(frozen=True)
class FloatMechanism(SummedVectors):
    """Mechanism that sends vectors as floats of 32 or 64 bits, without clipping or privacy."""

    ball: NormBall
    bits: int = 32
    delta = 0.0
    clips = False

    @property
    def bits_per_client(self) -> float:
        """Bits of all coordinates."""
        return float(self.bits * self.ball.dimension)

    @property
    def variance_bound(self) -> float:
        """Worst variance, 0.0: rounding errors are not counted."""
        return 0.0

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:  # noqa: ARG002 - nothing is random
        """Round to floats."""
        return self.ball.check(vectors).astype(f"f{self.bits // 8}")

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return zeros."""
        return np.zeros(len(self.ball.check(vectors)))

    def privacy(self) -> Privacy:
        """Return a report without any guarantee."""
        return nothing_private()


@dataclass(frozen=True)
class QuantisedMechanism(SummedVectors):
    """Mechanism that rounds coordinates at random, without bias, to 2**bits levels.

    The levels reach up to each client's largest coordinate; the mechanism is not private.
    """

    ball: NormBall
    bits: int = 8
    delta = 0.0
    clips = False

    @property
    def bits_per_client(self) -> float:
        """Number of bits of all coordinates, and of the largest coordinate as a float32."""
        return float(self.bits * self.ball.dimension + 32)

    @property
    def variance_bound(self) -> float:
        """Variance of a vector with a coordinate at the clip norm and the others between levels.

        The clip norm is not enforced.
        """
        return float(self.ball.dimension * (self.ball.clip_norm / (2**self.bits - 1)) ** 2)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return for each client the largest coordinate, and a level for each."""
        array = self.ball.check(vectors)
        largest = np.nextafter(np.abs(array).max(axis=1).astype(np.float32), np.float32(np.inf)).astype(float)
        places = (array / largest[:, None] + 1) * ((2**self.bits - 1) / 2)
        levels = np.floor(places + word_source(random_words).uniforms(array.shape))
        return np.column_stack([largest, np.clip(levels, 0, 2**self.bits - 1)]).astype(np.float32)

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the vectors that the messages encode, shape (dimension,)."""
        received = messages.astype(float)
        return np.asarray(received[:, 0] @ (received[:, 1:] * (2 / (2**self.bits - 1)) - 1))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of the rounding for each vector."""
        array = self.ball.check(vectors)
        largest = np.abs(array).max(axis=1)
        scale = np.where(largest > 0, largest, 1.0)
        places = (array / scale[:, None] + 1) * ((2**self.bits - 1) / 2)
        share = places - np.floor(places)
        return np.asarray((share * (1 - share)).sum(axis=1) * (2 * largest / (2**self.bits - 1)) ** 2)

    def privacy(self) -> Privacy:
        """Return a report without any guarantee."""
        return nothing_private()


def rounded_within(vectors: FloatArray, reach: FloatArray, bits: int, norm: float, random_words: WordsLike) -> FloatArray:
    """Round vectors to a few levels without bias, and shorten them to an L2 norm if needed.

    A client sends a level of -(2**(bits - 1) - 1) to 2**(bits - 1) - 1 for each coordinate, and the size of a level as a float32. The size
    first matches the reach, and is then lowered until the whole vector is within the norm, at the point of the ball nearest to the rounded
    vector. The norm holds for the numbers as floats.

    Parameters
    ----------
    vectors : ndarray of float64, shape (clients, dimension)
        Vectors of at most that norm.
    reach : ndarray of float64, shape (clients,)
        Value of the outermost level, at least the largest coordinate.
    bits : int
        Number of bits of a level, at least 2.
    norm : float
        Largest norm of the encoded vector.
    random_words
        Source of the rounding's random words.
    """
    levels = 2 ** (bits - 1) - 1
    unit = np.nextafter((reach / levels).astype(np.float32), np.float32(np.inf)).astype(float)
    places = np.floor(vectors / unit[:, None] + word_source(random_words).uniforms(vectors.shape))
    np.clip(places, -levels, levels, out=places)
    lengths = np.linalg.norm(places, axis=1)
    longest = norm * FLOAT_MARGIN / np.where(lengths > 0, lengths, 1.0)
    return np.asarray(np.minimum(unit, longest).astype(np.float32).astype(float)[:, None] * places)


def _as_sent(clipped: FloatArray) -> FloatArray:
    """Round vectors to floats of 32 bits within the clip norm, in place, and return them."""
    clipped *= FLOAT_MARGIN
    clipped[:] = clipped.astype(np.float32)
    return clipped


@dataclass(frozen=True)
class CentralGaussianMechanism(RealNumberMechanism, SummedVectors):
    """Mechanism of DP-FedAvg: a trusted server adds Gaussian noise to the clipped sum.

    Messages are floats of 32 bits, or levels of fewer bits (`rounded_within`): the 8-bit baseline of Triastcyn, Reisser, Louizos 2021,
    *DP-REC*, appendix D.3. In both cases the server adds up vectors within the clip norm, on which alone the guarantee rests.

    Simulations add the noise with the messages: k messages have a share k / clients of its variance.

    Attributes
    ----------
    ball : NormBall
        Ball of the vectors.
    clients : int
        Number of clients to which the size of the noise applies.
    noise_multiplier : float
        Standard deviation of the sum's noise over its L2 sensitivity for the adjacency, which is a clip norm, or two for ``"replace-one"``.
    delta : float
        Failure probability that `guarantee` is stated at.
    adjacency : str
        Adjacency of the guarantee.
    count_deviation : float or None
        Standard deviation of the noise in the count of short vectors that the server also releases, for adaptive clipping.
    bits : int
        Number of bits of a coordinate: 32 for floats, or 2 to 16 for levels.
    reach : str
        Value of the outermost levels: ``"largest-coordinate"`` of each vector, or the public ``"clip-norm"``.
    """

    ball: NormBall
    clients: int
    noise_multiplier: float
    delta: float
    adjacency: str = "add-or-remove-one"
    count_deviation: float | None = None
    bits: int = FLOAT_BITS
    reach: str = LARGEST

    def __post_init__(self) -> None:
        """Check the fields."""
        check_integer("clients", self.clients, low=1, high=MOST_CLIENTS)
        check_real("noise_multiplier", self.noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("reach", self.reach, REACHES)
        check_integer("bits", self.bits, low=2, high=FLOAT_BITS)
        if MOST_LEVEL_BITS < self.bits < FLOAT_BITS:
            raise ValueError(f"bits must be {FLOAT_BITS}, or from 2 to {MOST_LEVEL_BITS}, for dp-fedavg, got {self.bits!r}")

    @property
    def joint_clients(self) -> int:
        """The number of clients, as the server releases only the noisy sum."""
        return self.clients

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for other numbers of clients with the same noise on their sum."""
        return replace(self, clients=clients)

    @property
    def _has_levels(self) -> bool:
        return self.bits < FLOAT_BITS

    @property
    def bits_per_client(self) -> float:
        """Number of bits of all coordinates, and of the size of levels as a float32, if any."""
        return float(self.bits * self.ball.dimension + (FLOAT_BITS if self._has_levels else 0))

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of a coordinate of the sum's noise."""
        return self.noise_multiplier * l2_radius(self.ball) * (2 if self.adjacency == "replace-one" else 1)

    @property
    def bias_bound(self) -> float:
        """Bound on the bias: 0.0 for floats, the root of the largest rounding variance for levels.

        Rounding has no bias. Shortening takes a vector q, rounded from x, to the nearest point of the ball, which is no farther from x.
        """
        return math.sqrt(self._worst_rounding)

    @property
    def variance_bound(self) -> float:
        """Variance of the noise for `clients` messages, plus an upper bound for their rounding."""
        return self._noise_variance + self._worst_rounding

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Return the messages as the server reads them; the first message has the chunk's noise."""
        clipped, source = self.ball.clip(vectors), self.checked_words(random_words)
        if self._has_levels and len(clipped):
            sent = rounded_within(clipped, self._reaches(clipped), self.bits, l2_radius(self.ball), source)
        else:
            sent = _as_sent(clipped)
        if len(sent):
            sent[0] += self._noise(len(sent), source)
        return sent

    def aggregated(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray | None:
        """Return the noisy sum of floats; None for levels, and without clients.

        Blocks of rows stay in the processor's cache.
        """
        array, source = np.asanyarray(vectors), self.checked_words(random_words)
        if self._has_levels or not array.size:
            return None
        total = np.zeros(self.ball.dimension)
        for rows in row_blocks(len(array), self.ball.dimension):
            part = np.empty((len(array[rows]) + 1, self.ball.dimension))
            _as_sent(self.ball.clip(array[rows], out=part[1:]))
            if rows.start == 0:
                part[1] += self._noise(len(array), source)
            # The sum so far is a row, so that numbers are added in the order in which `aggregate` adds them.
            part[0] = total
            total = part.sum(axis=0)
        return total

    def _noise(self, messages: int, source: WordSource) -> FloatArray:
        """Draw the share of the noise that some messages have."""
        return self.noise_deviation * math.sqrt(messages / self.clients) * source.normals(self.ball.dimension)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the noise's variance for each vector, plus a bound on its rounding variance.

        Shortening moves no rounded vector farther away.
        """
        clipped = self.ball.clip(vectors)
        if not self._has_levels:
            return np.full(len(clipped), self._noise_variance)
        unit = self._reaches(clipped) / self._levels
        places = clipped / np.where(unit > 0, unit, 1.0)[:, None]
        share = places - np.floor(places)
        return np.asarray(self._noise_variance + (share * (1 - share)).sum(axis=1) * unit**2)

    def _reaches(self, clipped: FloatArray) -> FloatArray:
        return np.full(len(clipped), self.ball.clip_norm) if self.reach == CLIP_NORM else np.abs(clipped).max(axis=1)

    @property
    def _levels(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def _noise_variance(self) -> float:
        return self.ball.dimension * self.noise_deviation**2 / self.clients

    @property
    def _worst_rounding(self) -> float:
        """Return a bound on the rounding's variance.

        The bound is the square of half a level for each coordinate, with the clip norm as the largest coordinate.
        """
        return self.ball.dimension * (self.ball.clip_norm / self._levels) ** 2 / 4 if self._has_levels else 0.0

    def privacy(self) -> Privacy:
        """Return the account of Gaussian noise on the sum, and on the count."""
        if self.count_deviation is None:
            return self.stated(gaussian_privacy(self.noise_multiplier, self.adjacency, "central"))
        return self.stated(adaptive_clipping_privacy(self.noise_multiplier, self.count_deviation, self.adjacency))


@dataclass(frozen=True)
class SignGaussianMechanism(VectorMechanism):
    """Mechanism of noisy signs: signs of clipped vectors plus Gaussian noise in each coordinate.

    The source is Jin et al. 2020, *Stochastic-sign SGD*. The mean of the signs is scaled to be nearly without bias for coordinates far
    below the noise; estimates of larger coordinates are too small.

    Attributes
    ----------
    ball : NormBall
        Ball of the vectors.
    noise_multiplier : float
        Standard deviation of the noise over the L2 distance of two vectors.
    delta : float
        Failure probability that `guarantee` is stated at.
    """

    ball: NormBall
    noise_multiplier: float
    delta: float

    def __post_init__(self) -> None:
        """Check the noise."""
        check_real("noise_multiplier", self.noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, one bit for each coordinate."""
        return float(self.ball.dimension)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on each coordinate, in the vectors' units."""
        return 2 * self.noise_multiplier * l2_radius(self.ball)

    @property
    def unit(self) -> float:
        """Factor from signs to the vectors' units: E[sign(x + noise)] is about x divided by it."""
        return self.deviation * math.sqrt(math.pi / 2)

    @property
    def bias_bound(self) -> float:
        """Bias of a vector on an axis, whose bias is the largest."""
        radius = l2_radius(self.ball)
        return radius - self.unit * math.erf(radius / (self.deviation * math.sqrt(2)))

    @property
    def variance_bound(self) -> float:
        """Variance of the zero vector: ``dimension unit**2``."""
        return self.ball.dimension * self.unit**2

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:
        """Return 1 for a positive sum of coordinate and noise, else 0."""
        noisy = word_source(random_words).normals((len(clipped := self.ball.clip(vectors)), self.ball.dimension))
        noisy *= self.deviation
        noisy += clipped
        return (noisy > 0).astype(np.uint8)

    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return the positive signs minus the negative signs, shape (dimension,)."""
        return np.asarray(2 * messages.sum(axis=0, dtype=np.int64) - len(messages))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the mean sign, in the vectors' units."""
        return np.asarray(aggregate * (self.unit / check_integer("clients", clients, low=1, high=MOST_CLIENTS)))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``unit**2`` times the variances of the signs, for each vector."""
        means = scipy.special.erf(self.ball.clip(vectors) / (self.deviation * math.sqrt(2)))
        return np.asarray(self.unit**2 * (1 - means**2).sum(axis=1))

    def privacy(self) -> Privacy:
        """Return the privacy of the noisy vector, which determines the signs."""
        return gaussian_privacy(self.noise_multiplier)
