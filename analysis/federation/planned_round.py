"""The contract of a round's plan: how clients encode updates, and how the server reads their messages."""

from abc import ABC, abstractmethod
from typing import Any, Self

from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism
from ...design.noise.random_words import WordSource
from .packed_message import PackedMessage

# Trust models that a federation can carry, in which the server sees each message, or the sum under masks. Other models need a shuffler or a
# trusted server.
CARRIED_TRUST_MODELS = ("local", "secure-sum")


class PlannedRound(ABC):
    """A round's plan, which the server states and every client follows.

    Attributes
    ----------
    name : str
        Name of the round, different in every round.
    round_number : int
        Number of the round among the rounds of the guarantee, from 0, if messages state it; otherwise 0.
    """

    name: str
    round_number: int = 0

    @property
    @abstractmethod
    def mechanism_name(self) -> str:
        """Name of the mechanism."""

    @property
    @abstractmethod
    def trust_model(self) -> str:
        """Trust model of the mechanism's guarantee."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Privacy parameter of all rounds together."""

    @property
    @abstractmethod
    def delta(self) -> float:
        """Failure probability of all rounds together."""

    @property
    @abstractmethod
    def adjacency(self) -> str:
        """Adjacency of the guarantee."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Number of rounds of the guarantee."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates of an update."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of everything but public randomness and the round; all rounds of a task have the same digest."""

    @property
    def adds_up(self) -> bool:
        """Whether the server may see only the sum of messages."""
        return self.trust_model == "secure-sum"

    @abstractmethod
    def at(self, server_round: int) -> Self:
        """Return the plan of one of the server's rounds, from 1, with a new name and new public randomness."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if this process cannot take part in the round with the server's mechanism."""

    @abstractmethod
    def built(self) -> Mechanism:
        """Return the mechanism for the stated number of clients."""

    def built_for(self, clients: int) -> Mechanism:
        """Return the mechanism for the clients that take part, or for the clients that stay.

        A local mechanism is the same for any number of clients.
        """
        return self.built().for_clients(clients)

    @abstractmethod
    def guarantee(self, mechanism: Mechanism, rounds: int) -> Guarantee:
        """Return a client's proven guarantee after some rounds of a mechanism of `built_for`."""

    @abstractmethod
    def encode(self, update: FloatArray, clients: int, node: int, random_words: WordSource) -> NDArray[Any]:
        """Return a client's message about an update; residues for a secure sum of some clients."""

    @abstractmethod
    def packed(self, message: NDArray[Any], node: int) -> PackedMessage:
        """Return the bytes that a client sends for a message of `encode`, or for masked residues."""

    @abstractmethod
    def aggregate(self, message: NDArray[Any], node: int) -> NDArray[Any]:
        """Return the aggregate of a client's message alone; raise ValueError for anything that is no message of this round."""

    @abstractmethod
    def residues(self, message: NDArray[Any]) -> NDArray[Any]:
        """Return the masked residues of a client's message; raise ValueError for anything that is no message of this round."""

    @abstractmethod
    def document(self) -> str:
        """Return the plan as JSON."""


def check_carried(mechanism: str, trust_model: str) -> None:
    """Raise ValueError for a mechanism of a trust model that no federation can carry."""
    if trust_model not in CARRIED_TRUST_MODELS:
        raise ValueError(f"mechanism must be of the trust model {' or '.join(CARRIED_TRUST_MODELS)}, got {mechanism!r}: {trust_model}")
