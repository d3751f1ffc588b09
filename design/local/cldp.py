"""The one-bit mechanism (CLDP) of Girgis, Data, Diggavi, Kairouz, Suresh 2021, *Shuffled Model of Differential Privacy in FL*."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_interval, check_real
from ...arrays import FloatArray
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ..contracts.accounts import pure_privacy
from ..contracts.mechanism import ScalarMechanism
from ..contracts.privacy import Privacy
from ..noise.random_words import WordsLike, word_source
from ..transforms.dithering import finite_values


@dataclass(frozen=True)
class CLDPMechanism(ScalarMechanism):
    """Every client sends one bit, up with a probability that is linear in its value (CLDP in one dimension).

    With t the value on the scale of [-1, 1] and C = (e^epsilon - 1) / (e^epsilon + 1), the bit is up with probability (1 + C t) / 2 and
    decodes to +1/C or -1/C. The one-bit MVU table has the same letters and, at its grid points, the same probabilities.

    For releases with ``secure_words``, up to rounding: no probability is off by more than 2**-51, which adds less than 1e-6 to epsilon,
    even at 20. That table, whose probabilities are whole numbers, is exact.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    interval : tuple of float
        Public interval (low, high) of the values.

    Examples
    --------
    >>> mechanism = CLDPMechanism(1.0, (-1.0, 1.0))
    >>> [round(float(variance), 4) for variance in mechanism.variance([-1.0, 0.0, 0.5])]
    [3.6827, 4.6827, 4.4327]
    """

    epsilon: float
    interval: tuple[float, float] = (0.0, 1.0)
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "interval", check_interval("interval", self.interval))

    @property
    def bits_per_client(self) -> float:
        """One bit."""
        return 1.0

    def privacy(self) -> Privacy:
        """Pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def worst_variance(self) -> float:
        """Variance at the middle of the interval."""
        return (self._half_width / self._contrast) ** 2

    def encode(self, values: ArrayLike, words: WordsLike) -> NDArray[np.uint8]:
        """Draw one bit per value, 0 or 1."""
        words = word_source(words)
        signed = self._signed(values)
        return (words.uniforms(signed.shape) < 0.5 + 0.5 * self._contrast * signed).astype(np.uint8)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of bits that are up, shape (1,)."""
        return np.array([np.count_nonzero(messages)], dtype=np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the average of the numbers that the bits stand for; it may lie outside the interval."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        low, high = self.interval
        return low + (high - low) / 2 + self._half_width * (2 * int(aggregate[0]) / clients - 1) / self._contrast

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return ``half_width**2 (1 / C**2 - t**2)`` for each value: exact."""
        return np.asarray(self._half_width**2 * (self._contrast**-2 - self._signed(values) ** 2))

    @property
    def _half_width(self) -> float:
        low, high = self.interval
        return (high - low) / 2

    @property
    def _contrast(self) -> float:
        return math.tanh(self.epsilon / 2)

    def _signed(self, values: ArrayLike) -> FloatArray:
        low, high = self.interval
        return np.clip((finite_values("values", values) - low) / (high - low) * 2 - 1, -1.0, 1.0)
