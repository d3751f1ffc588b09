"""What mechanisms have in common whose letters arrive without their senders."""

import math
from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike

from ...arrays import FloatArray
from ..contracts.mechanism import Mechanism


class ShuffledMechanism(Mechanism):
    """A mechanism of which the server sees how often each letter was sent, and nothing else.

    A shuffler that is trusted to forget senders and order does that, or a secure sum of one-hot letters, modulo ``clients + 1``. A message
    takes `bits_per_client` to a shuffler, and `secure_sum_bits` in a secure sum: which one is used changes neither errors nor privacy.

    Attributes
    ----------
    clients : int
        Number of clients that the guarantee rests on.
    """

    clients: int

    @property
    @abstractmethod
    def letters(self) -> int:
        """Number of different messages."""

    @property
    def secure_sum_bits(self) -> float:
        """``letters log2(clients + 1)``: bits of a one-hot letter in a secure sum; what secure aggregation itself sends is not in it."""
        return self.letters * math.log2(self.clients + 1)

    def facts(self) -> dict[str, Any]:
        """Return also the bits of a message in a secure sum."""
        return {**super().facts(), "secure_sum_bits": self.secure_sum_bits}

    @abstractmethod
    def letter_law(self, value: ArrayLike) -> FloatArray:
        """Return the probability of each letter for one input, shape (letters,)."""
