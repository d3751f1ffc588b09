"""The messages of one round, added up as they come, chunk after chunk."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.mechanism import SecureSumMechanism, VectorMechanism
from ...design.noise.random_words import WordsLike
from ...design.secure_sum.modular_arithmetic import modular_add, residues


class MessageSum:
    """What a server keeps of a round's messages, and how many bytes they take, each with some further bits.

    Messages of a secure sum are not made one by one where the law of their sum is known (`SecureSumMechanism.summed_steps`).
    """

    def __init__(self, mechanism: VectorMechanism, further_bits: int = 0) -> None:
        self.mechanism = mechanism
        self.messages = self.bytes = 0
        self._further_bits = further_bits
        self._aggregate: NDArray[Any] | None = None

    def add(self, vectors: FloatArray, words: WordsLike) -> None:
        """Add the messages of clients with these vectors."""
        if not len(vectors):
            return
        self.messages += len(vectors)
        mechanism = self.mechanism
        if isinstance(mechanism, SecureSumMechanism):
            part: NDArray[Any] = residues(mechanism.summed_steps(vectors, words), mechanism.modulus)
            self.bytes += len(vectors) * whole_bytes(mechanism.bits_per_client + self._further_bits)
            self._aggregate = part if self._aggregate is None else modular_add(self._aggregate, part, mechanism.modulus)
            return
        messages = mechanism.encode(vectors, words)
        self.bytes += int(np.ceil((mechanism.bits_of_messages(messages) + self._further_bits) / 8).sum())
        part = mechanism.aggregate(messages)
        self._aggregate = part if self._aggregate is None else mechanism.combine(self._aggregate, part)

    def total(self, dimension: int) -> FloatArray:
        """Return the measured sum of the clients' vectors (`VectorMechanism.measured_mean`): zeros where no message came."""
        if self._aggregate is None:
            return np.zeros(dimension)
        return np.asarray(self.mechanism.measured_mean(self._aggregate, self.messages)) * self.messages


def whole_bytes(bits: float) -> int:
    """Return the bytes of a message of that many bits."""
    return -(-math.ceil(bits) // 8)
