"""How far apart two items' sketches can be, for the sketch at hand: what the guarantee of one client's item rests on.

Two items are in different buckets of a row, or in the same one with the same sign, or in the same one with opposite signs. Their rows of
whole numbers then differ by 2, 0 or 4 in squared L2 norm, and their Hadamard transforms in w/2, 0 or w of w places: either way the sum over
t rows is that of t + o - s rows with different buckets, o and s being the numbers of rows with opposite and with equal signs. The excess is
the largest o - s of all pairs. Without signs it is 0 at most.

All pairs with o >= k opposite rows are found without looking at every pair: if the rows are dealt into k - 1 groups, two of them are in the
same group. So, for each two rows of a group, items are joined that have opposite signs in the same buckets of both. If a pair
is found with o - s >= k - 1, no other one has more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from .item_sketch import ItemSketch

# Up to this number of rows of pairs, all pairs are looked at: some seconds.
ALL_COMPARISONS = 4 * 10**9
# Rows of pairs that joins may look at, where each pair has to be gathered; what a join costs beside its pairs, in rows of them; places that
# are kept, and pairs at a time.
MOST_COMPARISONS, OF_A_JOIN, MOST_PLACES, AT_ONCE = 4 * 10**8, 400, 2**27, 2**19


@dataclass(frozen=True)
class WorstPair:
    """The pair of items whose sketches are furthest apart.

    Attributes
    ----------
    excess : int
        Largest number of rows with opposite signs less those with equal ones, of all pairs; at least 0, and errs upward.
    exact : bool
        Whether that pair was found. If not, no pair has more.
    """

    excess: int
    exact: bool


@lru_cache(maxsize=64)
def worst_pair(sketch: ItemSketch) -> WorstPair:
    """Return the excess of the worst pair of items of a sketch: exactly wherever that is not too expensive.

    A million items in 15 rows of 1024 buckets take some seconds, a hundred thousand less than one; no sketch takes longer than about ten.

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
    if sketch.rows * sketch.categories**2 <= 2 * ALL_COMPARISONS:
        return WorstPair(_all_pairs(places), exact=True)
    return _joined(sketch, places)


def likely_excess(sketch: ItemSketch) -> int:
    """Return about what `worst_pair` finds, from the size alone: the most opposite rows that one pair is expected to have."""
    pairs, excess = sketch.categories**2 / 2, 0
    while sketch.signed and excess < sketch.rows and pairs * comb(sketch.rows, excess + 1) >= (2 * sketch.width) ** (excess + 1):
        excess += 1
    return excess


def _all_pairs(places: NDArray[np.int32]) -> int:
    """Return the largest excess of all pairs, 0 at least."""
    # Short numbers are compared faster.
    short = places.astype(np.min_scalar_type(int(places.max())))
    count = short.shape[1]
    at_once = max(1, AT_ONCE // count)
    largest = 0
    for start in range(0, count, at_once):
        excess = np.zeros((min(at_once, count - start), count - start), dtype=np.int16)
        for row in short:
            # 0: the same bucket and sign, 1: opposite signs, more: different buckets. An item is in the same ones as itself.
            differing = row[start : start + at_once, None] ^ row[start:]
            excess += differing == 1
            excess -= differing == 0
        largest = max(largest, int(excess.max()))
    return largest


def _joined(sketch: ItemSketch, places: NDArray[np.int32]) -> WorstPair:
    rows = sketch.rows
    for_two_rows = sketch.categories**2 / (8 * sketch.width**2)

    def affordable(least: int) -> bool:
        joins = sum(comb(len(group), 2) for group in _groups(rows, least))
        return rows * joins * (for_two_rows + OF_A_JOIN) <= MOST_COMPARISONS

    least = max(2, likely_excess(sketch) + 1)
    while not affordable(least):
        least += 1
    found = 0
    while True:
        for first, second in (two for group in _groups(rows, least) for two in combinations(group, 2)):
            for pair in _opposite_in_both(places[first], places[second], sketch.width):
                found = max(found, _largest_excess(places, pair))
        if found >= least - 1:
            return WorstPair(found, exact=True)
        if least == 2 or not affordable(least - 1):
            break
        least -= 1
    if least > 2:
        return WorstPair(least - 1, exact=False)
    # No pair has more than one; has any?
    for row in places:
        found = max(found, _largest_excess(places, _opposite_in_one(row, sketch.width)))
    return WorstPair(1, exact=found == 1)


def _groups(rows: int, least: int) -> list[list[int]]:
    """Deal rows into groups, so that two of any `least` rows are in the same one."""
    return [list(range(start, rows, least - 1)) for start in range(min(rows, least - 1))]


def _opposite_in_both(first: NDArray[np.int32], second: NDArray[np.int32], width: int) -> Iterator[NDArray[np.int64]]:
    """Yield pairs of items, shape (2, pairs), with opposite signs in the same buckets of two rows."""
    negative = first & 1
    keys = ((first >> 1).astype(np.int64) * width + (second >> 1)) * 2 + (negative ^ (second & 1))
    sides = []
    for sign in (0, 1):
        items = np.flatnonzero(negative == sign)
        order = np.argsort(keys[items], kind="stable")
        sides.append((items[order], keys[items[order]]))
    (ours, our_keys), (others, other_keys) = sides
    starts = np.searchsorted(other_keys, our_keys, side="left")
    counts = np.searchsorted(other_keys, our_keys, side="right") - starts
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(ours):
        # As many items as have some hundred thousand pairs, and one at least.
        reached = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, reached + AT_ONCE, side="right")))
        some = counts[begin:stop]
        offsets = np.arange(some.sum()) - np.repeat(np.cumsum(some) - some, some)
        yield np.stack([np.repeat(ours[begin:stop], some), others[np.repeat(starts[begin:stop], some) + offsets]])
        begin = stop


def _opposite_in_one(row: NDArray[np.int32], width: int) -> IntegerArray:
    """Return a pair of items for each bucket of a row that has both signs, shape (2, pairs)."""
    example = np.full(2 * width, -1, dtype=np.int64)
    example[row] = np.arange(len(row))
    both = example.reshape(width, 2).T
    return both[:, (both >= 0).all(axis=0)]


def _largest_excess(places: NDArray[np.int32], pair: IntegerArray) -> int:
    """Return the largest excess of some pairs; 0 if there are none."""
    excess = np.zeros(pair.shape[1], dtype=np.int16)
    for row in places:
        # 0: the same bucket and sign, 1: opposite signs, more: different buckets.
        differing = row[pair[0]] ^ row[pair[1]]
        excess += differing == 1
        excess -= differing == 0
    return int(excess.max(initial=0))
