"""Rényi divergences between the rows of a table, exact to about twelve digits however alike or unlike the rows are."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IndexArray
from ..numerics.rounding import SLACK, UNIT
from .pair_search import BATCH, LARGEST_EXPONENT, PairSearch, Table, pair_divergences
from .pure_privacy import check_orders

# Rows of a block of log-ratios or products. In products of shifted rows smaller exponents count as this one; smaller sums are bounds.
BLOCK_ROWS, LEAST_EXPONENT, TOO_SMALL = 32, -300.0, 1e-100
# Candidates for each row that take as long to compute as products of blocks do.
BLOCKS_WORTH = 32
# How far above the logarithm of a sum the chords are that replace products of matrices, relative to it.
CHORD_EXCESS = 0.04


def check_weights(weights: ArrayLike) -> Table:
    """Return a table's weights, without the columns that are zero in every row, as int64 or float64.

    Weights are non-negative, integers up to 2**62 or floats; there are two rows or more, all with the same sum.
    """
    array = np.asarray(weights)
    array = array.astype(np.int64 if np.issubdtype(array.dtype, np.integer) else np.float64)
    if array.ndim != 2 or len(array) < 2 or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(f"weights must be a table of finite non-negative numbers with at least two rows, got {weights!r}")
    sums = array.sum(axis=1)
    if not np.all(sums > 0) or not np.allclose(sums, sums[0], rtol=1e-12, atol=0):
        raise ValueError(f"weights must have rows with the same sum, above zero, got sums from {sums.min()!r} to {sums.max()!r}")
    # In the order of C: indexing columns leaves that of Fortran, in which sums over a row take many times as long.
    return np.ascontiguousarray(array[:, array.any(axis=0)])


def largest_step(inputs: int, distance: float) -> int:
    """Return how many rows two inputs can be apart that are so far apart on the unit scale; a rounded product counts as a whole number."""
    return min(inputs - 1, int((inputs - 1) * distance * (1 + SLACK)))


def renyi_matrix(weights: ArrayLike, order: float) -> FloatArray:
    """Return the Rényi divergence of every row from every other one.

    D_a(P || Q) = 1/(a-1) ln sum_j P_j^a Q_j^(1-a). With l_j = ln(P_j / Q_j) the sum is 1 + (a-1) sum_j Q_j psi(l_j), where
    psi(l) = e^l (e^((a-1) l) - 1)/(a-1) - (e^l - 1) is nowhere negative: nothing cancels, so that rows that differ by a millionth have
    as exact a divergence as others. (Chen et al. 2022, Definition 3.2, and Chen et al. 2023, Definition A.1, print the factor 1/a: wrong.)

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    order : float
        At least 1; 1 gives the Kullback-Leibler divergence, infinity the largest log-ratio.

    Returns
    -------
    ndarray of shape (inputs, inputs)
        Entry [i, k] is the divergence of row i from row k, in nats; infinite where row i sends a letter that row k never sends.

    Examples
    --------
    >>> renyi_matrix([[3, 1], [1, 3]], 2.0).round(6).tolist()
    [[0.0, 0.847298], [0.847298, 0.0]]
    """
    table = check_weights(weights)
    rows, others = (index.ravel() for index in np.indices((len(table), len(table))))
    (order,) = (1.0,) if order == 1 else check_orders(order).tolist()
    return pair_divergences(table, rows, others, order).reshape(len(table), len(table))


def divergence_by_distance(weights: ArrayLike, orders: ArrayLike) -> FloatArray:
    """Return the largest divergence between two rows of each distance, for many orders at once.

    A matrix product finds, for each distance, which pairs can be the largest up to the rounding of the product; only those are computed
    exactly. For B inputs that costs B**2 multiplications per order and letter, and few exponentials.

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    orders : array_like of shape (orders,)
        Above 1; infinity gives the largest log-ratio.

    Returns
    -------
    ndarray of shape (orders, inputs)
        Entry [o, k] is the largest of `renyi_matrix` at order o over rows i, i' with ``|i - i'| == k``, in both directions; it may err
        upward where very many pairs are as good as equal: by a share of 1e-9, or 1e-7 for hundreds of letters.
    """
    table = check_weights(weights)
    inputs = len(table)
    rows, others = np.indices((inputs, inputs)).reshape(2, -1)
    by_distance = np.argsort(np.abs(rows - others), kind="stable")[inputs - 1 :]
    # Distance 0 has one pair, since a row compared with itself is like any other one; distance k > 0 has two for each of inputs - k.
    by_distance[0] = 0
    return _largest(table, check_orders(orders), by_distance, np.concatenate([[1], 2 * np.arange(inputs - 1, 0, -1)]))


def largest_divergences(weights: ArrayLike, orders: ArrayLike, reach: int) -> FloatArray:
    """Return the largest divergence of two rows at most `reach` rows apart, for many orders at once.

    It is the largest entry of `divergence_by_distance` up to there, and errs as that does; only one pair per order is computed exactly.

    Returns
    -------
    ndarray of shape (orders,)
        In nats.
    """
    table = check_weights(weights)
    array = check_orders(orders)
    rows, others = np.indices((len(table), len(table))).reshape(2, -1)
    apart = np.abs(rows - others)
    near = np.flatnonzero((apart > 0) & (apart <= reach))
    return _largest(table, array, near, np.array([len(near)]))[:, 0] if len(near) else np.zeros(len(array))


def _largest(table: Table, orders: FloatArray, pairs: IndexArray, counts: IndexArray) -> FloatArray:
    """Return the largest divergence of each group of pairs, shape (orders, groups); a pair is an index into the matrix of all."""
    search = PairSearch(table, pairs, counts)
    # A factor for each letter cancels from the ratios; one between its extremes keeps the exponents small, and their errors too.
    lowest = np.where(table > 0, table, np.inf).min(axis=0)
    middle = np.sqrt(lowest) * np.sqrt(table.max(axis=0))
    with np.errstate(divide="ignore"):
        centred = np.log(table / middle)
    log_scale = np.log(middle / float(table[0].sum()))
    sent = np.isfinite(centred)
    extreme = float(np.abs(centred[sent]).max())

    @cache
    def steepest() -> FloatArray:
        """Return the largest log-ratio of each pair, which products that do not underflow need not know."""
        found: FloatArray = _largest_exponents(centred).ravel()[pairs]
        return found

    def log_sums(order: float) -> FloatArray:
        return np.asarray(np.log(_sums(centred, log_scale, order))).ravel()[pairs]

    chord: _Chord | None = None
    chords_help = True
    # At order 1 the logarithm of the sum is 0.
    bound, before = np.zeros(len(pairs)), 1.0
    rising, where = np.unique(orders, return_inverse=True)
    result = np.empty((len(rising), len(counts)))
    for position, order in enumerate(rising.tolist()):
        plain = order * extreme <= LARGEST_EXPONENT and bool(sent.all())
        if math.isinf(order):
            result[position] = search.largest(order, steepest().copy(), 8 * UNIT * (1 + _finite(search.maxima(steepest()))))
            continue
        # Each centred logarithm is off by about the machine epsilon, and is then multiplied by the order.
        slack = 16 * UNIT * (table.shape[1] + order + order * extreme)
        if plain and chord is not None and order < chord.last:
            bound = chord.at(order)
            value = search.divergences(search.best, order)
            found = (order - 1) * value
            allowance = 2 * slack * chord.last / order * (1 + found)
            chords_help = len(search.candidates(bound, found - allowance)) <= BATCH * len(table)
            if chords_help:
                result[position] = search.largest(order, bound, allowance, found, value)
                continue
        if plain:
            bound = chord.last_bound if chord is not None and order == chord.last else log_sums(order)
            last = max((one for one in rising if one <= _chord_end(order) and one * extreme <= LARGEST_EXPONENT), default=order)
            chord = _Chord(order, last, bound, log_sums(last)) if chords_help and last > order else None
            result[position] = search.largest(order, bound.copy(), slack * (1 + np.exp(-search.maxima(bound))))
        else:
            # ln S is convex in the order, and rises by at most the largest log-ratio for each unit of it.
            bound += (order - before) * steepest()
            value = search.divergences(search.best, order)
            found = (order - 1) * value
            # Shifting rows rounds numbers of at most four times the exponent, in both factors; adding up steps, of a few times that.
            allowance = 2 * slack * (1 + _finite(found))
            for block_rows, worth in ((len(table), BATCH), (BLOCK_ROWS, BLOCKS_WORTH)):
                if len(search.candidates(bound, found - allowance)) > worth * len(table):
                    shifted = _shifted_sums(centred, log_scale, order, block_rows)
                    np.minimum(bound, shifted.bound.ravel()[pairs], out=bound)
                    found = np.maximum(found, search.maxima(np.where(shifted.exact.ravel()[pairs], bound, -np.inf)))
                    allowance = 2 * slack * (1 + _finite(found))
            result[position] = search.largest(order, bound, allowance, found, value)
        before = order
    return result[where]


@dataclass(frozen=True, eq=False)
class _Chord:
    """Logarithms of all pairs' sums at two orders: between them they are below the chord, as they are convex in the order."""

    first: float
    last: float
    first_bound: FloatArray
    last_bound: FloatArray

    def at(self, order: float) -> FloatArray:
        share = (order - self.first) / (self.last - self.first)
        return (1 - share) * self.first_bound + share * self.last_bound


