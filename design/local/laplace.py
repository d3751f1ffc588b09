"""The Laplace mechanism, uncompressed: the reference that a few bits are measured against."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_interval, check_real
from ...arrays import FloatArray
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ..contracts.guarantee import Guarantee
from ..contracts.mechanism import MessageScore, ScalarMechanism
from ..contracts.privacy import Privacy
from ..contracts.real_numbers import RealNumberMechanism
from ..noise.random_words import WordsLike
from ..transforms.dithering import finite_values
from .vector_laplace import laplace_privacy


@dataclass(frozen=True)
class LaplaceMechanism(RealNumberMechanism, ScalarMechanism):
    """Every client adds Laplace noise of scale (high - low) / epsilon to its value and sends a 64-bit float.

    A reference for comparisons, not for releases: the low bits of a floating-point sum give away more than the real-valued mechanism
    does (Mironov 2012, *On significance of the least significant bits for differential privacy*).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    interval : tuple of float
        Public interval (low, high) of the values.
    metric : str or None
        Which of its two guarantees is stated: None for local privacy, ``"l1"`` for the stronger metric privacy with |y - y'|; the
        noise is the same.

    Examples
    --------
    >>> LaplaceMechanism(2.0, (-1.0, 1.0)).worst_variance
    2.0
    """

    epsilon: float
    interval: tuple[float, float] = (0.0, 1.0)
    metric: str | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "interval", check_interval("interval", self.interval))
        if self.metric not in (None, "l1"):
            raise ValueError(f"metric must be l1, or left out, for Laplace noise, got {self.metric!r}")
        object.__setattr__(self, "delta", check_real("delta", self.delta, low=0.0, high=1 - 1e-16))

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of the values."""
        low, high = self.interval
        return (high - low) / self.epsilon

    @property
    def bits_per_client(self) -> float:
        """Bits of a double-precision number."""
        return 64.0

    def privacy(self) -> Privacy:
        """Pure local privacy, of the real-valued mechanism."""
        return self.stated(laplace_privacy(self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """Pure local privacy, with the metric where one is stated."""
        return replace(super().guarantee, metric=self.metric)

    @property
    def worst_variance(self) -> float:
        """Variance of the noise, the same for every value."""
        return 2 * self.scale**2

    def encode(self, values: ArrayLike, words: WordsLike) -> FloatArray:
        """Add noise to each value."""
        words = self.checked_words(words)
        clipped = np.clip(finite_values("values", values), *self.interval)
        return clipped + self.scale * words.laplace(clipped.shape)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return messages times the difference of the inputs."""
        difference = float(first - second)
        return lambda messages: np.asarray(messages * difference)

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the noisy values, shape (1,)."""
        return np.array([messages.sum()])

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the average of the noisy values; it may lie outside the interval."""
        return float(aggregate[0]) / check_integer("clients", clients, low=1, high=MOST_CLIENTS)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return ``2 scale**2`` for each value."""
        return np.full(finite_values("values", values).shape, self.worst_variance)
