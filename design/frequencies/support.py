"""Purely private messages that support items, and the estimate by counts of supporters.

Wang, Blocki, Li, Jha 2017, *Locally differentially private protocols for frequency estimation*, section 3: pure protocols.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import MOST_CLIENTS, MOST_ITEMS, check_integer
from ...arrays import FloatArray, IntegerArray
from ..contracts.accounts import pure_privacy
from ..contracts.mechanism import FrequencyEstimate, FrequencyMechanism, MessageScore, check_vector_epsilon
from ..contracts.privacy import Privacy
from .squared_scores import SupportLaw, calibrating_levels, likely_shift


class SupportMechanism(FrequencyMechanism):
    """A mechanism whose messages are e^epsilon times as likely for holders of supported items.

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
        """Return whether each message supports an item."""

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the log-likelihood ratio in units of epsilon."""
        items = int(first), int(second)
        return lambda messages: np.subtract(*(self.supports(messages, item).astype(float) for item in items))

    def privacy(self) -> Privacy:
        """Return the pure local privacy."""
        return pure_privacy(self.epsilon)


class SupportCounts(SupportMechanism):
    """A mechanism whose messages support all items except the held item equally often.

    With p the probability that a message supports the held item, and q the probability for others, ``(share of supporters - q) / (p - q)``
    is an unbiased estimate of an item's frequency. A single client's estimate has the variance p (1 - p) / (p - q)**2 for its own item, and
    q (1 - q) / (p - q)**2 for others.
    """

    @property
    @abstractmethod
    def held_denial(self) -> float:
        """Probability 1 - p that a message does not support the held item."""

    @property
    @abstractmethod
    def other_support(self) -> float:
        """Probability q that a message supports another item."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        """Difference p - q of the support probabilities."""

    @abstractmethod
    def aggregate(self, messages: NDArray[Any]) -> IntegerArray | FloatArray:
        """Return the number of messages that support each item, shape (categories,)."""

    @property
    def holder_variance(self) -> float:
        """The variance p (1 - p) / (p - q)**2 for the held item."""
        return self.held_denial * (1 - self.held_denial) / self.contrast**2

    @property
    def other_variance(self) -> float:
        """The variance q (1 - q) / (p - q)**2 for another item."""
        return self.other_support * (1 - self.other_support) / self.contrast**2

    def estimate(self, aggregate: IntegerArray | FloatArray, clients: int) -> FrequencyEstimate:
        """Return unbiased frequencies with standard errors.

        The squared z-scores have a mean of 1 over the items. Where items have few supporters, the noise that raises an estimate also raises
        the variance at `likely_frequencies`. `calibrating_levels` compensate for that.
        """
        estimate = super().estimate(aggregate, clients)
        decoded, threshold = estimate.decoded, self.standing_frequency(clients)
        standing = decoded > threshold
        likely = self.likely_frequencies(decoded, aggregate, clients)
        shift = likely_shift(decoded, likely, standing)
        scale = min(1.0, 1 / max(float(decoded[standing].sum()), 1e-300))

        def variance(counts: FloatArray) -> FloatArray:
            frequencies = (counts / clients - self.other_support) / self.contrast
            likely = np.where(frequencies > threshold, scale * frequencies, np.maximum(frequencies - shift, 0.0))
            of_client = likely * self.holder_variance + (1 - likely) * self.other_variance
            return np.asarray(clients * self.contrast**2 * of_client)

        counts = np.asarray(aggregate, dtype=float)
        values, places = np.unique(counts, return_inverse=True)
        scores = SupportLaw(clients, 1 - self.held_denial, self.other_support).squared_scores(values, variance)[places.ravel()]
        return replace(estimate, standard_errors=estimate.standard_errors * np.sqrt(calibrating_levels(scores, counts, standing)))

    def decode(self, aggregate: IntegerArray | FloatArray, clients: int) -> FloatArray:
        """Return unbiased frequencies."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray((np.asarray(aggregate) / clients - self.other_support) / self.contrast)
