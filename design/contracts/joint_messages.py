"""Mechanisms whose server sees the messages of clients only together, and the clients that may drop out."""

from abc import ABC, abstractmethod
from typing import Any, Self

from .options import Declared
from .privacy import Privacy

# The parameter of every joint mechanism whose messages do not depend on the number of clients that arrive.
SURVIVORS: Declared = {
    "help": "Clients whose messages suffice for the guarantee, if others drop out; all by default.",
    "low": 1,
    "high": 10**12,
    "unit": "clients",
    "kind": int,
    "default": None,
}


class JointMessages(ABC):
    """The part of a mechanism whose server sees messages only as a sum, or shuffled.

    Clients hide each other, so that the guarantee depends on the number of clients whose messages arrive. More clients never weaken it:
    each further message is independent of the others, so that the larger sum, or multiset, is the smaller one after a random function.
    The guarantee therefore is that of `fewest_clients`. The number of clients whose messages arrive is public. Clients must drop out
    independently of all inputs.

    A mechanism defines `privacy_of`. It may define `privacy` instead, if its guarantee needs all clients.

    Attributes
    ----------
    clients : int
        Number of clients that send a message, unless they drop out.
    survivors : int or None
        Smallest number of clients for which the guarantee is stated; None for all clients.
    """

    clients: int
    survivors: int | None = None

    @property
    def joint_clients(self) -> int:
        """The number of clients, as the server sees only all of their messages together."""
        return self.clients

    @property
    def fewest_clients(self) -> int:
        """Smallest number of clients with whose messages the guarantee holds."""
        return self.clients if self.survivors is None else min(self.clients, self.survivors)

    def privacy(self) -> Privacy:
        """Return the privacy of a round with the messages of `fewest_clients` or more."""
        return self.privacy_of(self.fewest_clients)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of a round from which the messages of only a given number of clients arrive."""
        return self.for_clients(clients).privacy()

    @abstractmethod
    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for another number of clients."""

    def check_arrived(self, clients: Any) -> int:
        """Return a number of clients whose messages arrived, or raise ValueError if the guarantee does not hold for it."""
        if isinstance(clients, bool) or not isinstance(clients, int) or not self.fewest_clients <= clients <= self.clients:
            allowed = f"{self.clients}" if self.fewest_clients == self.clients else f"from {self.fewest_clients} to {self.clients}"
            raise ValueError(f"clients must be {allowed}, for whose noise the guarantee is stated, got {clients!r}")
        return clients
