"""Uniformly random subsets of given sizes, of which one item is known to be a member or not: as lists of items, or as packed bits."""

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray, distinct
from .packed_bits import PackedBits, packed_bytes, random_bits, set_bits
from .random_words import WordSource
from .redraws import Redraws

# Items that are drawn at a time, of all clients together, and bytes of packed bits.
BLOCK, BYTES = 2**20, 2**23


def listed_subsets(held: IntegerArray, included: NDArray[np.bool_], size: int, universe: int, words: WordSource) -> NDArray[np.int32]:
    """Return sorted subsets of the given size, shape (clients, size), for sizes far below the universe's.

    Each is uniform among those that have the client's held item in them, where it is included, or that do not. Time is proportional to
    `size`: items that were drawn twice are drawn again.

    Parameters
    ----------
    held : ndarray of int64, shape (clients,)
        An item of each client, from 0 to ``universe - 1``.
    included : ndarray of bool, shape (clients,)
        Whether it is in the client's subset.
    size, universe : int
        Members of a subset, and of everything: 1 <= size < universe < 2**31.
    words : WordSource
        Source of randomness.
    """
    result = np.empty((len(held), size), dtype=np.int32)
    at_once = max(1, BLOCK // size)
    for start in range(0, len(held), at_once):
        here = slice(start, start + at_once)
        result[here] = _listed(held[here], included[here], size, universe, words)
    return result


def _listed(held: IntegerArray, included: NDArray[np.bool_], size: int, universe: int, words: WordSource) -> IntegerArray:
    own = held[:, None]
    others = np.sort(_others(words.integers(universe - 1, (len(held), size)), own), axis=1)
    # Which of two equal items is drawn again makes no difference to the set: all sets of distinct others stay as likely.
    rows = np.arange(len(held))
    redraws = Redraws()
    while rows.size:
        redraws.another()
        repeated = np.zeros((len(rows), size), dtype=bool)
        repeated[:, 1:] = others[rows, 1:] == others[rows, :-1]
        again = repeated.any(axis=1)
        rows, repeated = rows[again], repeated[again]
        fresh = others[rows]
        fresh[repeated] = _others(words.integers(universe - 1, int(repeated.sum())), np.broadcast_to(own[rows], repeated.shape)[repeated])
        others[rows] = np.sort(fresh, axis=1)
    # One of the others, any one, makes room for the held item.
    replaced = np.flatnonzero(included)
    others[replaced, words.integers(size, replaced.size)] = held[replaced]
    others[replaced] = np.sort(others[replaced], axis=1)
    return others


def _others(drawn: IntegerArray, held: IntegerArray) -> IntegerArray:
    """Return items other than the held one, from numbers that leave it out."""
    return drawn + (drawn >= held)


def packed_subsets(held: IntegerArray, included: NDArray[np.bool_], size: int, universe: int, words: WordSource) -> PackedBits:
    """Return subsets as in `listed_subsets`, of any size, as rows of bits, shape (clients, packed_bytes(universe)).

    Independent bits are a subset of a random size, uniform among those of its size; then as many members are taken out of it, or put into
    it, as it has too many or too few: some square root of `size`.
    """
    result = np.empty((len(held), packed_bytes(universe)), dtype=np.uint8)
    at_once = max(1, BYTES // result.shape[1])
    for start in range(0, len(held), at_once):
        here = slice(start, start + at_once)
        own = held[here]
        packed = random_bits(size / universe, len(own), universe, words)
        set_bits(packed, own, included[here])
        surplus = np.bitwise_count(packed).sum(axis=1, dtype=np.int64) - size
        for bit in (0, 1):
            _flip(packed, bit, np.maximum(surplus if bit else -surplus, 0), own, universe, words)
        result[here] = packed
    return result


def _flip(packed: PackedBits, bit: int, counts: IntegerArray, held: IntegerArray, universe: int, words: WordSource) -> None:
    """Flip that many bits of each row, in place, of those that are `bit` and not the held item's: all sets of them are as likely."""
    redraws = Redraws()
    while counts.any():
        redraws.another()
        rows = np.repeat(np.arange(len(packed)), counts)
        drawn = words.integers(universe, rows.size)
        found = (packed[rows, drawn >> 3] >> (drawn & 7).astype(np.uint8)) & 1
        fits = (found == bit) & (drawn != held[rows])
        # Different ones of those that fit, at most as many as are missing: as likely as any others of that number.
        rows, drawn = np.divmod(distinct(rows[fits] * universe + drawn[fits]), universe)
        np.bitwise_xor.at(packed, (rows, drawn >> 3), np.uint8(1) << (drawn & 7).astype(np.uint8))
        counts = counts - np.bincount(rows, minlength=len(packed))
