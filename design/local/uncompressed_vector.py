"""Base classes of reference mechanisms that send vectors uncompressed, as 64-bit floats."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer
from ...arrays import FloatArray
from ..contracts.error import VarianceParts
from ..contracts.mechanism import MessageScore, VectorMechanism
from ..contracts.real_numbers import RealNumberMechanism
from ..noise.random_words import WordsLike, WordSource


class UncompressedVectorMechanism(RealNumberMechanism, VectorMechanism):
    """Every client sends a vector of 64-bit floats, and the server adds them up."""

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message: those of a double-precision number for each coordinate."""
        return 64.0 * self.ball.dimension

    @property
    def _message_unit(self) -> float:
        """Factor that turns a message into an unbiased estimate of its client's vector."""
        return 1.0

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the projection of messages on the difference of the inputs.

        Messages are estimates of the inputs, up to their unit.
        """
        difference = np.atleast_1d(first - second)
        return lambda messages: np.asarray(messages @ difference)

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the messages, shape (dimension,)."""
        return np.asarray(self.ball.check(messages).sum(axis=0))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the messages, in the vectors' units; it may lie outside the ball."""
        return np.asarray(aggregate * (self._message_unit / check_integer("clients", clients, low=1, high=MOST_CLIENTS)))


class AddedNoiseMechanism(UncompressedVectorMechanism):
    """Every client adds noise of the same distribution to each coordinate of its vector."""

    @property
    @abstractmethod
    def variance_bound(self) -> float:
        """Variance of every vector: the expected squared L2 norm of the noise.

        The variance is in squared units of the vectors.
        """

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Return each vector with noise added."""
        random_words = self.checked_words(random_words)
        clipped = self.ball.clip(vectors)
        return clipped + self._noise(clipped.shape, random_words)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return `variance_bound` for each vector."""
        return np.full(len(self.ball.check(vectors)), self.variance_bound)

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return `variance` as noise."""
        return VarianceParts.split(self.variance(vectors))

    @abstractmethod
    def _noise(self, shape: tuple[int, ...], random_words: WordSource) -> FloatArray:
        """Return noise for every coordinate, in the vectors' units."""
