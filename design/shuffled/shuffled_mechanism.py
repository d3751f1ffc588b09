"""Base class of mechanisms whose letters arrive without their senders."""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from ..contracts.joint_messages import JointMessages
from ..contracts.mechanism import Mechanism, MessageScore


class ShuffledMechanism(JointMessages, Mechanism):
    """A mechanism whose server sees only the number of messages with each letter.

    Either a trusted shuffler, which forgets senders and order, provides these numbers, or a secure sum of one-hot letters modulo ``clients
    + 1``. A message takes `bits_per_client` to a shuffler, and `secure_sum_bits` in a secure sum; errors and privacy are the same.

    """

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism of other clients, whose letters have the same law."""
        return replace(self, clients=clients)  # type: ignore[type-var]

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the log-likelihood ratio of two rounds whose first clients differ.

        All other clients hold the last client's input. Let o be the law of the other clients' letters, and a the law of the first client's
        letter. The density of a histogram, relative to that of letters by o alone, is the mean of a / o over its letters.
        """
        laws = [self.letter_law(value) for value in (first[0], second[0], first[-1])]
        ratios = [np.divide(law, laws[2], out=np.zeros_like(law), where=laws[2] > 0) for law in laws[:2]]
        return lambda letters: np.subtract(*(np.log(ratio[letters].sum(axis=1)) for ratio in ratios))

    @property
    @abstractmethod
    def letters(self) -> int:
        """Number of different messages."""

    @property
    def secure_sum_bits(self) -> float:
        """Number of bits of a one-hot letter in a secure sum, ``letters log2(clients + 1)``.

        The messages of secure aggregation itself are not included.
        """
        return self.letters * math.log2(self.clients + 1)

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the bits of a message in a secure sum."""
        return {**super().facts(), "secure_sum_bits": self.secure_sum_bits}

    @abstractmethod
    def letter_law(self, value: ArrayLike) -> FloatArray:
        """Return the probability of each letter for an input, shape (letters,)."""
