"""Interface of all mechanisms: messages, estimates with their errors, and privacy."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_real
from ...arrays import FloatArray, IntegerArray
from ...errors import InfeasibleError
from ...shown import ShownFields
from ...solvers.decoders.simplex_projection import project_onto_simplex
from .domains import Categories, Domain, Interval
from .error import Error, MessageLaw, VarianceParts
from .guarantee import Guarantee
from .joint_messages import JointMessages
from .norm_ball import NormBall
from .privacy import Privacy

if TYPE_CHECKING:
    from ..deployment.client_program import ClientProgram
    from ..noise.random_words import WordsLike

# Rounding error that computed frequencies may have.
FREQUENCY_ROUNDING = 1e-9
# Range of epsilon of mechanisms with closed formulas; tables, which a solver designs, have a narrower range.
EPSILON_LOW, EPSILON_HIGH = 1e-3, 100.0


MessageScore = Callable[[NDArray[Any]], FloatArray]
"""Returns a number for each message, or for each round where the server sees all messages of a round together (`joint_clients`)."""


class Mechanism(ShownFields, ABC):
    """A mechanism for the mean, or the frequencies, of clients' inputs.

    Each client reports one input. Clients are streamed in chunks: ``decode(combine(aggregate(chunk_1), aggregate(chunk_2)), clients)``. A
    frozen dataclass derives from one of the classes below and adds its own properties; this class has the common part. A purely private
    mechanism sets ``delta = 0.0``.

    Attributes
    ----------
    delta : float
        Failure probability that `guarantee` is stated at.
    """

    delta: float
    _shown_properties = MappingProxyType({"bits per client": "bits_per_client", "guarantee of one round": "guarantee"})

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The domain of a client's input.

        The domain's `clip` moves numbers and vectors into the domain, and refuses unknown items.
        """

    @property
    @abstractmethod
    def bits_per_client(self) -> float:
        """Number of bits of a message, or its mean where messages differ in length."""

    @property
    @abstractmethod
    def variance_bound(self) -> float:
        """Upper bound on `variance` over the domain.

        The bound holds for every input, so that it can be stated before any input is seen.
        """

    @property
    def bias_bound(self) -> float:
        """Upper bound on the norm of the estimate's bias; 0.0 for an unbiased mechanism.

        Inputs must not depend on public seeds. Some mechanisms average the bias over their public seed, as their documentation states.
        """
        return 0.0

    @property
    def seed_bias_bound(self) -> float:
        """Upper bound on the norm of the bias, wrap-around included, for seed-dependent inputs.

        The bound's square bounds the squared error that the noise's variance leaves out.
        """
        return self.bias_bound

    def known_bias(self, inputs: ArrayLike) -> FloatArray:  # noqa: ARG002
        """Return the bias of each decoded message, one per row, or a single 0.0.

        The bias is the mean of the decoded message less its clipped input. A single 0.0 stands for no bias, or for a bias with only a
        bound.
        """
        return np.zeros(())

    @property
    def wrap_probability(self) -> float:
        """Upper bound on the probability that any coordinate of a modular sum wraps."""
        return 0.0

    @property
    def worst_shared_variance(self) -> float:
        """Largest `shared_variance` over the domain; 0.0 where clients' errors are independent."""
        return 0.0

    def shared_variance(self, mean: FloatArray) -> float:  # noqa: ARG002
        """Return `Error.shared` for clients whose clipped inputs have the given mean."""
        return 0.0

    @property
    def decodes_linearly(self) -> bool:
        """Whether the estimate is a linear function of the sum of messages.

        The error then depends on the inputs only by their first two moments.
        """
        return True

    def predicted_error(self, mean: FloatArray, variance: float, draws: int = 64) -> Error:  # noqa: ARG002
        """Return the expected error of one round's estimate from the mean of the clipped inputs.

        `variance` is the average variance of the messages. `Error.bias` is the bias of decoding at this mean, without the bias of messages
        (`known_bias`) and wrap-around. Linear decoders have none. Other decoders average over `draws` of the noise and of the public
        randomness.
        """
        return Error(variance, shared=self.shared_variance(mean))

    def renewed(self, seed: int) -> Self:  # noqa: ARG002
        """Return the mechanism with new public randomness, for another round.

        A mechanism returns itself, unless `shared_variance` is an average over its public randomness.
        """
        return self

    @abstractmethod
    def encode(self, inputs: ArrayLike, random_words: "WordsLike") -> NDArray[Any]:
        """Return the messages of clients with these inputs, one message per row.

        `random_words` is the source of randomness: `seeded_words` or a generator for experiments that others can repeat, `secure_words` for
        releases. NaN, infinities and inputs of another shape raise ``ValueError``.
        """

    @abstractmethod
    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return the server's aggregate of messages: an array of fixed shape.

        `combine` adds up the aggregates of chunks of clients.
        """

    def client_program(self) -> "ClientProgram":
        """Return what a client computes in other languages, for `quietbits deploy`.

        Messages have the same law as those of `encode`, from other words. Raises ``InfeasibleError`` without such a program.
        """
        raise InfeasibleError(f"mechanism must have clients in other languages, got {type(self).__name__}, which has none")

    def standard_error(self, aggregate: NDArray[Any], clients: int) -> float:  # noqa: ARG002
        """Return the standard error of the estimate, in L2 distances, from the aggregate alone.

        The default is the bound that holds for all inputs.
        """
        return math.sqrt(self.error().of_mean(clients))

    def bits_of_messages(self, messages: NDArray[Any]) -> FloatArray:
        """Return the bits of each message, which vary only if `bits_per_client` is a mean."""
        return np.full(len(messages), self.bits_per_client)

    def combine(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        """Return the aggregate of two chunks' clients together."""
        return np.asarray(first + second)

    @abstractmethod
    def decode(self, aggregate: NDArray[Any], clients: int) -> Any:
        """Return the estimate from the aggregate of all clients."""

    @abstractmethod
    def variance(self, inputs: ArrayLike) -> FloatArray:
        """Return the expected squared distance of each decoded message from its mean.

        An unbiased mechanism's mean is the clipped input.
        """

    @abstractmethod
    def privacy(self) -> Privacy:
        """Return the privacy of one message by every account of the mechanism."""

    def facts(self) -> dict[str, Any]:
        """Return facts that `quietbits account` shows beside the parameters, by name.

        The facts are numbers, texts or None.
        """
        return {}

    def divergences(self, order: float) -> dict[str, float]:  # noqa: ARG002
        """Return Rényi divergences of a message at an order, by name; the default has none."""
        return {}

    @property
    def joint_clients(self) -> int | None:
        """Number of clients whose messages the server sees only together; None if it sees each message."""
        return None

    @property
    def clients_per_call(self) -> int:
        """Number of clients in a call of `encode` from which on more clients save little time; 1 if a client always takes the same time."""
        return 1

    @property
    def fewest_clients(self) -> int:
        """Smallest number of clients with whose messages the guarantee holds; 1 where clients do not hide each other."""
        return 1

    def for_clients(self, clients: int) -> Self:  # noqa: ARG002
        """Return the mechanism for another number of clients, such as the remaining clients.

        A mechanism whose server sees each message returns itself. Clients of a secure sum send the same messages, so that fewer clients add
        less noise; a trusted server adds the same noise. Raises ``InfeasibleError`` if messages depend on the number of clients.
        """
        return self

    def privacy_of(self, clients: int) -> Privacy:  # noqa: ARG002
        """Return the privacy of a round from which the messages of only a given number of clients arrive."""
        return self.privacy()

    def law(self, inputs: ArrayLike) -> MessageLaw:
        """Return bias and variance of each decoded message.

        The bias is 0.0 if the mechanism has only a bound (`known_bias`).
        """
        return MessageLaw(self.known_bias(inputs), self.variance(inputs))

    def variance_parts(self, inputs: ArrayLike) -> VarianceParts:
        """Return the variance of each decoded message by cause; the parts add up to that of `law`.

        The default does not know the parts.
        """
        variance = self.law(inputs).variance
        return VarianceParts.split(variance, unsplit=variance)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return a score of messages: large for the first input, small for the second.

        An audit distinguishes two neighbours by the score. Every score makes a valid audit; a log-likelihood ratio is the strongest. The
        default projects decoded messages on the difference of the inputs. If the server sees messages only together (`joint_clients`), the
        inputs are those of all clients, one per row, and messages have the shape (rounds, clients, ...). Secure sums have `sum_weights`
        instead.
        """
        clients = self.joint_clients
        totals = [self.domain.total(inputs if clients else inputs[None]) for inputs in (first, second)]
        difference = np.atleast_1d(totals[0] - totals[1])

        def decoded(messages: NDArray[Any]) -> FloatArray:
            # Short messages repeat, so each distinct message is decoded once.
            kinds, kind = np.unique(messages, axis=0, return_inverse=True)
            estimates = [self.decode(self.aggregate(message if clients else message[None]), clients or 1) for message in kinds]
            return np.asarray(np.reshape(estimates, (len(kinds), -1)) @ difference)[kind.ravel()]

        return decoded

    @property
    def vector_mechanism(self) -> "Mechanism":
        """The mechanism whose fields are the parameters.

        The value is the mechanism for vectors if numbers are sent as vectors, and otherwise the mechanism itself.
        """
        return self

    def error(self, inputs: ArrayLike | None = None) -> Error:
        """Return the average error for these inputs, or the worst error of the domain for None."""
        variance = self.variance_bound if inputs is None else float(np.mean(self.variance(inputs)))
        return Error(variance, self.bias_bound, self.wrap_probability, self.worst_shared_variance)

    @property
    def adjacency(self) -> str:
        """The adjacency of `guarantee`."""
        return "replace-one"

    @property
    def guarantee(self) -> Guarantee:
        """The proven guarantee of one round, at the mechanism's own delta and adjacency."""
        return self.privacy().guarantee(self.delta, self.adjacency)


