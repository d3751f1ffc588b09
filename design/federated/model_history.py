"""Past rounds' messages at the server, which clients replay instead of a download.

Triastcyn, Reisser, Louizos 2021 (*DP-REC: Private & Communication-Efficient Federated Learning*), algorithms 5 and 6: the model is a
function of the first model and of all messages, and a history of messages of a few bytes is shorter than the model. Any coder whose
decoding gives the same bits on every machine is suitable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray
from ...errors import DataError
from .history_package import (
    LONGEST_MESSAGE,
    FullModelPackage,
    HistoryPackage,
    check_messages,
    full_model_bytes,
    history_package_bytes,
    read_package,
)
from .model_state import MOST_STATE_ROUNDS, ModelState
from .server_optimiser import ServerOptimiser

Decode = Callable[[bytes], FloatArray]
"""Decoder of a message into an update vector, the same bits on every machine; ``ValueError`` for other bytes."""

Deliver = Callable[[bytes], bytes]
"""Channel that takes a package and returns the bytes that arrive."""


@dataclass(frozen=True)
class ModelHistory:
    """The server's record: the current model, and the messages of the last rounds.

    Messages are kept without their senders, and the messages of a round in the order of their bytes: a history reveals nothing beyond the
    messages themselves.

    Attributes
    ----------
    state : ModelState
        The model and its optimiser's memory.
    message_bytes : int
        Number of bytes of a message, 1 to 2**20.
    rounds : tuple of tuple of bytes
        Messages of the last rounds, oldest first. Rounds that would make a package as long as the model are dropped, because no client
        needs them.
    retain : int or None
        Largest number of rounds to keep; None keeps all useful rounds.
    """

    state: ModelState
    message_bytes: int
    rounds: tuple[tuple[bytes, ...], ...] = ()
    retain: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers, and drop rounds that are not useful."""
        check_integer("message_bytes", self.message_bytes, low=1, high=LONGEST_MESSAGE)
        check_integer("number of rounds", len(self.rounds), low=0, high=self.state.rounds)
        if self.retain is not None:
            check_integer("retain", self.retain, low=0, high=MOST_STATE_ROUNDS)
        kept = len(self.rounds) if self.retain is None else min(self.retain, len(self.rounds))
        messages = sum(len(messages_of_round) for messages_of_round in self.rounds[len(self.rounds) - kept :])
        while kept and history_package_bytes(kept, messages, self.message_bytes) >= full_model_bytes(self.state.state_bytes):
            messages -= len(self.rounds[len(self.rounds) - kept])
            kept -= 1
        object.__setattr__(self, "rounds", self.rounds[len(self.rounds) - kept :])

    @property
    def first_round(self) -> int:
        """Number of rounds that the oldest model includes that the history can update."""
        return self.state.rounds - len(self.rounds)

    @cached_property
    def checksum(self) -> bytes:
        """Checksum of the current state."""
        return self.state.checksum()


def replay_round(state: ModelState, messages: Sequence[bytes], decode: Decode, optimiser: ServerOptimiser) -> ModelState:
    """Return the state after a round, with the same bits at the server and at every client.

    Parameters
    ----------
    state : ModelState
        The state before the round.
    messages : sequence of bytes
        The messages; they are decoded and added up, in float64, in this order. Without messages, only the number of rounds grows.
    decode : Decode
        Function that decodes a message, as the coder's receiver does.
    optimiser : ServerOptimiser
        Optimiser that takes a step by the mean update.

    Raises
    ------
    ValueError
        If a message cannot be decoded, its update has another length than the model, or a number of the result is not finite.

    Examples
    --------
    >>> from quietbits.design.federated.server_optimiser import ServerSGD
    >>> optimiser = ServerSGD(learning_rate=1.0)
    >>> state = optimiser.start(np.zeros(2, dtype=np.float32))
    >>> replay_round(state, [b"ab", b"cd"], lambda message: np.array(list(message), dtype=float), optimiser).parameters.tolist()
    [98.0, 99.0]
    """
    if not messages:
        return replace(state, rounds=state.rounds + 1)
    total = np.zeros(state.dimension)
    for message in messages:
        update = decode(message)
        if update.shape != total.shape:
            raise ValueError(f"decode must return vectors of shape {total.shape}, got {update.shape}")
        total += update
    return optimiser.step(state, total / len(messages))


def add_round(history: ModelHistory, messages: Sequence[bytes], decode: Decode, optimiser: ServerOptimiser) -> ModelHistory:
    """Return the server's history after another round, from its messages in any order.

    The function raises ``ValueError`` for a message of another length than agreed, and for a message that `replay_round` refuses; the
    server omits such messages.
    """
    check_messages(messages, history.message_bytes)
    ordered = tuple(sorted(messages))
    state = replay_round(history.state, ordered, decode, optimiser)
    return replace(history, state=state, rounds=(*history.rounds, ordered))


