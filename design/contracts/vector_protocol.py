"""The interface that every mechanism for the mean of vectors shares: what `MeanProtocol` is for numbers."""

from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from ..noise.random_words import WordsLike
from .guarantee import Guarantee
from .norm_ball import NormBall

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Coordinates up to which loss distributions are composed: their length grows with the dimension.
COMPOSABLE_DIMENSION = 4096


class VectorMeanProtocol(Protocol):
    """A mechanism with which clients report one vector each and a server estimates the mean, without bias unless it says otherwise.

    Clients are streamed in chunks: ``decode(aggregate(chunk_1) + aggregate(chunk_2) + ..., clients)``.
    """

    @property
    def ball(self) -> NormBall:
        """Public ball of the vectors; a vector outside is clipped."""

    @property
    def bits_per_client(self) -> float:
        """Bits that one message takes."""

    @property
    def guarantee(self) -> Guarantee:
        """What each client is promised for one message."""

    @property
    def worst_variance(self) -> float:
        """Largest of `variance` over the ball, or a bound on it that errs upward: what can be promised without having seen a vector."""

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[Any]:
        """Return what clients with these vectors send.

        Parameters
        ----------
        vectors : array_like of shape (clients, dimension)
            Finite vectors; those outside the ball are clipped.
        words : WordSource or numpy.random.Generator
            Source of the clients' randomness: ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it,
            for experiments that others can repeat. Whoever knows its seed can undo the noise.

        Returns
        -------
        ndarray, of length clients
            Messages.

        Raises
        ------
        ValueError
            If the shape is wrong, a coordinate is NaN or infinite, or `words` is not a source.
        """

    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return what the server keeps of the messages, in an array of fixed shape that adds up over chunks of clients."""

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the estimate, of shape (dimension,), of the mean of all clients' vectors that went into the aggregate."""

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the expected squared L2 distance between each vector and its decoded message, shape (clients,)."""

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return, for each order above 1, a bound on the Rényi divergence of one client's message for two inputs; errs upward."""

    def privacy_loss(self) -> "PrivacyLossDistribution | None":
        """Return the loss distribution of a pair that dominates every two inputs, rounded upward; None where none is known."""
