"""Randomised response on items: each client sends its item, or with some probability any other one.

Warner 1965, *Randomized response*; Kairouz, Bonawitz, Ramage 2016, *Discrete distribution estimation under local privacy*.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ..contracts.accounts import pure_privacy
from ..contracts.mechanism import EPSILON_HIGH, EPSILON_LOW, MOST_CLIENTS, FrequencyMechanism
from ..contracts.options import check_parameters, parameter
from ..contracts.privacy import Privacy
from ..noise.random_words import WordsLike, word_source


@dataclass(frozen=True)
class FrequencyRandomisedResponse(FrequencyMechanism):
    """A message is the client's item with probability E/(E + k - 1), and each other item with 1/(E + k - 1); E = exp(epsilon).

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
    categories: int = parameter("Number of items.", 2, 2**31, unit="items")
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_parameters(self)

    @property
    def bits_per_client(self) -> float:
        """``log2(categories)``."""
        return math.log2(self.categories)

    @property
    def holder_variance(self) -> float:
        """That of a coin of probability E/(E + k - 1), scaled."""
        return self._unit**2 * self._truth * (1 - self._truth)

    @property
    def other_variance(self) -> float:
        """That of a coin of probability 1/(E + k - 1), scaled."""
        return self._unit**2 * self._lie * (1 - self._lie)

    def encode(self, items: ArrayLike, words: WordsLike) -> IntegerArray:
        """Return what each client says, an item."""
        words, held = word_source(words), self.domain.clip(items)
        # Any item, and the client's own one with the probability that is left: it is drawn as "any" as often as another one.
        others = words.integers(self.categories, held.shape)
        return np.where(words.uniforms(held.shape) < self._truth - self._lie, held, others)

    def aggregate(self, messages: IntegerArray) -> FloatArray:
        """Return how often each item was said, shape (categories,)."""
        return self.domain.total(self.domain.clip(messages))

    def decode(self, aggregate: FloatArray, clients: int) -> FloatArray:
        """Return unbiased frequencies: ``(share - 1/(E + k - 1)) (E + k - 1)/(E - 1)``."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return (np.asarray(aggregate) / clients - self._lie) * self._unit

    def privacy(self) -> Privacy:
        """Pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def _lie(self) -> float:
        return 1 / (math.exp(self.epsilon) + self.categories - 1)

    @property
    def _truth(self) -> float:
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    @property
    def _unit(self) -> float:
        """What a difference of the two probabilities counts for."""
        return 1 + self.categories / math.expm1(self.epsilon)
