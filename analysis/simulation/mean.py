"""A simulated round of a mechanism for means, with the estimate's error and its prediction."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from ...design.contracts.error import MessageLaw
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.noise.random_words import SeededWords, WordsLike
from ...design.secure_sum.aggregation import SecureSum, SecureSumSession
from ...design.secure_sum.modular_arithmetic import messages_modulo, residues

# Number of neighbours that share masks; an even number is possible for every number of clients.
MASK_NEIGHBOURS = 20
# Number of draws of the noise for predictions of a single round; simulations average over rounds.
FEW_DRAWS = 2
# Largest number of message bits for items in memory.
MESSAGE_BITS = 2**31
# Largest number of coordinates of chunks that are joined for mechanisms that encode many clients faster.
JOINED = 2**22
# Number of masked numbers per batch, as a client with a short input may have a long message.
MOST_NUMBERS = 2**26


@dataclass(frozen=True)
class Wrapping:
    """Wrap-around of a modular sum.

    A server cannot know `wrapped_coordinates`; the other fields are known beforehand.

    Attributes
    ----------
    modulus : int
        Modulus M of the sum.
    padded_dimension : int
        Number of coordinates of a message.
    wrapped_coordinates : int
        Number of the padded coordinates that wrapped.
    wrapped_coordinates_bound : float
        Upper bound on the expected number of wrapped coordinates, over the randomness of the mechanism's bound.
    coordinate_wrap_probability, wrap_probability : float
        Upper bounds on the probability that a given coordinate wraps, and that any coordinate wraps.
    """

    modulus: int
    padded_dimension: int
    wrapped_coordinates: int
    wrapped_coordinates_bound: float
    coordinate_wrap_probability: float
    wrap_probability: float


@dataclass(frozen=True)
class SimulatedMean:
    """A simulated round; errors are squared L2 distances, in squared units of the inputs.

    Attributes
    ----------
    clients : int
        Number of clients.
    clipped : int
        Number of inputs outside the domain, which were clipped.
    squared_error : float
        Squared distance of the estimate from the mean of the clipped inputs, the cost of privacy and compression.
    unclipped_squared_error : float
        Squared distance of the estimate from the mean of the unclipped inputs.
    predicted_squared_error : float
        The mechanism's error at the mean of these inputs with their average variance (`Mechanism.predicted_error`), and the square of the
        bias if the mechanism knows it at these inputs. The sum is the expectation of `squared_error`, unless a modular sum wraps. A bias
        with only a known bound (`Mechanism.bias_bound`) is not included.
    worst_squared_error : float
        Largest expected error over the domain, with bias and without wrapping (`Mechanism.error`), which can be guaranteed before any input
        is known.
    zero_squared_error : float
        Squared distance of the mean of the clipped inputs from zero, or from the middle of the interval, which is the error of the answer
        without messages. It stays the same over many rounds, while an unbiased estimate's error falls.
    wrapping : Wrapping or None
        Wrap-around of a modular sum; None for mechanisms without a modular sum.
    """

    clients: int
    clipped: int
    squared_error: float
    unclipped_squared_error: float
    predicted_squared_error: float
    worst_squared_error: float
    zero_squared_error: float
    wrapping: Wrapping | None = None


def simulate_mean(mechanism: Mechanism, chunks: Iterable[ArrayLike], random_words: WordsLike, *, masked: bool = False) -> SimulatedMean:
    """Simulate a round on chunks of clients' inputs, and compare the estimate with the mean.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism, for means.
    chunks : iterable of array_like, each of shape (clients of the chunk,) or (clients of the chunk, dimension)
        The inputs, as `input_chunks` draws them; one chunk is held at a time, or a few short ones (`Mechanism.clients_per_call`). A
        secure sum needs the inputs of all of its clients, or of as many as its guarantee needs.
    random_words : WordSource or numpy.random.Generator
        Source of the mechanism's randomness; not the source of the inputs.
    masked : bool
        Whether `aggregation.SecureSum` masks messages, with 20 neighbours per client or all other clients. Masks come from a separate
        random stream, so that the result is the same but takes longer.

    Raises
    ------
    ValueError
        If there are no clients, a secure sum has another number of clients or fewer than two that mask, inputs are outside the mechanism's
        domain, or `masked` is set for a mechanism without a modular sum, or of the shuffled trust model.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=1000, bits=20, granularity=0.01, local_sigma=0.2, delta=1e-5)
    >>> result = simulate_mean(mechanism, [np.full((1000, 3), 0.5)], np.random.default_rng(0))
    >>> round(result.predicted_squared_error, 6), result.squared_error < 5 * result.predicted_squared_error
    (0.00012, True)
    >>> result.wrapping.wrapped_coordinates
    0
    """
    server = _server(mechanism, random_words, masked)
    domain = mechanism.domain
    clients = clipped = 0
    variance = 0.0
    input_sum, clipped_sum, bias_sum = (np.zeros(()) for _ in range(3))
    for chunk in _joined(chunks, mechanism.clients_per_call):
        inputs = np.asarray(domain.clip(chunk))
        clients += len(inputs)
        server.check_more(clients)
        clipped += domain.clipped_count(chunk)
        input_sum = input_sum + domain.total(np.asarray(chunk))
        clipped_sum = clipped_sum + domain.total(inputs)
        law = server.receive(chunk, random_words)
        variance += float(law.variance.sum())
        bias_sum = bias_sum + law.bias.sum(axis=0 if law.bias.ndim else None)
    answer = server.answer(clients)
    mean = clipped_sum / clients
    predicted = mechanism.predicted_error(mean, variance / clients, FEW_DRAWS).of_mean(clients)
    return SimulatedMean(
        clients=clients,
        clipped=clipped,
        squared_error=float(np.sum((answer.estimate - mean) ** 2)),
        unclipped_squared_error=float(np.sum((answer.estimate - input_sum / clients) ** 2)),
        predicted_squared_error=predicted + float(np.sum((bias_sum / clients) ** 2)),
        worst_squared_error=mechanism.error().of_mean(clients),
        zero_squared_error=float(np.sum((mean - domain.middle) ** 2)),
        wrapping=answer.wrapping,
    )


def _joined(chunks: Iterable[ArrayLike], clients: int) -> Iterator[ArrayLike]:
    """Yield chunks, joined until they have as many clients or 2**22 coordinates."""
    if clients == 1:
        yield from chunks
        return
    held: list[NDArray[Any]] = []
    for chunk in chunks:
        held.append(np.asarray(chunk))
        if sum(map(len, held)) >= clients or sum(map(np.size, held)) >= JOINED:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def aggregate_once(mechanism: Mechanism, inputs: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
    """Simulate a round, and return its aggregate.

    The function does not hold all long messages in memory at once.
    """
    server = _server(mechanism, random_words, masked=False)
    server.add_messages(inputs, random_words)
    return server.aggregate_of(len(np.asarray(inputs)))


def estimate_once(mechanism: Mechanism, inputs: ArrayLike, random_words: WordsLike) -> FloatArray:
    """Simulate a round, and return its estimate.

    The function does not hold all long messages in memory at once.
    """
    return np.asarray(mechanism.decode(aggregate_once(mechanism, inputs, random_words), len(np.asarray(inputs))))


@dataclass(frozen=True)
class _Answer:
    estimate: FloatArray
    wrapping: Wrapping | None


class _Server:
    """A server that adds up messages, and decodes them at the end."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.aggregate: NDArray[Any] | None = None

    def check_more(self, clients: int) -> None:
        """Refuse more clients than the round allows."""

    def receive(self, inputs: ArrayLike, random_words: WordsLike) -> MessageLaw:
        """Add up the messages of a chunk, and return their law."""
        law = self.mechanism.law(inputs)
        self.add_messages(inputs, random_words)
        return law

    def add_messages(self, inputs: ArrayLike, random_words: WordsLike) -> None:
        # An item is a single number with a message of any length, so all messages of a chunk may exceed the memory.
        held = np.asarray(inputs)
        at_once = max(1, int(MESSAGE_BITS // max(1.0, self.mechanism.bits_per_client))) if held.ndim == 1 else max(1, len(held))
        for start in range(0, len(held), at_once):
            part = self.mechanism.aggregate(self.mechanism.encode(held[start : start + at_once], random_words))
            self.aggregate = part if self.aggregate is None else self.mechanism.combine(self.aggregate, part)

    def aggregate_of(self, clients: int) -> NDArray[Any]:
        """Return the aggregate of all clients."""
        if self.aggregate is None or clients == 0:
            raise ValueError("chunks must hold at least one client, got none")
        return self.aggregate

    def answer(self, clients: int) -> _Answer:
        return _Answer(np.asarray(self.mechanism.decode(self.aggregate_of(clients), clients)), None)


class _ModularServer(_Server):
    """A server that adds up messages modulo M, masked or not.

    The server also keeps the sum of the unreduced whole numbers, which a real server cannot see.
    """

    def __init__(self, mechanism: SecureSumMechanism, session: SecureSumSession | None) -> None:
        self.sum, self.session = mechanism, session
        self.clients = 0
        # The sum cannot overflow. Vectors of 10**9 clients, of at most 2**31 steps, have a sum below 2**61; noise of 10**12 steps each has
        # a far smaller sum; and mechanisms whose messages cannot wrap have sums below the modulus.
        self.step_sum = np.zeros(mechanism.padded_dimension, dtype=np.int64)

    def check_more(self, clients: int) -> None:
        if clients > self.sum.clients:
            raise ValueError(self._other_clients(f"at least {clients}"))

    def receive(self, inputs: ArrayLike, random_words: WordsLike) -> MessageLaw:
        if self.session is None:
            return self.sum.add_steps(self.step_sum, inputs, random_words)
        self.add_messages(inputs, random_words)
        return self.sum.law(inputs)

    def add_messages(self, inputs: ArrayLike, random_words: WordsLike) -> None:
        if self.session is None:
            self.step_sum += self.sum.summed_steps(inputs, random_words)
            return
        # The code repeats `encode`, and records the whole numbers.
        chunk = np.asarray(inputs)
        at_once = max(1, MOST_NUMBERS // self.sum.padded_dimension)
        for start in range(0, len(chunk), at_once):
            noisy = self.sum.noisy_steps(chunk[start : start + at_once], random_words)
            self.step_sum += noisy.sum(axis=0)
            messages = self.session.mask(self.clients, messages_modulo(noisy, self.sum.modulus))
            self.session.receive(self.clients + np.arange(len(messages)), messages)
            self.clients += len(messages)

    def aggregate_of(self, clients: int) -> NDArray[Any]:
        if clients != self.sum.clients and (self.session is not None or not self.sum.fewest_clients <= clients <= self.sum.clients):
            raise ValueError(self._other_clients(str(clients)))
        return residues(self.step_sum, self.sum.modulus) if self.session is None else self.session.unmask()

    def answer(self, clients: int) -> _Answer:
        total = self.aggregate_of(clients)
        wrapping = Wrapping(
            modulus=self.sum.modulus,
            padded_dimension=self.sum.padded_dimension,
            wrapped_coordinates=int(np.count_nonzero(self.sum.recovered_steps(total) != self.step_sum)),
            wrapped_coordinates_bound=self.sum.padded_dimension * self.sum.coordinate_wrap_probability,
            coordinate_wrap_probability=self.sum.coordinate_wrap_probability,
            wrap_probability=self.sum.wrap_probability,
        )
        return _Answer(np.asarray(self.sum.decode(total, clients)), wrapping)

    def _other_clients(self, got: str) -> str:
        return f"chunks must hold the vectors of the mechanism's {self.sum.clients} clients, got {got}"


def _server(mechanism: Mechanism, random_words: WordsLike, masked: bool) -> _Server:
    if not isinstance(mechanism, SecureSumMechanism):
        if masked:
            raise ValueError("masked must be False for a mechanism whose messages are not added up modulo M, got True")
        return _Server(mechanism)
    if not masked:
        return _ModularServer(mechanism, None)
    if mechanism.privacy().trust_model == "shuffled":
        raise ValueError("masked must be False for a mechanism whose messages a shuffler mixes, got True")
    neighbours = min(MASK_NEIGHBOURS, mechanism.clients - 1)
    masks = SecureSum(mechanism.clients, mechanism.padded_dimension, mechanism.modulus, neighbours)
    return _ModularServer(mechanism, masks.session(_mask_words(random_words)))


def _mask_words(random_words: WordsLike) -> WordsLike:
    """Return words for masks that leave the mechanism's words unchanged, if possible."""
    rng = random_words.rng if isinstance(random_words, SeededWords) else random_words
    return rng.spawn(1)[0] if isinstance(rng, np.random.Generator) else random_words
