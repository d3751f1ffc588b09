"""The interface that every mechanism for mean estimation shares, and how a lookup table meets it."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray
from ..noise.random_words import WordsLike
from ..tables.lookup_table import LetterArray, LookupTable
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

    def encode(self, values: ArrayLike, words: WordsLike) -> NDArray[Any]:
        """Return what clients with these values send, one message per value.

        Parameters
        ----------
        values : array_like
            Finite values; those outside the interval count as its nearer end.
        words : WordSource or numpy.random.Generator
            Source of the clients' randomness: ``quietbits.secure_words`` for releases; a generator, which counts as ``seeded_words`` of it,
            for experiments that others can repeat. Whoever knows its seed can undo the noise.

        Returns
        -------
        ndarray
            Messages, in the shape of `values`.

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or `words` is not a source.
        """

    def aggregate(self, messages: NDArray[Any]) -> NDArray[Any]:
        """Return what the server keeps of the messages, in an array of fixed shape that adds up over chunks of clients."""

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the estimate of the mean of the values of all clients that went into the aggregate."""

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of one client's decoded message, for each value, in squared units of the values."""


@dataclass(frozen=True, eq=False)
class TableMeanProtocol:
    """Mean estimation with a lookup table: letters are sent, and the server keeps their histogram.

    Attributes
    ----------
    table : LookupTable
        The table that clients draw from.

    Examples
    --------
    >>> import numpy as np
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> protocol = TableMeanProtocol(generalised_randomised_response(5.0, 3))
    >>> messages = protocol.encode(np.full(100_000, 0.3), np.random.default_rng(1))
    >>> round(protocol.decode(protocol.aggregate(messages), 100_000), 2)
    0.3
    """

    table: LookupTable

    @property
    def interval(self) -> tuple[float, float]:
        """The table's interval (low, high)."""
        return self.table.interval

    @property
    def bits_per_client(self) -> float:
        """Bits of one letter."""
        return self.table.bits_per_client

    @property
    def guarantee(self) -> Guarantee:
        """The table's guarantee, with the declared epsilon."""
        return self.table.guarantee

    @property
    def worst_variance(self) -> float:
        """Largest variance over the interval, on the grid or between two of its points.

        Between grid points the variance is a parabola in the fractional part f, V + f (V' - V) + f (1 - f) s**2, whose top lies at
        f = 1/2 + (V' - V) / (2 s**2) if that is between 0 and 1, else at one of its ends.
        """
        low, high = self.interval
        steps = len(self.table.weights) - 1
        variances = self.table.variance(np.linspace(low, high, steps + 1))
        means = np.array([float(mean) for mean in self.table.moments.means])
        tops = 0.5 + np.diff(variances) / (2 * (np.diff(means) * (high - low)) ** 2)
        positions = np.arange(steps) + np.clip(tops, 0.0, 1.0)
        return float(max(variances.max(), self.table.variance(low + (high - low) * positions / steps).max()))

    def encode(self, values: ArrayLike, words: WordsLike) -> LetterArray:
        """Draw one letter per value, as the table does."""
        return self.table.encode(values, words)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the histogram of the letters.

        Parameters
        ----------
        messages : ndarray of int
            Letter indices.

        Returns
        -------
        ndarray of int64, shape (2**bits_out,)
            How often each letter was sent.

        Raises
        ------
        ValueError
            If an index is no letter of the table.
        """
        histogram = np.bincount(messages.ravel(), minlength=len(self.table.alphabet))
        if len(histogram) > len(self.table.alphabet):
            raise ValueError(f"messages must be from 0 to {len(self.table.alphabet) - 1}, got {len(histogram) - 1}")
        return histogram

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        """Return the average of the numbers that the letters stand for.

        Parameters
        ----------
        aggregate : ndarray of int, shape (2**bits_out,)
            Histogram of all letters.
        clients : int
            Number of clients.

        Returns
        -------
        float
            The estimate; it may lie outside the interval.

        Raises
        ------
        ValueError
            If the histogram does not add up to the number of clients.
        """
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        if aggregate.sum() != clients:
            raise ValueError(f"clients must be the number of letters in the histogram, {int(aggregate.sum())}, got {clients!r}")
        return float(aggregate @ self.table.letters / clients)

    def variance(self, values: ArrayLike) -> FloatArray:
        """Return the exact variance of one decoded letter for each value, dithering included.

        Parameters
        ----------
        values : array_like
            Finite values.

        Returns
        -------
        ndarray of float64, same shape
            Variances, in squared units of the values.

        Raises
        ------
        ValueError
            If a value is NaN or infinite.
        """
        return self.table.variance(values)
