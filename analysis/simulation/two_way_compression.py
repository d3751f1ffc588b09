"""Bytes of a federation in both directions, if returning clients get the missed messages.

The scheme is that of `model_history`, after Triastcyn, Reisser, Louizos 2021 (*DP-REC: Private & Communication-Efficient
Federated Learning*), algorithms 5 and 6; lengths are those of its packages. Bytes of the network's own protocols are not counted.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray, distinct
from ...design.federated.history_package import LONGEST_MESSAGE, full_model_bytes, history_package_bytes

LARGEST_POPULATION = 10**9
MOST_ROUNDS = 10**6
LARGEST_MODEL_BYTES = 2**40
# Largest number of clients in all rounds together, as memory allows.
MOST_VISITS = 2 * 10**7


@dataclass(frozen=True)
class TwoWayTotals:
    """Numbers of bytes of all rounds and all clients together.

    Attributes
    ----------
    bytes_up : int
        Number of bytes of messages to the server.
    bytes_down : int
        Number of bytes of packages to clients: histories, and models if these are shorter or no history suffices.
    expected_bytes_down : float
        Expected bytes down (`expected_bytes_down`).
    full_models : int
        Number of packages that hold the model.
    replayed_messages : int
        Number of messages in packages without the model, which clients have to decode.
    uncompressed_bytes : int
        Number of bytes of either direction without compression, with the model for each client of each round.
    """

    bytes_up: int
    bytes_down: int
    expected_bytes_down: float
    full_models: int
    replayed_messages: int
    uncompressed_bytes: int

    @property
    def compression_up(self) -> float:
        """Ratio of uncompressed bytes up to the bytes up."""
        return self.uncompressed_bytes / self.bytes_up

    @property
    def compression_down(self) -> float:
        """Ratio of uncompressed bytes down to the bytes down."""
        return self.uncompressed_bytes / self.bytes_down

    @property
    def compression(self) -> float:
        """Ratio of uncompressed bytes to all bytes, in both directions."""
        return 2 * self.uncompressed_bytes / (self.bytes_up + self.bytes_down)


@dataclass(frozen=True)
class _Lengths:
    """Numbers of bytes of a history of 0, 1, ... rounds, and of the model."""

    history: IntegerArray
    full: int


def simulate_participation(
    population: int,
    clients_per_round: int,
    rounds: int,
    model_bytes: int,
    message_bytes: int,
    rng: np.random.Generator,
    *,
    with_replacement: bool = True,
    public_start: bool = False,
    state_bytes: int | None = None,
) -> pd.DataFrame:
    """Draw the participants of each round, and count the bytes of each direction.

    A client that took part in round s, and comes back in round t, has the model from before round s. The server sends it the messages of
    rounds s to t - 1, or the model if that is shorter. All messages and packages arrive.

    Parameters
    ----------
    population : int
        Number of clients, 1 to 10**9.
    clients_per_round : int
        Number of messages of a round. With replacement, a client that is drawn twice sends two messages and gets one package.
    rounds : int
        Number of rounds, 1 to 10**6; at most 2 * 10**7 messages in all.
    model_bytes : int
        Number of bytes of the parameters, for example four times their number.
    message_bytes : int
        Number of bytes of a message, 1 to 2**20.
    rng : numpy.random.Generator
        Source of the draws.
    with_replacement : bool
        Whether the draws of a round are independent (DP-REC). Otherwise a round has different clients.
    public_start : bool
        Whether clients know the first model, from a public seed, so that new clients can replay all rounds, too. Otherwise they get the
        model.
    state_bytes : int or None
        Number of bytes of the parameters and of the optimiser's memory, which both replace a history; None for `model_bytes`, as with plain
        SGD.

    Returns
    -------
    DataFrame
        One row per round: ``round`` (from 1), ``clients`` (different ones), ``bytes_up``, ``bytes_down``, ``expected_bytes_down``,
        ``full_models`` (number of packages with the model), ``replayed_messages`` (in the other packages), ``uncompressed_bytes`` (of
        either direction: ``clients`` times ``model_bytes``).

    Examples
    --------
    >>> frame = simulate_participation(100, 10, 200, 4 * 431_080, 15, np.random.default_rng(0), public_start=True)
    >>> totals = communication_totals(frame)
    >>> totals.bytes_up, totals.full_models, totals.compression_up > 1e5, totals.compression_down > 1e3
    (30000, 0, True, True)
    """
    lengths = _package_lengths(population, clients_per_round, rounds, model_bytes, message_bytes, with_replacement, state_bytes)
    visits = _visits(population, clients_per_round, rounds, rng, with_replacement=with_replacement)
    client, moment = np.divmod(visits, rounds)
    comes_back = np.append(False, client[1:] == client[:-1])
    missed = np.where(comes_back, np.diff(moment, prepend=0), moment)
    full = lengths.history[missed] >= lengths.full
    if not public_start:
        full |= ~comes_back
    clients = np.bincount(moment, minlength=rounds)
    expected = expected_bytes_down(
        population,
        clients_per_round,
        rounds,
        model_bytes,
        message_bytes,
        with_replacement=with_replacement,
        public_start=public_start,
        state_bytes=state_bytes,
    )
    return pd.DataFrame(
        {
            "round": np.arange(1, rounds + 1),
            "clients": clients,
            "bytes_up": clients_per_round * message_bytes,
            "bytes_down": _sums(moment, np.where(full, lengths.full, lengths.history[missed]), rounds),
            "expected_bytes_down": expected,
            "full_models": np.bincount(moment[full], minlength=rounds),
            "replayed_messages": _sums(moment, np.where(full, 0, missed * clients_per_round), rounds),
            "uncompressed_bytes": clients * model_bytes,
        }
    )


def expected_bytes_down(
    population: int,
    clients_per_round: int,
    rounds: int,
    model_bytes: int,
    message_bytes: int,
    *,
    with_replacement: bool = True,
    public_start: bool = False,
    state_bytes: int | None = None,
) -> FloatArray:
    """Return the expected bytes down of each round, up to rounding.

    A client takes part in a round with probability p = 1 - (1 - 1 / population)**clients_per_round, or clients_per_round / population
    without replacement, independently of other rounds. A participant last took part g rounds ago with probability p (1 - p)**(g - 1), and
    is new in round t with probability (1 - p)**(t - 1).

    Parameters
    ----------
    population, clients_per_round, rounds, model_bytes, message_bytes, with_replacement, public_start, state_bytes
        Numbers and lengths, as in `simulate_participation`.

    Returns
    -------
    ndarray of shape (rounds,)
        Bytes of all packages of a round.

    Examples
    --------
    >>> expected_bytes_down(1, 1, rounds=3, model_bytes=1000, message_bytes=10).tolist()
    [1031.0, 43.0, 43.0]
    """
    lengths = _package_lengths(population, clients_per_round, rounds, model_bytes, message_bytes, with_replacement, state_bytes)
    absent = (1 - 1 / population) ** clients_per_round if with_replacement else 1 - clients_per_round / population
    present = 1 - absent
    never = absent ** np.arange(rounds)
    # The sum in round t runs over gaps of 1 to t - 1 rounds.
    shorter = np.minimum(lengths.history, lengths.full)
    returning = present * np.append(0.0, np.cumsum(never[:-1] * shorter[1:]))
    first = shorter if public_start else lengths.full
    return np.asarray(population * present * (returning + never * first))


def communication_totals(frame: pd.DataFrame) -> TwoWayTotals:
    """Add up all rounds of `simulate_participation`."""
    return TwoWayTotals(
        bytes_up=int(frame["bytes_up"].sum()),
        bytes_down=int(frame["bytes_down"].sum()),
        expected_bytes_down=float(frame["expected_bytes_down"].sum()),
        full_models=int(frame["full_models"].sum()),
        replayed_messages=int(frame["replayed_messages"].sum()),
        uncompressed_bytes=int(frame["uncompressed_bytes"].sum()),
    )


def _package_lengths(
    population: int,
    clients_per_round: int,
    rounds: int,
    model_bytes: int,
    message_bytes: int,
    with_replacement: bool,
    state_bytes: int | None,
) -> _Lengths:
    """Check the arguments, and return the lengths of all packages that can occur."""
    population = check_integer("population", population, low=1, high=LARGEST_POPULATION)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    most = MOST_VISITS // rounds if with_replacement else min(population, MOST_VISITS // rounds)
    clients_per_round = check_integer("clients_per_round", clients_per_round, low=1, high=most)
    model_bytes = check_integer("model_bytes", model_bytes, low=1, high=LARGEST_MODEL_BYTES)
    message_bytes = check_integer("message_bytes", message_bytes, low=1, high=LONGEST_MESSAGE)
    state_bytes = (
        model_bytes if state_bytes is None else check_integer("state_bytes", state_bytes, low=model_bytes, high=LARGEST_MODEL_BYTES)
    )
    history = [history_package_bytes(missed, missed * clients_per_round, message_bytes) for missed in range(rounds)]
    return _Lengths(np.array(history), full_model_bytes(state_bytes))


def _visits(population: int, clients_per_round: int, rounds: int, rng: np.random.Generator, *, with_replacement: bool) -> IntegerArray:
    """Return client * rounds + round of all visits, without duplicates and in order.

    A client's visits follow each other.
    """
    if with_replacement:
        draws = rng.integers(0, population, size=(rounds, clients_per_round))
    else:
        draws = np.stack([rng.choice(population, clients_per_round, replace=False, shuffle=False) for _ in range(rounds)])
    return distinct(draws * rounds + np.arange(rounds)[:, None])


def _sums(moment: IntegerArray, values: IntegerArray, rounds: int) -> IntegerArray:
    """Add up whole numbers by round, exactly."""
    sums = np.zeros(rounds, dtype=np.int64)
    np.add.at(sums, moment, values)
    return sums
