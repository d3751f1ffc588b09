"""The server's decoder: accepted messages become an aggregate, and the aggregate an estimate."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...arrays import WordArray
from ...errors import DataError, InfeasibleError
from ...shown import ShownFields
from ..contracts.mechanism import FrequencyMechanism, Mechanism, SecureSumMechanism
from .public_words import public_words
from .wire_format import HEADER_BYTES, Bytes, Header, unpack_fields

if TYPE_CHECKING:
    from .deployment import Deployment

# Reasons for which messages are refused.
LENGTH, FILLING, VALUE, FOREIGN, ROUND, REPEATED = (
    "another length than the deployment's messages",
    "bits after the last field that are not 0",
    "a value that no client sends",
    "a header of another deployment or version",
    "another round",
    "a client that has sent a message before",
)
# Number of coordinates or items that are shown.
SHOWN = 10
# Number of public words in memory.
PUBLIC_WORDS = 2**21
# Number of bytes of messages whose kinds are counted before they are decoded.
COUNTED_BYTES = 1


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


class Decoder:
    """Messages of one round, as their aggregate; chunks may arrive at several decoders, which `merge`.

    A message with a fault is counted by the reason, and does not change the estimate. Memory does not grow with the number of messages,
    except for 16 bytes of each client that is named by an index or an identifier, to recognise repeated messages.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    round_number : int
        Number of the round, from 0.
    """

    def __init__(self, deployment: "Deployment", round_number: int = 0) -> None:
        self.deployment = deployment
        self.round_number = deployment.check_round(round_number)
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self._aggregate: NDArray[Any] | None = None
        self._seen: NDArray[np.void] = np.empty(0, dtype="V16")
        if isinstance(deployment.mechanism, SecureSumMechanism):
            raise InfeasibleError("deployment must have a server that sees messages, got a secure sum: decode its sum instead")

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
        if clients is None and identifiers is None and program.message_bytes <= COUNTED_BYTES:
            self._add_kinds(messages)
            return self
        kept = self._kept(messages, clients, identifiers)
        messages = messages[kept]
        indices = np.zeros(len(messages), dtype=np.uint64) if clients is None else clients[kept]
        fields, _ = unpack_fields(messages, program.field_bits, program.fields)
        key, step = bytes.fromhex(self.deployment.hash), max(1, PUBLIC_WORDS // max(1, program.public_words))
        for start in range(0, len(fields), step):
            part = slice(start, start + step)
            public = public_words(key, self.round_number, indices[part], program.public_words)
            self._count(self.deployment.aggregate(fields[part], public), len(fields[part]))
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
        deployment = self.deployment
        size = HEADER_BYTES + deployment.record_bytes
        fitting: list[int] = []
        for place, message in enumerate(messages):
            reason = self._header_fault(message or b"", size)
            if reason is None:
                fitting.append(place)
            else:
                self.refused[reason] += 1
        if not fitting:
            return self
        joined = np.frombuffer(b"".join(messages[place] or b"" for place in fitting), dtype=np.uint8).reshape(-1, size)
        return self.add_records(joined[:, HEADER_BYTES:], None if identifiers is None else [identifiers[place] for place in fitting])

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

        Raises DataError if a named client has sent messages to both.
        """
        if other.deployment.hash != self.deployment.hash or other.round_number != self.round_number:
            raise DataError("decoders must be of the same deployment and round to be merged")
        both = np.intersect1d(self._seen, other._seen)
        if both.size:
            raise DataError(f"clients must have sent to one of the servers only, got {both.size} that have sent to both")
        self._seen = np.union1d(self._seen, other._seen)
        self.refused += other.refused
        if other._aggregate is not None:
            self._count(other._aggregate, other.accepted)
        return self

    def estimate(self) -> DecodedEstimate:
        """Return the estimate from all accepted messages; DataError if there are none."""
        deployment, mechanism = self.deployment, self.deployment.mechanism
        if self._aggregate is None or self.accepted == 0:
            raise DataError(f"messages must include one that is accepted, got none of {sum(self.refused.values())}: {dict(self.refused)}")
        if mechanism.joint_clients is not None:
            mechanism = mechanism.for_clients(self.accepted)
        return estimate_of(deployment, mechanism, self._aggregate, self.accepted, dict(self.refused), self.round_number)

    def _add_kinds(self, messages: Bytes) -> None:
        """Count messages of one byte by their kind, and decode each kind once."""
        program = self.deployment.program
        counts = np.bincount(messages[:, 0], minlength=256)
        kinds = np.flatnonzero(counts).astype(np.uint8)[:, None]
        fields, filled = unpack_fields(kinds, program.field_bits, program.fields)
        valid = program.valid(fields)
        numbers = counts[kinds[:, 0]]
        self.refuse(FILLING, int(numbers[~filled].sum()))
        self.refuse(VALUE, int(numbers[filled & ~valid].sum()))
        no_words = np.zeros((1, 0), dtype=np.uint64)
        for row in np.flatnonzero(filled & valid):
            aggregate = self.deployment.aggregate(fields[row : row + 1], no_words)
            self._count(aggregate * numbers[row], int(numbers[row]))

    def _kept(self, messages: Bytes, clients: WordArray | None, identifiers: Sequence[Any] | None) -> NDArray[np.intp]:
        """Return the places of the messages that count, and count the others by reason."""
        program = self.deployment.program
        fields, filled = unpack_fields(messages, program.field_bits, program.fields)
        valid = program.valid(fields)
        self.refuse(FILLING, int(np.count_nonzero(~filled)))
        self.refuse(VALUE, int(np.count_nonzero(filled & ~valid)))
        kept = np.flatnonzero(filled & valid)
        names = clients if identifiers is None else identifiers
        if names is None:
            return kept
        keys = _keys([names[int(place)] for place in kept] if identifiers is not None else np.asarray(names)[kept])
        first = np.zeros(len(kept), dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        new = first & ~np.isin(keys, self._seen)
        self.refuse(REPEATED, int(np.count_nonzero(~new)))
        self._seen = np.union1d(self._seen, keys[new])
        return kept[new]

    def _header_fault(self, message: bytes, size: int) -> str | None:
        if len(message) != size:
            return LENGTH
        try:
            header = Header.from_bytes(message)
        except DataError:
            return FOREIGN
        if header.hash_start != self.deployment.hash_start:
            return FOREIGN
        return None if header.round_number == self.round_number else ROUND

    def _count(self, aggregate: NDArray[Any], clients: int) -> None:
        self._aggregate = aggregate if self._aggregate is None else self.deployment.mechanism.combine(self._aggregate, aggregate)
        self.accepted += clients


def estimate_of(
    deployment: "Deployment", mechanism: Mechanism, aggregate: NDArray[Any], accepted: int, refused: dict[str, int], round_number: int
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


def _keys(names: Sequence[Any] | WordArray) -> NDArray[np.void]:
    """Return 16 bytes for each client: its index, or the hash of its identifier."""
    if isinstance(names, np.ndarray):
        pairs = np.zeros((len(names), 2), dtype=np.uint64)
        pairs[:, 1] = names
        return pairs.view("V16")[:, 0]
    digests = b"".join(hashlib.blake2b(repr(name).encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(digests, dtype="V16")
