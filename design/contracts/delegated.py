"""Mechanisms for numbers and items that send the messages of a mechanism for vectors.

A number of an interval is a vector of one coordinate, its distance from the middle. An item is the unit vector of its coordinate.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from .error import VarianceParts
from .mechanism import FrequencyMechanism, Mechanism, MessageScore, ScalarMechanism
from .privacy import Privacy

if TYPE_CHECKING:
    from ..noise.random_words import WordsLike


class Delegated(Mechanism):
    """A mechanism whose clients send the messages of another mechanism, which has the guarantee.

    Attributes
    ----------
    inner : Mechanism
        The other mechanism.
    """

    inner: Any

    @abstractmethod
    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        """Return the vectors that `inner` encodes."""

    @property
    def delta(self) -> float:  # type: ignore[override]
        """The failure probability of `inner`."""
        return float(self.inner.delta)

    @property
    def adjacency(self) -> str:
        """The adjacency of `inner`."""
        return str(self.inner.adjacency)

    @property
    def bits_per_client(self) -> float:
        """Bits of a message of `inner`."""
        return float(self.inner.bits_per_client)

    @property
    def wrap_probability(self) -> float:
        """Upper bound on the probability that any coordinate of the sum of `inner` wraps."""
        return float(self.inner.wrap_probability)

    def privacy(self) -> Privacy:
        """Return the privacy of `inner`."""
        privacy: Privacy = self.inner.privacy()
        return privacy

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of `inner` for a number of clients' messages."""
        privacy: Privacy = self.inner.privacy_of(clients)
        return privacy

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism with `inner` for another number of clients."""
        return replace(self, inner=self.inner.for_clients(clients))  # type: ignore[type-var]

    def encode(self, inputs: ArrayLike, random_words: "WordsLike") -> NDArray[Any]:
        """Return the messages of `inner`."""
        return np.asarray(self.inner.encode(self._vectors(inputs), random_words))

    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return the aggregate of `inner`."""
        return np.asarray(self.inner.aggregate(messages))

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the score of `inner`."""
        score: MessageScore = self.inner.message_score(self._vectors(first), self._vectors(second))
        return score


class DelegatedNumbers(Delegated, ScalarMechanism):
    """Mean estimation for numbers by a mechanism for vectors of one coordinate.

    For add-or-remove-one adjacency an absent number counts as the middle of the interval.
    """

    @property
    def vector_mechanism(self) -> Mechanism:
        """The mechanism for vectors of one coordinate."""
        mechanism: Mechanism = self.inner
        return mechanism

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance of `inner`."""
        return float(self.inner.variance_bound)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the variance of `inner` for each number."""
        return np.asarray(self.inner.variance(self._vectors(values)))

    def variance_parts(self, inputs: ArrayLike) -> VarianceParts:
        """Return the parts of the variance of `inner`."""
        parts: VarianceParts = self.inner.variance_parts(self._vectors(inputs))
        return parts

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the estimated mean of the numbers."""
        return self.domain.middle + float(self.inner.decode(aggregate, clients)[0])

    @property
    def half_width(self) -> float:
        """Half the width of the interval, the longest vector."""
        low, high = self.interval
        return (high - low) / 2

    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        domain = self.domain
        return np.expand_dims(domain.clip(inputs) - domain.middle, -1)


class DelegatedItems(Delegated, FrequencyMechanism):
    """Frequencies of items by a mechanism for vectors that does not round unit vectors."""

    @property
    def vector_mechanism(self) -> Mechanism:
        """The mechanism for vectors."""
        mechanism: Mechanism = self.inner
        return mechanism

    @property
    def categories(self) -> int:  # type: ignore[override]
        """Number of items."""
        return int(self.inner.domain.dimension)

    @property
    def holder_variance(self) -> float:
        """Variance of the noise on a coordinate."""
        return float(self.inner.variance(np.eye(1, self.categories))[0]) / self.categories

    @property
    def other_variance(self) -> float:
        """Variance of the noise on a coordinate."""
        return self.holder_variance

    def variance_parts(self, items: ArrayLike) -> VarianceParts:
        """Return the parts of the variance of `inner`."""
        parts: VarianceParts = self.inner.variance_parts(self._vectors(items))
        return parts

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the frequencies, which may be negative."""
        return np.asarray(self.inner.decode(aggregate, clients))

    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        items = self.domain.clip(inputs)
        vectors = np.zeros((len(items), self.categories))
        vectors[np.arange(len(items)), items] = 1.0
        return vectors
