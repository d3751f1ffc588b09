"""A mean estimated by DP-REC, with a prior at zero or at a public vector.

Vectors are those of the published code of Chen, Kairouz, Özgür 2020, *Breaking the communication-privacy-accuracy trilemma*. Section D.2 of
Triastcyn, Reisser, Louizos 2021, *DP-REC*, compares DP-REC on them with the SQKR of that paper.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arguments import LARGEST_DIMENSION, MOST_CLIENTS, check_integer
from ...arrays import FloatArray
from ...design.relative_entropy.dp_rec import DpRecMechanism
from .dp_rec_law import draw_decoded
from .populations import CHUNK_COORDINATES

LOW_LEVEL, HIGH_LEVEL = 1.0, 10.0


@dataclass(frozen=True)
class SimulatedDpRecMean:
    """A round of DP-REC; errors are squared L2 distances from the mean of all unclipped vectors.

    Attributes
    ----------
    clients : int
        Number of clients.
    messages : int
        Number of messages: the number of clients or of draws.
    clipped : int
        Number of messages for clipped vectors, which were too far from the prior's mean.
    squared_error : float
        Squared error of the estimate.
    predicted_squared_error : float
        Expectation of `squared_error` over seeds and indices, given the vectors and the drawn clients: `squared_bias` and the messages'
        variances.
    squared_bias : float
        Squared error of the estimate's expectation, from coding, clipping, and the draw of clients.
    """

    clients: int
    messages: int
    clipped: int
    squared_error: float
    predicted_squared_error: float
    squared_bias: float


def two_level_chunks(clients: int, dimension: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield unit vectors of two kinds of clients, in chunks.

    Memory does not grow with the number of clients. Coordinates of the first half of the clients are independent N(10, 1), those of the
    others N(1, 1); then each vector is scaled to norm 1.

    Examples
    --------
    >>> mean = sum(chunk.sum(axis=0) for chunk in two_level_chunks(2000, 200, np.random.default_rng(0))) / 2000
    >>> round(float(mean @ mean), 2)
    0.72
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    size = max(1, CHUNK_COORDINATES // dimension)
    for start in range(0, clients, size):
        number = np.arange(start, min(start + size, clients))
        levels = np.where(number < (clients + 1) // 2, HIGH_LEVEL, LOW_LEVEL)[:, None]
        vectors = levels + rng.standard_normal((len(number), dimension))
        yield vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def equal_coordinates(dimension: int) -> FloatArray:
    """Return the unit vector of equal coordinates, 1 / sqrt(dimension).

    The vector is the better prior mean of section D.2. Vectors of the higher level have a squared distance of about 0.01 from it; vectors
    of the lower level, about 2 - sqrt(2).
    """
    return np.full(dimension, 1 / math.sqrt(check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)))


def simulate_dp_rec_mean(
    mechanism: DpRecMechanism,
    chunks: Iterable[FloatArray],
    rng: np.random.Generator,
    *,
    prior_mean: FloatArray | None = None,
    copies: NDArray[np.int64] | None = None,
    coded: bool = False,
) -> SimulatedDpRecMean:
    """Simulate DP-REC on chunks of clients' vectors, and compare the estimate with the mean.

    Parameters
    ----------
    mechanism : DpRecMechanism
        The mechanism; it clips and codes a vector's difference from the prior's mean.
    chunks : iterable of ndarray of shape (clients of the chunk, dimension)
        The vectors; one chunk is held at a time.
    rng : numpy.random.Generator
        Source of the mechanism's randomness; not the source of the vectors.
    prior_mean : ndarray of shape (dimension,) or None
        Mean of the public prior; None for zero.
    copies : ndarray of int, shape (clients,) or None
        Number of draws of each client; None for a single draw of each.
    coded : bool
        Whether to code and decode vectors. Otherwise decoded messages are drawn from their law, which is much faster.

    Returns
    -------
    SimulatedDpRecMean
        The result.

    Examples
    --------
    >>> from quietbits.design.relative_entropy.group_layout import uniform_layout
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> mechanism = DpRecMechanism(NormBall(dimension=200, norm=2.0), clip_ratio=1.0, layout=uniform_layout(200, groups=1, group_bits=7))
    >>> rng = np.random.default_rng(0)
    >>> result = simulate_dp_rec_mean(mechanism, two_level_chunks(1000, 200, rng), rng)
    >>> round(result.predicted_squared_error, 3), 0.15 < result.squared_error < 0.25
    (0.2, True)
    """
    dimension = mechanism.layout.dimension
    centre = np.zeros(dimension) if prior_mean is None else prior_mean
    clients = messages = clipped = 0
    variance = 0.0
    total, decoded, expected = (np.zeros(dimension) for _ in range(3))
    for chunk in chunks:
        sent = chunk
        if copies is not None:
            own = copies[clients : clients + len(chunk)]
            if len(own) != len(chunk):
                raise ValueError(
                    f"copies must have a number for each client, got {len(copies)} for at least {clients + len(chunk)} clients"
                )
            sent = np.repeat(chunk, own, axis=0)
        clients += len(chunk)
        total += chunk.sum(axis=0)
        differences = sent - centre
        messages += len(differences)
        clipped += mechanism.ball.clipped_count(differences)
        law = mechanism.law(differences)
        variance += float(law.variance.sum())
        expected += (mechanism.ball.clip(differences) + law.bias).sum(axis=0)
        if coded:
            decoded += mechanism.aggregate(mechanism.encode(differences, rng))
        else:
            decoded += draw_decoded(mechanism, differences, rng).sum(axis=0)
    if messages == 0:
        raise ValueError("chunks must hold at least one client that sends a message, got none")
    target = total / clients - centre
    squared_bias = float(np.sum((expected / messages - target) ** 2))
    return SimulatedDpRecMean(
        clients=clients,
        messages=messages,
        clipped=clipped,
        squared_error=float(np.sum((decoded / messages - target) ** 2)),
        predicted_squared_error=squared_bias + variance / messages**2,
        squared_bias=squared_bias,
    )
