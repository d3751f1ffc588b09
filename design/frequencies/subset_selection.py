"""Subset selection: each client sends a set of items that probably contains its own item.

Ye, Barg 2018, *Optimal schemes for discrete distribution estimation under locally differential privacy*; Wang, Huang, Wang, Nie, Xu, Yang,
Li, Qiao 2016, *Mutual information optimally local private discrete distribution estimation*. `listed_subsets` and
`packed_subsets` draw uniformly random subsets of given sizes that contain, or lack, a given item.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import IntegerArray, distinct
from ...errors import InfeasibleError
from ...solvers.numerics.rounding import SHORT_SLACK
from ..deployment.client_program import ClientProgram, bits_below, probability_word
from ..deployment.clients.items import subset_rank
from ..local.message_checks import checked_messages
from ..noise.packed_bits import PackedBits, bits_at, packed_bytes, random_bits, set_bits, sum_of_bits
from ..noise.random_words import WordsLike, WordSource, word_source
from ..noise.redraws import Redraws
from .support import SupportCounts

# Number of items drawn per batch, for all clients together, and number of bytes of packed bits per batch.
BLOCK, BYTES = 2**20, 2**23

# Share of all items below which subsets are lists of items; larger subsets are bits.
LISTED_SHARE = 1 / 128
# Largest number of items whose subsets are counted exactly.
COUNTED_ITEMS = 2**12


@dataclass(frozen=True)
class SubsetSelection(SupportCounts):
    """Subset selection: a set of items that probably contains the client's own item.

    The client's own item is in the set with probability ``p = w E / (w E + k - w)``, and each other item with ``q = (w - p) / (k - 1)``.
    With w = k / (E + 1) no mechanism has a smaller largest variance, to first order in 1/k (Ye, Barg 2018).

    Attributes
    ----------
    epsilon, categories
        Fields of `SupportMechanism`.
    subset_size : int
        Number w of items of a subset, from 1 to ``categories - 1``; `subset_selection` chooses it.

    Examples
    --------
    >>> mechanism = subset_selection(1.0, categories=8)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.subset_size, mechanism.decode(mechanism.aggregate(messages), 40_000).round(2)[:4].tolist()
    (2, [0.75, 0.24, -0.01, -0.01])
    """

    epsilon: float
    categories: int
    subset_size: int

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        size = check_integer("subset_size", self.subset_size, low=1, high=self.categories - 1)
        object.__setattr__(self, "subset_size", size)

    @property
    def bits_per_client(self) -> float:
        """Binary logarithm of the number of subsets.

        An enumerative code has this length, rounded up to a whole bit (Cover 1973). `encode` returns the subset itself, which takes more.
        """
        size, items = self.subset_size, self.categories
        if items <= COUNTED_ITEMS:
            return math.log2(math.comb(items, size))
        return float(
            scipy.special.gammaln(items + 1) - scipy.special.gammaln(size + 1) - scipy.special.gammaln(items - size + 1)
        ) / math.log(2)

    @property
    def held_denial(self) -> float:
        """Probability 1 - p that a subset lacks the held item."""
        return math.exp(-self.epsilon) * (self.categories - self.subset_size) / self._weight

    @property
    def other_support(self) -> float:
        """Probability q that a subset has another item."""
        return (self.subset_size - 1 + self.held_denial) / (self.categories - 1)

    @property
    def contrast(self) -> float:
        """Difference p - q of the support probabilities."""
        size, items = self.subset_size, self.categories
        return -math.expm1(-self.epsilon) * size * (items - size) / ((items - 1) * self._weight)

    @property
    def is_listed(self) -> bool:
        """Whether `encode` returns sorted lists of items; otherwise rows of bits, eight to a byte."""
        return self.subset_size == 1 or self.subset_size < LISTED_SHARE * self.categories

    def encode(self, items: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return each client's subset as a list or as packed bits (`is_listed`), one per row."""
        random_words, held = word_source(random_words), self.domain.clip(items)
        # A uniform number of 53 bits is below a probability at least as often as the probability states, so rounding only adds privacy.
        included = random_words.uniforms(held.shape) >= self.held_denial * (1 + SHORT_SLACK)
        draw = listed_subsets if self.is_listed else packed_subsets
        return draw(held, included, self.subset_size, self.categories, random_words)

    def client_program(self) -> ClientProgram:
        """Return the program: a subset, numbered among all subsets of its size."""
        items, size = self.categories, self.subset_size
        if items > COUNTED_ITEMS:
            raise InfeasibleError(f"categories must be at most {COUNTED_ITEMS} for clients that number subsets, got {items}")
        denial = probability_word(lambda odds: (items - size) / (size * odds + items - size), self.epsilon, up=True)
        bits = bits_below(math.comb(items, size))
        # A factor of up to 12 bits is divided out again, but the sum of the carried digits must fit.
        limbs = bits // 32 + 1
        first = math.comb(items - 1, size)
        last = np.array([int(bit) for bit in f"{math.comb(items, size) - 1:0{bits}b}"])
        return ClientProgram(
            subset_rank,
            {
                "denial": denial,
                "categories": items,
                "subset_size": size,
                "limbs": limbs,
                "rank_bits": bits,
                "first_binomial": tuple(first >> 32 * limb & 0xFFFFFFFF for limb in range(limbs)),
            },
            1,
            fields=bits,
            valid=lambda fields: _at_most(fields, last),
            messages=lambda fields, _: self._of_ranks(fields),
            likelihood_ratio=Fraction(2**64 - denial, denial) * Fraction(items - size, size),
            epsilon=self.epsilon,
        )

    def _of_ranks(self, bits: IntegerArray) -> NDArray[Any]:
        """Return the subsets of given numbers, in the form of `encode`'s messages."""
        members = np.zeros((len(bits), self.categories), dtype=np.uint8)
        first = math.comb(self.categories - 1, self.subset_size)
        for row, own in zip(members, bits, strict=True):
            rank, binomial, wanted = int("".join(map(str, own.tolist())), 2), first, self.subset_size
            for place in range(self.categories - 1, -1, -1):
                if rank >= binomial and wanted > 0:
                    row[place] = 1
                    rank -= binomial
                    binomial, wanted = binomial * wanted // place if place else 0, wanted - 1
                elif place:
                    binomial = binomial * max(place - wanted, 0) // place
        if self.is_listed:
            return np.nonzero(members)[1].reshape(len(bits), self.subset_size).astype(np.int32)
        return np.packbits(members, axis=1, bitorder="little")

    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return the number of subsets with each item, shape (categories,)."""
        if self.is_listed:
            return np.bincount(checked_messages(messages, 0, self.categories - 1, self.subset_size).ravel(), minlength=self.categories)
        return sum_of_bits(checked_messages(messages, 0, 255, packed_bytes(self.categories)).astype(np.uint8, copy=False), self.categories)

    def supports(self, messages: NDArray[Any], item: int) -> NDArray[np.bool_]:
        """Return whether each subset has the item."""
        if self.is_listed:
            return np.asarray((messages == item).any(axis=1))
        return np.asarray(bits_at(messages, np.full(len(messages), item)) == 1)

    @property
    def _weight(self) -> float:
        """The weight ``(w E + k - w) / E``."""
        return self.subset_size + math.exp(-self.epsilon) * (self.categories - self.subset_size)


def _at_most(bits: IntegerArray, largest: IntegerArray) -> NDArray[np.bool_]:
    """Return whether each row of bits is a number that is at most another one."""
    differs = bits != largest
    first = np.argmax(differs, axis=1)
    return np.asarray(~differs.any(axis=1) | (bits[np.arange(len(bits)), first] < largest[first]))


def subset_selection(epsilon: float, categories: int) -> SubsetSelection:
    """Return subset selection with the size of least worst variance next to k / (e^epsilon + 1).

    Examples
    --------
    >>> [subset_selection(epsilon, 1000).subset_size for epsilon in (0.5, 1.0, 5.0, 10.0)]
    [378, 269, 7, 1]
    """
    best = SubsetSelection(epsilon, categories, 1)
    share = best.categories * math.exp(-best.epsilon) / (1 + math.exp(-best.epsilon))
    for size in {math.floor(share), math.ceil(share)} - {0, 1, categories}:
        best = min(best, SubsetSelection(epsilon, categories, size), key=lambda mechanism: mechanism.variance_bound)
    return best


def listed_subsets(
    held: IntegerArray, included: NDArray[np.bool_], size: int, universe: int, random_words: WordSource
) -> NDArray[np.int32]:
    """Return sorted subsets of small sizes, shape (clients, size).

    Each subset is uniform among those that contain the client's held item, if it is included, or that lack it. Time is proportional to
    `size`: duplicate items are drawn again.

    Parameters
    ----------
    held : ndarray of int64, shape (clients,)
        An item of each client, from 0 to ``universe - 1``.
    included : ndarray of bool, shape (clients,)
        Whether the held item is in the client's subset.
    size, universe : int
        Numbers of members of a subset and of all items: 1 <= size < universe < 2**31.
    random_words : WordSource
        Source of randomness.
    """
    result = np.empty((len(held), size), dtype=np.int32)
    at_once = max(1, BLOCK // size)
    for start in range(0, len(held), at_once):
        here = slice(start, start + at_once)
        result[here] = _listed(held[here], included[here], size, universe, random_words)
    return result


def _listed(held: IntegerArray, included: NDArray[np.bool_], size: int, universe: int, random_words: WordSource) -> IntegerArray:
    own = held[:, None]
    others = np.sort(_others(random_words.integers(universe - 1, (len(held), size)), own), axis=1)
    # The redraw may replace either of two equal items, as all sets of distinct items stay equally likely.
    rows = np.arange(len(held))
    redraws = Redraws()
    while rows.size:
        redraws.another()
        repeated = np.zeros((len(rows), size), dtype=bool)
        repeated[:, 1:] = others[rows, 1:] == others[rows, :-1]
        again = repeated.any(axis=1)
        rows, repeated = rows[again], repeated[again]
        fresh = others[rows]
        fresh[repeated] = _others(
            random_words.integers(universe - 1, int(repeated.sum())), np.broadcast_to(own[rows], repeated.shape)[repeated]
        )
        others[rows] = np.sort(fresh, axis=1)
    # The held item takes the place of any other item.
    replaced = np.flatnonzero(included)
    others[replaced, random_words.integers(size, replaced.size)] = held[replaced]
    others[replaced] = np.sort(others[replaced], axis=1)
    return others


def _others(drawn: IntegerArray, held: IntegerArray) -> IntegerArray:
    """Return items other than the held item, from numbers without the held item."""
    return drawn + (drawn >= held)


def packed_subsets(held: IntegerArray, included: NDArray[np.bool_], size: int, universe: int, random_words: WordSource) -> PackedBits:
    """Return subsets as in `listed_subsets`, of any size, as rows of bits.

    The shape is (clients, packed_bytes(universe)). Independent bits are a subset of a random size, uniform among the subsets of that size.
    Then the function removes surplus members or adds missing members, about the square root of `size`.
    """
    result = np.empty((len(held), packed_bytes(universe)), dtype=np.uint8)
    at_once = max(1, BYTES // result.shape[1])
    for start in range(0, len(held), at_once):
        here = slice(start, start + at_once)
        own = held[here]
        packed = random_bits(size / universe, len(own), universe, random_words)
        set_bits(packed, own, included[here])
        surplus = np.bitwise_count(packed).sum(axis=1, dtype=np.int64) - size
        for bit in (0, 1):
            _flip(packed, bit, np.maximum(surplus if bit else -surplus, 0), own, universe, random_words)
        result[here] = packed
    return result


def _flip(packed: PackedBits, bit: int, counts: IntegerArray, held: IntegerArray, universe: int, random_words: WordSource) -> None:
    """Flip given numbers of bits of each row, in place, uniformly among bits equal to `bit`.

    The held item's bit stays.
    """
    redraws = Redraws()
    while counts.any():
        redraws.another()
        rows = np.repeat(np.arange(len(packed)), counts)
        drawn = random_words.integers(universe, rows.size)
        bits = (packed[rows, drawn >> 3] >> (drawn & 7).astype(np.uint8)) & 1
        fits = (bits == bit) & (drawn != held[rows])
        # Every set of distinct fitting items, at most as many as are missing, is as likely as any other of its size.
        rows, drawn = np.divmod(distinct(rows[fits] * universe + drawn[fits]), universe)
        np.bitwise_xor.at(packed, (rows, drawn >> 3), np.uint8(1) << (drawn & 7).astype(np.uint8))
        counts = counts - np.bincount(rows, minlength=len(packed))
