"""A round whose clients run a deployment: messages in its wire format, from clients of any language."""

import json
import secrets
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.deployment.decoder import LENGTH, ROUND
from ...design.deployment.deployment import Deployment
from ...design.deployment.wire_format import HEADER_BYTES, INDEX_BYTES, Header, pack_fields, unpack_fields
from ...design.noise.random_words import WordSource
from ...errors import DataError
from ..deployed_clients.encoder import Encoder, python_encoder
from .packed_message import PackedMessage
from .planned_round import PlannedRound, check_carried


@dataclass(frozen=True, eq=False)
class DeployedRound(PlannedRound):
    """A round of a deployment, which server and clients have as a folder.

    Messages travel alone: each has a header with the deployment's hash and the round. A client's index is the number of its node.

    Attributes
    ----------
    name : str
        Name of the round, different in every round.
    deployment : Deployment
        The deployment, of vectors, and of the trust model local or secure-sum.
    round_number : int
        Number of the deployment's round, from 0. In the plan of a whole run, the number of its first round.
    encoder : Encoder or None
        The client's encoder; None for the Python client with secure words.
    """

    name: str
    deployment: Deployment
    round_number: int = 0
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        """Refuse deployments that no federation can carry."""
        check_carried(self.mechanism_name, self.trust_model)
        if not isinstance(self.deployment.mechanism.domain, NormBall):
            raise ValueError(f"deployment must be for vectors, which updates of models are, got one for a {self.deployment.input_kind}")

    @property
    def mechanism_name(self) -> str:
        """Name of the mechanism."""
        return self.deployment.mechanism_name

    @property
    def trust_model(self) -> str:
        """Trust model of the mechanism's guarantee."""
        return self.deployment.mechanism.guarantee.trust_model

    @property
    def epsilon(self) -> float:
        """Privacy parameter of all rounds together."""
        return self.deployment.epsilon

    @property
    def delta(self) -> float:
        """Failure probability of all rounds together."""
        return self.deployment.delta

    @property
    def adjacency(self) -> str:
        """Adjacency of the guarantee."""
        return self.deployment.mechanism.adjacency

    @property
    def rounds(self) -> int:
        """Number of the deployment's rounds."""
        return self.deployment.rounds

    @property
    def dimension(self) -> int:
        """Number of coordinates of an update."""
        return self.deployment.mechanism.domain.dimension

    @property
    def digest(self) -> str:
        """The deployment's hash."""
        return self.deployment.hash

    def at(self, server_round: int) -> Self:
        """Return the plan of one of the run's rounds, from 1."""
        name = f"{server_round}-{secrets.token_hex(8)}"
        return replace(self, name=name, round_number=self.round_number + server_round - 1)

    def check(self) -> None:
        """Raise ValueError for a round that the deployment does not have."""
        self.deployment.check_round(self.round_number)

    def built(self) -> Mechanism:
        """Return the deployment's mechanism."""
        return self.deployment.mechanism

    def guarantee(self, mechanism: Mechanism, rounds: int) -> Guarantee:
        """Return a client's proven guarantee, which counts the distance of the noise from its exact law."""
        own = self.deployment if mechanism is self.deployment.mechanism else replace(self.deployment, mechanism=mechanism)
        return replace(mechanism.guarantee, epsilon=own.epsilon_after(rounds), delta=self.delta)

    def encode(self, update: FloatArray, clients: int, node: int, random_words: WordSource) -> NDArray[Any]:  # noqa: ARG002 - messages do not depend on the number of clients
        """Return the fields of the encoder's message."""
        if update.shape != (self.dimension,) or not np.isfinite(update).all():
            raise ValueError(f"update must be {self.dimension} finite numbers, got {update.size} numbers")
        encoder = python_encoder(self.deployment, random_words) if self.encoder is None else self.encoder
        content = encoder(update, self.round_number, node)
        size = self.deployment.program.message_bytes
        if not isinstance(content, bytes) or len(content) != size:
            got = f"{len(content)} bytes" if isinstance(content, bytes) else type(content).__name__
            raise DataError(f"encoder must return the {size} bytes of a message of {self.deployment.full_name}, got {got}")
        return self._fields(content)

    def packed(self, message: NDArray[Any], node: int) -> PackedMessage:
        """Return a message that travels alone."""
        start = Header(self.deployment.hash_start, self.round_number).to_bytes() + self._index(node)
        body = pack_fields(message.reshape(1, -1), self.deployment.program.field_bits).tobytes()
        return PackedMessage.of(np.frombuffer(start + body, dtype=np.uint8), 8.0 * (len(start) + len(body)))

    def aggregate(self, message: NDArray[Any], node: int) -> NDArray[Any]:
        """Return the aggregate of a message by the deployment's decoder."""
        content = message.tobytes()
        decoder = self.deployment.decoder(self.round_number).add_alone([content])
        if decoder.aggregate is None:
            raise DataError(f"message must be of the deployment's round {self.round_number}, got {', '.join(decoder.refused)}")
        if content[HEADER_BYTES:].startswith(self._index(node)):
            return decoder.aggregate
        raise DataError(f"message must have the index of its node, {node}, got another index")

    def residues(self, message: NDArray[Any]) -> NDArray[Any]:
        """Return the fields of a message whose header is the deployment's."""
        content = message.tobytes()
        start = Header(self.deployment.hash_start, self.round_number).to_bytes()
        if len(content) != len(start) + self.deployment.program.message_bytes:
            raise DataError(f"message must be of the deployment's round {self.round_number}, got {LENGTH}")
        if not content.startswith(start):
            raise DataError(f"message must be of the deployment's round {self.round_number}, got the header of {ROUND} or deployment")
        return self._fields(content[HEADER_BYTES:]).astype(np.uint64)

    def document(self) -> str:
        """Return the name, the deployment's hash and the round as JSON."""
        return json.dumps({"name": self.name, "deployment": self.deployment.hash, "round": self.round_number}, sort_keys=True)

    @classmethod
    def from_document(cls, document: str, deployment: Deployment, encoder: Encoder | None) -> "DeployedRound":
        """Return the plan that a message states as JSON, for a client that has the deployment."""
        stated = json.loads(document)
        return cls(stated["name"], deployment, stated["round"], encoder)

    def _index(self, node: int) -> bytes:
        """Return the bytes of a client's index, if messages carry it."""
        return node.to_bytes(INDEX_BYTES, "big") if self.deployment.carries_index else b""

    def _fields(self, content: bytes) -> NDArray[Any]:
        program = self.deployment.program
        fields, filled = unpack_fields(np.frombuffer(content, dtype=np.uint8)[None], program.field_bits, program.fields)
        if not (filled & program.valid(fields)).all():
            raise DataError(f"message must be one that clients of {self.deployment.full_name} send, got another value")
        return np.asarray(fields[0])
