"""Secure sums that send the messages of another secure sum, and such sums of numbers and of items.

A number of an interval is a vector of one coordinate, its distance from the middle. An item is the unit vector of its coordinate.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_interval
from ...arrays import FloatArray, IntegerArray
from ..contracts.mechanism import FrequencyMechanism, ScalarMechanism, SecureSumMechanism
from ..contracts.norm_ball import NormBall
from ..contracts.privacy import Privacy
from .rounded_secure_sum import RoundedSecureSum

if TYPE_CHECKING:
    from ..noise.random_words import WordsLike


class DelegatedSum(SecureSumMechanism):
    """Clients send the messages of another secure sum, which has the guarantee.

    Attributes
    ----------
    inner : SecureSumMechanism
        The other mechanism.
    """

    inner: SecureSumMechanism

    @abstractmethod
    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        """Return the vectors that `inner` encodes."""

    @property
    def delta(self) -> float:  # type: ignore[override]
        """The failure probability of `inner`."""
        return self.inner.delta

    @property
    def clients(self) -> int:  # type: ignore[override]
        """Number of clients whose noise the guarantee rests on."""
        return self.inner.clients

    @property
    def adjacency(self) -> str:
        """The adjacency of `inner`."""
        return self.inner.adjacency

    @property
    def modulus(self) -> int:
        """The modulus of `inner`."""
        return self.inner.modulus

    @property
    def padded_dimension(self) -> int:
        """Number of coordinates of a message of `inner`, which may exceed that of its vectors."""
        return self.inner.padded_dimension

    @property
    def coordinate_wrap_probability(self) -> float:
        """Upper bound on the probability that one coordinate of the sum of `inner` wraps."""
        return self.inner.coordinate_wrap_probability

    @property
    def wrap_probability(self) -> float:
        """Upper bound on the probability that any coordinate of the sum of `inner` wraps."""
        return self.inner.wrap_probability

    def privacy(self) -> Privacy:
        """Return the privacy of the sum of `inner`."""
        return self.inner.privacy()

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism with `inner` for another number of clients."""
        return replace(self, inner=self.inner.for_clients(clients))  # type: ignore[type-var]

    def noisy_steps(self, inputs: ArrayLike, words: "WordsLike") -> IntegerArray:
        """Return the noisy steps of `inner`."""
        return self.inner.noisy_steps(self._vectors(inputs), words)

    def noise_steps(self, count: int, words: "WordsLike") -> IntegerArray:
        """Return the messages of clients of `inner` without an input."""
        return self.inner.noise_steps(count, words)

    def summed_steps(self, inputs: ArrayLike, words: "WordsLike") -> IntegerArray:
        """Return the sum of the noisy steps of `inner`."""
        return self.inner.summed_steps(self._vectors(inputs), words)

    def encode(self, inputs: ArrayLike, words: "WordsLike") -> NDArray[Any]:
        """Return the messages of `inner`."""
        return self.inner.encode(self._vectors(inputs), words)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the messages modulo M."""
        return self.inner.aggregate(messages)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the recovered steps of `inner`."""
        return self.inner.recovered_steps(aggregate)


