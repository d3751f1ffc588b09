"""A small federation that learns handwritten digits with DP-REC's messages in one direction and the history of messages in the other.

Every message and every package is made and read: what a client computes on is what it has replayed, and bytes are lengths of bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...design.contracts.norm_ball import NormBall
from ...design.federated.model_history import Decode, ModelHistory, add_round, synchronise
from ...design.federated.model_state import ModelState
from ...design.federated.server_optimiser import ServerOptimiser
from ...design.relative_entropy.dp_rec import DpRecMechanism, dp_rec_account
from ...design.relative_entropy.group_layout import uniform_layout
from ..provenance_columns import with_provenance
from ..random_streams import named_stream
from .digit_gradients import digits

CLASSES = 10
PIXELS = 64
# A weight for each pixel and a constant, for each class.
DIMENSION = CLASSES * (PIXELS + 1)
TRAINING_EXAMPLES = 1437
MOST_ROUNDS = 10**4
BITS_PER_CLASS = 7


@dataclass(frozen=True, eq=False)
class DigitClients:
    """Handwritten digits, divided among clients.

    Attributes
    ----------
    features : tuple of ndarray of shape (examples of the client, 65)
        Pixels from 0 to 1 and a constant 1, for each client.
    labels : tuple of ndarray of shape (examples of the client,)
        Which digits they are, 0 to 9.
    test_features, test_labels : ndarray
        Those of 360 digits that no client has.
    """

    features: tuple[FloatArray, ...]
    labels: tuple[NDArray[np.int64], ...]
    test_features: FloatArray
    test_labels: NDArray[np.int64]


@dataclass(frozen=True)
class LocalTraining:
    """What a client does with the model before it sends an update: gradient steps of logistic regression on all its examples.

    Attributes
    ----------
    steps : int
        Number of steps, 1 to 1000.
    learning_rate : float
        Of each, above 0, up to 1000.
    """

    steps: int = 5
    learning_rate: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check_integer("steps", self.steps, low=1, high=1000)
        check_real("learning_rate", self.learning_rate, low=1e-6, high=1000.0)


def digit_clients(population: int, rng: np.random.Generator) -> DigitClients:
    """Divide scikit-learn's digits (1797 images of 8 by 8 pixels; Alpaydin, Kaynak 1998) among 1 to 1437 clients, at random.

    Examples
    --------
    >>> clients = digit_clients(100, np.random.default_rng(0))
    >>> len(clients.features), clients.features[0].shape, len(clients.test_labels)
    (100, (15, 65), 360)
    """
    population = check_integer("population", population, low=1, high=TRAINING_EXAMPLES)
    data = digits()
    order = rng.permutation(len(data.labels))
    features = np.column_stack([data.images, np.ones(len(order))])[order]
    labels = data.labels[order]
    return DigitClients(
        features=tuple(np.array_split(features[:TRAINING_EXAMPLES], population)),
        labels=tuple(np.array_split(labels[:TRAINING_EXAMPLES], population)),
        test_features=features[TRAINING_EXAMPLES:],
        test_labels=labels[TRAINING_EXAMPLES:],
    )


def digits_mechanism(clip_norm: float, clip_ratio: float, bits: int = BITS_PER_CLASS) -> DpRecMechanism:
    """Return DP-REC for the model of the digits, with a group of the given bits for each class.

    The largest norm of a client's update is `clip_norm`, and `clip_ratio` is that over the standard deviation of the prior.

    Examples
    --------
    >>> digits_mechanism(1.0, 1.0).bits_per_client
    136.0
    """
    return DpRecMechanism(NormBall(DIMENSION, 2.0, clip_norm), clip_ratio, uniform_layout(DIMENSION, CLASSES, bits))


def train_by_history(
    mechanism: DpRecMechanism | None,
    optimiser: ServerOptimiser,
    local: LocalTraining,
    *,
    population: int = 100,
    clients_per_round: int = 10,
    rounds: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Train a model of the digits in a federation whose clients replay what they have missed.

    The first model, of zeros, is public. Clients are drawn with replacement.

    Parameters
    ----------
    mechanism : DpRecMechanism or None
        How clients code their updates (`digits_mechanism`). None: as float32 numbers, neither clipped nor private.
    optimiser : ServerOptimiser
        What the server does with the mean of the decoded messages.
    local : LocalTraining
        What clients do.
    population : int
        Number of clients, 1 to 1437.
    clients_per_round : int
        Draws of a round, 1 to 1437.
    rounds : int
        Number of rounds, 1 to 10**4.
    seed : int
        Root seed: of who has which digits, who takes part, and what clients draw.

    Returns
    -------
    DataFrame
        One row per round: ``round`` (from 1), ``accuracy`` (of the model after it, on digits that no client has), ``clients`` (different
        ones), ``exact_clients`` (those that had the server's model, optimiser's memory included, to the last bit), ``full_models``,
        ``bytes_up``, ``bytes_down``, ``uncompressed_bytes`` (of either direction), ``published_epsilon`` (by DP-REC's accountant as it is
        published, which is not proven, after this round, at delta = population**-1.1; infinite where the bits are too few, and without a
        mechanism), ``delta``, ``adjacency``, ``trust_model``, and provenance.

    Examples
    --------
    >>> from quietbits.design.federated.server_optimiser import ServerSGD
    >>> frame = train_by_history(digits_mechanism(0.5, 1.0), ServerSGD(1.0), LocalTraining(), population=5, clients_per_round=2, rounds=3)
    >>> frame["bytes_up"].tolist(), bool((frame["clients"] == frame["exact_clients"]).all())
    ([34, 34, 34], True)
    """
    clients_per_round = check_integer("clients_per_round", clients_per_round, low=1, high=TRAINING_EXAMPLES)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    streams = [named_stream(seed, f"digits by history, {part}") for part in ("clients", "participation", "messages")]
    data = digit_clients(population, streams[0])
    encode, decode, message_bytes = _coder(mechanism, streams[2])
    history = ModelHistory(optimiser.start(np.zeros(DIMENSION, dtype=np.float32)), message_bytes)
    states: list[ModelState] = [history.state] * population
    rows = []
    for number in range(1, rounds + 1):
        drawn = streams[1].integers(0, population, size=clients_per_round).tolist()
        results = {client: synchronise(history, states[client], decode, optimiser) for client in sorted(set(drawn))}
        for client, result in results.items():
            states[client] = result.state
        server = history.state.to_bytes()
        messages = [encode(_local_update(states[client], data.features[client], data.labels[client], local)) for client in drawn]
        history = add_round(history, messages, decode, optimiser)
        rows.append(
            {
                "round": number,
                "accuracy": _accuracy(history.state, data),
                "clients": len(results),
                "exact_clients": sum(result.state.to_bytes() == server for result in results.values()),
                "full_models": sum(result.full_model for result in results.values()),
                "bytes_up": sum(map(len, messages)),
                "bytes_down": sum(result.bytes_down for result in results.values()),
                "uncompressed_bytes": len(results) * history.state.parameters.nbytes,
                "published_epsilon": _published_epsilon(mechanism, population, clients_per_round, number),
            }
        )
    promise = {"delta": population**-1.1, "adjacency": "add-or-remove-one", "trust_model": "central"}
    return with_provenance(pd.DataFrame(rows).assign(**promise), "digits by history", seed)


