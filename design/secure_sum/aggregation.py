"""A simulator of what secure aggregation shows: the server learns the modular sum of the clients' vectors, and drop-outs do not spoil it.

It simulates the *interface* of Bonawitz et al. 2017, *Practical Secure Aggregation for Privacy-Preserving Machine Learning*, for
experiments with mechanisms that rely on it. It is not a cryptographic product: key agreement, secret shares, signatures and the network
are left out, all secrets are derived in one process from one key, and the generator that expands them is not a cryptographic one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_integer
from ...arrays import WordArray
from ...errors import InfeasibleError
from ..noise.random_words import WordsLike, word_source
from .modular_arithmetic import check_modulus, check_residues, modular_add, modular_subtract, modular_sum
from .pairwise_masks import KEY_BYTES, MOST_CLIENTS, MaskGraph, MaskSource, check_regular


@dataclass(frozen=True)
class SecureSum:
    """The sum, modulo M, of one vector per client, computed from masked messages.

    Client i sends ``x_i + b_i + sum of m_ij over neighbours j > i - sum of m_ij over neighbours j < i``, modulo M. The pair masks m_ij
    cancel in the sum. When messages are missing, the neighbours that remain give the server their shares of the missing clients' pair
    secrets, and of the other clients' self masks b_i; never of both for the same client, so that a message that comes late stays masked.

    Attributes
    ----------
    clients : int
        Number of clients that mask, from 2 to 2**31.
    length : int
        Number of coordinates of each vector, from 1.
    modulus : int
        M, from 2 to 2**62.
    neighbours : int or None
        With how many others each client masks, as in `MaskGraph`; None for everyone.
    threshold : int or None
        How many of a client's neighbours it takes to recover its secrets, from 1 to `neighbours`; None for more than half of them, without
        which two disjoint sets of neighbours could give the server both kinds of a client's secrets.

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
        """Number of neighbours of each client: everyone else, if `neighbours` is None."""
        return self.clients - 1 if self.neighbours is None else self.neighbours

    @property
    def shares_needed(self) -> int:
        """How many neighbours it takes to recover a client's secrets: more than half of them, if `threshold` is None."""
        return self.degree // 2 + 1 if self.threshold is None else self.threshold

    @property
    def bits_per_client(self) -> float:
        """Bits of one masked message, length * log2(modulus); what setting up and recovering masks takes is not in it."""
        return self.length * float(np.log2(self.modulus))

    def session(self, words: WordsLike) -> "SecureSumSession":
        """Draw the clients' secrets and the order of the ring, for one sum: masks must not serve twice."""
        words = word_source(words)
        graph = MaskGraph(words.permutation(self.clients), self.degree)
        masks = MaskSource(words.random_bytes(KEY_BYTES), self.length, self.modulus)
        return SecureSumSession(self, graph, masks, _Progress.start(self))

    def total(self, chunks: Iterable[ArrayLike], words: WordsLike, dropped: Collection[int] = ()) -> WordArray:
        """Run one session over clients that come in chunks: mask, drop some messages, add up the others, take off what is left of masks.

        Memory is a few times that of a chunk, and a few words per client and neighbour for the graph. Time goes into masks: each client
        expands neighbours + 1 of them.

        Parameters
        ----------
        chunks : iterable of array_like of int, each of shape (clients of the chunk, length)
            Values from 0 to M - 1 of clients 0, 1, ... in turn; together as many as there are clients.
        words : WordSource or numpy.random.Generator
            Source of randomness for the masks; the result does not depend on it.
        dropped : collection of int
            Numbers of the clients whose messages don't arrive.

        Returns
        -------
        ndarray of uint64, shape (length,)
            Sum of the values of all clients except the dropped ones, modulo M: what `modular_sum` gives.

        Raises
        ------
        InfeasibleError
            If too many clients dropped out, as `SecureSumSession.unmask` says.
        """
        session = self.session(words)
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
    """What a session has seen: who has masked, whose messages have arrived, their masked sum, and whether it was unmasked."""

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
class SecureSumSession:
    """One run of a secure sum: made by `SecureSum.session`. Clients `mask`, the server receives, and unmasks once.

    Attributes
    ----------
    parameters : SecureSum
        Sizes and threshold.
    graph : MaskGraph
        Who masks with whom; public.
    masks : MaskSource
        The clients' secrets.
    """

    parameters: SecureSum
    graph: MaskGraph
    masks: MaskSource
    _progress: _Progress

    def mask(self, first_client: int, values: ArrayLike) -> WordArray:
        """Return what clients send, shape (clients of the chunk, length): each message alone is uniform, whatever the values are.

        `values` are the vectors of clients first_client, first_client + 1, ..., from 0 to M - 1. Each client masks once, as the difference
        of two of its messages would be that of its vectors.
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
        """Add up messages that have arrived, modulo M, and note whose they are.

        Parameters
        ----------
        senders : array_like of int, shape (clients of the chunk,)
            Their numbers; each client's message counts once.
        messages : array_like of int, shape (clients of the chunk, length)
            What they sent. A message within the range that is not what its sender masked cannot be told: it spoils the sum.

        Raises
        ------
        ValueError
            If there is another number of senders than of messages, no such client, a client that has sent one before, or a number
            outside of 0 to M - 1: the chunk is then left out. Also if the sum has been unmasked: a late message stays masked.
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
        """Take off the self masks of clients whose messages have arrived, and the pair masks that the others left behind: once.

        Two sums over different clients would give away the difference, which may be one client's vector.

        Returns
        -------
        ndarray of uint64, shape (length,)
            Sum of the values of the clients whose messages have arrived, modulo M.

        Raises
        ------
        InfeasibleError
            If fewer neighbours of a client remain than it takes to recover its masks, or if the clients that remain fall apart into groups
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
        """Refuse drop-outs after which masks cannot be recovered, or after which more than one sum would be learnt."""
        clients, threshold = self.parameters.clients, self.parameters.shares_needed
        first, second = self.graph.edges()
        helpers = np.bincount(first[alive[second]], minlength=clients) + np.bincount(second[alive[first]], minlength=clients)
        # A missing client whose neighbours are all missing, too, has left no mask behind.
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
