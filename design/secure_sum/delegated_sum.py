"""What secure sums share that send the messages of another one."""

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IntegerArray
from ..contracts.mechanism import SecureSumMechanism
from ..contracts.privacy import Privacy

if TYPE_CHECKING:
    from ..noise.random_words import WordsLike


class DelegatedSum(SecureSumMechanism):
    """Clients send what another mechanism makes of the vectors that their inputs stand for; on it the guarantee rests.

    Attributes
    ----------
    inner : SecureSumMechanism
        The other mechanism.
    """

    inner: SecureSumMechanism

    @abstractmethod
    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        """Return the inputs of `inner`."""

    @property
    def delta(self) -> float:  # type: ignore[override]
        """That of `inner`."""
        return self.inner.delta

    @property
    def clients(self) -> int:  # type: ignore[override]
        """Number of clients whose noise the guarantee rests on."""
        return self.inner.clients

    @property
    def adjacency(self) -> str:
        """That of `inner`."""
        return self.inner.adjacency

    @property
    def modulus(self) -> int:
        """That of `inner`."""
        return self.inner.modulus

    @property
    def padded_dimension(self) -> int:
        """That of `inner`: it may send more coordinates than its vectors have."""
        return self.inner.padded_dimension

    @property
    def coordinate_wrap_probability(self) -> float:
        """That of `inner`."""
        return self.inner.coordinate_wrap_probability

    @property
    def wrap_probability(self) -> float:
        """That of `inner`."""
        return self.inner.wrap_probability

    def privacy(self) -> Privacy:
        """Privacy of the sum, which is that of `inner`."""
        return self.inner.privacy()

    def for_clients(self, clients: int) -> Self:
        """Return what `inner` does."""
        return replace(self, inner=self.inner.for_clients(clients))  # type: ignore[type-var]

    def noisy_steps(self, inputs: ArrayLike, words: "WordsLike") -> IntegerArray:
        """Return those of `inner`."""
        return self.inner.noisy_steps(self._vectors(inputs), words)

    def summed_steps(self, inputs: ArrayLike, words: "WordsLike") -> IntegerArray:
        """Return those of `inner`."""
        return self.inner.summed_steps(self._vectors(inputs), words)

    def encode(self, inputs: ArrayLike, words: "WordsLike") -> NDArray[Any]:
        """Return the messages of `inner`."""
        return self.inner.encode(self._vectors(inputs), words)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the messages modulo M."""
        return self.inner.aggregate(messages)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return those of `inner`."""
        return self.inner.recovered_steps(aggregate)
