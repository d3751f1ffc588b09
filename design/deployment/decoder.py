"""The server's decoder: accepted messages become an aggregate, and the aggregate an estimate."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray, WordArray
from ...errors import DataError, InfeasibleError
from ...shown import ShownFields
from ..contracts.mechanism import FrequencyMechanism, Mechanism, SecureSumMechanism
from .public_words import public_words
from .seen_clients import NAMED_KEYS, SeenClients, identifier_keys
from .wire_format import HEADER_BYTES, Bytes, Header, unpack_fields

if TYPE_CHECKING:
    from .client_program import ClientProgram

# Reasons for which messages are refused.
LENGTH, FILLING, VALUE, FOREIGN, ROUND, UNNAMED, REPEATED = (
    "another length than the deployment's messages",
    "bits after the last field that are not 0",
    "a value that no client sends",
    "a header of another deployment or version",
    "another round",
    "no index or identifier of the client",
    "a client that has sent a message before",
)
# Number of coordinates or items that are shown.
SHOWN = 10
# Bytes of a header before its round.
ROUND_START = HEADER_BYTES - 4
# Number of bytes of messages whose kinds are counted before they are decoded, and number of kinds up to which comparing a piece of messages
# with each kind is faster than a histogram.
COUNTED_BYTES, MOST_COMPARED, COMPARED_PIECE = 1, 16, 2**17
# Numbers of messages, bytes, and fields or public words that are unpacked at a time.
MESSAGES_AT_A_TIME, BYTES_AT_A_TIME, FIELDS_AT_A_TIME = 2**20, 2**24, 2**22


@dataclass(frozen=True, eq=False)
class DecodedEstimate(ShownFields):
    """An estimate from messages, with its error and what was refused.

    Attributes
    ----------
    mean : float or ndarray
        Estimated mean of the clients' numbers or vectors, or the estimated frequency of each item.
    standard_error : float or ndarray
        Standard error of the mean, for vectors in L2 distance; of each frequency for items. Computed without any client's input.
    accepted : int
        Number of messages that the estimate counts.
    refused : dict
        Number of refused messages, by reason.
    guarantee : str
        What each client that follows the protocol is guaranteed.
    round_number, rounds_left : int
        The round, and the number of later rounds that the clients' budget allows.
    epsilon_left : float
        Epsilon of the clients' budget less that of the rounds up to this one.
    """

    mean: float | NDArray[np.float64]
    standard_error: float | NDArray[np.float64]
    accepted: int
    refused: dict[str, int]
    guarantee: str
    round_number: int
    rounds_left: int
    epsilon_left: float

    def lines(self) -> list[tuple[str, str]]:
        """Return the estimate as names and texts; of many items the ten most frequent."""
        mean, error = np.atleast_1d(self.mean), np.atleast_1d(self.standard_error)
        if np.ndim(self.mean) == 0:
            return [("estimated mean", f"{float(mean[0]):.6g}"), ("standard error", f"{float(error[0]):.3g}")]
        if len(error) == 1:
            coordinates = ", ".join(f"{value:.4g}" for value in mean[:SHOWN])
            more = f", ... ({len(mean)} coordinates)" if len(mean) > SHOWN else ""
            return [("estimated mean", coordinates + more), ("standard error, L2", f"{float(error[0]):.3g}")]
        largest = np.argsort(-mean, kind="stable")[:SHOWN]
        return [(f"frequency of item {item}", f"{mean[item]:.4g}, standard error {error[item]:.2g}") for item in largest]

    def document(self) -> dict[str, Any]:
        """Return the estimate as a JSON document."""
        return {
            "mean": np.asarray(self.mean).tolist(),
            "standard_error": np.asarray(self.standard_error).tolist(),
            "accepted": self.accepted,
            "refused": sum(self.refused.values()),
            "refused_by_reason": self.refused,
            "guarantee": self.guarantee,
            "round": self.round_number,
            "rounds_left": self.rounds_left,
            "epsilon_left": self.epsilon_left,
        }


class Deployed(Protocol):
    """The part of a `Deployment` that decoders need."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""

    @property
    def program(self) -> "ClientProgram":
        """The clients' program."""

    @property
    def hash(self) -> str:
        """The hash."""

    @property
    def hash_start(self) -> bytes:
        """The bytes of the hash that messages carry."""

    @property
    def carries_index(self) -> bool:
        """Whether records have the client's index."""

    @property
    def record_bytes(self) -> int:
        """Number of bytes of a record."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    @property
    def epsilon(self) -> float:
        """Epsilon of all rounds."""

    @property
    def privacy_words(self) -> str:
        """The guarantee in words."""

    def with_clients(self, clients: int) -> "Deployed":
        """Return the deployment with the guarantee for another number of clients."""

    def epsilon_after(self, rounds: int) -> float:
        """Return epsilon after some rounds."""

    def check_round(self, round_number: int) -> int:
        """Return the number of a round if there is one."""

    def aggregate(self, fields: IntegerArray, public: WordArray) -> NDArray[Any]:
        """Return the aggregate of messages."""


class Decoder:
    """Messages of one round, as their aggregate; chunks may arrive at several decoders, which `merge`.

    A message with a fault is counted by the reason, and does not change the estimate. Memory does not grow with the number of messages,
    except for the keys that recognise repeated messages: 8 bytes for each client with an index, 16 bytes for each client with an
    identifier, and twice as much while messages are added.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    round_number : int
        Number of the round, from 0.
    """

    def __init__(self, deployment: Deployed, round_number: int = 0) -> None:
        self.deployment = deployment
        self.round_number = deployment.check_round(round_number)
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self._aggregate: NDArray[Any] | None = None
        self._indices, self._identifiers = SeenClients("u8"), SeenClients("S16")
        if isinstance(deployment.mechanism, SecureSumMechanism):
            raise InfeasibleError("deployment must have a server that sees messages, got a secure sum: decode its sum instead")

    @property
    def aggregate(self) -> NDArray[Any] | None:
        """Aggregate of the accepted messages; None without messages."""
        return self._aggregate

    def add(self, messages: Bytes, clients: WordArray | None = None, identifiers: Sequence[Any] | None = None) -> Self:
        """Count messages without headers.

        Parameters
        ----------
        messages : ndarray of uint8, shape (messages, message_bytes)
            The messages.
        clients : ndarray of uint64, shape (messages,), or None
            Index of each client, for deployments with public words.
        identifiers : sequence or None
            Name of each client, of which only the first message counts.
        """
        program = self.deployment.program
        if messages.ndim != 2 or messages.shape[1] != program.message_bytes:
            raise ValueError(f"messages must have the shape (messages, {program.message_bytes}), got {messages.shape}")
        if (clients is None) == self.deployment.carries_index:
            wanted = "be given, from which public words are derived" if clients is None else "be left out, as messages carry no index"
            raise ValueError(f"clients must {wanted}, got {'none' if clients is None else len(clients)}")
        for name, column in (("clients", clients), ("identifiers", identifiers)):
            if column is not None and len(column) != len(messages):
                raise ValueError(f"{name} must have an entry for each of {len(messages)} messages, got {len(column)}")
        if identifiers is not None and self.deployment.mechanism.guarantee.trust_model == "shuffled":
            raise ValueError("identifiers must be left out: messages of the shuffled trust model have lost their senders")
        if clients is None and identifiers is None and program.message_bytes <= COUNTED_BYTES:
            self._add_kinds(messages)
            return self
        step = self.messages_at_a_time
        for start in range(0, len(messages), step):
            part = slice(start, start + step)
            self._add_part(messages[part], None if clients is None else clients[part], None if identifiers is None else identifiers[part])
        return self

    def add_alone(self, messages: Sequence[bytes | None], identifiers: Sequence[Any] | None = None) -> Self:
        """Count messages that travel alone: each with a header, and with the client's index if the deployment has public words.

        Parameters
        ----------
        messages : sequence of bytes
            The messages; None stands for a message of no bytes.
        identifiers : sequence or None
            Name of each client, of which only the first message counts.
        """
        size = HEADER_BYTES + self.deployment.record_bytes
        fitting = [place for place, message in enumerate(messages) if message is not None and len(message) == size]
        self.refuse(LENGTH, len(messages) - len(fitting))
        joined = np.frombuffer(b"".join(messages[place] or b"" for place in fitting), dtype=np.uint8).reshape(-1, size)
        return self.add_headed(joined, None if identifiers is None else [identifiers[place] for place in fitting])

    def add_headed(self, rows: Bytes, identifiers: Sequence[Any] | None = None) -> Self:
        """Count messages that travel alone, of the right length, as the rows of an array."""
        expected = np.frombuffer(Header(self.deployment.hash_start, self.round_number).to_bytes(), dtype=np.uint8)
        foreign = (rows[:, :ROUND_START] != expected[:ROUND_START]).any(axis=1)
        other_round = ~foreign & (rows[:, ROUND_START:HEADER_BYTES] != expected[ROUND_START:]).any(axis=1)
        self.refuse(FOREIGN, int(np.count_nonzero(foreign)))
        self.refuse(ROUND, int(np.count_nonzero(other_round)))
        own = np.flatnonzero(~foreign & ~other_round)
        return self.add_records(rows[own, HEADER_BYTES:], None if identifiers is None else [identifiers[int(place)] for place in own])

    def add_records(self, records: Bytes, identifiers: Sequence[Any] | None = None) -> Self:
        """Count records of a file: the index, if the deployment has public words, and the message."""
        if not self.deployment.carries_index:
            return self.add(records, None, identifiers)
        clients = np.ascontiguousarray(records[:, :8]).view(">u8")[:, 0].astype(np.uint64)
        return self.add(records[:, 8:], clients, identifiers)

    def refuse(self, reason: str, count: int = 1) -> None:
        """Count messages that could not be read."""
        if count:
            self.refused[reason] += count

    def merge(self, other: "Decoder") -> Self:
        """Add the messages of another decoder of the same deployment and round.

        Raises DataError if a named client has sent messages to both, and changes nothing then: an aggregate does not tell which message to
        take out.
        """
        if other.deployment.hash != self.deployment.hash or other.round_number != self.round_number:
            raise DataError("decoders must be of the same deployment and round to be merged")
        pairs = ((self._indices, other._indices), (self._identifiers, other._identifiers))
        for kind, (own, more) in zip(("indices", "hashed identifiers"), pairs, strict=True):
            both = own.common(more)
            if both.size:
                shown = ", ".join(str(int(key)) if both.dtype.kind == "u" else bytes(key).hex() for key in both[:NAMED_KEYS])
                raise DataError(
                    f"clients must have sent to one decoder only, got {both.size} that have sent to both, with the {kind} "
                    f"{shown}{', ...' if both.size > NAMED_KEYS else ''}: add their files to the same decoder, "
                    "which refuses repeated messages"
                )
        for own, more in pairs:
            own.add(more.keys)
        self.refused += other.refused
        if other._aggregate is not None:
            self._count(other._aggregate, other.accepted)
        return self

    def estimate(self) -> DecodedEstimate:
        """Return the estimate from all accepted messages; DataError if there are none.

        Shuffled clients hide each other: if fewer messages than planned are accepted, the guarantee is that of their number.
        """
        deployment, mechanism = self.deployment, self.deployment.mechanism
        if self._aggregate is None or self.accepted == 0:
            raise DataError(f"messages must include one that is accepted, got none of {sum(self.refused.values())}: {dict(self.refused)}")
        if (planned := mechanism.joint_clients) is not None:
            mechanism = mechanism.for_clients(self.accepted)
            # Messages beyond the planned number prove no further honest client.
            deployment = deployment.with_clients(min(self.accepted, planned))
        return estimate_of(deployment, mechanism, self._aggregate, self.accepted, dict(self.refused), self.round_number)

    @property
    def messages_at_a_time(self) -> int:
        """Number of messages that are unpacked at a time, so that memory is bounded."""
        program = self.deployment.program
        words = FIELDS_AT_A_TIME // max(1, program.public_words)
        return max(1, min(MESSAGES_AT_A_TIME, BYTES_AT_A_TIME // self.deployment.record_bytes, FIELDS_AT_A_TIME // program.fields, words))

    def _add_kinds(self, messages: Bytes) -> None:
        """Count messages of one byte by their kind, and decode each kind once."""
        fields, filled, valid = self._kinds
        counts = _histogram(np.ascontiguousarray(messages[:, 0]), np.flatnonzero(valid).astype(np.uint8))
        self.refuse(FILLING, int(counts[~filled].sum()))
        self.refuse(VALUE, int(counts[filled & ~valid].sum()))
        no_words = np.zeros((1, 0), dtype=np.uint64)
        for kind in np.flatnonzero(valid & (counts > 0)):
            aggregate = self.deployment.aggregate(fields[kind : kind + 1], no_words)
            self._count(aggregate * counts[kind], int(counts[kind]))

    @cached_property
    def _kinds(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        """The fields of each byte, whether it is filled up with zeros, and whether a client may send it."""
        program = self.deployment.program
        fields, filled = unpack_fields(np.arange(256, dtype=np.uint8)[:, None], program.field_bits, program.fields)
        return fields, filled, filled & program.valid(fields)

    def _add_part(self, messages: Bytes, clients: WordArray | None, identifiers: Sequence[Any] | None) -> None:
        program, deployment = self.deployment.program, self.deployment
        fields, filled = unpack_fields(messages, program.field_bits, program.fields)
        valid = program.valid(fields)
        self.refuse(FILLING, int(np.count_nonzero(~filled)))
        self.refuse(VALUE, int(np.count_nonzero(filled & ~valid)))
        kept = np.flatnonzero(filled & valid)
        if identifiers is not None:
            named = np.array([place for place in kept.tolist() if identifiers[place] is not None], dtype=np.intp)
            self.refuse(UNNAMED, len(kept) - len(named))
            kept = self._first(self._identifiers, identifier_keys([identifiers[place] for place in named.tolist()]), named)
        if clients is not None:
            kept = self._first(self._indices, np.asarray(clients, dtype=np.uint64)[kept], kept)
        if not len(kept):
            return
        indices = np.zeros(len(kept), dtype=np.uint64) if clients is None else np.asarray(clients, dtype=np.uint64)[kept]
        public = public_words(bytes.fromhex(deployment.hash), self.round_number, indices, program.public_words)
        own = fields if len(kept) == len(fields) else fields[kept]
        self._count(deployment.aggregate(own, public), len(kept))

    def _first(self, seen: SeenClients, keys: NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places of clients' first messages, and count the others."""
        new = seen.add(keys)
        self.refuse(REPEATED, int(np.count_nonzero(~new)))
        return places[new]

    def _count(self, aggregate: NDArray[Any], clients: int) -> None:
        self._aggregate = aggregate if self._aggregate is None else self.deployment.mechanism.combine(self._aggregate, aggregate)
        self.accepted += clients


