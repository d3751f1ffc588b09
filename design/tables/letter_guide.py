"""Looking up letters by random words, from a guide to the cumulative weights: one look-up for nearly every word."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import WordArray

# Words looked up at a time: their positions, and what is computed from them, stay in the processor's cache.
PART = 2**15
# Bits by which a guide is finer than the letters, and logarithm of its entries at most, which take two megabytes.
GUIDE_BITS, MOST_GUIDE_BITS = 3, 19
# Of an entry, and of a word without what decides rarely.
ENTRY_BITS = FIRST_BITS = 32


@dataclass(frozen=True, eq=False)
class LetterGuide:
    """Finds the first cumulative weight of a row that is above the upper `total_bits` bits of a word.

    The first bits of a word choose a cell of the row. Letters go up with the word: in most cells there are two at most, the second from
    some word on. A cell's entry is the first letter times 2**inner, plus 2**inner, minus the next `inner` bits of that word: added to those
    of a draw, it has carried to the second letter if they are greater, and not if they are smaller. Where they are equal, which leaves 0,
    and in cells of more letters, all bits decide.

    Attributes
    ----------
    cumulative : ndarray of uint64, shape (rows * letters,)
        Sums of weights up to and including each letter, row by row; rows end with 2**total_bits.
    letters, total_bits : int
        The number of letters is a power of two.
    cell_bits, inner : int
        Bits that choose a cell, and that entries are compared with.
    entries : ndarray of uint32, shape (rows * 2**cell_bits,)
        Cells of more than two letters have the number of letters in the first one's place.
    crowded : bool
        Whether there are such cells.
    """

    cumulative: WordArray
    letters: int
    total_bits: int
    cell_bits: int
    inner: int
    entries: NDArray[np.uint32]
    crowded: bool

    def letters_of(self, rows: NDArray[np.integer], words: WordArray) -> NDArray[np.unsignedinteger]:
        """Return letters, shape (count,), in the smallest unsigned type, for rows and words of that shape."""
        found = np.empty(len(rows), dtype=np.min_scalar_type(self.letters - 1))
        open_places = [np.empty(0, dtype=np.intp)]
        rest, inner_shift = np.uint32(32 - self.cell_bits), np.uint32(32 - self.cell_bits - self.inner)
        mask = np.uint32((1 << self.inner) - 1)
        for start in range(0, len(rows), PART):
            part = slice(start, start + PART)
            first_bits = (words[part] >> np.uint64(32)).astype(np.uint32)
            cells = first_bits >> rest
            cells += rows[part].astype(np.uint32) << np.uint32(self.cell_bits)
            reached = self.entries.take(cells.astype(np.int64), mode="clip")
            if inner_shift:
                first_bits >>= inner_shift
            first_bits &= mask
            reached += first_bits
            if self.inner < self.total_bits - self.cell_bits:
                np.bitwise_and(reached, mask, out=first_bits)
                if first_bits.min() == 0:
                    open_places.append(start + np.flatnonzero(first_bits == 0))
            reached >>= np.uint32(self.inner)
            if self.crowded:
                open_places.append(start + np.flatnonzero(reached == self.letters))
            found[part] = reached
        places = np.concatenate(open_places)
        if places.size:
            found[places] = self._searched(rows[places], words[places])
        return found

    def _searched(self, rows: NDArray[np.integer], words: WordArray) -> NDArray[np.intp]:
        """Return letters by binary search without branches."""
        draws = words >> np.uint64(64 - self.total_bits)
        position = rows.astype(np.intp) * self.letters
        half = self.letters // 2
        while half:
            position += half * (self.cumulative.take(position + (half - 1)) <= draws)
            half //= 2
        return position & (self.letters - 1)


def letter_guide(weights: NDArray[np.int64], total: int) -> LetterGuide:
    """Return the guide to a table of weights; rows sum to `total`, a power of two, and their length is a power of two, too."""
    rows, letters = weights.shape
    cumulative, total_bits = np.cumsum(weights, axis=1, dtype=np.uint64), total.bit_length() - 1
    letter_bits = letters.bit_length() - 1
    cell_bits = min(letter_bits + GUIDE_BITS, max(MOST_GUIDE_BITS - (rows.bit_length() - 1), 0), total_bits)
    rest = total_bits - cell_bits
    inner = min(FIRST_BITS - cell_bits, ENTRY_BITS - 1 - letter_bits, rest)
    # The first of the cells that lie beyond each cumulative weight; that of the last letter lies beyond all of them.
    beyond = ((cumulative + ((np.uint64(1) << np.uint64(rest)) - np.uint64(1))) >> np.uint64(rest)).astype(np.intp)
    cells = 1 << cell_bits
    counts = np.bincount((beyond + np.arange(rows)[:, None] * (cells + 1)).ravel(), minlength=rows * (cells + 1))
    reached = counts.reshape(rows, cells + 1).cumsum(axis=1)
    first, several = reached[:, :-1], np.diff(reached)
    # Bits of the cumulative weight at which the second letter begins, from the cell's beginning on: 2**inner is its end.
    start = np.take_along_axis(cumulative, np.minimum(first, letters - 1), axis=1) - (np.arange(cells, dtype=np.uint64) << np.uint64(rest))
    ahead = np.where(several == 1, (1 << inner) - (start >> np.uint64(rest - inner)).astype(np.int64), 0)
    entries = np.where(several > 1, letters << inner, (first << inner) + ahead).astype(np.uint32)
    return LetterGuide(cumulative.ravel(), letters, total_bits, cell_bits, inner, entries.ravel(), bool((several > 1).any()))
