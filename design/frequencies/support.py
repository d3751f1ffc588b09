"""Purely private messages that each support some of the items; and the estimate by counting how many support each item.

Wang, Blocki, Li, Jha 2017, *Locally differentially private protocols for frequency estimation*, section 3: pure protocols.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ..contracts.accounts import pure_privacy
from ..contracts.mechanism import MOST_CLIENTS, FrequencyMechanism, check_vector_epsilon
from ..contracts.privacy import Privacy

MOST_ITEMS = 2**31


class SupportMechanism(FrequencyMechanism):
    """A message is e^epsilon times as likely for a client whose item it supports than for one whose item it does not.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    categories : int
        Number of items, 2 to 2**31.
    """

    epsilon: float
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        object.__setattr__(self, "categories", check_integer("categories", self.categories, low=2, high=MOST_ITEMS))

    @abstractmethod
    def supports(self, messages: NDArray[Any], item: int) -> NDArray[np.bool_]:
        """Return whether each message supports an item: all that it says of it."""

    def privacy(self) -> Privacy:
        """Pure local privacy."""
        return pure_privacy(self.epsilon)


class SupportCounts(SupportMechanism):
    """One where a message supports each item that the client does not hold with the same probability.

    With p the probability that it supports the one that is held, and q that of others, ``(share of supporters - q) / (p - q)`` is an
    unbiased estimate of an item's frequency; that of one client has the variance p (1 - p) / (p - q)**2 or q (1 - q) / (p - q)**2.
    """

    @property
    @abstractmethod
    def held_denial(self) -> float:
        """Probability 1 - p that a message does not support the item that its client holds."""

    @property
    @abstractmethod
    def other_support(self) -> float:
        """Probability q that it supports another item."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        """Difference p - q."""

    @abstractmethod
    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return how many messages support each item, shape (categories,)."""

    @property
    def holder_variance(self) -> float:
        """That of a coin of probability p, scaled."""
        return self.held_denial * (1 - self.held_denial) / self.contrast**2

    @property
    def other_variance(self) -> float:
        """That of a coin of probability q, scaled."""
        return self.other_support * (1 - self.other_support) / self.contrast**2

    def decode(self, aggregate: IntegerArray, clients: int) -> FloatArray:
        """Return unbiased frequencies."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray((np.asarray(aggregate) / clients - self.other_support) / self.contrast)
