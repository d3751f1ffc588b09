"""Randomised response on items: a client sends its item, or another item.

Warner 1965, *Randomized response*; Kairouz, Bonawitz, Ramage 2016, *Discrete distribution estimation under local privacy*.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_ITEMS
from ...arrays import FloatArray, IntegerArray
from ..contracts.mechanism import EPSILON_HIGH, EPSILON_LOW
from ..contracts.options import parameter
from ..deployment.client_program import ClientProgram, bits_below, fields_below, probability_word
from ..deployment.clients.items import randomised_item
from ..noise.random_words import WordsLike, word_source
from .support import SupportCounts


@dataclass(frozen=True)
class FrequencyRandomisedResponse(SupportCounts):
    """Randomised response: the client's item is e^epsilon times as likely as any other item.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    categories : int
        Number k of items, at least 2.

    Examples
    --------
    >>> mechanism = FrequencyRandomisedResponse(1.0, categories=4)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.decode(mechanism.aggregate(messages), 40_000).round(2).tolist()
    [0.76, 0.24, -0.0, -0.0]
    """

    epsilon: float = parameter("Pure privacy parameter of a message by itself.", EPSILON_LOW, EPSILON_HIGH, unit="nats")
    categories: int = parameter("Number of items.", 2, MOST_ITEMS, unit="items")

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, ``log2(categories)``."""
        return math.log2(self.categories)

    @property
    def held_denial(self) -> float:
        """Probability (k - 1)/(e^epsilon + k - 1) that a message denies the held item, of k items."""
        return (self.categories - 1) * math.exp(-self.epsilon) * self._truth

    @property
    def other_support(self) -> float:
        """Probability 1/(e^epsilon + k - 1) that a message supports another item, of k items."""
        return self._lie

    @property
    def contrast(self) -> float:
        """Difference (e^epsilon - 1)/(e^epsilon + k - 1) of the support probabilities, for k items."""
        return 1 / (1 + self.categories / math.expm1(self.epsilon))

    def encode(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each client's message, an item."""
        random_words, held = word_source(random_words), self.domain.clip(items)
        # The message is a uniformly random item, or with the remaining probability the client's own item; the uniform draw includes the own
        # item.
        others = random_words.integers(self.categories, held.shape)
        return np.where(random_words.uniforms(held.shape) < self._truth - self._lie, held, others)

    def client_program(self) -> ClientProgram:
        """Return the program: keep the item, or draw any item."""
        items = self.categories
        kept = probability_word(lambda odds: (odds - 1) / (odds + items - 1), self.epsilon, up=False)
        return ClientProgram(
            randomised_item,
            {"kept": kept, "categories": items},
            bits_below(items),
            valid=fields_below(items),
            likelihood_ratio=1 + Fraction(items * kept, 2**64 - kept),
            epsilon=self.epsilon,
        )

    def aggregate(self, messages: IntegerArray) -> FloatArray:
        """Return the number of messages of each item, shape (categories,)."""
        return self.domain.total(self.domain.clip(messages))

    def supports(self, messages: IntegerArray, item: int) -> NDArray[np.bool_]:
        """Return whether each message is the item."""
        return np.asarray(np.asarray(messages) == item)

    @property
    def _lie(self) -> float:
        return 1 / (math.exp(self.epsilon) + self.categories - 1)

    @property
    def _truth(self) -> float:
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))
