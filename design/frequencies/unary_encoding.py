"""Optimised unary encoding: one bit for every item, each by a biased coin.

Wang, Blocki, Li, Jha 2017, *Locally differentially private protocols for frequency estimation*, section 4.2.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import IntegerArray
from ...solvers.numerics.rounding import SHORT_SLACK
from ..deployment.client_program import ClientProgram, probability_word
from ..deployment.clients.items import unary_bits
from ..local.message_checks import checked_messages
from ..noise.packed_bits import PackedBits, bits_at, packed_bytes, random_bits, set_bits, sum_of_bits
from ..noise.random_words import WordsLike, word_source
from .support import SupportCounts


@dataclass(frozen=True)
class UnaryEncoding(SupportCounts):
    """Optimised unary encoding: a fair coin for the held item, biased coins for all others.

    The other bits are 1 with probability 1/(E + 1) each; E = exp(epsilon). For two items, a message's likelihoods differ by a factor of at
    most ``1/2 E/(E + 1)`` over ``1/2 1/(E + 1)``, which is E. Variances are 4 E/(E - 1)**2 for other items and 1 more for the held item,
    for any number of items: the least of all one-bit-per-item encodings that are the same for all items.

    Examples
    --------
    >>> mechanism = UnaryEncoding(1.0, categories=4)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 40_000).round(2).tolist()
    [0.75, 0.26, -0.0, 0.0]
    """

    epsilon: float
    categories: int

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, one bit for each item."""
        return float(self.categories)

    @property
    def held_denial(self) -> float:
        """Probability 1/2 that a message denies the held item."""
        return 0.5

    @property
    def other_support(self) -> float:
        """Probability 1/(E + 1) that a message supports another item."""
        return math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))

    @property
    def contrast(self) -> float:
        """Difference ``tanh(epsilon / 2) / 2`` of the two support probabilities."""
        return math.tanh(self.epsilon / 2) / 2

    def encode(self, items: ArrayLike, random_words: WordsLike) -> PackedBits:
        """Return each client's bits, eight to a byte, shape (clients, bytes).

        A message takes categories/8 bytes.
        """
        random_words, held = word_source(random_words), self.domain.clip(items)
        # Rounding the coins' probabilities only adds noise.
        packed = random_bits(min(0.5, self.other_support * (1 + SHORT_SLACK)), len(held), self.categories, random_words)
        set_bits(packed, held, random_words.integers(2, held.shape) == 1)
        return packed

    def client_program(self) -> ClientProgram:
        """Return the program: one coin for each item."""
        other = min(probability_word(lambda odds: 1 / (odds + 1), self.epsilon, up=True), 2**63)
        return ClientProgram(
            unary_bits,
            {"other": other, "categories": self.categories},
            1,
            fields=self.categories,
            messages=lambda fields, _: np.packbits(fields.astype(np.uint8), axis=1, bitorder="little"),
            likelihood_ratio=Fraction(2**64 - other, other),
            epsilon=self.epsilon,
        )

    def aggregate(self, messages: PackedBits) -> IntegerArray:
        """Return the number of clients with a 1 for each item, shape (categories,)."""
        return sum_of_bits(checked_messages(messages, 0, 255, packed_bytes(self.categories)).astype(np.uint8, copy=False), self.categories)

    def supports(self, messages: PackedBits, item: int) -> NDArray[np.bool_]:
        """Return whether each message's bit of the item is 1."""
        return np.asarray(bits_at(messages, np.full(len(messages), item)) == 1)
