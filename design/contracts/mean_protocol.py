"""The interface that every mechanism for mean estimation shares."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from .guarantee import Guarantee

MOST_CLIENTS = 2**53


class MeanProtocol(Protocol):
    """A mechanism with which clients report one number each and a server estimates the mean, without bias.

    Clients are streamed in chunks: ``decode(aggregate(chunk_1) + aggregate(chunk_2) + ..., clients)``.
    """

    @property
    def interval(self) -> tuple[float, float]:
        """Public interval (low, high) of the values; a value outside counts as the nearer end."""

    @property
    def bits_per_client(self) -> float:
        """Bits that one message takes."""

    @property
    def guarantee(self) -> Guarantee:
        """What each client is promised."""

    @property
    def worst_variance(self) -> float:
        """Largest of `variance` over the interval: what can be promised without having seen a value."""

    def encode(self, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Return what clients with these values send, one message per value; NaN and infinities raise ``ValueError``."""

    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return what the server keeps of the messages, in an array of fixed shape that adds up over chunks of clients."""

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the estimate of the mean of the values of all clients that went into the aggregate."""

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of one client's decoded message, for each value, in squared units of the values."""
