"""Rounding of float tables to whole numbers: exact row sums and no bias.

On a `LetterGrid` of rational letters integer weights can make every row exactly unbiased.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...solvers.bounds.privacy_constraint import RatioConstraint
from ...solvers.numerics.integer_rows import RowLattice, dot, least_coarseness, row_lattice

# Number of bits of the grid's spacing, if the table's total allows so many.
SPACING_BITS = 60

TOTAL_BITS = 62
# Smallest sum of a letter's column. A smaller column is a solver's rounding error, and its ratios are meaningless.
DUST = 1e-9
# Distance within which letters count as equal, as a share of the alphabet's reach.
SAME_LETTER = 2.0**-40
# Largest number of letters whose weights are adjusted to make rows exact; more would only cost time.
MOST_ANCHORS = 8
# Largest errors of a solved table's row sums and biases, in units of the alphabet's reach.
ROW_TOLERANCE = 1e-7


@dataclass(frozen=True)
class RoundedTable:
    """A table of whole numbers with sorted letters.

    Rows sum to 2**62 and have mean i / (rows - 1), both exactly.
    """

    weights: NDArray[np.int64]
    alphabet: tuple[Fraction, ...]


def round_table(probabilities: FloatArray, alphabet: FloatArray, constraint: RatioConstraint, *, symmetric: bool = False) -> RoundedTable:
    """Round a table of floats to whole numbers with exact row sums and means.

    The function raises entries that the constraint makes too small. It moves the letters to a rational grid, and splits each letter between
    the two nearest grid letters; this post-processing loses no privacy. It then rounds all but a few columns, and chooses a nearby integer
    vector that meets the two equations in those columns.

    Parameters
    ----------
    probabilities : ndarray of shape (rows, letters)
        A table that is unbiased for inputs i / (rows - 1), up to a solver's rounding; the number of rows is a power of two.
    alphabet : ndarray of shape (letters,)
        Letters of the table, in any order.
    constraint : RatioConstraint
        Privacy of the table, up to a solver's rounding.
    symmetric : bool
        Whether the result is exactly mirrored: W[-1-i, -1-j] = W[i, j] and a[-1-j] = 1 - a[j]. The given table must be nearly mirrored.

    Returns
    -------
    RoundedTable
        Table with the same number of letters; a column of dust becomes a column of zeros. Alphabets increase strictly, unless the table is
        symmetric and has an odd number of letters in use: then 1/2 occurs twice.

    Raises
    ------
    ConvergenceError
        If the errors of the two equations, or of the constraint, are larger than a solver's rounding explains.
    """
    table, letters = _sorted_table(probabilities, alphabet, symmetric)
    _check_rows(table, letters)
    table = _lifted_a_little(table, constraint)
    grid, anchors, lattice = _best_grid(table, letters, constraint, symmetric)
    shares = rebalanced(table @ grid.splitting(letters), np.array([float(letter) for letter in grid.letters]))
    targets = np.rint(shares * 2.0**TOTAL_BITS).astype(np.int64)
    weights = targets.copy()
    others = np.setdiff1d(np.arange(len(grid.letters)), anchors)
    other_positions = [grid.positions[j] for j in others]
    for row in range(len(table) // 2 if symmetric else 0, len(table)):
        fixed = weights[row, others].tolist()
        total = 2**TOTAL_BITS - sum(fixed)
        moment = grid.moment(row, TOTAL_BITS) - dot(fixed, other_positions)
        weights[row, anchors] = lattice.nearest(targets[row, anchors].tolist(), total, moment)
    if weights.min() < 0:
        row = int(weights.min(axis=1).argmin())
        raise ConvergenceError(f"row {row} of the table has too small entries to be made exact: its columns of dust are too heavy")
    if symmetric:
        weights[: len(table) // 2] = weights[: len(table) // 2 - 1 : -1, ::-1]
    return _with_spare_letters(weights, grid.letters, len(alphabet), symmetric)


def lifted(table: FloatArray, constraint: RatioConstraint) -> FloatArray:
    """Return the smallest table, nowhere below the given one, that meets a ratio constraint.

    The table's rows may have larger sums. A solver's absolute tolerance does not bound a ratio. The function raises entries that are too
    small, often zero, to the smallest value that the largest entries of their column permit.
    """
    decay = math.exp(-constraint.log_ratio)
    if not constraint.neighbours_only:
        return np.asarray(np.maximum(table, table.max(axis=0) * decay))
    result = table.copy()
    for row in range(1, len(result)):
        np.maximum(result[row], result[row - 1] * decay, out=result[row])
    for row in range(len(result) - 2, -1, -1):
        np.maximum(result[row], result[row + 1] * decay, out=result[row])
    return result


def rebalanced(table: FloatArray, alphabet: FloatArray) -> FloatArray:
    """Return a table whose rows sum to 1 and are unbiased, with the least relative changes.

    For each row, the function minimises the sum of squares of d_j / P_j subject to the two equations, with the solution d_j = P_j**2 (alpha
    + beta a_j). The given rows nearly meet them and have at least two positive entries each.
    """
    inputs = np.arange(len(table)) / (len(table) - 1)
    offsets = alphabet - inputs[:, None]
    squares = table**2
    mass = squares.sum(axis=1, keepdims=True)
    centred = offsets - (squares * offsets).sum(axis=1, keepdims=True) / mass
    missing_sum = 1 - table.sum(axis=1, keepdims=True)
    # Moving mass between letters changes the mean by d . offsets, which is also d . centred once the sum is right.
    missing_mean = -(table * offsets).sum(axis=1, keepdims=True) - missing_sum * (offsets - centred)[:, :1]
    slope = missing_mean / (squares * centred**2).sum(axis=1, keepdims=True)
    return np.asarray(table + squares * (missing_sum / mass + slope * centred))


def _sorted_table(probabilities: FloatArray, alphabet: FloatArray, symmetric: bool) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(alphabet, kind="stable")
    table, letters = np.maximum(probabilities[:, order], 0.0), alphabet[order]
    if symmetric:
        # The average of two private tables is private: mirroring loses no privacy.
        table, letters = (table + table[::-1, ::-1]) / 2, (letters + (1 - letters[::-1])) / 2
    return table, letters


def _check_rows(table: FloatArray, letters: FloatArray) -> None:
    inputs = np.arange(len(table)) / (len(table) - 1)
    reach = max(1.0, float(np.ptp(letters)))
    for name, residuals in (("sum", table.sum(axis=1) - 1), ("mean", (table @ letters - inputs) / reach)):
        worst = int(np.abs(residuals).argmax())
        if not abs(residuals[worst]) <= ROW_TOLERANCE:
            raise ConvergenceError(f"the table is not solved: the {name} of its row {worst} is off by {residuals[worst]:.3g}")


def _lifted_a_little(table: FloatArray, constraint: RatioConstraint) -> FloatArray:
    result = lifted(table, constraint)
    row, letter = np.unravel_index((result - table).argmax(), table.shape)
    missing = result[row, letter] - table[row, letter]
    if missing > ROW_TOLERANCE:
        raise ConvergenceError(f"the table is not private: in row {row}, letter {letter} is {missing:.3g} below its column's ratios")
    return result


def _letters_in_use(table: FloatArray, letters: FloatArray, symmetric: bool) -> tuple[FloatArray, FloatArray]:
    """Return the distinct letters of columns that are not dust, and their smallest entries."""
    used = table.sum(axis=0) >= DUST
    letters, smallest = letters[used], table[:, used].min(axis=0)
    apart = np.concatenate([[True], np.diff(letters) > SAME_LETTER * np.ptp(letters)])
    if symmetric:
        # The lower half determines the mirrored alphabet; the two letters next to 1/2 become a single letter if they meet at 1/2.
        half = len(letters) // 2
        meet = len(letters) % 2 == 0 and not apart[half]
        apart[len(letters) - half :] = apart[:half][::-1]
        apart[half] &= not meet
    return letters[apart], smallest[apart]


@dataclass(frozen=True)
class LetterGrid:
    """A grid of letters a_j = (origin + 2**shift m_j) / (steps scale) at integer positions m_j.

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
        """Return the required sum_j W[row, j] m_j of a row with sum 2**total_bits.

        `total_bits` is at least the shift.
        """
        return (self.scale * row - self.origin) << (total_bits - self.shift)

    def splitting(self, alphabet: FloatArray) -> FloatArray:
        """Return the probabilities of replacing given letters by grid letters.

        The shape is (letters, grid letters). A letter between two grid letters is split so that its mean stays; a letter outside the grid
        goes to its nearer end. This post-processing keeps privacy and unbiasedness, and the variance grows by the product of the distances
        to the two grid letters.
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


def _best_grid(
    table: FloatArray, letters: FloatArray, constraint: RatioConstraint, symmetric: bool
) -> tuple[LetterGrid, list[int], RowLattice]:
    """Choose the grid's spacing, as finer letters cost less variance and more privacy.

    They cost more privacy because integer rows that fit finer letters are rarer.
    """
    steps = len(table) - 1
    used, smallest = _letters_in_use(table, letters, symmetric)
    variances = (table * (letters - np.arange(steps + 1)[:, None] / steps) ** 2).sum(axis=1)
    letter_cost = float(np.ptp(used) ** 2 / variances.min())
    unit_costs = 2.0**-TOTAL_BITS / (np.maximum(smallest, 2.0**-TOTAL_BITS) * constraint.log_ratio)
    ratios = letter_ratios(used)
    bounded = []
    for positions in position_candidates(used, symmetric=symmetric):
        last = positions[-1]
        # A division of whole numbers, rounded once, is several times as fast as differences of fractions, which Python reduces first.
        displacement = max(
            abs((position * ratio.denominator - last * ratio.numerator) / (last * ratio.denominator))
            for position, ratio in zip(positions, ratios, strict=True)
        )
        anchors = _anchors(smallest, positions)
        least = least_coarseness([positions[j] for j in anchors], unit_costs[anchors].tolist())
        bounded.append((displacement * letter_cost + least, displacement * letter_cost, positions, anchors))
    cheapest = np.inf
    for least_cost, moving_cost, positions, anchors in sorted(bounded):
        if least_cost > cheapest:
            break
        scales = np.rint(unit_costs[anchors] / unit_costs[anchors].min() * 2**10)
        lattice = row_lattice([positions[j] for j in anchors], [int(scale) for scale in scales])
        cost = moving_cost + lattice.coarseness(unit_costs[anchors].tolist())
        if cost < cheapest:
            cheapest, best = cost, (positions, anchors, lattice)
    positions, anchors, lattice = best
    return letter_grid(used, positions, steps, TOTAL_BITS, symmetric=symmetric), anchors, lattice


def _anchors(smallest: FloatArray, positions: tuple[int, ...]) -> list[int]:
    """Choose letters from all parts of the alphabet whose smallest entries are large.

    A unit of weight changes the ratios of such letters least.
    """
    groups = np.array_split(np.arange(len(smallest)), min(MOST_ANCHORS, len(smallest)))
    chosen = [int(group[smallest[group].argmax()]) for group in groups]
    others = [j for j in np.argsort(-smallest, kind="stable").tolist() if j not in chosen]
    while math.gcd(*(positions[j] - positions[chosen[0]] for j in chosen)) != 1:
        chosen.append(others.pop(0))
    return chosen


def _with_spare_letters(weights: NDArray[np.int64], letters: tuple[Fraction, ...], count: int, symmetric: bool) -> RoundedTable:
    """Add letters of weight zero up to `count`, in the first gap and, if symmetric, the last."""
    if symmetric and len(letters) % 2 != count % 2:
        # An even number of letters has no middle letter, so the middle letter is split into two of half the weight.
        middle = len(letters) // 2
        halves = weights[:, middle] // 2
        lower_half = np.arange(len(weights)) < len(weights) // 2
        halves += lower_half * (weights[:, middle] % 2)
        weights = np.insert(weights, middle + 1, weights[:, middle] - halves, axis=1)
        weights[:, middle] = halves
        letters = (*letters[: middle + 1], *letters[middle:])
    spare = count - len(letters)
    if not symmetric or len(letters) == 2:
        spare_below, spare_above = spare, 0
    else:
        spare_below = spare_above = spare // 2
    below, above = _between(letters[0], letters[1], spare_below), _between(letters[-2], letters[-1], spare_above)
    filled = (letters[0], *below, *letters[1:-1], *above, letters[-1])
    zeros = np.zeros((len(weights), spare), dtype=np.int64)
    parts = [weights[:, :1], zeros[:, :spare_below], weights[:, 1:-1], zeros[:, spare_below:], weights[:, -1:]]
    return RoundedTable(np.concatenate(parts, axis=1), filled)


def _between(left: Fraction, right: Fraction, count: int) -> list[Fraction]:
    return [left + (right - left) * Fraction(i, count + 1) for i in range(1, count + 1)]


def position_candidates(alphabet: FloatArray, *, symmetric: bool) -> list[tuple[int, ...]]:
    """Return coarse and fine integer positions close to the ratios of an alphabet.

    Parameters
    ----------
    alphabet : ndarray of shape (letters,)
        At least two letters, strictly increasing; for symmetric positions, mirrored around 1/2.
    symmetric : bool
        Whether the positions are mirrored exactly.

    Returns
    -------
    list of tuple of int
        Positions as in `LetterGrid`, all different. Some positions have denominators that are powers of two. Others have denominators of
        good rational approximations to the second letter's ratio, which are twice as precise for three letters, four mirrored letters and
        evenly spaced letters.
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
            divisor = math.gcd(*positions)
            candidates.append(tuple(position // divisor for position in positions))
    return candidates


def letter_ratios(alphabet: FloatArray) -> list[Fraction]:
    """Return exact relative positions of increasing letters, from 0 to 1."""
    first, last = Fraction(float(alphabet[0])), Fraction(float(alphabet[-1]))
    return [(Fraction(letter) - first) / (last - first) for letter in alphabet.tolist()]


def letter_grid(alphabet: FloatArray, positions: tuple[int, ...], steps: int, total_bits: int, *, symmetric: bool) -> LetterGrid:
    """Return a grid whose outer letters are at least as far out as an alphabet's.

    Parameters
    ----------
    alphabet : ndarray of shape (letters,)
        At least two letters, strictly increasing.
    positions : tuple of int
        A position candidate of the letters.
    steps : int
        Number of input steps, B - 1; odd.
    total_bits : int
        Binary logarithm of the rows' sum.
    symmetric : bool
        Whether the grid's letters are mirrored around 1/2, exactly.
    """
    first, last = Fraction(float(alphabet[0])), Fraction(float(alphabet[-1]))
    reach = last - first
    shift, widest = 1, math.ceil(steps * reach * 2**SPACING_BITS)
    while shift < total_bits and (positions[-1] << shift) < widest:
        shift += 1
    scale = math.floor(((positions[-1] << shift) - 1) / (steps * reach))
    if symmetric:
        scale -= scale % 2
        origin = (steps * scale - (positions[-1] << shift)) // 2
    else:
        origin = math.floor(first * steps * scale)
    return LetterGrid(positions, origin, shift, scale, steps)