def catch_up_package(history: ModelHistory, last_round: int | None) -> HistoryPackage | FullModelPackage:
    """Return the shortest package that brings a client up to date.

    The package holds the missed messages if the history has them and they are shorter than the model, and otherwise the model.

    Parameters
    ----------
    history : ModelHistory
        The server's history.
    last_round : int or None
        Number of rounds that the client's model includes: 0 for a public first model, such as a model drawn from a public seed. None if the
        client has no model.

    Examples
    --------
    >>> from quietbits.design.federated.server_optimiser import ServerSGD
    >>> optimiser = ServerSGD(learning_rate=1.0)
    >>> history = ModelHistory(optimiser.start(np.zeros(100, dtype=np.float32)), message_bytes=2)
    >>> for _ in range(3):
    ...     history = add_round(history, [b"ab", b"cd"], lambda message: np.full(100, float(message[0])), optimiser)
    >>> len(catch_up_package(history, last_round=0).to_bytes()), len(catch_up_package(history, last_round=None).to_bytes())
    (53, 431)
    """
    if last_round is None:
        return FullModelPackage(history.state)
    last_round = check_integer("last_round", last_round, low=0, high=history.state.rounds)
    if last_round < history.first_round:
        return FullModelPackage(history.state)
    # All kept rounds together are shorter than the model.
    missed = history.rounds[last_round - history.first_round :]
    return HistoryPackage(last_round, missed, history.message_bytes, history.checksum)


def apply_package(
    content: bytes, state: ModelState | None, decode: Decode, optimiser: ServerOptimiser, *, rollback: bool = False
) -> ModelState:
    """Return the server's state from the bytes that arrived, checked by the package's checksum.

    Parameters
    ----------
    content : bytes
        The bytes that arrived. They may begin with rounds that the client already has.
    state : ModelState or None
        The client's state, if it has a state; it is not changed.
    decode, optimiser
        The server's decoder and optimiser, as in `replay_round`.
    rollback : bool
        Whether to accept a whole model of fewer rounds than the client's model, or of another number or type of parameters or moments, as a
        server that starts again sends it.

    Raises
    ------
    DataError
        If the package is damaged, does not fit the client's state, or leads to a state with another checksum. The client then asks for the
        whole model.
    """
    package = read_package(content)
    if isinstance(package, FullModelPackage):
        if state is not None and not rollback:
            _check_successor(package.state, state)
        return package.state
    if state is None:
        raise DataError("package: a history cannot be used without a model")
    present = state.rounds - package.start_round
    if not 0 <= present <= len(package.rounds):
        reach = f"from round {package.start_round} to {package.end_round}"
        raise DataError(f"package: leads {reach}, the client's model has been through {state.rounds} rounds")
    try:
        for messages in package.rounds[present:]:
            state = replay_round(state, messages, decode, optimiser)
    except ValueError as error:
        raise DataError(f"package: {error}") from error
    if state.checksum() != package.checksum:
        got, stated = state.checksum().hex(), package.checksum.hex()
        raise DataError(f"package: replayed, the model has the checksum {got}, the server's has {stated}")
    return state


def _check_successor(received: ModelState, state: ModelState) -> None:
    """Refuse a model that cannot follow the client's model.

    An old model may be a replay attack.
    """
    if received.rounds < state.rounds:
        through = f"{received.rounds} rounds, the client's through {state.rounds}"
        raise DataError(f"package: the model has been through {through}: rollback is refused")
    shapes = [(model.dimension, model.parameters.dtype.name, len(model.moments)) for model in (received, state)]
    if shapes[0] != shapes[1]:
        stated, own = (f"{dimension} parameters of {kind} with {moments} moments" for dimension, kind, moments in shapes)
        raise DataError(f"package: the model has {stated}, the client's has {own}")


@dataclass(frozen=True)
class Synchronisation:
    """The result of bringing a client up to date.

    Attributes
    ----------
    state : ModelState
        The client's new state, which equals the server's.
    bytes_down : int
        Number of bytes that the server sent, including bytes that did not arrive.
    full_model : bool
        Whether the whole model was sent.
    resent : bool
        Whether the first package was lost or damaged.
    """

    state: ModelState
    bytes_down: int
    full_model: bool
    resent: bool


def synchronise(
    history: ModelHistory, state: ModelState | None, decode: Decode, optimiser: ServerOptimiser, deliver: Deliver = bytes
) -> Synchronisation:
    """Bring a client up to date by the shorter package, or by the whole model if that fails.

    Parameters
    ----------
    history : ModelHistory
        The server's history.
    state : ModelState or None
        The client's state, if it has one.
    decode, optimiser
        The server's decoder and optimiser, as in `replay_round`.
    deliver : Deliver
        The channel of packages; by default, all packages arrive unchanged. A lost package arrives as no bytes.

    Raises
    ------
    DataError
        If the whole model was lost or damaged as well: the client keeps its state, and cannot take part in this round.
    """
    package = catch_up_package(history, None if state is None else state.rounds)
    sent = package.to_bytes()
    try:
        caught_up = apply_package(deliver(sent), state, decode, optimiser)
    except DataError:
        whole = FullModelPackage(history.state).to_bytes()
        caught_up = apply_package(deliver(whole), state, decode, optimiser)
        return Synchronisation(caught_up, len(sent) + len(whole), full_model=True, resent=True)
    return Synchronisation(caught_up, len(sent), isinstance(package, FullModelPackage), resent=False)
