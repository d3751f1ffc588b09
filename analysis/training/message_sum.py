"""The messages of one round, added up as they come, chunk after chunk."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.noise.random_words import WordsLike
from ...design.secure_sum.modular_arithmetic import modular_add, residues


class MessageSum:
    """What a server keeps of a round's messages.

    Messages of a secure sum are not made one by one where the law of their sum is known (`SecureSumMechanism.summed_steps`).
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.messages = 0
        self._aggregate: NDArray[Any] | None = None

    def add(self, vectors: FloatArray, words: WordsLike) -> None:
        """Add the messages of clients with these vectors."""
        if not len(vectors):
            return
        self.messages += len(vectors)
        mechanism = self.mechanism
        if isinstance(mechanism, SecureSumMechanism):
            part: NDArray[Any] = residues(mechanism.summed_steps(vectors, words), mechanism.modulus)
            self._aggregate = part if self._aggregate is None else modular_add(self._aggregate, part, mechanism.modulus)
            return
        part = mechanism.aggregate(mechanism.encode(vectors, words))
        self._aggregate = part if self._aggregate is None else mechanism.combine(self._aggregate, part)

    def total(self, dimension: int) -> FloatArray:
        """Return the estimate of the sum of the clients' vectors: zeros where no message came."""
        if self._aggregate is None:
            return np.zeros(dimension)
        return np.asarray(self.mechanism.decode(self._aggregate, self.messages)) * self.messages
