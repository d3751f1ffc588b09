"""Secure sums without cryptography: each client splits its message into shares, and a shuffler mixes the shares.

The protocol is that of Ishai, Kushilevitz, Ostrovsky, Sahai 2006, *Cryptography from anonymity*, with the noise of a secure sum (Balle,
Bell, Gascón, Nissim 2020, *Private summation in the multi-message shuffle model*).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_probability
from ...arrays import FloatArray, WordArray
from ...errors import InfeasibleError
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.shuffled_shares import MOST_MESSAGES, shuffled_shares_distance
from ...solvers.numerics.rounding import SHORT_SLACK
from ..contracts.accounts import needing_delta
from ..contracts.error import VarianceParts
from ..contracts.mechanism import SecureSumMechanism, VectorMechanism
from ..contracts.norm_ball import NormBall
from ..contracts.privacy import Account, Bound, EpsilonBound, Privacy
from ..noise.random_words import WordsLike, word_source
from ..secure_sum.delegated_sum import DelegatedSum
from ..secure_sum.modular_arithmetic import MADE_TOGETHER, modular_subtract, modular_sum, summed_messages
from ..transforms.vector_dithering import row_blocks

# The exponential of a larger epsilon is no float.
LARGEST_EPSILON = 700.0
# Relative growth of an epsilon that is too small, and largest number of such steps.
GROWTH, MOST_STEPS = 1e-3, 100


@dataclass(frozen=True)
class SplitAndMix(DelegatedSum, VectorMechanism):
    """Clients split the messages of a secure sum into random shares, and a shuffler mixes the shares of each coordinate.

    A client draws all but one share of a coordinate uniformly modulo M; the last share makes their sum the coordinate of the secure sum's
    message. The server adds up all shares, which is the secure sum. The mixed shares show nothing else, except with a small probability
    that the number of messages determines (`mixing_distance`). All shares of a client must arrive: the sum without one of them is uniformly
    random. Every coordinate has a shuffler of its own, or a tag on its shares.

    Attributes
    ----------
    inner : SecureSumMechanism
        The secure sum of vectors.
    messages : int
        Shares of each coordinate, from 1 to 256.
    total_delta : float
        Failure probability of `guarantee`, above 0 and below 1, which includes that of mixing.

    Examples
    --------
    >>> from quietbits.design.secure_sum.distributed_discrete_laplace import DistributedDiscreteLaplaceMechanism
    >>> ball = NormBall(dimension=2, norm=1.0)
    >>> inner = DistributedDiscreteLaplaceMechanism(ball, clients=1000, bits=20, steps=100, scale=200.0)
    >>> mechanism = SplitAndMix(inner, messages=8, total_delta=1e-6)
    >>> print(mechanism.guarantee)
    epsilon = 0.999998, delta = 1e-06, replace-one adjacency, shuffled trust model
    >>> messages = mechanism.encode(np.tile([0.6, -0.4], (1000, 1)), np.random.default_rng(0))
    >>> messages.shape, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    ((1000, 2, 8), [0.6, -0.4])
    """

    inner: SecureSumMechanism
    messages: int
    total_delta: float

    def __post_init__(self) -> None:
        """Check the fields."""
        if not isinstance(self.inner, VectorMechanism):
            raise ValueError(f"inner must be a secure sum of vectors, got {self.inner!r}")
        object.__setattr__(self, "messages", check_integer("messages", self.messages, low=1, high=MOST_MESSAGES))
        object.__setattr__(self, "total_delta", check_probability("total_delta", self.total_delta))

    @property
    def ball(self) -> NormBall:  # type: ignore[override]
        """The ball of the vectors of `inner`."""
        ball = self.inner.domain
        assert isinstance(ball, NormBall)  # noqa: S101 - the domain of a mechanism for vectors
        return ball

    @property
    def delta(self) -> float:  # type: ignore[override]
        """The failure probability of the guarantee, `total_delta`."""
        return self.total_delta

    @property
    def bits_per_client(self) -> float:
        """Bits of all messages of a client together."""
        return self.messages * self.inner.bits_per_client

    @property
    def mixing_distance(self) -> float:
        """Upper bound on the total variation distance of the mixed shares from shares that show only the sums.

        The bound is for `fewest_clients`: shares of further clients are independent of theirs.
        """
        return self._distance(self.fewest_clients)

    def _distance(self, clients: int) -> float:
        return min(1.0, self.padded_dimension * shuffled_shares_distance(clients, self.messages, self.modulus))

    def privacy(self) -> Privacy:
        """Return the privacy of the mixed shares (`mixed_privacy`)."""
        return self.privacy_of(self.fewest_clients)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of the mixed shares of a number of clients."""
        return mixed_privacy(self.inner.privacy_of(clients), self._distance(clients))

    def facts(self) -> dict[str, Any]:
        """Return the error, the bound on the bias, and the distance of the mixed shares from the sum alone."""
        worst = self.error().of_mean(self.clients)
        return {"worst_squared_error": worst, "bias_bound": self.bias_bound, "mixing_distance": self.mixing_distance}

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance of `inner`."""
        return self.inner.variance_bound

    @property
    def bias_bound(self) -> float:
        """Upper bound on the bias of `inner`."""
        return self.inner.bias_bound

    @property
    def seed_bias_bound(self) -> float:
        """Upper bound on the bias of `inner` for seed-dependent vectors."""
        return self.inner.seed_bias_bound

    def variance(self, inputs: ArrayLike) -> FloatArray:
        """Return the variance of `inner` for each vector."""
        return self.inner.variance(inputs)

    def variance_parts(self, inputs: ArrayLike) -> VarianceParts:
        """Return the parts of the variance of `inner`."""
        return self.inner.variance_parts(inputs)

    def encode(self, inputs: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return the shares of each client's message, shape (clients, padded_dimension, messages)."""
        random_words = word_source(random_words)
        whole = self.inner.encode(inputs, random_words)
        shares = np.empty((*whole.shape, self.messages), dtype=whole.dtype)
        for rows in row_blocks(len(whole), self.padded_dimension * self.messages, MADE_TOGETHER):
            part = whole[rows].astype(np.uint64)
            drawn = random_words.integers(self.modulus, (self.messages - 1, *part.shape)).astype(np.uint64)
            shares[rows, :, :-1] = np.moveaxis(drawn, 0, -1)
            shares[rows, :, -1] = modular_subtract(part, modular_sum(drawn, self.modulus), self.modulus)
        return shares

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of all shares of each coordinate modulo M, in any order."""
        array = np.asarray(messages)
        if array.ndim != 3 or array.shape[1:] != (self.padded_dimension, self.messages):
            raise ValueError(f"messages must have the shape (clients, {self.padded_dimension}, {self.messages}), got {array.shape}")
        return summed_messages(np.moveaxis(array, -1, 1).reshape(-1, self.padded_dimension), self.padded_dimension, self.modulus)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the mean of the vectors by `inner`."""
        return np.asarray(self.inner.decode(aggregate, clients))

    def sum_weights(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Return the weights of `inner`, whose sum the server sees."""
        return self.inner.sum_weights(first, second)

    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        return np.asarray(inputs)


def mixed_privacy(inner: Privacy, distance: float) -> Privacy:
    """Return the privacy of a round whose view is close to that of a secure sum.

    The views of T rounds together are within T times the distance of the secure sums' views. So an (epsilon, d) guarantee of the sums is an
    (epsilon, d + (1 + e^epsilon) T distance) guarantee of the views. Each account of the sums becomes an account of the views with the same
    name, at a delta above 0.

    Parameters
    ----------
    inner : Privacy
        Privacy of the secure sum of a round.
    distance : float
        Total variation distance of a round's view, for any inputs, from a function of the secure sum.

    Examples
    --------
    >>> from quietbits import pure_privacy
    >>> privacy = mixed_privacy(pure_privacy(1.0, "secure-sum"), 1e-8)
    >>> round(privacy.epsilon(1e-6), 4), privacy.trust_model, privacy.epsilon(1e-8)
    (1.0, 'shuffled', inf)
    """
    accounts = tuple(
        replace(
            account,
            bound=needing_delta(_mixed_bound(account, distance)),
            at_delta_zero=False,
            curve=None,
            near_gaussian=None,
            losses=None,
        )
        for account in inner.accounts
    )
    return replace(inner, trust_model="shuffled", accounts=accounts)


def mixing_delta(epsilon: float, distance: float, rounds: int) -> float:
    """Return (1 + e^epsilon) times the distance of all rounds, rounded up: the delta that mixing costs."""
    if distance == 0:
        return 0.0
    return math.inf if epsilon > LARGEST_EPSILON else (1 + math.exp(epsilon)) * rounds * distance * (1 + SHORT_SLACK)


def _mixed_bound(account: Account, distance: float) -> Bound:
    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        def of_sums(epsilon: float) -> EpsilonBound:
            """Return the bound of the sums at the delta that mixing leaves at an epsilon."""
            left = delta - mixing_delta(epsilon, distance, rounds)
            if left < 0:
                raise InfeasibleError(f"delta must be larger, or messages more: mixing alone needs more than {delta:g}")
            return account.bound(left, rounds, sampling)

        tried = 0.0
        for _ in range(MOST_STEPS):
            least = of_sums(tried)
            if least.epsilon <= tried:
                # The delta left at a larger epsilon is smaller, so that the bound holds at its own epsilon.
                return least
            if math.isinf(least.epsilon):
                return least
            tried = least.epsilon * (1 if account.at_delta_zero else 1 + GROWTH)
        raise InfeasibleError("messages must be more: mixing leaves too little of delta")

    return bound
