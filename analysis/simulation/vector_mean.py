"""The mean of vectors, estimated by one mechanism from one population: what it was off by, beside what was predicted."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...design.contracts.mechanism import VectorMechanism


@dataclass(frozen=True)
class SimulatedVectorMean:
    """One run: errors are squared L2 distances, in squared units of the vectors.

    Attributes
    ----------
    clients : int
        Number of clients.
    clipped : int
        How many of their vectors lay outside the ball and were clipped.
    squared_error : float
        Squared distance of the estimate from the mean of the clipped vectors: what privacy and compression cost. Its expectation is
        `predicted_squared_error` for a mechanism without bias.
    unclipped_squared_error : float
        Squared distance of the estimate from the mean of the vectors as they were: clipping included.
    predicted_squared_error : float
        Sum of the mechanism's stated variances at these vectors, over the square of the number of clients.
    worst_squared_error : float
        The mechanism's worst variance over the number of clients: what can be promised without having seen a vector.
    """

    clients: int
    clipped: int
    squared_error: float
    unclipped_squared_error: float
    predicted_squared_error: float
    worst_squared_error: float


def simulate_vector_mean(protocol: VectorMechanism, chunks: Iterable[FloatArray], rng: np.random.Generator) -> SimulatedVectorMean:
    """Let clients report their vectors, chunk after chunk, and compare the estimate with the true mean.

    Parameters
    ----------
    protocol : VectorMechanism
        The mechanism.
    chunks : iterable of ndarray of shape (clients of the chunk, dimension)
        The vectors, as `population_chunks` draws them; one chunk is held at a time.
    rng : numpy.random.Generator
        Source of the mechanism's randomness; another one than the vectors'.

    Returns
    -------
    SimulatedVectorMean
        The result.

    Raises
    ------
    ValueError
        If there are no clients, or the vectors are not of the mechanism's dimension, or a coordinate is not finite.
    """
    ball = protocol.ball
    clients = clipped = 0
    variance = 0.0
    aggregate = None
    raw_sum, clipped_sum = np.zeros(ball.dimension), np.zeros(ball.dimension)
    for chunk in chunks:
        vectors = ball.clip(chunk)
        clients += len(vectors)
        clipped += ball.clipped_count(chunk)
        raw_sum += np.sum(chunk, axis=0)
        clipped_sum += vectors.sum(axis=0)
        variance += float(protocol.variance(chunk).sum())
        part = protocol.aggregate(protocol.encode(chunk, rng))
        aggregate = part if aggregate is None else aggregate + part
    if aggregate is None or clients == 0:
        raise ValueError("chunks must hold at least one client, got none")
    estimate = protocol.decode(aggregate, clients)
    return SimulatedVectorMean(
        clients=clients,
        clipped=clipped,
        squared_error=float(np.sum((estimate - clipped_sum / clients) ** 2)),
        unclipped_squared_error=float(np.sum((estimate - raw_sum / clients) ** 2)),
        predicted_squared_error=variance / clients**2,
        worst_squared_error=protocol.worst_variance / clients,
    )
