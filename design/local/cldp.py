"""CLDP: mechanisms for numbers in one bit, and for vectors in an index and one bit.

The mechanisms for vectors serve L1, L2 and L-infinity balls.

Girgis, Data, Diggavi, Kairouz, Suresh 2021, *Shuffled model of differential privacy in federated learning*. All three mechanisms for
vectors send, by randomised response, the sign of one number about the vector, and the number's index: a coordinate, or for L1 an entry of
the Walsh-Hadamard transform. On the L2 ball the number is a coordinate of a private vector, and a client may send several coordinates.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_interval, check_real
from ...arrays import FloatArray
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.numerics.walsh_hadamard import hadamard_entries, padded_dimension, walsh_hadamard
from ..contracts.accounts import pure_privacy
from ..contracts.error import VarianceParts
from ..contracts.mechanism import ScalarMechanism, VectorMechanism, check_vector_epsilon
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..deployment.client_program import ClientProgram, fields_below, probability_word
from ..deployment.clients.signs import sign_of_coordinate, sign_of_direction, sign_of_number, sign_of_transform, signs_of_point
from ..noise.random_words import WordsLike, WordSource, word_source
from ..transforms.dithering import finite_values
from .message_checks import checked_messages
from .unit_vectors.random_direction import random_directions
from .unit_vectors.shared_normals import normal_quantiles

# Largest number of signs of the Hadamard matrix in memory.
CHUNK = 2**22
# Largest dimension for Gamma functions, which overflow in larger dimensions.
LARGEST_DIRECT_DIMENSION = 300


@dataclass(frozen=True)
class CLDPMechanism(ScalarMechanism):
    """Every client sends one bit, which is 1 with a probability linear in its value (CLDP).

    With t the value on the scale of [-1, 1] and C = (e^epsilon - 1) / (e^epsilon + 1), the bit is 1 with probability (1 + C t) / 2 and
    decodes to +1/C or -1/C. The one-bit MVU table has the same letters and, at its grid points, the same probabilities.

    The mechanism suits releases with ``secure_words``, up to rounding: every probability is right to within 2**-51, which adds less than
    1e-6 to epsilon, even at 20. The one-bit MVU table, whose probabilities are whole numbers, is exact.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    interval : tuple of float
        Public interval (low, high) of the values.

    Examples
    --------
    >>> mechanism = CLDPMechanism(1.0, (-1.0, 1.0))
    >>> [round(float(variance), 4) for variance in mechanism.variance([-1.0, 0.0, 0.5])]
    [3.6827, 4.6827, 4.4327]
    """

    epsilon: float
    interval: tuple[float, float] = (0.0, 1.0)
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "interval", check_interval("interval", self.interval))

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, which is one."""
        return 1.0

    def privacy(self) -> Privacy:
        """Return the pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the middle of the interval."""
        return (self._half_width / self._contrast) ** 2

    def encode(self, values: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:
        """Draw one bit per value, 0 or 1."""
        random_words = word_source(random_words)
        signed = self._signed(values)
        return (random_words.uniforms(signed.shape) < 0.5 + 0.5 * self._contrast * signed).astype(np.uint8)

    def client_program(self) -> ClientProgram:
        """Return the program: round to an end of the interval, and perhaps tell the other end."""
        low, high = self.interval
        flip = flip_word(self.epsilon)
        constants = {"low": low, "high": high, "width": high - low, "flip": flip}
        return ClientProgram(sign_of_number, constants, 1, likelihood_ratio=flip_ratio(flip), epsilon=self.epsilon)

    def standard_error(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the standard error from the share of bits that are 1."""
        share = int(aggregate[0]) / clients
        return 2 * self._half_width / self._contrast * math.sqrt(share * (1 - share) / max(1, clients - 1))

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of bits that are 1, shape (1,)."""
        return np.array([np.count_nonzero(messages)], dtype=np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the average of the bits' letters, which may lie outside the interval."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        low, high = self.interval
        return low + (high - low) / 2 + self._half_width * (2 * int(aggregate[0]) / clients - 1) / self._contrast

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of each value, ``half_width**2 (1 / C**2 - t**2)``."""
        return np.asarray(self._half_width**2 * (self._contrast**-2 - self._signed(values) ** 2))

    def variance_parts(self, values: ArrayLike) -> VarianceParts:
        """Return the variance by rounding to an end of the interval, ``half_width**2 (1 - t**2)``, and the flip of the bit."""
        return VarianceParts.split(self.variance(values), rounding=self._half_width**2 * (1 - self._signed(values) ** 2))

    @property
    def _half_width(self) -> float:
        low, high = self.interval
        return (high - low) / 2

    @property
    def _contrast(self) -> float:
        return math.tanh(self.epsilon / 2)

    def _signed(self, values: ArrayLike) -> FloatArray:
        low, high = self.interval
        return np.clip((finite_values("values", values) - low) / (high - low) * 2 - 1, -1.0, 1.0)


def flip_word(epsilon: float) -> int:
    """Return the word below which a deployed client flips its bit, with probability 1 / (exp(epsilon) + 1), rounded up."""
    return probability_word(lambda odds: 1 / (odds + 1), epsilon, up=True)


def flip_ratio(flip: int) -> Fraction:
    """Return the ratio of the probabilities that a bit is kept and that it is flipped."""
    return Fraction(2**64 - flip, flip)


@dataclass(frozen=True)
class SampledSignMechanism(VectorMechanism):
    """Every client sends a random index, and a bit for the sign of its vector at the index.

    CLDP's mechanisms for vectors share this base. The number t, between -1 and 1 in units of the clip norm, becomes the bit 1 with
    probability (1 + t) / 2, which is then flipped with probability 1 / (e^realised_epsilon + 1). The message is 2 * index + bit.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        Ball of the vectors; its norm must be the mechanism's `norm`.
    """

    epsilon: float
    ball: NormBall
    delta = 0.0
    # Number of draws in a message, each an index and a bit.
    draws = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        check_ball(self.ball, type(self).__name__, self.norm)

    @property
    @abstractmethod
    def norm(self) -> float:
        """Norm p of the mechanism's balls."""

    @property
    def indices(self) -> int:
        """Number of indices to draw from."""
        return self.ball.dimension

    @property
    def realised_epsilon(self) -> float:
        """Largest log-ratio of a message's probabilities for two vectors; at most epsilon.

        The two ends of an axis attain the ratio.
        """
        return self.epsilon

    @property
    def bits_per_client(self) -> float:
        """Number of bits of an index and a bit, ``ceil(log2(2 * indices))``, for each draw.

        The mechanism needs no shared randomness.
        """
        return float(self.draws * index_bits(self.indices))

    def privacy(self) -> Privacy:
        """Return the pure local privacy of `realised_epsilon`.

        The account is exact for L1 and L-infinity, where two vectors can differ fully at every index.
        """
        return pure_privacy(self.realised_epsilon)

    @property
    @abstractmethod
    def message_norm(self) -> float:
        """L2 norm of a decoded draw, the same for all draws, in the vectors' units."""

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre: ``message_norm**2``."""
        return self.message_norm**2

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.int64]:
        """Return a random message per vector, from 0 to ``2 * indices - 1``."""
        random_words = word_source(random_words)
        clipped = self.ball.clip(vectors)
        clients = len(clipped)
        indices = random_words.integers(self.indices, clients)
        bits = random_words.uniforms(clients) < (1 + self._numbers(clipped, indices) / self.ball.clip_norm) / 2
        # A uniform number of 53 bits falls below a probability at least as often as that probability states.
        flips = random_words.uniforms(clients) < 1 / (math.exp(self.realised_epsilon) + 1)
        return 2 * indices + (bits ^ flips)

    def client_program(self) -> ClientProgram:
        """Return the program: an index, and the sign there, which is perhaps flipped."""
        flip = flip_word(self.realised_epsilon)
        client, constants = self._client()
        return ClientProgram(
            client,
            {"dimension": self.ball.dimension, "clip_norm": self.ball.clip_norm, **constants, "flip": flip},
            index_bits(self.indices),
            valid=fields_below(2 * self.indices),
            likelihood_ratio=flip_ratio(flip),
            epsilon=self.realised_epsilon,
        )

    @abstractmethod
    def _client(self) -> tuple[Callable[..., None], dict[str, int]]:
        """Return the deployed client and its constants beside those that all have."""

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the histogram of all draws: counts of each index with bits 0 and 1.

        The array's shape is (indices, 2).
        """
        array = checked_messages(messages, 0, 2 * self.indices - 1, dimension=None if self.draws == 1 else self.draws)
        histogram = np.bincount(array.ravel().astype(np.intp), minlength=2 * self.indices).astype(np.int64)
        return histogram.reshape(self.indices, 2)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded messages, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        total = int(aggregate.sum())
        if total != self.draws * clients:
            raise ValueError(f"clients must be the number of messages in the histogram, {total / self.draws:g}, got {clients!r}")
        return self._combination(aggregate[:, 1] - aggregate[:, 0]) / total

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the exact variance of each vector, ``variance_bound - ||x||**2``."""
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def _contrast(self) -> float:
        """Difference of the probabilities that a bit is kept and that it is flipped."""
        return math.tanh(self.realised_epsilon / 2)

    @abstractmethod
    def _numbers(self, vectors: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
        """Return the number of each vector at its index, at most the clip norm in size."""

    @abstractmethod
    def _combination(self, signed: NDArray[np.int64]) -> FloatArray:
        """Return the sum of the decoded messages from each index's excess of ones over zeros."""


@dataclass(frozen=True)
class CLDPLinfMechanism(SampledSignMechanism):
    """Every client sends a coordinate's index and its sign's bit (CLDP for L-infinity balls).

    Examples
    --------
    >>> mechanism = CLDPLinfMechanism(5.0, NormBall(dimension=128, norm=math.inf))
    >>> mechanism.bits_per_client, round(mechanism.variance_bound, 1)
    (8.0, 16831.6)
    """

    @property
    def norm(self) -> float:
        """The L-infinity norm."""
        return math.inf

    @property
    def message_norm(self) -> float:
        """L2 norm of a decoded draw, ``dimension * clip_norm / tanh(realised_epsilon / 2)``."""
        return self.ball.dimension * self.ball.clip_norm / self._contrast

    def _client(self) -> tuple[Callable[..., None], dict[str, int]]:
        return sign_of_coordinate, {}

    def _numbers(self, vectors: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
        return np.asarray(vectors[np.arange(len(vectors)), indices])

    def _combination(self, signed: NDArray[np.int64]) -> FloatArray:
        return np.asarray(self.message_norm * signed, dtype=float)


@dataclass(frozen=True)
class CLDPL2Mechanism(CLDPLinfMechanism):
    """CLDP for an L2 ball: clients quantise a random point z of a sphere to axes.

    The point z lies more often in the half of the sphere that the vector points to.

    The client draws z of length M on the vector's side with probability e^epsilon / (e^epsilon + 1) (Duchi, Jordan, Wainwright 2018,
    *Minimax optimal procedures for locally private estimation*): z has the vector as mean and is epsilon private. A draw then is coordinate
    i, with probability ``|z_i| / ||z||_1``, and the sign of z_i, which is flipped with probability ``1/2 - ||z||_1 / (2 M
    sqrt(dimension))``. The draw decodes to M sqrt(dimension) along that axis, so its mean is z. M is clip_norm / (kappa tanh(epsilon / 2)),
    and kappa the mean of ``|u_1|`` on the unit sphere.

    **Several draws** of the same z cost no epsilon, as they depend on z alone, not on the vector. Each has the squared norm M**2 dimension,
    and two of them the mean product ``||z||**2 = M**2``, so that the mean of `draws` has the expected squared norm ``M**2 (dimension +
    draws - 1) / draws``: with as many draws as coordinates less than 2 M**2, while z itself has M**2. That number, `dimension`, is the
    choice of Chaudhuri, Guo, Rabbat 2022, *Privacy-aware compression for federated data analysis* (8 bits for each of 128 coordinates);
    their code shrinks vectors by tanh(epsilon / 2), a bias that this class does not have. Girgis et al. draw once.

    **One draw** needs no z. The draw is i and the sign s with probability ``(|z_i| / ||z||_1 + s z_i / (M sqrt(dimension))) / 2``. The
    first term does not change under z -> -z, and is 1 / dimension on average over either half of the sphere; the second is linear in z,
    whose mean is the vector x. A message therefore has the probability ``1 / (2 dimension) + s x_i / (2 M sqrt(dimension))``, the
    probability of a uniformly drawn coordinate with a bit for its sign, which `encode` draws. So a message is more private than z
    (`realised_epsilon`). And `CLDPLinfMechanism`, on the cube around the ball, is epsilon private with ``kappa**2 * dimension`` times the
    worst variance of one draw, 2 / pi in high dimension.

    The mechanism suits releases with ``secure_words``, up to rounding: the client draws a point in floating-point numbers, and the message
    depends on the vector only by the probability with which it is the point or its opposite, which is right to within 2**-51.

    Attributes
    ----------
    epsilon, ball
        Fields of `SampledSignMechanism`.
    draws : int
        Number of draws in a message, from 1 to `dimension`.

    Examples
    --------
    >>> mechanism = CLDPL2Mechanism(5.0, NormBall(dimension=128, norm=2.0))
    >>> mechanism.bits_per_client, round(mechanism.variance_bound, 1), round(mechanism.realised_epsilon, 4)
    (8.0, 26335.9, 2.1362)

    The choice of Chaudhuri, Guo, Rabbat:

    >>> mechanism = CLDPL2Mechanism(5.0, NormBall(dimension=128, norm=2.0), draws=128)
    >>> mechanism.bits_per_client, round(mechanism.variance_bound, 1), mechanism.realised_epsilon
    (1024.0, 409.9, 5.0)
    """

    draws: int = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "draws", check_integer("draws", self.draws, low=1, high=self.ball.dimension))

    @property
    def norm(self) -> float:
        """The L2 norm, 2.0."""
        return 2.0

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre; exact.

        The variance is ``message_norm**2 (dimension + draws - 1) / (draws dimension)``.
        """
        dimension = self.ball.dimension
        return self.message_norm**2 * ((dimension + self.draws - 1) / (self.draws * dimension))

    @property
    def realised_epsilon(self) -> float:
        """Largest log-ratio of one draw's probabilities, or epsilon for several draws.

        One draw has the ratio ``2 artanh(kappa sqrt(dimension) tanh(epsilon / 2))``.

        The ratio is epsilon in one dimension; in more, kappa sqrt(dimension) is below 1, and the ratio stays below 3 for every epsilon.
        Several draws reveal more of z: epsilon is an upper bound for them.
        """
        return self._draw_epsilon if self.draws == 1 else self.epsilon

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.int64]:
        """Return random messages of each vector: numbers from 0 to ``2 * dimension - 1``.

        The shape is (clients,) for one draw and (clients, draws) for several.
        """
        if self.draws == 1:
            return super().encode(vectors, random_words)
        random_words, clipped = word_source(random_words), self.ball.clip(vectors)
        messages = np.empty((len(clipped), self.draws), dtype=np.int64)
        at_once = max(1, CHUNK // self.ball.dimension)
        for start in range(0, len(clipped), at_once):
            part = slice(start, start + at_once)
            messages[part] = self._quantised(self._points(clipped[part], random_words), random_words)
        return messages

    def client_program(self) -> ClientProgram:
        """Return the program: an index and its sign, or for several draws indices and signs of a private point."""
        if self.draws == 1:
            return super().client_program()
        flip = flip_word(self.epsilon)
        return ClientProgram(
            signs_of_point,
            {
                "dimension": self.ball.dimension,
                "clip_norm": float(self.ball.clip_norm),
                "draws": self.draws,
                "root": math.sqrt(self.ball.dimension),
                "flip": flip,
                "quantiles": normal_quantiles(),
            },
            index_bits(self.indices),
            fields=self.draws,
            valid=fields_below(2 * self.indices),
            messages=lambda fields, _: fields,
            likelihood_ratio=flip_ratio(flip),
            epsilon=self.epsilon,
        )

    def _client(self) -> tuple[Callable[..., None], dict[str, int]]:
        return sign_of_direction, {}

    def _points(self, clipped: FloatArray, random_words: WordSource) -> FloatArray:
        """Return points along the directions z, of any length: on the vector's side or opposite."""
        directions = random_directions(self.ball, clipped, random_words)
        points = random_words.normals(directions.shape)
        # A uniform number of 53 bits falls below a probability at least as often as that probability states.
        opposite = random_words.uniforms(len(points)) < 1 / (math.exp(self.epsilon) + 1)
        behind = np.einsum("ij,ij->i", points, directions) < 0
        points[behind ^ opposite] *= -1
        return points

    def _quantised(self, points: FloatArray, random_words: WordSource) -> NDArray[np.int64]:
        """Draw coordinates and signs of points, shape (points, draws)."""
        count, dimension = points.shape
        shares = np.cumsum(np.abs(points), axis=1)
        lengths = shares[:, -1:].copy()
        # The rows are laid end to end, so that a single search serves all rows.
        rows = np.arange(count)[:, None]
        shares = shares / lengths + rows
        shares[:, -1] = np.arange(1, count + 1)
        drawn = np.searchsorted(shares.ravel(), (random_words.uniforms((count, self.draws)) + rows).ravel(), side="right")
        indices = np.clip(drawn.reshape(count, self.draws) - dimension * rows, 0, dimension - 1)
        kept = 0.5 + lengths / (2 * np.linalg.norm(points, axis=1, keepdims=True) * math.sqrt(dimension))
        flips = random_words.uniforms(indices.shape) >= kept
        return np.asarray(2 * indices + ((np.take_along_axis(points, indices, axis=1) > 0) ^ flips))

    @property
    def _contrast(self) -> float:
        return math.tanh(self._draw_epsilon / 2)

    @property
    def _draw_epsilon(self) -> float:
        dimension = self.ball.dimension
        if dimension == 1:
            return self.epsilon
        # kappa = Gamma(x) / (sqrt(pi) Gamma(x + 1/2)) with x = dimension / 2.
        x = dimension / 2
        if dimension <= LARGEST_DIRECT_DIMENSION:
            ratio = math.sqrt(x) * math.gamma(x) / math.gamma(x + 0.5)
        else:
            # The next term of Stirling's series of the ratio is below 1e-13.
            ratio = 1 + (1 / 8 + (1 / 128 - (5 / 1024 + (21 / 32768 - 399 / 262144 / x) / x) / x) / x) / x
        return 2 * math.atanh(math.sqrt(2 / math.pi) * ratio * math.tanh(self.epsilon / 2))


@dataclass(frozen=True)
class CLDPL1Mechanism(SampledSignMechanism):
    """Every client sends an entry's index and a bit for its sign (CLDP for L1 balls).

    The entries are those of the vector's Walsh-Hadamard transform. The vector is padded with zeros to a power of two; entries of H x are at
    most ``||x||_1``. A decoded message is a column of H, without the padding.

    Examples
    --------
    >>> mechanism = CLDPL1Mechanism(5.0, NormBall(dimension=100, norm=1.0))
    >>> mechanism.bits_per_client, round(mechanism.variance_bound, 1)
    (8.0, 102.7)
    """

    @property
    def norm(self) -> float:
        """The L1 norm, 1.0."""
        return 1.0

    @property
    def indices(self) -> int:
        """Number of indices, the dimension or the next power of two."""
        return padded_dimension(self.ball.dimension)

    @property
    def message_norm(self) -> float:
        """L2 norm of a decoded draw: ``sqrt(dimension) * clip_norm / tanh(epsilon / 2)``.

        All coordinates of the decoded draw have the same size.
        """
        return math.sqrt(self.ball.dimension) * self.ball.clip_norm / self._contrast

    def _client(self) -> tuple[Callable[..., None], dict[str, int]]:
        return sign_of_transform, {"indices": self.indices}

    def _numbers(self, vectors: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
        clients, dimension = vectors.shape
        coordinates = np.arange(dimension)
        numbers = np.empty(clients)
        chunk = max(1, CHUNK // dimension)
        for start in range(0, clients, chunk):
            part = slice(start, start + chunk)
            numbers[part] = np.einsum("ij,ij->i", vectors[part], hadamard_entries(indices[part, None], coordinates))
        return numbers

    def _combination(self, signed: NDArray[np.int64]) -> FloatArray:
        return self.ball.clip_norm / self._contrast * walsh_hadamard(signed)[: self.ball.dimension]


def vector_cldp_mechanism(epsilon: float, ball: NormBall, draws: int = 1) -> SampledSignMechanism:
    """Return the mechanism of CLDP for a ball of norm 1, 2 or infinity.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        Ball of the vectors.
    draws : int
        Number of draws of the private vector in a message: from 1 to the dimension for the L2 ball, and 1 for the other balls, for which
        each further number of the vector would cost its own epsilon.

    Examples
    --------
    >>> type(vector_cldp_mechanism(1.0, NormBall(dimension=128, norm=1.0))).__name__
    'CLDPL1Mechanism'
    >>> ball = NormBall(dimension=128, norm=2.0)
    >>> [round(vector_cldp_mechanism(2.0, ball, draws).variance_bound / 10_000, 4) for draws in (1, 8, 128)]
    [4.4197, 0.5827, 0.0688]
    """
    if check_ball(ball, "CLDP").norm == 2:
        return CLDPL2Mechanism(epsilon, ball, draws)
    mechanisms: dict[float, Callable[[float, NormBall], SampledSignMechanism]] = {1.0: CLDPL1Mechanism, math.inf: CLDPLinfMechanism}
    if ball.norm not in mechanisms:
        raise ValueError(f"ball must be of norm 1, 2 or infinity for CLDP, got norm {ball.norm:g}")
    if draws != 1:
        raise ValueError(f"draws must be 1 for CLDP on a ball of norm {ball.norm:g}, got {draws!r}: only the L2 ball has a private vector")
    return mechanisms[ball.norm](epsilon, ball)


def index_bits(indices: int) -> int:
    """Return the number of bits that hold one of `indices` indices and a sign.

    Examples
    --------
    >>> [index_bits(indices) for indices in (1, 100, 128, 129)]
    [1, 8, 8, 9]
    """
    return (2 * indices - 1).bit_length()
