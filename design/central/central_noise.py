"""Sums of whole numbers to which a trusted server adds noise, exactly: the base class of the references.

Each client rounds its own vector to whole steps at random. Rounding the sum instead would add a step for each coordinate to the
sensitivity. The server adds up the whole numbers and adds one draw of noise.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_choice
from ...arrays import FloatArray, IntegerArray, WordArray
from ..contracts.delegated import DelegatedItems, DelegatedNumbers
from ..contracts.error import VarianceParts
from ..contracts.guarantee import ADJACENCIES
from ..contracts.mechanism import MessageScore, VectorMechanism
from ..contracts.norm_ball import NormBall
from ..contracts.options import Declared, check_parameters
from ..noise.random_words import KEY_BYTES, WORD_BYTES, KeyedWords, WordsLike, WordSource, word_source
from ..secure_sum.rounded_secure_sum import CLIENTS as SUMMED_CLIENTS
from ..transforms.l1_rounding import MOST_STEPS
from ..transforms.vector_dithering import row_blocks

# Words of each client that together are the key of the server's noise.
KEY_WORDS = KEY_BYTES // WORD_BYTES
# Largest share of the error by which calibration lets rounding, and its sensitivity, exceed exact real numbers.
ROUNDING_SHARE = 1e-6
BALL: Declared = {"dimension": {"high": LARGEST_DIMENSION}}
CLIENTS: Declared = {**SUMMED_CLIENTS, "help": "Number of clients whose vectors are added up."}
STEPS: Declared = {"help": "Steps of the clip norm.", "low": 1, "high": MOST_STEPS}


class CentralNoise(VectorMechanism):
    """A trusted server adds exact noise to the sum of clients' whole numbers.

    The first coordinates of a message are the client's whole numbers, with `largest_coordinate` added so that none is negative. The last
    four are random words: their sums over all clients, modulo 2**64, are the key of the server's random numbers (`KeyedWords`), with which
    `decode` draws the noise. So `encode` takes all randomness, and decoding a sum twice gives the same estimate. In a deployment the server
    draws the noise itself, and clients need not send the words: `bits_per_client` does not count them. `decode` refuses a sum over another
    number of clients.

    A frozen dataclass that derives from this class has the fields below, and defines rounding, noise and privacy.

    Attributes
    ----------
    ball : NormBall
        Ball of the vectors.
    clients : int
        Number of clients, from 1 to 10**9.
    steps : int
        Steps of the clip norm, from 1 to 2**40.
    adjacency : str
        Adjacency of the guarantee.
    """

    ball: NormBall
    clients: int
    steps: int
    adjacency: str

    @abstractmethod
    def _rounded(self, vectors: FloatArray, random_words: WordSource) -> IntegerArray:
        """Round vectors in steps to whole numbers without bias."""

    @abstractmethod
    def _rounding_variance(self, vectors: FloatArray | None) -> FloatArray | float:
        """Return the variance of rounding each vector in steps, or its largest value for None."""

    @abstractmethod
    def _noise(self, random_words: WordSource) -> IntegerArray:
        """Draw the server's noise for each coordinate, in steps."""

    @property
    @abstractmethod
    def step_noise_variance(self) -> float:
        """Variance of the server's noise on a coordinate, in squared steps."""

    @property
    @abstractmethod
    def largest_coordinate(self) -> int:
        """Largest absolute value of a coordinate of a message."""

    @property
    def granularity(self) -> float:
        """Length of a step, in the vectors' units."""
        return self.ball.clip_norm / self.steps

    @property
    def bits_per_client(self) -> float:
        """Bits of the whole numbers of a message."""
        return float(self.ball.dimension * (2 * self.largest_coordinate).bit_length())

    @property
    def joint_clients(self) -> int:
        """Number of clients: the server releases only the noisy sum."""
        return self.clients

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for another number of clients, with the same noise on their sum."""
        return replace(self, clients=clients)  # type: ignore[type-var]

    def facts(self) -> dict[str, Any]:
        """Return the largest error."""
        return {"worst_squared_error": self.error().of_mean(self.clients)}

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance of rounding, and of a client's share of the noise, over the ball."""
        return self.granularity**2 * (self._share + float(self._rounding_variance(None)))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of rounding each vector, with a client's share of the noise."""
        return self.granularity**2 * (self._share + np.asarray(self._rounding_variance(self._in_steps(self.ball.check(vectors)))))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by rounding and a client's share of the noise."""
        variance = self.variance(vectors)
        return VarianceParts.split(variance, rounding=variance - self.granularity**2 * self._share)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> WordArray:
        """Return rounded vectors, and random words for the server's key, modulo 2**64."""
        array, random_words = self.ball.check(vectors), word_source(random_words)
        messages = np.empty((len(array), self.ball.dimension + KEY_WORDS), dtype=np.uint64)
        for rows in row_blocks(len(array), self.ball.dimension):
            messages[rows, :-KEY_WORDS] = (self._rounded(self._in_steps(array[rows]), random_words) + self.largest_coordinate).astype(
                np.uint64
            )
        messages[:, -KEY_WORDS:] = random_words(len(array) * KEY_WORDS).reshape(-1, KEY_WORDS)
        return messages

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages modulo 2**64, shape (dimension + 4,)."""
        return np.asarray(np.asarray(messages, dtype=np.uint64).sum(axis=0, dtype=np.uint64))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the noisy mean of the vectors, whose noise the summed words determine."""
        self._check_clients(clients)
        return np.asarray(self.noisy_steps(aggregate, clients) * (self.granularity / clients), dtype=float)

    def noisy_steps(self, aggregate: NDArray[Any], clients: int) -> IntegerArray:
        """Return the sum of some clients' whole numbers, with the server's noise."""
        return self._noisy_sum(aggregate, clients, self.ball.dimension, 1)

    def _noisy_sum(self, aggregate: NDArray[Any], clients: int, dimension: int, fineness: int) -> IntegerArray:
        """Return the sum of clients' whole numbers times `fineness`, with the server's noise."""
        sums = np.asarray(aggregate, dtype=np.uint64)
        if sums.shape != (dimension + KEY_WORDS,):
            raise ValueError(f"aggregate must have the shape ({dimension + KEY_WORDS},), got {sums.shape}")
        total = (sums[:-KEY_WORDS] - np.uint64(clients * self.largest_coordinate)).astype(np.int64)
        return np.asarray(total * fineness + self._noise(KeyedWords(sums[-KEY_WORDS:])))

    def _check_clients(self, clients: int) -> None:
        if clients != self.clients:
            raise ValueError(f"clients must be {self.clients}, for whom the noise is stated, got {clients!r}")

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the projection of the noisy sum on the inputs' difference."""
        direction = self.ball.clip(first).sum(axis=0) - self.ball.clip(second).sum(axis=0)

        def scores(messages: NDArray[Any]) -> FloatArray:
            return np.array([float(self.noisy_steps(self.aggregate(every), len(every)) @ direction) for every in messages])

        return scores

    @property
    def _share(self) -> float:
        """Variance of the noise that counts for each client: that of the sum over the number of clients."""
        return self.ball.dimension * self.step_noise_variance / self.clients

    def _in_steps(self, vectors: FloatArray) -> FloatArray:
        return self.ball.clip(vectors) * (self.steps / self.ball.clip_norm)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_parameters(self)
        check_choice("adjacency", self.adjacency, ADJACENCIES)