def estimate_of(
    deployment: Deployed, mechanism: Mechanism, aggregate: NDArray[Any], accepted: int, refused: dict[str, int], round_number: int
) -> DecodedEstimate:
    """Return the estimate of an aggregate by a mechanism, with the guarantee of a deployment."""
    mean: Any
    error: Any
    if isinstance(mechanism, FrequencyMechanism):
        estimate = mechanism.estimate(aggregate, accepted)
        mean, error = estimate.frequencies, estimate.standard_errors
    else:
        mean, error = mechanism.decode(aggregate, accepted), mechanism.standard_error(aggregate, accepted)
    rounds_left, spent = deployment.rounds - round_number - 1, deployment.epsilon_after(round_number + 1)
    return DecodedEstimate(mean, error, accepted, refused, deployment.privacy_words, round_number, rounds_left, deployment.epsilon - spent)


def _histogram(content: Bytes, kinds: Bytes) -> NDArray[np.int64]:
    """Return how often each byte occurs, shape (256,), fast where few kinds are expected."""
    counts = np.zeros(256, dtype=np.int64)
    compared = kinds if len(kinds) <= MOST_COMPARED else kinds[:0]
    for start in range(0, len(content), COMPARED_PIECE):
        piece = content[start : start + COMPARED_PIECE]
        own = [np.count_nonzero(piece == kind) for kind in compared]
        if sum(own) == len(piece):
            counts[compared] += own
        else:
            counts += np.bincount(piece, minlength=256)
    return counts
