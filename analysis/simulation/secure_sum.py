"""One round of a secure sum, simulated: what the estimate was off by, and how many coordinates wrapped, beside what was predicted."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, WordArray
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import EPSILON_HIGH, EPSILON_LOW, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.secure_sum.aggregation import SecureSum
from ...design.secure_sum.modular_arithmetic import messages_modulo, modular_add, modular_sum
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA
from ..random_streams import named_stream
from .vector_populations import check_population, population_chunks

MOST_REPETITIONS = 10**6
# An even number: every number of clients has a graph in which all have so many neighbours.
MASK_NEIGHBOURS = 20


@dataclass(frozen=True)
class SimulatedSecureSum:
    """One round: errors are squared L2 distances, in squared units of the vectors.

    No server could know `squared_error` or `wrapped_coordinates`: they are measured against the clients' own vectors and against the sum of
    their messages before the modulus, which only a simulation has. What is bounded or predicted is known beforehand.

    Attributes
    ----------
    clients : int
        Number of clients.
    dimension : int
        Length of their vectors.
    padded_dimension : int
        Number of coordinates of a message.
    modulus : int
        M, modulo which messages are added up.
    bits_per_coordinate : float
        log2(M): bits of a message's coordinate.
    bits_per_client : float
        Bits of a message.
    clipped : int
        How many vectors lay outside the ball and were clipped.
    squared_error : float
        Squared distance of the estimate from the mean of the clipped vectors.
    predicted_squared_error : float
        Sum of the mechanism's stated variances at these vectors, over the square of the number of clients: the expectation of
        `squared_error` for a mechanism without bias, as long as nothing wraps.
    worst_squared_error : float
        The mechanism's worst variance over the number of clients: what can be promised, but for bias and wrapping, without having seen a
        vector.
    central_gaussian_squared_error : float or None
        Expected squared error of the Gaussian noise that a trusted server would add, at the same epsilon, delta and adjacency. None where
        there is no such noise: for a delta of 0, or an epsilon outside 1e-3 to 100.
    wrapped_coordinates : int
        How many of the padded coordinates came back other than they were.
    wrapped_coordinates_bound : float
        Bound on their expected number, over the randomness that the mechanism's bound is for; errs upward.
    coordinate_wrap_probability : float
        Bound on the probability that one coordinate wraps; errs upward.
    wrap_probability : float
        Bound on the probability that any coordinate wraps; errs upward.
    epsilon, delta : float
        What each client is promised.
    adjacency : str
        Which data sets are neighbours.
    trust_model : str
        Against whom the promise holds.
    """

    clients: int
    dimension: int
    padded_dimension: int
    modulus: int
    bits_per_coordinate: float
    bits_per_client: float
    clipped: int
    squared_error: float
    predicted_squared_error: float
    worst_squared_error: float
    central_gaussian_squared_error: float | None
    wrapped_coordinates: int
    wrapped_coordinates_bound: float
    coordinate_wrap_probability: float
    wrap_probability: float
    epsilon: float
    delta: float
    adjacency: str
    trust_model: str

    @property
    def ratio_to_central(self) -> float | None:
        """The squared error over that of central Gaussian noise; None where there is no such noise."""
        return None if self.central_gaussian_squared_error is None else self.squared_error / self.central_gaussian_squared_error


def simulate_secure_sum(
    protocol: SecureSumMechanism, chunks: Iterable[FloatArray], rng: np.random.Generator, *, masked: bool = False
) -> SimulatedSecureSum:
    """Let clients send their messages into a secure sum, chunk after chunk, and compare what comes out with what went in.

    Parameters
    ----------
    protocol : SecureSumMechanism
        The mechanism.
    chunks : iterable of ndarray of shape (clients of the chunk, dimension)
        The vectors of all of the mechanism's clients; one chunk is held at a time.
    rng : numpy.random.Generator
        Source of the mechanism's randomness; another one than the vectors'.
    masked : bool
        Whether messages go through `aggregation.SecureSum`, each client masking with 20 others or with all, or are added up
        as they are. The result is the same, and takes longer: masks are drawn from a stream that `rng` spawns.

    Returns
    -------
    SimulatedSecureSum
        The result.

    Raises
    ------
    ValueError
        If there are more clients or fewer than the mechanism was made for, fewer than two that mask, the vectors are not of the mechanism's
        dimension, or a coordinate is not finite.

    Examples
    --------
    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=1000, bits=20, granularity=0.01, local_sigma=0.2, delta=1e-5)
    >>> result = simulate_secure_sum(mechanism, [np.full((1000, 3), 0.5)], np.random.default_rng(0))
    >>> round(result.predicted_squared_error, 6), result.squared_error < 5 * result.predicted_squared_error, result.wrapped_coordinates
    (0.00012, True, 0)
    """
    record = _Clients(protocol, rng)
    length, modulus = protocol.padded_dimension, protocol.modulus
    if masked:
        neighbours = min(MASK_NEIGHBOURS, protocol.clients - 1)
        aggregate = SecureSum(protocol.clients, length, modulus, neighbours).total(record.messages(chunks), rng.spawn(1)[0])
    else:
        aggregate = np.zeros(length, dtype=np.uint64)
        for messages in record.messages(chunks):
            aggregate = modular_add(aggregate, modular_sum(messages, modulus), modulus)
    return record.compare(aggregate)


class _Clients:
    """The side of the clients: sends messages, and keeps what no server sees, for comparison."""

    def __init__(self, protocol: SecureSumMechanism, rng: np.random.Generator) -> None:
        self.protocol, self.rng = protocol, rng
        self.clients = self.clipped = 0
        self.variance = 0.0
        self.vector_sum = np.zeros(protocol.ball.dimension)
        # No overflow: 10**9 clients' vectors of 2**31 steps at most are below 2**61, noise of 10**12 steps each is far smaller in sum, and
        # mechanisms whose messages cannot wrap have sums below the modulus.
        self.step_sum = np.zeros(protocol.padded_dimension, dtype=np.int64)

    def messages(self, chunks: Iterable[FloatArray]) -> Iterator[NDArray[np.unsignedinteger]]:
        """Yield the messages of each chunk: what `encode` returns, with the whole numbers behind it noted."""
        ball = self.protocol.ball
        for chunk in chunks:
            self.clients += len(chunk)
            if self.clients > self.protocol.clients:
                break
            self.clipped += ball.clipped_count(chunk)
            self.vector_sum += ball.clip(chunk).sum(axis=0)
            self.variance += float(self.protocol.variance(chunk).sum())
            steps = self.protocol.noisy_steps(chunk, self.rng)
            self.step_sum += steps.sum(axis=0)
            yield messages_modulo(steps, self.protocol.modulus)
        if self.clients != self.protocol.clients:
            found = f"at least {self.clients}" if self.clients > self.protocol.clients else str(self.clients)
            raise ValueError(f"chunks must hold the vectors of the mechanism's {self.protocol.clients} clients, got {found}")

    def compare(self, aggregate: WordArray) -> SimulatedSecureSum:
        """Return what the server makes of the sum, beside what it was."""
        protocol, clients = self.protocol, self.clients
        ball, guarantee = protocol.ball, protocol.guarantee
        estimate = protocol.decode(aggregate, clients)
        return SimulatedSecureSum(
            clients=clients,
            dimension=ball.dimension,
            padded_dimension=protocol.padded_dimension,
            modulus=protocol.modulus,
            bits_per_coordinate=float(np.log2(protocol.modulus)),
            bits_per_client=protocol.bits_per_client,
            clipped=self.clipped,
            squared_error=float(np.sum((estimate - self.vector_sum / clients) ** 2)),
            predicted_squared_error=self.variance / clients**2,
            worst_squared_error=protocol.worst_variance / clients,
            central_gaussian_squared_error=_central_error(ball, clients, guarantee),
            wrapped_coordinates=int(np.count_nonzero(protocol.recovered_steps(aggregate) != self.step_sum)),
            wrapped_coordinates_bound=protocol.padded_dimension * protocol.coordinate_wrap_probability,
            coordinate_wrap_probability=protocol.coordinate_wrap_probability,
            wrap_probability=protocol.wrap_probability,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            adjacency=guarantee.adjacency,
            trust_model=guarantee.trust_model,
        )


def _central_error(ball: NormBall, clients: int, guarantee: Guarantee) -> float | None:
    if not (EPSILON_LOW <= guarantee.epsilon <= EPSILON_HIGH and SMALLEST_DELTA <= guarantee.delta <= LARGEST_DELTA):
        return None
    return central_gaussian_error(ball, clients, guarantee.epsilon, guarantee.delta, guarantee.adjacency)


def repeat_secure_sum(
    protocol: SecureSumMechanism, population: str, repetitions: int, *, seed: int = 0, nonzero: int | None = None, masked: bool = False
) -> pd.DataFrame:
    """Simulate several rounds of one mechanism, with the same public rotation, vectors and noise drawn anew each time.

    Parameters
    ----------
    protocol : SecureSumMechanism
        The mechanism.
    population : str
        Whence the vectors come, as in `population_chunks`, scaled by the ball's clip_norm.
    repetitions : int
        Number of rounds, from 1 to 10**6.
    seed : int
        Root seed: a round's vectors and noise depend on it and on the round's number only.
    nonzero : int or None
        Of the population, as there.
    masked : bool
        As in `simulate_secure_sum`.

    Returns
    -------
    DataFrame
        One row per round: `repetition`, `seed`, `population`, the fields of `SimulatedSecureSum` and its `ratio_to_central`; what is None
        there is missing.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    check_population(population, nonzero)
    repetitions = check_integer("repetitions", repetitions, low=1, high=MOST_REPETITIONS)
    rows = []
    for repetition in range(repetitions):
        vectors, noise = (named_stream(seed, f"secure sum, repetition {repetition}, {part}") for part in ("vectors", "noise"))
        ball = protocol.ball
        chunks = population_chunks(population, protocol.clients, ball.dimension, vectors, scale=ball.clip_norm, nonzero=nonzero)
        result = simulate_secure_sum(protocol, chunks, noise, masked=masked)
        head = {"repetition": repetition, "seed": seed, "population": population}
        rows.append(head | asdict(result) | {"ratio_to_central": result.ratio_to_central})
    columns_with_gaps = ["central_gaussian_squared_error", "ratio_to_central"]
    return pd.DataFrame(rows).astype(dict.fromkeys(columns_with_gaps, float))
