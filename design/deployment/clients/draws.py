"""Draws of deployed clients from random words."""

from .kinds import LARGEST_WORD, UNIFORM_STEP, Number, Source, Word


def below(words: Source, high: Word) -> Word:
    """Return a whole number below `high`, all exactly equally likely."""
    # The remainder of 2**64: words above a multiple of high are drawn again.
    surplus = (LARGEST_WORD - high + 1) % high
    word = words.next()
    while word > LARGEST_WORD - surplus:
        word = words.next()
    return word % high


def uniform(word: Word) -> Number:
    """Return a number in [0, 1), a multiple of 2**-53."""
    return Number(word >> 11) * UNIFORM_STEP


def parity(word: Word) -> Word:
    """Return 1 for an odd number of ones among the bits of a word, else 0."""
    folded = word ^ (word >> 32)
    folded = folded ^ (folded >> 16)
    folded = folded ^ (folded >> 8)
    folded = folded ^ (folded >> 4)
    folded = folded ^ (folded >> 2)
    folded = folded ^ (folded >> 1)
    return folded & 1