def _chord_end(order: float) -> float:
    """Return how far a chord reaches that is `CHORD_EXCESS` above the curve in its middle, for sums like those of Gaussian noise."""
    return order + math.sqrt(4 * CHORD_EXCESS * order * (order - 1))


def _finite(values: FloatArray) -> FloatArray:
    """Return the sizes of numbers, those of infinite ones as 0."""
    return np.where(np.isinf(values), 0.0, np.abs(values))


@dataclass(frozen=True, eq=False)
class _ShiftedSums:
    """Logarithms of sums for all pairs; where they are not exact, bounds. Rounding is on top."""

    bound: FloatArray
    exact: NDArray[np.bool_]


def _sums(centred: FloatArray, log_scale: FloatArray, order: float) -> FloatArray:
    """Return sum_j P_j^a Q_j^(1-a) for every pair of rows, where no exponent is large."""
    return np.asarray((np.exp(order * centred) * np.exp(log_scale)) @ np.exp((1 - order) * centred).T)


def _shifted_sums(centred: FloatArray, log_scale: FloatArray, order: float, block_rows: int) -> _ShiftedSums:
    """Return ln sum_j P_j^a Q_j^(1-a) for every pair of rows, by products of matrices whose rows are shifted; infinite where it is.

    A block of rows and another one are centred between the two: where neighbouring rows are alike, both factors of a pair's sum are then
    largest at about the same letters, and the sum does not underflow.
    """
    sent = np.isfinite(centred)
    known = np.where(sent, centred, 0.0)
    own, other = np.where(sent, order * known + log_scale, -np.inf), np.where(sent, (1 - order) * known, -np.inf)
    bound, exact = np.empty((len(known), len(known))), np.empty((len(known), len(known)), dtype=bool)
    blocks = [slice(start, start + block_rows) for start in range(0, len(known), block_rows)]
    lowest, highest = (np.array([extreme(known[block], axis=0) for block in blocks]) for extreme in (np.min, np.max))
    for first, above in enumerate(blocks):
        for second, beside in enumerate(blocks):
            middle = (np.minimum(lowest[first], lowest[second]) + np.maximum(highest[first], highest[second])) / 2
            left, right = own[above] - (order - 0.5) * middle, other[beside] + (order - 0.5) * middle
            shift, other_shift = left.max(axis=1, keepdims=True), right.max(axis=1, keepdims=True)
            for factor, largest in ((left, shift), (right, other_shift)):
                factor -= largest
                # So that no product is denormal, which would take a hundred times as long.
                np.exp(np.maximum(factor, LEAST_EXPONENT, out=factor), out=factor)
            sums = left @ right.T
            bound[above, beside] = np.log(np.maximum(sums, TOO_SMALL)) + (shift + other_shift.T)
            exact[above, beside] = sums > TOO_SMALL
    if not sent.all():
        # A letter that is never sent adds nothing; one that only the other row never sends makes the divergence infinite.
        bound[sent.astype(float) @ (~sent).T.astype(float) > 0] = np.inf
    return _ShiftedSums(bound, exact)


def _largest_exponents(centred: FloatArray) -> FloatArray:
    """Return the largest log-ratio of every pair of rows, to a few units of its last place."""
    sent = np.isfinite(centred)
    own, other = (np.where(sent, centred, absent).T.copy() for absent in (-np.inf, 0.0))
    largest = np.full((len(centred), len(centred)), -np.inf)
    ratios = np.empty((BLOCK_ROWS, len(centred)))
    for start in range(0, len(centred), BLOCK_ROWS):
        found = largest[start : start + BLOCK_ROWS]
        part = ratios[: len(found)]
        for letter in range(len(own)):
            np.subtract(own[letter, start : start + BLOCK_ROWS, None], other[letter], out=part)
            np.maximum(found, part, out=found)
    if not sent.all():
        largest[sent.astype(float) @ (~sent).T.astype(float) > 0] = np.inf
    return largest
