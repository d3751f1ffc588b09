"""Masks that cancel: who masks with whom, and the uniform vectors that a pair of clients, or one client alone, derives from a secret."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arguments import LARGEST_DIMENSION, check_integer
from ...arrays import WordArray
from .modular_arithmetic import check_modulus

MOST_CLIENTS = 2**31
KEY_BYTES = 32
SEED_BYTES = 16


def check_regular(clients: int, neighbours: int) -> None:
    """Refuse an odd number of neighbours for an odd number of clients: each pair has two ends."""
    if clients % 2 and neighbours % 2:
        raise ValueError(f"neighbours must be even for {clients} clients, an odd number, got {neighbours!r}")


@dataclass(frozen=True, eq=False)
class MaskGraph:
    """A ring in random order, on which every client shares masks with the nearest clients on either side (a Harary graph).

    It is the graph of Bell, Bonawitz, Gascon, Lepoint, Raykova 2020, *Secure Single-Server Aggregation with (Poly)Logarithmic Overhead*:
    a multiple of log(clients) neighbours suffices, in place of everyone as in Bonawitz et al. 2017, and masks then cost clients x
    neighbours vectors in place of clients**2.

    Attributes
    ----------
    order : ndarray of int, shape (clients,)
        The clients, numbered from 0, in the order of the ring: a permutation, at least two.
    neighbours : int
        Number of neighbours of every client: from 2, or 1 for two clients, to clients - 1, which is everyone. If it is odd, the number of
        clients is even, and one of the neighbours is the client opposite.

    Examples
    --------
    >>> MaskGraph(np.arange(6), neighbours=2).neighbours_of(0).tolist(), MaskGraph(np.arange(6), neighbours=3).neighbours_of(1).tolist()
    ([1, 5], [0, 2, 4])
    """

    order: NDArray[np.int64]
    neighbours: int

    def __post_init__(self) -> None:
        """Check the fields."""
        clients = check_integer("clients", len(self.order), low=2, high=MOST_CLIENTS)
        check_integer("neighbours", self.neighbours, low=min(2, clients - 1), high=clients - 1)
        check_regular(clients, self.neighbours)
        if not np.array_equal(np.sort(self.order), np.arange(clients)):
            raise ValueError(f"order must hold each of the numbers 0 to {clients - 1} once")

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.order)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """How many places on the ring, ahead and behind, a client's neighbours are away; clients / 2 is both at once."""
        near = np.arange(1, self.neighbours // 2 + 1)
        return np.append(near, self.clients // 2) if self.neighbours % 2 else near

    def neighbours_of(self, client: int) -> NDArray[np.int64]:
        """Return whom a client shares masks with, in rising order, shape (neighbours,)."""
        place = self._places[check_integer("client", client, low=0, high=self.clients - 1)]
        return np.unique(self.order[(place + np.concatenate([self.offsets, -self.offsets])) % self.clients])

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all pairs of neighbours: one end of each, and the other, two arrays of shape (clients * neighbours / 2,)."""
        firsts, seconds = [], []
        for offset in self.offsets:
            # The opposite client is as far ahead as behind: once around the ring would count each pair twice.
            count = self.clients // 2 if 2 * offset == self.clients else self.clients
            firsts.append(self.order[:count])
            seconds.append(np.roll(self.order, -offset)[:count])
        return np.concatenate(firsts), np.concatenate(seconds)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return np.argsort(self.order)


@dataclass(frozen=True)
class MaskSource:
    """Expands secrets into masks, each uniform on {0, ..., M - 1}**length and the same whenever it is asked for.

    Every pair of clients, and every client alone, has a seed of 128 bits, which keys the counter-based generator Philox (Salmon, Moraes,
    Dror, Shaw 2011, *Parallel Random Numbers: As Easy as 1, 2, 3*). For the simulation all seeds are hashes of one key; between real
    clients they come from a key agreement, and a cryptographic generator, which Philox is not, expands them.

    Attributes
    ----------
    key : bytes
        32 bytes that stand for all clients' secrets.
    length : int
        Number of coordinates of a mask, from 1.
    modulus : int
        M, from 2 to 2**62.
    """

    key: bytes
    length: int
    modulus: int

    def __post_init__(self) -> None:
        """Check the fields."""
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"key must have {KEY_BYTES} bytes, got {len(self.key)}")
        check_integer("length", self.length, low=1, high=LARGEST_DIMENSION)
        check_modulus(self.modulus)

    def pair_mask(self, first: int, second: int) -> WordArray:
        """Return the mask that two clients share, in either order: the one with the lower number adds it, the other one subtracts it."""
        return self._expand(b"pair", min(first, second), max(first, second))

    def self_mask(self, client: int) -> WordArray:
        """Return the mask that a client adds for itself, and that is taken off again only if its message has arrived."""
        return self._expand(b"self", client, client)

    def _expand(self, purpose: bytes, first: int, second: int) -> WordArray:
        clients = first.to_bytes(8, "little") + second.to_bytes(8, "little")
        seed = hashlib.blake2b(clients, digest_size=SEED_BYTES, key=self.key, person=purpose).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(seed, "little")))
        return generator.integers(self.modulus, size=self.length, dtype=np.uint64)