class ScalarMechanism(Mechanism):
    """A mechanism for numbers from a public interval (low, high)."""

    interval: tuple[float, float]

    @property
    def domain(self) -> Interval:
        """The interval of the numbers."""
        return Interval(*self.interval)


@dataclass(frozen=True, eq=False)
class FrequencyEstimate:
    """An unbiased estimate of every item's frequency, with its standard error.

    Attributes
    ----------
    frequencies : ndarray, shape (categories,)
        Estimates, which may be negative.
    standard_errors : ndarray, shape (categories,)
        Standard deviations of the estimates, computed from the server's aggregate; 0.0 for an exact estimate.
    decoded : ndarray, shape (categories,)
        The return value of `Mechanism.decode`: the same frequencies, unless `decode` truncates or projects them.
    """

    frequencies: FloatArray
    standard_errors: FloatArray
    decoded: FloatArray

    def exceeds_noise(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Return for each item whether its estimate exceeds the threshold for noise.

        The threshold is a quantile of the normal distribution times the standard error. For normal errors, the probability that any item
        without holders exceeds it is at most `rate`, from 1e-15 to 0.5 (Bonferroni). The probability is larger if fewer than some tens of
        messages support an item.

        Examples
        --------
        >>> errors = np.full(3, 0.01)
        >>> FrequencyEstimate(np.array([0.9, 0.015, 0.085]), errors, errors).exceeds_noise().tolist()
        [True, False, True]
        """
        share = check_real("rate", rate, low=1e-15, high=0.5) / len(self.frequencies)
        return np.asarray(self.frequencies > -NormalDist().inv_cdf(share) * self.standard_errors)


class FrequencyMechanism(Mechanism):
    """A mechanism for the frequencies of items of a public list; estimates may be negative.

    Attributes
    ----------
    categories : int
        Number of items.
    """

    categories: int

    @property
    def domain(self) -> Categories:
        """The list of the items."""
        return Categories(self.categories)

    @property
    @abstractmethod
    def holder_variance(self) -> float:
        """Upper bound on the variance of one client's decoded frequency of its own item."""

    @property
    @abstractmethod
    def other_variance(self) -> float:
        """Upper bound on the variance of one client's decoded frequency of another item."""

    @property
    def variance_bound(self) -> float:
        """Upper bound on the summed variance of a client's decoded frequencies, for any held item.

        The variance is ``holder_variance + (categories - 1) other_variance``.
        """
        return self.holder_variance + (self.categories - 1) * self.other_variance

    def variance(self, items: ArrayLike) -> FloatArray:
        """Return `variance_bound` for each item."""
        return np.full(len(self.domain.clip(items)), self.variance_bound)

    def variance_parts(self, items: ArrayLike) -> VarianceParts:
        """Return `variance` as noise, since items are neither rounded nor compressed by private choices."""
        return VarianceParts.split(self.variance(items))

    def error(self, items: ArrayLike | None = None) -> Error:
        """Return the error of the frequencies for given items, or the worst error of the domain."""
        worst = super().error(items)
        if items is None or worst.shared == 0:
            return worst
        held = self.domain.clip(items)
        return replace(worst, shared=self.shared_variance(self.domain.total(held) / len(held)))

    def standard_errors(self, frequencies: ArrayLike, clients: int) -> FloatArray:
        """Return the standard error of each estimated frequency, for true frequencies.

        Estimated frequencies are no valid argument, since they may be negative and their sum is noisy; `estimate` returns the standard
        errors of estimates.
        """
        shares = check_frequencies(frequencies)
        return np.asarray(np.sqrt((shares * self.holder_variance + (1 - shares) * self.other_variance) / clients))

    def estimate(self, aggregate: NDArray[Any], clients: int) -> FrequencyEstimate:
        """Return an unbiased estimate of each frequency with its standard error.

        Standard errors are those at `likely_frequencies`.
        """
        decoded = np.asarray(self.decode(aggregate, clients), dtype=float)
        likely = self.likely_frequencies(decoded, aggregate, clients)
        return FrequencyEstimate(decoded, self.standard_errors(likely, clients), decoded)

    def likely_frequencies(self, decoded: FloatArray, aggregate: NDArray[Any], clients: int) -> FloatArray:  # noqa: ARG002
        """Return likely true frequencies, at which standard errors are computed.

        Items above the noise keep their estimates. The other items share the remainder of 1, by a projection: frequencies that are
        truncated at 0 individually have too large a sum, and so too large standard errors.
        """
        return np.asarray(self._likely(decoded[None, :], np.ones(1), clients)[0])

    def standing_frequency(self, clients: int) -> float:
        """Return a bound on the expected largest estimate of items that no client holds.

        The bound is for normal errors.
        """
        return math.sqrt(2 * math.log(self.categories) * self.other_variance / clients)

    def _likely(self, decoded: FloatArray, totals: FloatArray, clients: int) -> FloatArray:
        """Return likely frequencies of groups of items, shape (groups, items), with given sums."""
        threshold = self.standing_frequency(clients)
        standing = np.where(decoded > threshold, decoded, 0.0)
        sums = standing.sum(axis=1)
        standing *= (totals / np.maximum(np.maximum(sums, totals), 1e-300))[:, None]
        # This value lies so far below all other frequencies that the projection gives it no share.
        lowest = float(decoded.min()) - 2.0
        others = project_onto_simplex(np.where(decoded > threshold, lowest, decoded), np.maximum(totals - sums, 0.0))
        return np.where(decoded > threshold, standing, others)


class VectorMechanism(Mechanism):
    """A mechanism for vectors from a public ball."""

    ball: NormBall

    @property
    def domain(self) -> NormBall:
        """The ball of the vectors."""
        return self.ball

    @property
    def clips(self) -> bool:
        """Whether vectors outside the ball are clipped to it.

        Mechanisms without privacy may send vectors unclipped.
        """
        return True

    @property
    def memory_size(self) -> int:
        """Length of the server's memory in a training, such as an error memory; 0 without a memory.

        The server keeps this vector from round to round.
        """
        return 0

    def aggregated(self, vectors: ArrayLike, random_words: "WordsLike") -> NDArray[Any] | None:  # noqa: ARG002
        """Return the aggregate of new messages without making each message, or None if each is needed.

        Simulations use it for messages of `bits_per_client` bits. The aggregate is that of the messages of `encode` with the same random
        words, up to the rounding of sums.
        """
        return None

    def measured_mean(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the part of `decode` that is linear in the messages.

        The shape is (memory_size,) with a memory; a mechanism without a memory returns the estimate.
        """
        return np.asarray(self.decode(aggregate, clients))

    def decode_remembered(self, measured: FloatArray, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the estimate and the next memory from a measured mean and the memory."""
        return measured, memory

    def error(self, inputs: ArrayLike | None = None) -> Error:
        """Return the average error for these inputs, or the worst error of the domain for None."""
        worst = super().error(inputs)
        return worst if inputs is None else replace(worst, shared=self.shared_variance(self.ball.clip(inputs).mean(axis=0)))


class SecureSumMechanism(JointMessages, Mechanism):
    """A mechanism whose server sees only the sum of all clients' messages modulo M.

    A mechanism derives from this class and, after it, from the class of its domain, such as `VectorMechanism`.

    A message is the return value of `noisy_steps`, modulo M. The sum of messages determines the sum of the whole numbers if this sum is in
    the range of M numbers that `recovered_steps` chooses from. Otherwise the sum wraps around, with a probability that `wrap_probability`
    bounds.
    """

    @property
    @abstractmethod
    def modulus(self) -> int:
        """The modulus M, from 2 to 2**62.

        A message's coordinate takes log2(M) bits.
        """

    @property
    @abstractmethod
    def padded_dimension(self) -> int:
        """Number of coordinates of a message."""

    @property
    def bits_per_client(self) -> float:
        """Number of bits, ``padded_dimension * log2(M)``, without secure aggregation's overhead."""
        return self.padded_dimension * math.log2(self.modulus)

    @property
    @abstractmethod
    def coordinate_wrap_probability(self) -> float:
        """Upper bound on the probability that one coordinate of the sum wraps."""

    @abstractmethod
    def noisy_steps(self, inputs: ArrayLike, random_words: "WordsLike") -> IntegerArray:
        """Return each client's message before it is reduced modulo M, (clients, padded_dimension)."""

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism itself, and refuse another number of clients.

        Mechanisms whose messages do not depend on the number of clients override this method.
        """
        if clients != self.clients:
            raise InfeasibleError(f"clients must be {self.clients}, on which the messages depend, got {clients!r}")
        return self

    def summed_steps(self, inputs: ArrayLike, random_words: "WordsLike") -> IntegerArray:
        """Return the sum of `noisy_steps` over a chunk's clients, for simulations.

        Mechanisms draw the sum from its distribution, if they can, without each client's message.
        """
        return np.asarray(self.noisy_steps(inputs, random_words).sum(axis=0))

    def add_steps(self, total: IntegerArray, inputs: ArrayLike, random_words: "WordsLike") -> MessageLaw:
        """Add `summed_steps` to a total in place, and return the messages' law, for simulations."""
        total += self.summed_steps(inputs, random_words)
        return self.law(inputs)

    def noise_steps(self, count: int, random_words: "WordsLike") -> IntegerArray:  # noqa: ARG002
        """Return the messages of clients without an input, before they are reduced modulo M.

        The shape is (count, padded_dimension). Raises ``InfeasibleError`` if every client needs an input.
        """
        raise InfeasibleError(f"count must be 0 for {type(self).__name__}, whose clients all need an input, got {count!r}")

    def sum_weights(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Return weights of the sum's coordinates that distinguish the inputs of two rounds.

        The shape is (padded_dimension,). An audit projects the sum on the weights. The default is the projection of the decoded sum on the
        difference of the two means, for a `decode` that is linear in the sum's whole numbers, except for a constant.
        """
        difference = self.domain.total(self.domain.clip(first)) - self.domain.total(self.domain.clip(second))
        unit = np.zeros(self.padded_dimension, dtype=np.uint64)
        constant = np.dot(self.decode(unit, self.clients), difference)
        weights = np.empty(self.padded_dimension)
        for place in range(self.padded_dimension):
            unit[place] = 1
            weights[place] = np.dot(self.decode(unit, self.clients), difference) - constant
            unit[place] = 0
        return weights

    @abstractmethod
    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sum of `noisy_steps` from a sum of messages that does not wrap."""


def check_frequencies(frequencies: ArrayLike) -> FloatArray:
    """Return true frequencies as an array, each from 0 to 1 up to rounding."""
    shares = np.asarray(frequencies, dtype=float)
    # Comparisons with NaN are false.
    if not bool(np.all((shares >= -FREQUENCY_ROUNDING) & (shares <= 1 + FREQUENCY_ROUNDING))):
        raise ValueError(
            f"frequencies must be numbers from 0 to 1, got {shares.min():g} to {shares.max():g}: take `estimate` for estimates"
        )
    return np.asarray(np.clip(shares, 0.0, 1.0))


def check_vector_epsilon(epsilon: float) -> float:
    """Return epsilon of a vector mechanism with closed formulas as a float, from 1e-3 to 100."""
    return check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)
