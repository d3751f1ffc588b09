"""The largest distance of two items' sketches, on which a client's guarantee rests.

Two items are in different buckets of a row, or in the same bucket with the same sign, or in the same bucket with opposite signs. Their rows
of whole numbers then differ by 2, 0 or 4 in squared L2 norm, and their Hadamard transforms in w/2, 0 or w of w places: either way the sum
over t rows equals the sum over t + o - s rows with different buckets, with o and s the numbers of rows with opposite and with equal signs.
The excess is the largest o - s of all pairs. Without signs it is at most 0.

The search finds all pairs with o >= k opposite rows without comparing every pair: if the rows are dealt into g groups and k > g (m - 1), m
opposite rows are in the same group. So, for each m rows of a group, the search joins items that have opposite signs in the same buckets of
all m rows. If it meets a pair with o - s >= k - 1, no other pair has more. More joined rows mean more joins, with fewer pairs in each.

The search compares 64 rows at a time: a word holds one bit of an item's places in all of these rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from .item_sketch import ItemSketch

# Largest number of words of pairs with which the search compares all pairs, which takes some seconds.
ALL_COMPARISONS = 4 * 10**9
# Limits of joins: the number of compared words of pairs, the cost of a pair beside its words (in words), the number of joined rows, the
# number of kept places, and the number of pairs per batch.
MOST_COMPARISONS, OF_A_PAIR, MOST_ROWS_JOINED, MOST_PLACES, AT_ONCE = 24 * 10**8, 10, 4, 2**27, 2**13

WORD = 64

Words = NDArray[np.unsignedinteger[Any]]
Chosen = IntegerArray | tuple[slice | None, ...]


@dataclass(frozen=True)
class WorstPair:
    """The pair of items whose sketches are furthest apart.

    Attributes
    ----------
    excess : int
        Largest number of rows with opposite signs less those with equal signs, over all pairs; an upper bound, at least 0.
    exact : bool
        Whether a pair is known to have this excess. Otherwise the excess is only an upper bound.
    """

    excess: int
    exact: bool


@lru_cache(maxsize=64)
def worst_pair(sketch: ItemSketch) -> WorstPair:
    """Return the excess of a sketch's worst pair of items, exact unless too expensive.

    A million items in 15 rows of 1024 buckets take some seconds, a hundred thousand items less than one second, and in 64 rows of 16
    buckets some ten seconds; a hundred million hashed places may take half a minute.

    Examples
    --------
    >>> worst_pair(ItemSketch(100_000, rows=15, width=1024, seed=1)), worst_pair(ItemSketch(100_000, 15, 1024, signed=False)).excess
    (WorstPair(excess=4, exact=True), 0)
    """
    if not sketch.signed:
        return WorstPair(0, exact=True)
    if sketch.rows * sketch.categories > MOST_PLACES:
        return WorstPair(sketch.rows, exact=False)
    places = np.stack([sketch.places(row).astype(np.int32) for row in range(sketch.rows)])
    words = _words(places, sketch.width)
    if words.shape[0] * words.shape[1] * sketch.categories**2 <= 2 * ALL_COMPARISONS:
        return WorstPair(_all_pairs(sketch.rows, words), exact=True)
    return _joined(sketch, places, words)


def likely_excess(sketch: ItemSketch) -> int:
    """Return the approximate result of `worst_pair` from the sketch's size alone.

    The result is the expected number of opposite rows of the worst pair.
    """
    pairs, excess = sketch.categories**2 / 2, 0
    while sketch.signed and excess < sketch.rows and pairs * comb(sketch.rows, excess + 1) >= (2 * sketch.width) ** (excess + 1):
        excess += 1
    return excess


def _words(places: NDArray[np.int32], width: int) -> Words:
    """Return words with the bits of items' places, shape (words of rows, bits, items)."""
    bits = int(2 * width - 1).bit_length()
    kind = np.min_scalar_type(2 ** min(len(places), WORD) - 1)
    words = np.zeros((-(-len(places) // WORD), bits, places.shape[1]), dtype=kind)
    for row, its_places in enumerate(places):
        for bit in range(bits):
            words[row // WORD, bit] |= ((its_places >> bit) & 1).astype(kind) << kind.type(row % WORD)
    return words


def _all_pairs(rows: int, random_words: Words) -> int:
    """Return the largest excess of all pairs, 0 at least."""
    count = random_words.shape[2]
    at_once = max(1, AT_ONCE // count)
    # An item's excess with itself is negative.
    return max(
        _largest_excess(rows, random_words, random_words, (slice(start, start + at_once), None), (None, slice(start, None)))
        for start in range(0, count, at_once)
    )


def _joined(sketch: ItemSketch, places: NDArray[np.int32], random_words: Words) -> WorstPair:
    rows, each = sketch.rows, int(random_words.shape[0] * random_words.shape[1]) + OF_A_PAIR

    # The keys of joins are 64-bit numbers.
    most = min(MOST_ROWS_JOINED, 63 // (2 * sketch.width - 1).bit_length())

    def comparisons(joined: int, least: int) -> float:
        joins = sum(comb(len(group), joined) for group in _groups(rows, least, joined))
        pairs = sketch.categories**2 / 2 * (2.0 * sketch.width) ** -joined
        return joins * (pairs + sketch.categories) * each

    def cheapest(least: int) -> int:
        return min(range(2, 1 + min(most, least)), key=lambda joined: comparisons(joined, least))

    def affordable(least: int) -> bool:
        return comparisons(cheapest(least), least) <= MOST_COMPARISONS

    # Expected number of rows with equal signs, for any choice of the rows with opposite signs.
    least = max(2, likely_excess(sketch) + 1 - rows // (2 * sketch.width))
    while not affordable(least):
        least += 1
    excess = 0
    while True:
        for group in _groups(rows, least, cheapest(least)):
            for some in combinations(group, cheapest(least)):
                excess = max(excess, _largest_of_opposite(sketch, places[list(some)], random_words))
        if excess >= least - 1:
            return WorstPair(excess, exact=True)
        if least == 2:
            break
        # Joins that find all pairs of a larger excess end the search; otherwise the joins with the fewest affordable rows run.
        fewer = next(few for few in range(max(2, excess + 1), least + 1) if affordable(few))
        if fewer == least:
            return WorstPair(least - 1, exact=False)
        least = fewer
    # No pair has an excess above 1; the loop tests whether any pair has the excess 1.
    for row in places:
        excess = max(excess, _largest_excess(rows, random_words, random_words, *_opposite_in_one(row, sketch.width)))
    return WorstPair(1, exact=excess == 1)


def _groups(rows: int, least: int, joined: int) -> list[list[int]]:
    """Deal rows into groups, so that any `least` rows have `joined` rows in the same group."""
    groups = (least - 1) // (joined - 1)
    return [list(range(start, rows, groups)) for start in range(min(rows, groups))]


def _largest_of_opposite(sketch: ItemSketch, places: NDArray[np.int32], random_words: Words) -> int:
    """Return the largest excess of items with opposite signs in all rows, at least 0."""
    negative = places[0] & 1
    keys = np.zeros(sketch.categories, dtype=np.int64)
    for row in places:
        keys = (keys * sketch.width + (row >> 1)) * 2 + (negative ^ (row & 1))
    sides = []
    for sign in (0, 1):
        items = np.flatnonzero(negative == sign)
        # Short keys are sorted faster.
        short = keys[items].astype(np.min_scalar_type(int(keys.max())))
        order = np.argsort(short, kind="stable")
        sides.append((random_words.take(items[order], axis=2), short[order]))
    (ours, our_keys), (others, other_keys) = sides
    starts = np.searchsorted(other_keys, our_keys, side="left")
    counts = np.searchsorted(other_keys, our_keys, side="right") - starts
    return max((_largest_excess(sketch.rows, ours, others, *pairs) for pairs in _matched(starts, counts)), default=0)


def _matched(starts: IntegerArray, counts: IntegerArray) -> Iterator[IntegerArray]:
    """Return blocks of pairs, shape (2, pairs): each i with counts[i] numbers from starts[i]."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        # A block has some thousand pairs, and at least one number.
        reached = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, reached + AT_ONCE, side="right")))
        some = counts[begin:stop]
        offsets = np.arange(some.sum()) - np.repeat(np.cumsum(some) - some, some)
        yield np.stack([np.repeat(np.arange(begin, stop), some), np.repeat(starts[begin:stop], some) + offsets])
        begin = stop


def _opposite_in_one(row: NDArray[np.int32], width: int) -> IntegerArray:
    """Return a pair of items for each bucket of a row that has both signs, shape (2, pairs)."""
    example = np.full(2 * width, -1, dtype=np.int64)
    example[row] = np.arange(len(row))
    both = example.reshape(width, 2).T
    return both[:, (both >= 0).all(axis=0)]


def _largest_excess(rows: int, ours: Words, others: Words, first: Chosen, second: Chosen) -> int:
    """Return the largest excess over pairs of own and other items, at least 0."""
    excess = np.array(-rows, dtype=np.int16)
    for bits in zip(ours, others, strict=True):
        # The loop handles one bit at a time, as larger arrays would take new memory each time.
        differing = (our_bits[first] ^ their_bits[second] for our_bits, their_bits in zip(*bits, strict=True))
        signs, elsewhere = next(differing), next(differing)
        for bit in differing:
            elsewhere |= bit
        opposite = signs & ~elsewhere
        # With n rows elsewhere and o opposite, rows - n - o have equal signs.
        excess = excess + np.bitwise_count(elsewhere) + 2 * np.bitwise_count(opposite)
    return int(excess.max(initial=0))