@dataclass(frozen=True)
class CentralNumbers(DelegatedNumbers):
    """The mean of numbers by a `CentralNoise` for vectors of one coordinate.

    Attributes
    ----------
    inner : CentralNoise
        Mechanism for vectors of one coordinate, whose clip norm is half the interval's width.
    interval : tuple of float
        Smallest and largest number; numbers outside count as the nearer end.
    """

    inner: CentralNoise
    interval: tuple[float, float]

    @property
    def joint_clients(self) -> int:
        """Number of clients: the server releases only the noisy sum."""
        return self.inner.joint_clients

    def facts(self) -> dict[str, Any]:
        """Return the facts of `inner`."""
        return self.inner.facts()


@dataclass(frozen=True)
class CentralItems(DelegatedItems):
    """Frequencies of items by a `CentralNoise` for vectors of one coordinate per item.

    A message is the item's number and four random words; the server counts the items.

    Attributes
    ----------
    inner : CentralNoise
        Mechanism for vectors whose clip norm is 1.
    """

    inner: CentralNoise

    @property
    def joint_clients(self) -> int:
        """Number of clients: the server releases only the noisy histogram."""
        return self.inner.joint_clients

    @property
    def bits_per_client(self) -> float:
        """Bits of an item's number."""
        return float(max(1, (self.categories - 1).bit_length()))

    def encode(self, items: ArrayLike, random_words: WordsLike) -> WordArray:
        """Return the items, and random words for the server's key."""
        held = self.domain.clip(items)
        key_words = word_source(random_words)(len(held) * KEY_WORDS).reshape(-1, KEY_WORDS)
        return np.concatenate([held[:, None].astype(np.uint64), key_words], axis=1)

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the aggregate of `inner` for the items' unit vectors."""
        counts = np.bincount(messages[:, 0].astype(np.int64), minlength=self.categories) * self.inner.steps
        offset = len(messages) * self.inner.largest_coordinate
        return np.concatenate([(counts + offset).astype(np.uint64), messages[:, 1:].sum(axis=0, dtype=np.uint64)])

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the projection of the noisy counts on the difference of the inputs' counts."""
        direction = self.domain.total(first) - self.domain.total(second)

        def scores(messages: NDArray[Any]) -> FloatArray:
            return np.array([float(self.inner.noisy_steps(self.aggregate(every), len(every)) @ direction) for every in messages])

        return scores

    def facts(self) -> dict[str, Any]:
        """Return the facts of `inner`, with the error of the frequencies."""
        return {**self.inner.facts(), "worst_squared_error": self.error().of_mean(self.inner.clients)}


def fewest_steps(enough: Callable[[int], bool], most: int = MOST_STEPS) -> int:
    """Return the least power of two that is enough, or `most`."""
    steps = 1
    while steps < most and not enough(steps):
        steps *= 2
    return min(steps, most)


def dithered(vectors: FloatArray, random_words: WordSource) -> IntegerArray:
    """Round each coordinate to one of its neighbours at random, without bias."""
    below = np.floor(vectors)
    # Whole numbers stay as they are.
    return np.asarray(below + (random_words.uniforms(vectors.shape) < vectors - below), dtype=np.int64)


def dithering_variance(vectors: FloatArray) -> FloatArray:
    """Return the sum of the variances of each vector's dithered coordinates, in squared steps."""
    fractions = vectors - np.floor(vectors)
    return np.asarray((fractions * (1 - fractions)).sum(axis=1))


def whole_norm(radius: float, dimension: int) -> float:
    """Return a bound on the L2 norm of a dithered vector, whose coordinates move by less than a step."""
    return (radius + math.sqrt(dimension)) * (1 + 1e-15)
