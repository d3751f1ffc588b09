"""Packages that update a client's model: the messages of missed rounds, or the whole model.

A package states the checksum of the state that it leads to, which detects accidental loss or change. A checksum is not a signature: an
attacker who changes a package can change its checksum as well.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arguments import check_integer
from ...errors import DataError
from .model_state import CHECKSUM_BYTES, MOST_STATE_ROUNDS, ModelState

# The head of a history holds the kind, first round, number of rounds, bytes of a message, and the checksum.
_HISTORY_HEAD = struct.Struct(f"<cIII{CHECKSUM_BYTES}s")
# The head of a model holds the kind, rounds, bytes of a number, number of moments, dimension, and the checksum.
_MODEL_HEAD = struct.Struct(f"<cIBBQ{CHECKSUM_BYTES}s")
# The head of a round holds its number of messages.
_COUNT = struct.Struct("<I")
_HISTORY_KIND, _MODEL_KIND = b"H", b"M"

HISTORY_HEADER_BYTES = _HISTORY_HEAD.size
MODEL_HEADER_BYTES = _MODEL_HEAD.size
ROUND_HEADER_BYTES = _COUNT.size
LONGEST_MESSAGE = 2**20
MOST_MOMENTS = 2


@dataclass(frozen=True)
class HistoryPackage:
    """Messages of consecutive rounds, as a package.

    Attributes
    ----------
    start_round : int
        Number of rounds of the model before the first of these rounds.
    rounds : tuple of tuple of bytes
        The messages of each round, all of the same length, in the order in which the server added them up.
    message_bytes : int
        Number of bytes of a message, 1 to 2**20.
    checksum : bytes
        Checksum of the state after the last of these rounds: 16 bytes.

    Examples
    --------
    >>> package = HistoryPackage(7, ((b"ab", b"cd"), (b"ef",)), message_bytes=2, checksum=bytes(16))
    >>> package.end_round, len(package.to_bytes()) == history_package_bytes(rounds=2, messages=3, message_bytes=2)
    (9, True)
    >>> read_package(package.to_bytes()) == package
    True
    """

    start_round: int
    rounds: tuple[tuple[bytes, ...], ...]
    message_bytes: int
    checksum: bytes

    def __post_init__(self) -> None:
        """Refuse values that the format cannot hold."""
        check_integer("start_round", self.start_round, low=0, high=MOST_STATE_ROUNDS)
        check_integer("start_round plus the number of rounds", self.end_round, low=0, high=MOST_STATE_ROUNDS)
        check_integer("message_bytes", self.message_bytes, low=1, high=LONGEST_MESSAGE)
        for messages in self.rounds:
            check_messages(messages, self.message_bytes)
        if len(self.checksum) != CHECKSUM_BYTES:
            raise ValueError(f"checksum must have {CHECKSUM_BYTES} bytes, got {len(self.checksum)}")

    @property
    def end_round(self) -> int:
        """Number of rounds of the model after the last of these rounds."""
        return self.start_round + len(self.rounds)

    def to_bytes(self) -> bytes:
        """Return the bytes to send; `read_package` reads them."""
        head = _HISTORY_HEAD.pack(_HISTORY_KIND, self.start_round, len(self.rounds), self.message_bytes, self.checksum)
        return head + b"".join(_COUNT.pack(len(messages)) + b"".join(messages) for messages in self.rounds)


@dataclass(frozen=True)
class FullModelPackage:
    """The whole model as a package, with up to two moments of its optimiser for later replays.

    Examples
    --------
    >>> package = FullModelPackage(ModelState(rounds=3, parameters=np.ones(2, dtype=np.float32)))
    >>> len(package.to_bytes()) == full_model_bytes(state_bytes=8)
    True
    >>> read_package(package.to_bytes()).state.parameters.tolist()
    [1.0, 1.0]
    """

    state: ModelState

    def to_bytes(self) -> bytes:
        """Return the bytes to send; `read_package` reads them."""
        state, size = self.state, self.state.parameters.itemsize
        head = _MODEL_HEAD.pack(_MODEL_KIND, state.rounds, size, len(state.moments), state.dimension, state.checksum())
        return head + state.to_bytes()


def history_package_bytes(rounds: int, messages: int, message_bytes: int) -> int:
    """Return the bytes of a `HistoryPackage`; `messages` counts the messages of all its rounds.

    Examples
    --------
    >>> history_package_bytes(rounds=10, messages=1000, message_bytes=15)
    15069
    """
    return HISTORY_HEADER_BYTES + ROUND_HEADER_BYTES * rounds + message_bytes * messages


def full_model_bytes(state_bytes: int) -> int:
    """Return the bytes of a `FullModelPackage`, from the bytes of the parameters and moments.

    Examples
    --------
    >>> full_model_bytes(4 * 1_206_590)
    4826391
    """
    return MODEL_HEADER_BYTES + state_bytes


def read_package(content: bytes) -> HistoryPackage | FullModelPackage:
    """Return the package that was sent as these bytes.

    The function checks a model against its checksum. A history is checked after its messages have been applied (`apply_package`), because
    its checksum is that of the resulting state.

    Raises
    ------
    DataError
        If the bytes are not a package, are incomplete, or hold a model with another checksum.

    Examples
    --------
    >>> read_package(b"no package")
    Traceback (most recent call last):
    quietbits.errors.DataError: package: starts with b'n', which is not a kind of package
    """
    kind = content[:1]
    if kind == _HISTORY_KIND:
        return _read_history(content)
    if kind == _MODEL_KIND:
        return _read_model(content)
    raise DataError(f"package: starts with {kind!r}, which is not a kind of package")


def check_messages(messages: Sequence[bytes], message_bytes: int) -> None:
    """Check that all messages of a round have the agreed length."""
    for message in messages:
        if len(message) != message_bytes:
            raise ValueError(f"messages must have {message_bytes} bytes each, got one of {len(message)}")


def _read_history(content: bytes) -> HistoryPackage:
    _, start_round, count, message_bytes, checksum = _unpack(_HISTORY_HEAD, content, 0)
    place, rounds = HISTORY_HEADER_BYTES, []
    for _ in range(count):
        (messages,) = _unpack(_COUNT, content, place)
        place += ROUND_HEADER_BYTES
        end = place + messages * message_bytes
        if end > len(content):
            left = len(content) - place
            raise DataError(f"package: cut short, a round has {messages} messages of {message_bytes} bytes, and {left} bytes are left")
        rounds.append(tuple(content[first : first + message_bytes] for first in range(place, end, message_bytes or 1)))
        place = end
    if place != len(content):
        raise DataError(f"package: {len(content) - place} bytes too long for its {count} rounds")
    try:
        return HistoryPackage(start_round, tuple(rounds), message_bytes, checksum)
    except ValueError as error:
        raise DataError(f"package: {error}") from error


def _read_model(content: bytes) -> FullModelPackage:
    _, rounds, size, moments, dimension, checksum = _unpack(_MODEL_HEAD, content, 0)
    length = full_model_bytes(dimension * (1 + moments) * size)
    if size not in (4, 8) or moments > MOST_MOMENTS or length != len(content):
        stated = f"{dimension} parameters and {moments} moments of {size} bytes"
        raise DataError(f"package: {len(content)} bytes cannot be a model of {stated}")
    numbers = np.frombuffer(content, dtype=f"<f{size}", offset=MODEL_HEADER_BYTES).astype(f"f{size}")
    parameters, *memory = numbers.reshape(1 + moments, dimension)
    try:
        state = ModelState(rounds, parameters, tuple(memory))
    except ValueError as error:
        raise DataError(f"package: {error}") from error
    if state.checksum() != checksum:
        raise DataError(f"package: the model has the checksum {state.checksum().hex()}, the package states {checksum.hex()}")
    return FullModelPackage(state)


def _unpack(layout: struct.Struct, content: bytes, place: int) -> tuple[Any, ...]:
    if place + layout.size > len(content):
        raise DataError(f"package: cut short after {len(content)} bytes")
    return layout.unpack_from(content, place)
