"""Splits of finitely many examples among clients."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_choice, check_integer, check_real
from ...arrays import IntegerArray
from ..random_streams import named_stream

SPLITS = ("iid", "dirichlet")
# Range of a split's concentration, from about one class per client to equal shares for all clients.
SMALLEST_ALPHA, LARGEST_ALPHA = 0.01, 1e6


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the examples that each client holds.

    Attributes
    ----------
    order : ndarray of int64, shape (examples,)
        Indices of examples, client after client.
    starts : ndarray of int64, shape (clients + 1,)
        Start of each client's examples in `order`, and the end of the last client's.
    """

    order: IntegerArray
    starts: IntegerArray

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.starts) - 1

    def part(self, client: int) -> IntegerArray:
        """Return the indices of a client's examples."""
        client = check_integer("client", client, low=0, high=self.clients - 1)
        return self.order[self.starts[client] : self.starts[client + 1]]

    def parts(self, clients: IntegerArray) -> tuple[IntegerArray, IntegerArray]:
        """Return the indices of several clients' examples, client after client, and their counts."""
        starts = self.starts[clients]
        sizes = self.starts[clients + 1] - starts
        ends = np.cumsum(sizes)
        return self.order[np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1])], sizes


def iid_split(examples: int, clients: int, seed: int) -> Split:
    """Deal examples out at random; clients' numbers of examples differ by at most one."""
    sizes = _equal_sizes(examples, clients)
    return Split(named_stream(seed, "split, iid").permutation(examples), np.append(0, np.cumsum(sizes)))


def dirichlet_split(labels: ArrayLike, clients: int, alpha: float, seed: int) -> Split:
    """Deal examples out so that each client has its own Dirichlet shares of the classes.

    Clients have equally many examples, or one more, as in Hsu, Qi, Brown 2019 (*Measuring the effects of non-identical data distribution*);
    the shares of later clients omit an exhausted class. The symmetric distribution's alpha ranges from 0.01, about one class for each
    client, to 10**6, equal shares.
    """
    classes = np.asarray(labels)
    alpha = check_real("alpha", alpha, low=SMALLEST_ALPHA, high=LARGEST_ALPHA)
    sizes = _equal_sizes(len(classes), clients)
    rng = named_stream(seed, "split, Dirichlet")
    _, numbered = np.unique(classes, return_inverse=True)
    piles = [rng.permutation(np.flatnonzero(numbered == number)) for number in range(numbered.max() + 1)]
    left = np.array([len(pile) for pile in piles])
    parts = []
    for size in sizes:
        shares = rng.dirichlet(np.full(len(piles), alpha))
        wanted = size
        while wanted:
            possible = np.where(left > 0, np.maximum(shares, np.finfo(float).tiny), 0.0)
            taken = np.minimum(rng.multinomial(wanted, possible / possible.sum()), left)
            parts += [piles[place][left[place] - taken[place] : left[place]] for place in np.flatnonzero(taken)]
            left -= taken
            wanted -= int(taken.sum())
    return Split(np.concatenate(parts), np.append(0, np.cumsum(sizes)))


def ordered_split(sizes: ArrayLike) -> Split:
    """Give each client the next `sizes` examples, in order; some clients may have no examples."""
    counts = np.asarray(sizes, dtype=np.int64)
    if counts.ndim != 1 or not counts.sum():
        raise ValueError("sizes must have one example at least, got none")
    return Split(np.arange(counts.sum()), np.append(0, np.cumsum(counts)))


def chosen_split(labels: ArrayLike, clients: int, split: str, alpha: float, seed: int) -> Split:
    """Return the split named ``"iid"`` or ``"dirichlet"``; only ``"dirichlet"`` uses alpha."""
    check_choice("split", split, SPLITS)
    if split == "iid":
        return iid_split(len(np.asarray(labels)), clients, seed)
    return dirichlet_split(labels, clients, alpha, seed)


def _equal_sizes(examples: int, clients: int) -> IntegerArray:
    clients = check_integer("clients", clients, low=1, high=examples)
    return examples // clients + (np.arange(clients) < examples % clients)
