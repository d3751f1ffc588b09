"""Random bits of equal probability packed in bytes, and their sums by position."""

import math

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer, check_real
from ...arrays import IntegerArray, WordArray
from .random_words import WordsLike, WordSource, word_source

PackedBits = NDArray[np.uint8]
"""Rows of bits; the first bit of each byte counts least, and bits beyond the last are 0."""
# Number of words compared at a time, half a megabyte.
BLOCK = 2**16
# Largest number of rows whose bits a byte can count, and number of bytes of a row unpacked at a time.
MOST_IN_A_BYTE, PIECE = 255, 2**11


def packed_bytes(bits: int) -> int:
    """Return the number of bytes of a row of bits."""
    return -(-bits // 8)


def random_bits(probability: float, rows: int, bits: int, random_words: WordsLike) -> PackedBits:
    """Return rows of independent random bits, eight to a byte.

    Each bit is 1 with the given probability, rounded upward to a multiple of 2**-64. A bit is 1 if a uniform number of 64 bits is below the
    probability. The function compares 64 numbers at a time, from their first bits on, until all are decided: this takes about ten random
    words instead of 64.

    Parameters
    ----------
    probability : float
        Probability of a 1, from 0 to 1.
    rows, bits : int
        Number of rows and of bits in a row; the result has the shape (rows, ``packed_bytes(bits)``).
    random_words : WordSource or numpy.random.Generator
        ``quietbits.secure_words`` for releases; a generator for experiments.

    Examples
    --------
    >>> packed = random_bits(0.25, 1000, 100, np.random.default_rng(0))
    >>> packed.shape, round(sum_of_bits(packed, 100).mean())
    ((1000, 13), 250)
    """
    random_words = word_source(random_words)
    probability = check_real("probability", probability, low=0.0, high=1.0)
    rows, bits = check_integer("rows", rows, low=0, high=2**40), check_integer("bits", bits, low=1, high=2**40)
    width = packed_bytes(bits)
    result = np.empty(-(-rows * width // 8), dtype=np.uint64)
    # The product of a float and a power of two is exact.
    threshold = math.ceil(probability * 2.0**64)
    for start in range(0, len(result), BLOCK):
        block = result[start : start + BLOCK]
        block[:] = _below(threshold, len(block), random_words)
    packed = result.view(np.uint8)[: rows * width].reshape(rows, width)
    if bits % 8:
        packed[:, -1] &= (1 << bits % 8) - 1
    return packed


def _below(threshold: int, count: int, random_words: WordSource) -> WordArray:
    """Return words whose bits state whether uniform 64-bit numbers are below a threshold."""
    if threshold >> 64:
        return np.full(count, ~np.uint64(0))
    below, undecided = np.zeros(count, dtype=np.uint64), np.full(count, ~np.uint64(0))
    active: slice | NDArray[np.intp] = slice(None)
    place = 63
    # If the rest of the threshold is 0, no number that has been equal so far is below it.
    while undecided.size and threshold % (2 << place):
        drawn = random_words(undecided.size)
        if threshold >> place & 1:
            below[active] |= undecided & ~drawn
            undecided &= drawn
        else:
            undecided &= ~drawn
        if place == 0:
            break
        place -= 1
        # On average three of five words are decided by this step.
        if place <= 56 and place % 2 == 0:
            still = np.flatnonzero(undecided)
            undecided = undecided[still]
            active = still if isinstance(active, slice) else active[still]
    return below


def sum_of_bits(packed: PackedBits, bits: int) -> IntegerArray:
    """Return the number of rows with a 1 at each position, shape (bits,)."""
    total = np.zeros(8 * packed.shape[1], dtype=np.int64)
    for start in range(0, len(packed), MOST_IN_A_BYTE):
        for column in range(0, packed.shape[1], PIECE):
            piece = np.unpackbits(packed[start : start + MOST_IN_A_BYTE, column : column + PIECE], axis=1, bitorder="little")
            total[8 * column : 8 * (column + PIECE)] += piece.sum(axis=0, dtype=np.uint8)
    return total[:bits]


def bits_at(packed: PackedBits, positions: IntegerArray) -> PackedBits:
    """Return a bit of each row, at the row's position."""
    return np.asarray((packed[np.arange(len(packed)), positions >> 3] >> (positions & 7).astype(np.uint8)) & np.uint8(1))


def set_bits(packed: PackedBits, positions: IntegerArray, bits: NDArray[np.bool_]) -> None:
    """Set a bit of each row, at the row's position, in place."""
    rows, masks = np.arange(len(packed)), np.uint8(1) << (positions & 7).astype(np.uint8)
    packed[rows, positions >> 3] = np.where(bits, packed[rows, positions >> 3] | masks, packed[rows, positions >> 3] & ~masks)