def _coder(mechanism: DpRecMechanism | None, rng: np.random.Generator) -> tuple[Callable[[FloatArray], bytes], Decode, int]:
    """Return how updates become bytes, how bytes become updates again, and the length of a message."""
    if mechanism is None:
        return (lambda update: update.astype("<f4").tobytes()), (lambda message: np.frombuffer(message, "<f4").astype(float)), 4 * DIMENSION

    # Clients that run in one process need not each decode the same messages for themselves: decoding is a function of the bytes.
    @lru_cache(maxsize=2**14)
    def decode(message: bytes) -> FloatArray:
        return mechanism.aggregate(np.frombuffer(message, dtype=np.uint8)[None])

    return (lambda update: mechanism.encode(update[None], rng)[0].tobytes()), decode, int(mechanism.bits_per_client) // 8


def _probabilities(weights: FloatArray, features: FloatArray) -> FloatArray:
    scores = features @ weights.T
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def _local_update(state: ModelState, features: FloatArray, labels: NDArray[np.int64], local: LocalTraining) -> FloatArray:
    """Return how far the client's own steps lead: gradients of the mean cross-entropy of its examples."""
    first = state.parameters.astype(float).reshape(CLASSES, PIXELS + 1)
    weights, targets = first, np.eye(CLASSES)[labels]
    for _ in range(local.steps):
        weights = weights - local.learning_rate * (_probabilities(weights, features) - targets).T @ features / len(labels)
    return np.asarray((weights - first).ravel())


def _accuracy(state: ModelState, data: DigitClients) -> float:
    scores = data.test_features @ state.parameters.astype(float).reshape(CLASSES, PIXELS + 1).T
    return float(np.mean(scores.argmax(axis=1) == data.test_labels))


def _published_epsilon(mechanism: DpRecMechanism | None, population: int, clients_per_round: int, rounds: int) -> float:
    if mechanism is None:
        return float("inf")
    account = dp_rec_account(mechanism.clip_ratio, population, clients_per_round, rounds, mechanism.layout.total_bits, population**-1.1)
    return account.epsilon_by("published")
