"""Vectors in one index and one bit: the sign of one number about the vector, by randomised response."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer
from ...arrays import FloatArray
from ..contracts.accounts import pure_privacy
from ..contracts.mechanism import VectorMechanism, check_vector_epsilon
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..noise.random_words import WordsLike, word_source
from .message_checks import checked_messages


@dataclass(frozen=True)
class SampledSignMechanism(VectorMechanism):
    """An index drawn uniformly, and one bit for the sign of the number that the vector has there: what the mechanisms of CLDP share.

    The number t, between -1 and 1 in units of the clip norm, becomes the bit 1 with probability (1 + t) / 2, which is then flipped with
    probability 1 / (e^realised_epsilon + 1). The message is 2 * index + bit.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        Ball of the vectors, of the norm that the mechanism is for.
    """

    epsilon: float
    ball: NormBall
    delta = 0.0
    # How many numbers, each an index and a bit, a message consists of.
    draws = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        check_ball(self.ball, type(self).__name__, self.norm)

    @property
    @abstractmethod
    def norm(self) -> float:
        """The norm p that the mechanism is for."""

    @property
    def indices(self) -> int:
        """Number of indices to draw from."""
        return self.ball.dimension

    @property
    def realised_epsilon(self) -> float:
        """Largest log-ratio of a message's probabilities for two vectors, attained by the two ends of an axis; at most epsilon."""
        return self.epsilon

    @property
    def bits_per_client(self) -> float:
        """Bits of an index and a bit, ``ceil(log2(2 * indices))``, for each draw; there is no shared randomness."""
        return float(self.draws * index_bits(self.indices))

    def privacy(self) -> Privacy:
        """Pure local privacy of `realised_epsilon`: exact for L1 and L-infinity, where two vectors can differ most at every index."""
        return pure_privacy(self.realised_epsilon)

    @property
    @abstractmethod
    def message_norm(self) -> float:
        """L2 norm of what a draw of a message is decoded to, the same for all, in the vectors' units."""

    @property
    def worst_variance(self) -> float:
        """Variance at the centre of the ball, the largest: ``message_norm**2``."""
        return self.message_norm**2

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[np.int64]:
        """Draw one message per vector, from 0 to ``2 * indices - 1``."""
        words = word_source(words)
        clipped = self.ball.clip(vectors)
        clients = len(clipped)
        indices = words.integers(self.indices, clients)
        bits = words.uniforms(clients) < (1 + self._numbers(clipped, indices) / self.ball.clip_norm) / 2
        # A uniform number of 53 bits is below a probability at least as often as it should be.
        flips = words.uniforms(clients) < 1 / (math.exp(self.realised_epsilon) + 1)
        return 2 * indices + (bits ^ flips)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the histogram of the messages, shape (indices, 2): how often each index was sent with the bits 0 and 1."""
        array = checked_messages(messages, 0, 2 * self.indices - 1)
        histogram = np.bincount(array.astype(np.intp), minlength=2 * self.indices).astype(np.int64)
        return histogram.reshape(self.indices, 2)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the vectors that the messages stand for; it may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        total = int(aggregate.sum())
        if total != self.draws * clients:
            raise ValueError(f"clients must be the number of messages in the histogram, {total / self.draws:g}, got {clients!r}")
        return self._combination(aggregate[:, 1] - aggregate[:, 0]) / total

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - ||x||**2`` for each vector: exact."""
        return np.asarray(self.worst_variance - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def _contrast(self) -> float:
        """Difference of the probabilities that a bit is kept and that it is flipped."""
        return math.tanh(self.realised_epsilon / 2)

    @abstractmethod
    def _numbers(self, vectors: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
        """Return the number of each vector that its index stands for, at most the clip norm in absolute value."""

    @abstractmethod
    def _combination(self, signed: NDArray[np.int64]) -> FloatArray:
        """Return the sum of the decoded messages, given how much more often each index was sent with 1 than with 0."""


def index_bits(indices: int) -> int:
    """Return the bits of one of a number of indices and a bit.

    Examples
    --------
    >>> [index_bits(indices) for indices in (1, 100, 128, 129)]
    [1, 8, 8, 9]
    """
    return (2 * indices - 1).bit_length()
