"""Exact frequencies in a secure sum: what clients hold is hidden in the sum, and nothing else about it is private.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, section 4.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IntegerArray, WordArray
from ...solvers.decoders.exact_histogram import LONGEST_TIME
from ..contracts.mechanism import FrequencyMechanism, SecureSumMechanism
from ..contracts.privacy import Account, EpsilonBound, Privacy
from ..noise.random_words import WordsLike, word_source
from ..secure_sum.modular_arithmetic import aggregate_residues, messages_modulo, summed_messages
from .histogram_codes import BernoulliCode, IdentityCode

NOTHING_PROVEN = "the sum shows exactly how many clients hold each item, and nothing is proven beyond the secure sum"


def exact_histogram_privacy() -> Privacy:
    """Return what an exact histogram reveals: no epsilon is proven, for no delta below 1."""
    return Privacy("secure-sum", (Account("none", "replace-one", lambda *_: EpsilonBound.nothing(NOTHING_PROVEN)),))


@dataclass(frozen=True)
class ExactHistogramMechanism(SecureSumMechanism, FrequencyMechanism):
    """Clients send the columns of their items; the server decodes exact frequencies of those whose messages have arrived, or nothing.

    There is no noise: messages are a function of items, and epsilon is infinite. With `BernoulliCode` the histogram is proven to be the
    only one with its sum, or `decode` raises ``InfeasibleError`` or ``ConvergenceError``. Clients may drop out, as long as the secure sum
    recovers the sum of the others.

    Attributes
    ----------
    code : BernoulliCode or IdentityCode
        The code, of as many clients as may take part.
    time_limit : float
        Of decoding, in seconds.

    Examples
    --------
    >>> mechanism = ExactHistogramMechanism(BernoulliCode.of_rigorous_size(dimension=50, clients=6, seed=1))
    >>> messages = mechanism.encode(np.array([3, 7, 7, 20, 49, 3]), np.random.default_rng(0))
    >>> (6 * mechanism.decode(mechanism.aggregate(messages), 6))[[3, 7, 20, 49]].tolist(), mechanism.guarantee.epsilon
    ([2.0, 2.0, 1.0, 1.0], inf)
    >>> (2 * mechanism.decode(mechanism.aggregate(messages[:2]), 2))[[3, 7, 20, 49]].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    code: BernoulliCode | IdentityCode
    time_limit: float = 60.0
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the time limit."""
        object.__setattr__(self, "time_limit", check_real("time_limit", self.time_limit, low=0.0, high=LONGEST_TIME))

    @property
    def categories(self) -> int:  # type: ignore[override]
        """Number of items."""
        return self.code.dimension

    @property
    def clients(self) -> int:  # type: ignore[override]
        """Most clients that the modulus holds."""
        return self.code.clients

    @property
    def holder_variance(self) -> float:
        """0.0: what is decoded is exact."""
        return 0.0

    @property
    def other_variance(self) -> float:
        """0.0."""
        return 0.0

    @property
    def modulus(self) -> int:
        """That of the code, n + 1."""
        return self.code.modulus

    @property
    def padded_dimension(self) -> int:
        """Measurements of the code."""
        return self.code.measurements

    @property
    def coordinate_wrap_probability(self) -> float:
        """0.0: the modulus holds every sum of n columns."""
        return 0.0

    def noisy_steps(self, items: ArrayLike, words: WordsLike) -> IntegerArray:
        """Return the columns, without noise: `words` are not used."""
        word_source(words)
        return self.code.columns(self.domain.clip(items)).astype(np.int64)

    def summed_steps(self, items: ArrayLike, words: WordsLike) -> IntegerArray:
        """Return the sum of the columns."""
        word_source(words)
        return self.code.summed_columns(self.domain.clip(items))

    def encode(self, items: ArrayLike, words: WordsLike) -> NDArray[Any]:
        """Return the columns modulo M."""
        return messages_modulo(self.noisy_steps(items, words), self.modulus)

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages modulo M."""
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sums, from 0 to n."""
        return aggregate_residues(aggregate, self.padded_dimension, self.modulus).astype(np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return exact frequencies among the `clients` whose messages are in the sum, at most n; raises as `HistogramCode.decode`."""
        clients = check_integer("clients", clients, low=1, high=self.clients)
        return np.asarray(self.code.decode(aggregate, clients, time_limit=self.time_limit) / clients)

    def privacy(self) -> Privacy:
        """Nothing is proven (`exact_histogram_privacy`)."""
        return exact_histogram_privacy()
