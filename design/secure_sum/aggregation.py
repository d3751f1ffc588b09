"""A simulator of secure aggregation: the server learns only the modular sum.

The module simulates the *interface* of Bonawitz et al. 2017, *Practical Secure Aggregation for Privacy-Preserving Machine Learning*, for
experiments with mechanisms that rely on it. It is not a cryptographic product: it omits key agreement, secret shares, signatures and the
network, derives all secrets in one process from one key, and expands them by a generator that is not cryptographic.

`MaskGraph` defines the pairs of clients that share masks, and `MaskSource` derives the uniform vectors of a pair of clients, or of a single
client, from a secret. `mask_cost` counts the expanded coordinates of masks, and `rate_at_equal_cost` gives the extra compression that a
larger cohort needs.
"""

import hashlib
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_integer
from ...arrays import WordArray
from ...errors import InfeasibleError
from ..noise.random_words import WordsLike, word_source
from .modular_arithmetic import check_modulus, check_residues, modular_add, modular_subtract, modular_sum

MOST_CLIENTS = 2**31
KEY_BYTES = 32
SEED_BYTES = 16


@dataclass(frozen=True)
class SecureSum:
    """The sum, modulo M, of one vector per client, computed from masked messages.

    Client i sends ``x_i + b_i + sum of m_ij over neighbours j > i - sum of m_ij over neighbours j < i``, modulo M. The pair masks m_ij
    cancel in the sum. When messages are missing, the remaining neighbours give the server their shares of the missing clients' pair
    secrets, and of the other clients' self masks b_i. They never give both kinds of shares for the same client, so that a late message
    stays masked.

    Attributes
    ----------
    clients : int
        Number of clients, all of which send masked messages, from 2 to 2**31.
    length : int
        Number of coordinates of each vector, from 1.
    modulus : int
        Modulus M, from 2 to 2**62.
    neighbours : int or None
        Number of neighbours of each client, as in `MaskGraph`; None for all other clients.
    threshold : int or None
        Number of a client's neighbours whose shares recover its secrets, from 1 to `neighbours`; None for more than half of them. With
        fewer, two disjoint sets of neighbours could give the server both kinds of a client's secrets.

    Examples
    --------
    Three clients, of whom client 1 masks and then drops out:

    >>> import numpy as np
    >>> secure_sum = SecureSum(clients=3, length=2, modulus=10, threshold=1)
    >>> secure_sum.total([[[1, 2], [3, 4]], [[5, 9]]], np.random.default_rng(0), dropped=[1]).tolist()
    [6, 1]
    """

    clients: int
    length: int
    modulus: int
    neighbours: int | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        everyone = check_integer("clients", self.clients, low=2, high=MOST_CLIENTS) - 1
        check_integer("length", self.length, low=1, high=LARGEST_DIMENSION)
        check_modulus(self.modulus)
        if self.neighbours is not None:
            check_integer("neighbours", self.neighbours, low=min(2, everyone), high=everyone)
            check_regular(self.clients, self.neighbours)
        if self.threshold is not None:
            check_integer("threshold", self.threshold, low=1, high=self.degree)

    @property
    def degree(self) -> int:
        """Number of neighbours of each client: all other clients, if `neighbours` is None."""
        return self.clients - 1 if self.neighbours is None else self.neighbours

    @property
    def shares_needed(self) -> int:
        """Number of neighbours that recover a client's secrets; by default more than half."""
        return self.degree // 2 + 1 if self.threshold is None else self.threshold

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, ``length * log2(modulus)``, without setup and recovery."""
        return self.length * float(np.log2(self.modulus))

    def session(self, random_words: WordsLike) -> "SecureSumSession":
        """Draw the clients' secrets and the ring's order for one sum, as masks must not serve twice."""
        random_words = word_source(random_words)
        graph = MaskGraph(random_words.permutation(self.clients), self.degree)
        masks = MaskSource(random_words.random_bytes(KEY_BYTES), self.length, self.modulus)
        return SecureSumSession(self, graph, masks, _Progress.start(self))

    def total(self, chunks: Iterable[ArrayLike], random_words: WordsLike, dropped: Collection[int] = ()) -> WordArray:
        """Run one session over chunks of clients: mask, drop messages, add up, and remove masks.

        Memory is a few times that of a chunk, and a few words per client and neighbour for the graph. Masks take most of the time: each
        client expands neighbours + 1 of them.

        Parameters
        ----------
        chunks : iterable of array_like of int, each of shape (clients of the chunk, length)
            Values from 0 to M - 1 of clients 0, 1, ... in turn; together as many as there are clients.
        random_words : WordSource or numpy.random.Generator
            Source of randomness for the masks; the result does not depend on it.
        dropped : collection of int
            Numbers of the clients whose messages don't arrive.

        Returns
        -------
        ndarray of uint64, shape (length,)
            Sum of the values of all clients except the dropped ones, modulo M: the result of `modular_sum`.

        Raises
        ------
        InfeasibleError
            If too many clients dropped out, as for `SecureSumSession.unmask`.
        """
        session = self.session(random_words)
        survivors = np.ones(self.clients, dtype=bool)
        for client in dropped:
            survivors[check_integer("dropped", client, low=0, high=self.clients - 1)] = False
        first = 0
        for chunk in chunks:
            messages = session.mask(first, chunk)
            arrived = np.flatnonzero(survivors[first : first + len(messages)])
            session.receive(first + arrived, messages[arrived])
            first += len(messages)
        if first != self.clients:
            raise ValueError(f"chunks must hold the vectors of {self.clients} clients, got {first}")
        return session.unmask()


@dataclass(eq=False)
class _Progress:
    """State of a session: clients that masked, arrived messages, their sum, and unmasking."""

    masked: NDArray[np.bool_]
    arrived: NDArray[np.bool_]
    total: WordArray
    unmasked: bool = False

    @classmethod
    def start(cls, parameters: SecureSum) -> "_Progress":
        clients = parameters.clients
        return cls(np.zeros(clients, dtype=bool), np.zeros(clients, dtype=bool), np.zeros(parameters.length, dtype=np.uint64))

    def check_open(self) -> None:
        if self.unmasked:
            raise ValueError("unmask must be called once, at the end of a session: two sums would give away their difference")


@dataclass(frozen=True, eq=False)
class MaskGraph:
    """A ring in random order: every client shares masks with the nearest clients on either side.

    The graph is the Harary graph of Bell, Bonawitz, Gascon, Lepoint, Raykova 2020, *Secure Single-Server Aggregation with (Poly)Logarithmic
    Overhead*: a multiple of log(clients) neighbours suffices, in place of all clients as in Bonawitz et al. 2017, and masks then cost
    clients x neighbours vectors in place of clients**2.

    Attributes
    ----------
    order : ndarray of int, shape (clients,)
        The clients, numbered from 0, in the order of the ring: a permutation, at least two.
    neighbours : int
        Number of neighbours of every client: from 2, or 1 for two clients, to clients - 1, all other clients. If it is odd, the number of
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
        """Distances on the ring, ahead and behind, of a client's neighbours.

        The distance clients / 2 is both ahead and behind.
        """
        near = np.arange(1, self.neighbours // 2 + 1)
        return np.append(near, self.clients // 2) if self.neighbours % 2 else near

    def neighbours_of(self, client: int) -> NDArray[np.int64]:
        """Return the neighbours of a client in rising order, shape (neighbours,)."""
        place = self._places[check_integer("client", client, low=0, high=self.clients - 1)]
        return np.unique(self.order[(place + np.concatenate([self.offsets, -self.offsets])) % self.clients])

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return both ends of all pairs of neighbours, two arrays of one entry per pair."""
        firsts, seconds = [], []
        for offset in self.offsets:
            # The opposite client is as far ahead as behind, so a whole turn of the ring would count each pair twice.
            count = self.clients // 2 if 2 * offset == self.clients else self.clients
            firsts.append(self.order[:count])
            seconds.append(np.roll(self.order, -offset)[:count])
        return np.concatenate(firsts), np.concatenate(seconds)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return np.argsort(self.order)


@dataclass(frozen=True)
class MaskSource:
    """A source that expands secrets into masks, each uniform on {0, ..., M - 1}**length.

    A mask is the same at every call. Every pair of clients, and every client alone, has a seed of 128 bits, which keys the counter-based
    generator Philox (Salmon, Moraes, Dror, Shaw 2011, *Parallel Random Numbers: As Easy as 1, 2, 3*). For the simulation all seeds are
    hashes of one key; between real clients they come from a key agreement, and a cryptographic generator, which Philox is not, expands
    them.

    Attributes
    ----------
    key : bytes
        32 bytes that stand for all clients' secrets.
    length : int
        Number of coordinates of a mask, from 1.
    modulus : int
        Modulus M, from 2 to 2**62.
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
        """Return the mask of two clients.

        The client with the lower number adds the mask, and the client with the higher number subtracts it.
        """
        return self._expand(b"pair", min(first, second), max(first, second))

    def self_mask(self, client: int) -> WordArray:
        """Return a client's self mask, which is removed only if the client's message has arrived."""
        return self._expand(b"self", client, client)

    def _expand(self, purpose: bytes, first: int, second: int) -> WordArray:
        clients = first.to_bytes(8, "little") + second.to_bytes(8, "little")
        seed = hashlib.blake2b(clients, digest_size=SEED_BYTES, key=self.key, person=purpose).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(seed, "little")))
        return generator.integers(self.modulus, size=self.length, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class SecureSumSession:
    """One run of a secure sum, in which clients mask messages and the server unmasks the sum.

    `SecureSum.session` starts it.

    Attributes
    ----------
    parameters : SecureSum
        Sizes and threshold.
    graph : MaskGraph
        The public graph of clients that share masks.
    masks : MaskSource
        The clients' secrets.
    """

    parameters: SecureSum
    graph: MaskGraph
    masks: MaskSource
    _progress: _Progress

    def mask(self, first_client: int, values: ArrayLike) -> WordArray:
        """Return the clients' masked messages, shape (clients of the chunk, length).

        Each message alone is uniform, for any values. `values` are the vectors of clients first_client, first_client + 1, ..., from 0 to M
        - 1. Each client masks only one vector, since the difference of two of its messages would be the difference of its vectors.
        """
        modulus = self.parameters.modulus
        messages = self._vectors("values", values).copy()
        last = self.parameters.clients - len(messages)
        if last < 0:
            raise ValueError(f"values must hold the vectors of at most {self.parameters.clients} clients, got {len(messages)}")
        first_client = check_integer("first_client", first_client, low=0, high=last)
        masked = self._progress.masked[first_client : first_client + len(messages)]
        if masked.any():
            again = first_client + int(masked.argmax())
            raise ValueError(f"first_client must be such that each client masks once, got client {again} again")
        masked[:] = True
        for client, message in enumerate(messages, start=first_client):
            message[...] = modular_add(message, self.masks.self_mask(client), modulus)
            for neighbour in self.graph.neighbours_of(client).tolist():
                combine = modular_add if client < neighbour else modular_subtract
                message[...] = combine(message, self.masks.pair_mask(client, neighbour), modulus)
        return messages

    def receive(self, senders: ArrayLike, messages: ArrayLike) -> None:
        """Add up arrived messages modulo M, and note their senders.

        Parameters
        ----------
        senders : array_like of int, shape (clients of the chunk,)
            Numbers of the senders; each client's message counts once.
        messages : array_like of int, shape (clients of the chunk, length)
            The messages. The server cannot detect a message within the range that its sender did not mask, and which spoils the sum.

        Raises
        ------
        ValueError
            If the numbers of senders and messages differ, a client does not exist or has sent a message before, or a number is outside of 0
            to M - 1: the sum then omits the whole chunk. Also if the sum has been unmasked, as a late message stays masked.
        """
        self._progress.check_open()
        vectors = self._vectors("messages", messages)
        numbers, clients = np.asarray(senders), self.parameters.clients
        if numbers.dtype.kind not in "iu" or numbers.shape != (len(vectors),):
            raise ValueError(f"senders must be {len(vectors)} whole numbers, one for each message, got {numbers!r}")
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            client = check_integer("senders", int(number), low=0, high=clients - 1)
            if count > 1 or self._progress.arrived[client]:
                raise ValueError(f"senders must each send one message, got another one of client {client}")
        self._progress.total = modular_add(self._progress.total, modular_sum(vectors, self.parameters.modulus), self.parameters.modulus)
        self._progress.arrived[numbers] = True

    def unmask(self) -> WordArray:
        """Return the sum of the arrived messages without masks; call it once.

        The method removes self masks of arrived messages, and pair masks that missing clients left. Two sums over different clients would
        reveal their difference, which may be one client's vector.

        Returns
        -------
        ndarray of uint64, shape (length,)
            Sum of the values of the clients whose messages have arrived, modulo M.

        Raises
        ------
        InfeasibleError
            If fewer neighbours of a client remain than the threshold, or if the clients that remain fall apart into groups
            that share no masks, so that the server would learn the sum of each group. Further messages may still arrive then.
        ValueError
            If the sum has been unmasked before.
        """
        self._progress.check_open()
        modulus, alive, result = self.parameters.modulus, self._progress.arrived, self._progress.total
        self._check_recovery(alive)
        self._progress.unmasked = True
        for client in np.flatnonzero(alive).tolist():
            result = modular_subtract(result, self.masks.self_mask(client), modulus)
        for client in np.flatnonzero(~alive).tolist():
            for neighbour in self.graph.neighbours_of(client).tolist():
                if alive[neighbour]:
                    # The neighbour's message holds the mask with the neighbour's sign.
                    combine = modular_subtract if neighbour < client else modular_add
                    result = combine(result, self.masks.pair_mask(client, neighbour), modulus)
        return result

    def _check_recovery(self, alive: NDArray[np.bool_]) -> None:
        """Raise InfeasibleError if masks are lost, or the server would learn several sums."""
        clients, threshold = self.parameters.clients, self.parameters.shares_needed
        first, second = self.graph.edges()
        helpers = np.bincount(first[alive[second]], minlength=clients) + np.bincount(second[alive[first]], minlength=clients)
        # A missing client whose neighbours are all missing has left no mask behind.
        stuck = np.flatnonzero((helpers < threshold) & (alive | (helpers > 0)))
        if stuck.size or not alive.any():
            worst = int(stuck[helpers[stuck].argmin()]) if stuck.size else 0
            raise InfeasibleError(
                f"{np.count_nonzero(alive)} of {clients} clients remain: client {worst} has {helpers[worst]} of its "
                f"{self.graph.neighbours} neighbours left, fewer than the threshold {threshold}; have more neighbours, or a lower threshold"
            )
        between = alive[first] & alive[second]
        links = scipy.sparse.coo_array(
            (np.ones(int(between.sum()), dtype=bool), (first[between], second[between])), shape=(clients, clients)
        )
        labels = scipy.sparse.csgraph.connected_components(links, directed=False)[1]
        groups = len(np.unique(labels[alive]))
        if groups > 1:
            raise InfeasibleError(
                f"the {np.count_nonzero(alive)} clients that remain fall apart into {groups} groups that share no masks, and the server "
                "would learn the sum of each group; have more neighbours"
            )

    def _vectors(self, name: str, vectors: ArrayLike) -> WordArray:
        array = check_residues(name, vectors, self.parameters.modulus)
        if array.ndim != 2 or array.shape[1] != self.parameters.length:
            raise ValueError(f"{name} must have the shape (clients, {self.parameters.length}), got {array.shape}")
        return array


def check_regular(clients: int, neighbours: int) -> None:
    """Raise ValueError for an odd number of neighbours and clients: each pair has two ends."""
    if clients % 2 and neighbours % 2:
        raise ValueError(f"neighbours must be even for {clients} clients, an odd number, got {neighbours!r}")


@dataclass(frozen=True)
class MaskCost:
    """Numbers of expanded mask coordinates in one secure sum; a mask is as long as a message.

    Attributes
    ----------
    client : int
        Number of coordinates that each client expands: its own mask, and a mask for each neighbour.
    server : int
        Number of coordinates that the server expands to remove own masks of clients that stay, and pair masks that missing clients left.
    total : int
        Number of coordinates that all clients and the server expand together.
    """

    client: int
    server: int
    total: int


def mask_cost(clients: int, length: int, neighbours: int, dropped: int = 0) -> MaskCost:
    """Return the cost of one sum's masks in expanded coordinates; the server's cost is a bound.

    Parameters
    ----------
    clients : int
        Number of clients that mask, from 2.
    length : int
        Number of coordinates of a message.
    neighbours : int
        Number of neighbours of each client: a multiple of log(clients) suffices (Bell et al. 2020), all other clients in Bonawitz et al.
        2017.
    dropped : int
        Number of clients that mask and whose messages are missing.

    Examples
    --------
    >>> mask_cost(1000, 2**16, 20).total == 2**16 * (1000 * 21 + 1000)
    True
    """
    clients = check_integer("clients", clients, low=2, high=MOST_CLIENTS)
    length = check_integer("length", length, low=1, high=LARGEST_DIMENSION)
    neighbours = check_integer("neighbours", neighbours, low=1, high=clients - 1)
    check_regular(clients, neighbours)
    dropped = check_integer("dropped", dropped, low=0, high=clients)
    client = (neighbours + 1) * length
    server = (clients - dropped + dropped * neighbours) * length
    return MaskCost(client, server, clients * client + server)


def rate_at_equal_cost(clients: int, reference_clients: int) -> float:
    """Return the extra compression at which a larger cohort's secure sum costs the same.

    The result is ``n2 ln(n2) / (n1 ln(n1))`` (Chen, Choquette-Choo, Kairouz, Suresh 2022), as n clients with a multiple of log(n)
    neighbours each expand masks of n log(n) times the length of a message.

    Parameters
    ----------
    clients, reference_clients : int
        Numbers n2 and n1 of clients, from 2.

    Examples
    --------
    >>> round(rate_at_equal_cost(1000, 100), 6)
    15.0
    """
    larger = check_integer("clients", clients, low=2, high=MOST_CLIENTS)
    smaller = check_integer("reference_clients", reference_clients, low=2, high=MOST_CLIENTS)
    return larger * math.log(larger) / (smaller * math.log(smaller))
