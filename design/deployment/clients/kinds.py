"""Types and operations of deployed clients, for which every language has a counterpart.

A client is a function of this part of Python: assignments, ``if``, ``while``, ``for ... in range``, ``return``, calls of other such
functions, and the operations below. It computes with words and whole numbers exactly, and with floating-point numbers in the order in which
it is written, one rounding at a time.
"""

import math
from collections.abc import Sequence
from typing import Protocol

# A whole number from 0 to 2**64 - 1. No operation of a client may leave this range.
Word = int
# A whole number from 0 to 2**31 - 1, for indices and lengths.
Count = int
# A floating-point number of 64 bits.
Number = float
Flag = bool
Words = Sequence[int]
Numbers = Sequence[float]
# Words and numbers that a function writes into.
Fields = list[int]
Cells = list[float]

LARGEST_WORD = 2**64 - 1
# The least distance of two uniform numbers that are made from the upper 53 bits of words.
UNIFORM_STEP = 2.0**-53


class Source(Protocol):
    """A source of words."""

    def next(self) -> int:
        """Return the next word."""


def select(flag: Flag, first: Number, second: Number) -> Number:
    """Return one of two numbers; languages that can do it choose without a branch."""
    return first if flag else second


def floor(number: Number) -> Number:
    """Return the largest whole number up to a number."""
    return float(math.floor(number))


def sqrt(number: Number) -> Number:
    """Return the square root, correctly rounded."""
    return math.sqrt(number)


def new_fields(length: Count) -> Fields:
    """Return words that are all 0."""
    return [0] * length


def new_cells(length: Count) -> Cells:
    """Return numbers that are all 0."""
    return [0.0] * length