@dataclass(frozen=True)
class NumberSum(DelegatedSum, ScalarMechanism):
    """Mean estimation for numbers in a secure sum, by a mechanism for vectors of one coordinate.

    Messages, errors and the guarantee are those of `inner`. For add-or-remove-one adjacency an absent number counts as the middle of the
    interval.

    Attributes
    ----------
    inner : SecureSumMechanism
        A mechanism for vectors of one coordinate, with a clip norm of at least half the interval's width. With a clip norm that is larger
        by a step, conditional rounding of one coordinate rejects nothing, and has no bias.
    interval : tuple of float
        Smallest and largest number; numbers outside count as the nearer end.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> inner = DistributedDiscreteGaussianMechanism(NormBall(1, 2.0, 0.5), 1000, bits=16, granularity=0.05, local_sigma=0.1, delta=1e-5)
    >>> ages = NumberSum(inner, (0.0, 1.0))
    >>> messages = ages.encode(np.full(1000, 0.25), np.random.default_rng(0))
    >>> bool(abs(ages.decode(ages.aggregate(messages), 1000) - 0.25) < 5 * (ages.worst_variance / 1000) ** 0.5)
    True
    """

    inner: SecureSumMechanism
    interval: tuple[float, float]

    def __post_init__(self) -> None:
        """Check that the interval fits into the ball."""
        object.__setattr__(self, "interval", check_interval("interval", self.interval))
        ball = self.inner.domain
        if not isinstance(ball, NormBall) or ball.dimension != 1 or ball.clip_norm < self._half_width:
            raise ValueError(f"inner must be for vectors of one coordinate up to {self._half_width:g}, got {ball}")

    @property
    def vector_mechanism(self) -> SecureSumMechanism:
        """The mechanism for vectors of one coordinate."""
        return self.inner

    def facts(self) -> dict[str, Any]:
        """Return the facts of `inner`, with the error and the bias bound of the sum of numbers."""
        return {**self.inner.facts(), "worst_squared_error": self.error().of_mean(self.clients), "bias_bound": self.bias_bound}

    @property
    def bias_bound(self) -> float:
        """The bias bound of `inner`, or 0.0 if its rounding rejects nothing."""
        inner = self.inner
        if isinstance(inner, RoundedSecureSum) and inner.padded_dimension == 1:
            # Rounding up adds less than a step, so rounding never rejects vectors within the ball.
            return 0.0 if inner.ball.clip_norm - inner.granularity >= self._half_width else inner.bias_bound
        return inner.bias_bound

    @property
    def worst_variance(self) -> float:
        """Upper bound on the variance of `inner`."""
        return self.inner.worst_variance

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the variance of `inner` for each number."""
        return self.inner.variance(self._vectors(values))

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the estimated mean of the numbers."""
        return self.domain.middle + float(self.inner.decode(aggregate, clients)[0])

    @property
    def _half_width(self) -> float:
        low, high = self.interval
        return (high - low) / 2

    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        domain = self.domain
        return np.expand_dims(domain.clip(inputs) - domain.middle, -1)


@dataclass(frozen=True)
class ItemSum(DelegatedSum, FrequencyMechanism):
    """Frequencies of items in a secure sum, by a mechanism for vectors of one coordinate per item.

    Messages, errors and the guarantee are those of `inner`, which must not round unit vectors.

    Attributes
    ----------
    inner : SecureSumMechanism
        A mechanism for vectors of the unit ball.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> from quietbits.design.secure_sum.distributed_discrete_laplace import DistributedDiscreteLaplaceMechanism
    >>> inner = DistributedDiscreteLaplaceMechanism(NormBall(3, 1.0), clients=1000, bits=12, steps=1, scale=2.0, survivors=1000)
    >>> words = ItemSum(inner)
    >>> messages = words.encode(np.array([0] * 700 + [2] * 300), np.random.default_rng(0))
    >>> words.decode(words.aggregate(messages), 1000).round(1).tolist()
    [0.7, 0.0, 0.3]
    """

    inner: SecureSumMechanism

    @property
    def vector_mechanism(self) -> SecureSumMechanism:
        """The mechanism for vectors."""
        return self.inner

    @property
    def categories(self) -> int:  # type: ignore[override]
        """Number of items."""
        return self.inner.domain.dimension

    def facts(self) -> dict[str, Any]:
        """Return the facts of `inner`, with the error of the frequencies."""
        return {**self.inner.facts(), "worst_squared_error": self.error().of_mean(self.clients)}

    @property
    def holder_variance(self) -> float:
        """Variance of the noise on a coordinate."""
        unit = np.eye(1, self.categories)
        return float(self.inner.variance(unit)[0]) / self.categories

    @property
    def other_variance(self) -> float:
        """Variance of the noise on a coordinate."""
        return self.holder_variance

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the frequencies, which may be negative."""
        return np.asarray(self.inner.decode(aggregate, clients))

    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        items = self.domain.clip(inputs)
        vectors = np.zeros((len(items), self.categories))
        vectors[np.arange(len(items)), items] = 1.0
        return vectors
