"""A grid of rational letters on which integer weights can make every row exactly unbiased."""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, gcd

import numpy as np

from ...arrays import FloatArray

# Bits of the grid's spacing, so far as the table's total allows.
SPACING_BITS = 60


@dataclass(frozen=True)
class LetterGrid:
    """Letters a_j = (origin + 2**shift m_j) / (steps scale), with integer positions m_j.

    The row of input i / steps, weights W with sum 2**k, is unbiased when sum_j W_j m_j = 2**(k - shift) (scale i - origin): a whole number.
    The positions increase, the first is 0, and they have no common divisor.
    """

    positions: tuple[int, ...]
    origin: int
    shift: int
    scale: int
    steps: int

    @cached_property
    def letters(self) -> tuple[Fraction, ...]:
        """The letters, increasing."""
        return tuple(Fraction(self.origin + (position << self.shift), self.steps * self.scale) for position in self.positions)

    def moment(self, row: int, total_bits: int) -> int:
        """Return what sum_j W[row, j] m_j must be for a row of sum 2**total_bits; `total_bits` is at least the shift."""
        return (self.scale * row - self.origin) << (total_bits - self.shift)

    def splitting(self, alphabet: FloatArray) -> FloatArray:
        """Return the probabilities with which each given letter is replaced by a letter of the grid, shape (letters, grid letters).

        A letter between two grid letters is split so that its mean stays; one outside the grid goes to its nearer end. As this only
        post-processes what a table sends, privacy and unbiasedness stay as they are, and variance grows by the product of the distances to
        the two grid letters.
        """
        matrix = np.zeros((len(alphabet), len(self.letters)))
        for j, letter in enumerate(alphabet.tolist()):
            after = bisect_right(self.letters, Fraction(letter))
            if after in (0, len(self.letters)):
                matrix[j, min(after, len(self.letters) - 1)] = 1.0
                continue
            left, right = self.letters[after - 1], self.letters[after]
            matrix[j, after] = share = float((Fraction(letter) - left) / (right - left))
            matrix[j, after - 1] = 1.0 - share
        return matrix


def position_candidates(alphabet: FloatArray, *, symmetric: bool) -> list[tuple[int, ...]]:
    """Return positions, coarse and fine, that nearly stand in the ratios of an alphabet.

    Parameters
    ----------
    alphabet : ndarray of shape (letters,)
        At least two letters, strictly increasing; for symmetric positions, mirrored around 1/2.
    symmetric : bool
        Whether the positions are mirrored exactly.

    Returns
    -------
    list of tuple of int
        Positions as in `LetterGrid`, all different. Some have denominators that are powers of two; some, denominators of good rational
        approximations to the second letter's ratio: these are twice as precise for three letters, for four mirrored ones and for evenly
        spaced ones.
    """
    ratios = letter_ratios(alphabet)
    denominators = {ratios[1].limit_denominator(2**bits).denominator for bits in range(1, 40)} | {2**bits for bits in range(8, 58, 2)}
    candidates = []
    for denominator in sorted(denominators):
        last = denominator * (2 if symmetric and len(ratios) % 2 and denominator % 2 else 1)
        positions = [round(ratio * last) for ratio in ratios]
        if symmetric:
            lower = positions[: len(positions) // 2]
            positions = lower + [last // 2] * (len(positions) % 2) + [last - position for position in reversed(lower)]
        if all(after > before for before, after in pairwise(positions)):
            divisor = gcd(*positions)
            candidates.append(tuple(position // divisor for position in positions))
    return candidates


def letter_ratios(alphabet: FloatArray) -> list[Fraction]:
    """Return where strictly increasing letters lie between the first and the last, exactly: numbers from 0 to 1."""
    first, last = Fraction(float(alphabet[0])), Fraction(float(alphabet[-1]))
    return [(Fraction(letter) - first) / (last - first) for letter in alphabet.tolist()]


def letter_grid(alphabet: FloatArray, positions: tuple[int, ...], steps: int, total_bits: int, *, symmetric: bool) -> LetterGrid:
    """Return a grid that spans an alphabet: its outer letters are as far out, or a little farther, which is more private.

    Parameters
    ----------
    alphabet : ndarray of shape (letters,)
        At least two letters, strictly increasing.
    positions : tuple of int
        One of its position candidates.
    steps : int
        Number of input steps, B - 1; odd.
    total_bits : int
        Binary logarithm of the rows' sum.
    symmetric : bool
        Whether the grid's letters are mirrored around 1/2, exactly.
    """
    first, last = Fraction(float(alphabet[0])), Fraction(float(alphabet[-1]))
    reach = last - first
    shift, widest = 1, ceil(steps * reach * 2**SPACING_BITS)
    while shift < total_bits and (positions[-1] << shift) < widest:
        shift += 1
    scale = floor(((positions[-1] << shift) - 1) / (steps * reach))
    if symmetric:
        scale -= scale % 2
        origin = (steps * scale - (positions[-1] << shift)) // 2
    else:
        origin = floor(first * steps * scale)
    return LetterGrid(positions, origin, shift, scale, steps)
