"""Linear codes of items: a client sends the column of its item, the secure sum is the code times the histogram, exactly and modulo M."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CATEGORIES, check_integer
from ....arrays import IndexArray, IntegerArray, check_unmasked
from ...secure_sum.modular_arithmetic import aggregate_residues, messages_modulo

LARGEST_SEED = 2**128 - 1
MOST_CLIENTS = 2**20
# Entries of a matrix, or of a chunk of messages, that is made whole.
MOST_ENTRIES = 2**28
# Entries of columns that are added up at a time.
AT_ONCE = 2**22


class HistogramCode(ABC):
    """What all codes have in common; a frozen dataclass with the fields below derives from it.

    Sums of chunks of clients add up modulo M, by `modular_sum`. Clients may drop out: the sum of the others decodes for their number.

    Attributes
    ----------
    dimension : int
        d, the number of items, which are numbered from 0; up to 2**40.
    clients : int
        n, the largest number of clients in a sum; up to 2**20.
    measurements : int
        m: whole numbers that a client sends.
    """

    dimension: int
    clients: int
    measurements: int

    @property
    @abstractmethod
    def modulus(self) -> int:
        """M: large enough that no sum of n columns wraps around."""

    @property
    def bits_per_client(self) -> float:
        """``measurements * log2(modulus)``."""
        return self.measurements * math.log2(self.modulus)

    @abstractmethod
    def columns(self, items: ArrayLike) -> NDArray[Any]:
        """Return the columns of items as rows of small whole numbers, signed where the code is: shape (items, measurements)."""

    def encode(self, items: ArrayLike) -> NDArray[Any]:
        """Return what clients with these items send: residues modulo M in the narrowest unsigned words, shape (clients, measurements).

        Raises
        ------
        ValueError
            If an item is unknown, or there are more clients than the modulus holds.
        """
        checked = self._items(items)
        if len(checked) > self.clients:
            raise ValueError(f"items must be of at most {self.clients} clients, for whom the modulus was chosen, got {len(checked)}")
        return messages_modulo(self.columns(checked), self.modulus)

    def summed_columns(self, items: ArrayLike) -> IntegerArray:
        """Return the sum of the columns of all items, shape (measurements,): each item's column is made once, whoever holds it."""
        held, times = np.unique(self._checked(items), return_counts=True)
        total = np.zeros(self.measurements, dtype=np.int64)
        at_once = max(1, AT_ONCE // self.measurements)
        for start in range(0, len(held), at_once):
            total += times[start : start + at_once] @ self.columns(held[start : start + at_once]).astype(np.int64)
        return total

    def decode(self, aggregate: ArrayLike, clients: int, *, time_limit: float = 60.0) -> IntegerArray:
        """Return how many of `clients` hold each item, from the sum modulo M of what they sent; shape (dimension,).

        Raises
        ------
        ValueError
            If there are more clients than the modulus holds, or the sum is not one of that many clients.
        InfeasibleError
            If no histogram, or more than one, has this sum.
        ConvergenceError
            If none was found within `time_limit`, in seconds.
        """
        clients = check_integer("clients", clients, low=0, high=self.clients)
        return self._decoded(aggregate_residues(aggregate, self.measurements, self.modulus).astype(np.int64), clients, time_limit)

    @abstractmethod
    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:
        """Return the histogram of a sum modulo M."""

    def _items(self, items: ArrayLike) -> IndexArray:
        """Return items whose columns are few enough to be made at once."""
        array = self._checked(items)
        if array.size * self.measurements > MOST_ENTRIES:
            raise ValueError(
                f"items must be at most {MOST_ENTRIES // self.measurements} at a time, got {array.size}; encode them in chunks"
            )
        return array

    def _checked(self, items: ArrayLike) -> IndexArray:
        check_unmasked("items", items)
        array = np.asarray(items)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"items must be a list of whole numbers, got shape {array.shape} of {array.dtype}")
        unknown = (array < 0) | (array >= self.dimension)
        if unknown.any():
            raise ValueError(f"items must be from 0 to {self.dimension - 1}, the number of items less one, got {int(array[unknown][0])}")
        return array.astype(np.intp)

    def _check_domain(self) -> None:
        """Check the fields that all codes have."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=MOST_CATEGORIES))
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))


@dataclass(frozen=True)
class IdentityCode(HistogramCode):
    """Every client sends its item as a vector of zeros and a one: the sum is the histogram.

    Examples
    --------
    >>> code = IdentityCode(dimension=4, clients=3)
    >>> code.decode(code.encode([1, 3, 1]).sum(axis=0), clients=3).tolist(), code.bits_per_client
    ([0, 2, 0, 1], 8.0)
    """

    dimension: int
    clients: int
    measurements: int = field(init=False)

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_domain()
        object.__setattr__(self, "measurements", self.dimension)

    @property
    def modulus(self) -> int:
        """One more than the clients, n + 1."""
        return self.clients + 1

    def columns(self, items: ArrayLike) -> NDArray[np.uint8]:
        """Return unit vectors."""
        checked = self._items(items)
        vectors = np.zeros((len(checked), self.dimension), dtype=np.uint8)
        vectors[np.arange(len(checked)), checked] = 1
        return vectors

    def summed_columns(self, items: ArrayLike) -> IntegerArray:
        """Return the histogram."""
        return np.bincount(self._checked(items), minlength=self.dimension)

    def _decoded(self, residues: IntegerArray, clients: int, time_limit: float) -> IntegerArray:  # noqa: ARG002
        if int(residues.sum()) != clients:
            raise ValueError(f"aggregate must be a sum over {clients} clients, got one over {int(residues.sum())}")
        return residues
