"""The interface of mechanisms whose messages a secure sum adds up: that of vector means, and the whole numbers behind a message."""

from typing import Any, Protocol

from numpy.typing import ArrayLike, NDArray

from ...arrays import IntegerArray
from ..noise.random_words import WordsLike
from .vector_protocol import VectorMeanProtocol


class SecureSumProtocol(VectorMeanProtocol, Protocol):
    """A vector mean protocol of which the server sees the sum of all clients' messages modulo M, and nothing else.

    A message is what `noisy_steps` returns, modulo M. The sum of messages determines that of the whole numbers if the latter lies in the
    range of M numbers that `recovered_steps` chooses from; otherwise it comes back wrapped around, which `wrap_probability` bounds.
    """

    @property
    def clients(self) -> int:
        """Number of clients whose noise the guarantee rests on."""

    @property
    def modulus(self) -> int:
        """M, from 2 to 2**62: a message's coordinate takes log2(M) bits."""

    @property
    def padded_dimension(self) -> int:
        """Number of coordinates of a message."""

    @property
    def wrap_probability(self) -> float:
        """Bound on the probability that any coordinate of the sum wraps; errs upward. 0.0 where none can."""

    @property
    def coordinate_wrap_probability(self) -> float:
        """Bound on the probability that one coordinate of the sum wraps; errs upward."""

    def noisy_steps(self, vectors: ArrayLike, words: WordsLike) -> IntegerArray:
        """Return what each client's message is before it is reduced modulo M, shape (clients of the chunk, padded_dimension)."""

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` modulo M, with the same draws: whole numbers from 0 to M - 1, in the narrowest unsigned words."""

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sum of `noisy_steps`, shape (padded_dimension,), from the sum of messages: right as long as nothing wraps."""
