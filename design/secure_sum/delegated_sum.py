"""Secure sums that send the messages of another secure sum, and such sums of numbers and of items.

A number of an interval is a vector of one coordinate, its distance from the middle. An item is the unit vector of its coordinate.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from ...arguments import check_interval
from ...arrays import IntegerArray
from ..contracts.delegated import Delegated, DelegatedItems, DelegatedNumbers
from ..contracts.mechanism import SecureSumMechanism
from ..contracts.norm_ball import NormBall
from .rounded_secure_sum import RoundedSecureSum

if TYPE_CHECKING:
    from ..noise.random_words import WordsLike


class DelegatedSum(Delegated, SecureSumMechanism):
    """Clients send the messages of another secure sum, which has the guarantee.

    Attributes
    ----------
    inner : SecureSumMechanism
        The other mechanism.
    """

    inner: SecureSumMechanism

    @property
    def clients(self) -> int:  # type: ignore[override]
        """Number of clients whose noise the guarantee rests on."""
        return self.inner.clients

    @property
    def survivors(self) -> int | None:  # type: ignore[override]
        """Smallest number of clients for which the guarantee of `inner` is stated; None for all."""
        return self.inner.survivors

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

    def noisy_steps(self, inputs: ArrayLike, random_words: "WordsLike") -> IntegerArray:
        """Return the noisy steps of `inner`."""
        return self.inner.noisy_steps(self._vectors(inputs), random_words)

    def noise_steps(self, count: int, random_words: "WordsLike") -> IntegerArray:
        """Return the messages of clients of `inner` without an input."""
        return self.inner.noise_steps(count, random_words)

    def summed_steps(self, inputs: ArrayLike, random_words: "WordsLike") -> IntegerArray:
        """Return the sum of the noisy steps of `inner`."""
        return self.inner.summed_steps(self._vectors(inputs), random_words)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the recovered steps of `inner`."""
        return self.inner.recovered_steps(aggregate)


@dataclass(frozen=True)
class NumberSum(DelegatedNumbers, DelegatedSum):
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
    >>> import numpy as np
    >>> ages = NumberSum(inner, (0.0, 1.0))
    >>> messages = ages.encode(np.full(1000, 0.25), np.random.default_rng(0))
    >>> bool(abs(ages.decode(ages.aggregate(messages), 1000) - 0.25) < 5 * (ages.variance_bound / 1000) ** 0.5)
    True
    """

    inner: SecureSumMechanism
    interval: tuple[float, float]

    def __post_init__(self) -> None:
        """Check that the interval fits into the ball."""
        object.__setattr__(self, "interval", check_interval("interval", self.interval))
        ball = self.inner.domain
        if not isinstance(ball, NormBall) or ball.dimension != 1 or ball.clip_norm < self.half_width:
            raise ValueError(f"inner must be for vectors of one coordinate up to {self.half_width:g}, got {ball}")

    def facts(self) -> dict[str, Any]:
        """Return the facts of `inner`, with the error and the bias bound of the sum of numbers."""
        return {**self.inner.facts(), "worst_squared_error": self.error().of_mean(self.clients), "bias_bound": self.bias_bound}

    @property
    def bias_bound(self) -> float:
        """The bias bound of `inner`, or 0.0 if its rounding rejects nothing."""
        rounded = self.inner
        while isinstance(rounded, DelegatedSum):
            rounded = rounded.inner
        if isinstance(rounded, RoundedSecureSum) and rounded.padded_dimension == 1:
            # Rounding up adds less than a step, so rounding never rejects vectors within the ball.
            return 0.0 if rounded.ball.clip_norm - rounded.granularity >= self.half_width else rounded.bias_bound
        return rounded.bias_bound


@dataclass(frozen=True)
class ItemSum(DelegatedItems, DelegatedSum):
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
    >>> import numpy as np
    >>> words = ItemSum(inner)
    >>> messages = words.encode(np.array([0] * 700 + [2] * 300), np.random.default_rng(0))
    >>> words.decode(words.aggregate(messages), 1000).round(1).tolist()
    [0.7, 0.0, 0.3]
    """

    inner: SecureSumMechanism

    def facts(self) -> dict[str, Any]:
        """Return the facts of `inner`, with the error of the frequencies."""
        return {**self.inner.facts(), "worst_squared_error": self.error().of_mean(self.clients)}
