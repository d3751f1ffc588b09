"""Rényi divergences between the rows of a table, exact to about twelve digits.

The accuracy is the same for rows that are nearly equal and for very different rows. `PairSearch` finds the largest divergence of many pairs
of rows, given a bound on each.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IndexArray
from ..numerics.rounding import SLACK, UNIT
from .pure_privacy import check_orders

Table = NDArray[np.float64] | NDArray[np.int64]

# Number of terms of the power series if order times log-ratio is below 1. The last term is below 1e-18 of the first.
SERIES_TERMS = 20
# Largest exponent of direct sums; sums with larger exponents use log space.
LARGEST_EXPONENT = 300.0
# Number of log-ratios computed at a time, whose arrays stay in the cache.
CHUNK = 2**15
# Number of pairs computed at a time, for each row, before the results are compared with the other pairs.
BATCH = 4
# Least number of probabilities of candidates that the search computes exactly. Beyond FEW, a single candidate suffices if the rounding of
# the product cannot move a divergence by more than NEGLIGIBLE, relative to itself and for each MANY candidates.
FEW, MANY = 2**16, 2**20
NEGLIGIBLE = 1e-9

# Number of rows per block of log-ratios or products. Smaller exponents in products of shifted rows are raised to LEAST_EXPONENT; sums below
# TOO_SMALL are bounds.
BLOCK_ROWS, LEAST_EXPONENT, TOO_SMALL = 32, -300.0, 1e-100
# Number of candidates for each row that take as long to compute as products of blocks do.
BLOCKS_WORTH = 32
# Relative excess of the chords that replace products of matrices over the logarithm of a sum.
CHORD_EXCESS = 0.04


def check_weights(weights: ArrayLike) -> Table:
    """Return a table's weights, as int64 or float64, without columns that are zero throughout.

    Weights are non-negative, integers up to 2**62 or floats; there are two rows or more, all with the same sum.
    """
    array = np.asarray(weights)
    array = array.astype(np.int64 if np.issubdtype(array.dtype, np.integer) else np.float64)
    if array.ndim != 2 or len(array) < 2 or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(f"weights must be a table of finite non-negative numbers with at least two rows, got {weights!r}")
    sums = array.sum(axis=1)
    if not np.all(sums > 0) or not np.allclose(sums, sums[0], rtol=1e-12, atol=0):
        raise ValueError(f"weights must have rows with the same sum, above zero, got sums from {sums.min()!r} to {sums.max()!r}")
    # Use the order of C: indexing columns leaves that of Fortran, in which sums over a row take many times as long.
    return np.ascontiguousarray(array[:, array.any(axis=0)])


def largest_step(inputs: int, distance: float) -> int:
    """Return the largest distance in rows of two inputs that are at most `distance` apart.

    The distance is on the unit scale; a product that rounding moved off a whole number counts as that number.
    """
    return min(inputs - 1, int((inputs - 1) * distance * (1 + SLACK)))


def renyi_matrix(weights: ArrayLike, order: float) -> FloatArray:
    """Return the Rényi divergence of every row from every other row.

    D_a(P || Q) = 1/(a-1) ln sum_j P_j^a Q_j^(1-a). With l_j = ln(P_j / Q_j) the sum is 1 + (a-1) sum_j Q_j psi(l_j), where psi(l) = e^l
    (e^((a-1) l) - 1)/(a-1) - (e^l - 1) is never negative: nothing cancels, so that rows that differ by a millionth have as exact a
    divergence as others. (Chen et al. 2022, Definition 3.2, and Chen et al. 2023, Definition A.1, print the factor 1/a: wrong.)

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    order : float
        Rényi order, at least 1; 1 gives the Kullback-Leibler divergence, infinity the largest log-ratio.

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

    A matrix product determines, for each distance, the pairs that can be the largest up to the rounding of the product; only those are
    computed exactly. For B inputs that costs B**2 multiplications per order and letter, and few exponentials.

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    orders : array_like of shape (orders,)
        Rényi orders above 1; infinity gives the largest log-ratio.

    Returns
    -------
    ndarray of shape (orders, inputs)
        Entry [o, k] is the largest of `renyi_matrix` at order o over rows i, i' with ``|i - i'| == k``, in both directions. It may be too
        large where very many pairs are nearly equal: by a share of 1e-9, or 1e-7 for hundreds of letters.
    """
    table = check_weights(weights)
    inputs = len(table)
    rows, others = np.indices((inputs, inputs)).reshape(2, -1)
    by_distance = np.argsort(np.abs(rows - others), kind="stable")[inputs - 1 :]
    # Distance 0 has a single pair, since every row has the same divergence from itself; distance k > 0 has two for each of inputs - k.
    by_distance[0] = 0
    return _largest(table, check_orders(orders), by_distance, np.concatenate([[1], 2 * np.arange(inputs - 1, 0, -1)]))


def largest_divergences(weights: ArrayLike, orders: ArrayLike, reach: int) -> FloatArray:
    """Return the largest divergence of two rows at most `reach` rows apart, per order.

    The result is the largest entry of `divergence_by_distance` up to that distance, with the same errors; only a single pair per order is
    computed exactly.

    Returns
    -------
    ndarray of shape (orders,)
        Divergences in nats.
    """
    table = check_weights(weights)
    array = check_orders(orders)
    rows, others = np.indices((len(table), len(table))).reshape(2, -1)
    apart = np.abs(rows - others)
    near = np.flatnonzero((apart > 0) & (apart <= reach))
    return _largest(table, array, near, np.array([len(near)]))[:, 0] if len(near) else np.zeros(len(array))


def _largest(table: Table, orders: FloatArray, pairs: IndexArray, counts: IndexArray) -> FloatArray:
    """Return the largest divergence of each group of pairs, shape (orders, groups).

    A pair is an index into the matrix of all pairs.
    """
    search = PairSearch(table, pairs, counts)
    # A factor for each letter cancels in the ratios; a factor between the letter's extremes keeps the exponents small, and their errors
    # too.
    lowest = np.where(table > 0, table, np.inf).min(axis=0)
    middle = np.sqrt(lowest) * np.sqrt(table.max(axis=0))
    with np.errstate(divide="ignore"):
        centred = np.log(table / middle)
    log_scale = np.log(middle / float(table[0].sum()))
    sent = np.isfinite(centred)
    extreme = float(np.abs(centred[sent]).max())

    @cache
    def steepest() -> FloatArray:
        """Return each pair's largest log-ratio, which products without underflow do not need."""
        exponents: FloatArray = _largest_exponents(centred).ravel()[pairs]
        return exponents

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
            attained = (order - 1) * value
            allowance = 2 * slack * chord.last / order * (1 + attained)
            chords_help = len(search.candidates(bound, attained - allowance)) <= BATCH * len(table)
            if chords_help:
                result[position] = search.largest(order, bound, allowance, attained, value)
                continue
        if plain:
            bound = chord.last_bound if chord is not None and order == chord.last else log_sums(order)
            last = max((later for later in rising if later <= _chord_end(order) and later * extreme <= LARGEST_EXPONENT), default=order)
            chord = _Chord(order, last, bound, log_sums(last)) if chords_help and last > order else None
            result[position] = search.largest(order, bound.copy(), slack * (1 + np.exp(-search.maxima(bound))))
        else:
            # ln S is convex in the order, and rises by at most the largest log-ratio per unit of the order.
            bound += (order - before) * steepest()
            value = search.divergences(search.best, order)
            attained = (order - 1) * value
            # Shifting rows rounds numbers of at most four times the exponent, in both factors; adding steps rounds numbers of a few times
            # the exponent.
            allowance = 2 * slack * (1 + _finite(attained))
            for block_rows, worth in ((len(table), BATCH), (BLOCK_ROWS, BLOCKS_WORTH)):
                if len(search.candidates(bound, attained - allowance)) > worth * len(table):
                    shifted = _shifted_sums(centred, log_scale, order, block_rows)
                    np.minimum(bound, shifted.bound.ravel()[pairs], out=bound)
                    attained = np.maximum(attained, search.maxima(np.where(shifted.exact.ravel()[pairs], bound, -np.inf)))
                    allowance = 2 * slack * (1 + _finite(attained))
            result[position] = search.largest(order, bound, allowance, attained, value)
        before = order
    return result[where]


@dataclass(frozen=True, eq=False)
class _Chord:
    """Logarithms of the Rényi sums of all pairs of rows at two orders, and their chord.

    The chord is above the logarithms, as they are convex in the order.
    """

    first: float
    last: float
    first_bound: FloatArray
    last_bound: FloatArray

    def at(self, order: float) -> FloatArray:
        share = (order - self.first) / (self.last - self.first)
        return (1 - share) * self.first_bound + share * self.last_bound


def _chord_end(order: float) -> float:
    """Return the end of a chord whose middle is `CHORD_EXCESS` above the curve.

    The estimate is for sums like those of Gaussian noise.
    """
    return order + math.sqrt(4 * CHORD_EXCESS * order * (order - 1))


def _finite(values: FloatArray) -> FloatArray:
    """Return the absolute values of numbers, with 0 for infinite numbers."""
    return np.where(np.isinf(values), 0.0, np.abs(values))


@dataclass(frozen=True, eq=False)
class _ShiftedSums:
    """Logarithms of sums for all pairs, exact values or bounds.

    The rounding errors of the logarithms are not included.
    """

    bound: FloatArray
    exact: NDArray[np.bool_]


def _sums(centred: FloatArray, log_scale: FloatArray, order: float) -> FloatArray:
    """Return sum_j P_j^a Q_j^(1-a) for every pair of rows, for small exponents."""
    return np.asarray((np.exp(order * centred) * np.exp(log_scale)) @ np.exp((1 - order) * centred).T)


def _shifted_sums(centred: FloatArray, log_scale: FloatArray, order: float, block_rows: int) -> _ShiftedSums:
    """Return ln sum_j P_j^a Q_j^(1-a) for every pair of rows; infinite where the sum is.

    The sums are products of matrices whose rows are shifted. Two blocks of rows are centred at their common middle: where neighbouring rows
    are alike, both factors of a pair's sum are then largest at about the same letters, and the sum does not underflow.
    """
    sent = np.isfinite(centred)
    finite = np.where(sent, centred, 0.0)
    own, other = np.where(sent, order * finite + log_scale, -np.inf), np.where(sent, (1 - order) * finite, -np.inf)
    bound, exact = np.empty((len(finite), len(finite))), np.empty((len(finite), len(finite)), dtype=bool)
    blocks = [slice(start, start + block_rows) for start in range(0, len(finite), block_rows)]
    lowest, highest = (np.array([extreme(finite[block], axis=0) for block in blocks]) for extreme in (np.min, np.max))
    for first, above in enumerate(blocks):
        for second, beside in enumerate(blocks):
            middle = (np.minimum(lowest[first], lowest[second]) + np.maximum(highest[first], highest[second])) / 2
            left, right = own[above] - (order - 0.5) * middle, other[beside] + (order - 0.5) * middle
            shift, other_shift = left.max(axis=1, keepdims=True), right.max(axis=1, keepdims=True)
            for factor, largest in ((left, shift), (right, other_shift)):
                factor -= largest
                # The bound keeps products from being denormal, which would take a hundred times as long.
                np.exp(np.maximum(factor, LEAST_EXPONENT, out=factor), out=factor)
            sums = left @ right.T
            bound[above, beside] = np.log(np.maximum(sums, TOO_SMALL)) + (shift + other_shift.T)
            exact[above, beside] = sums > TOO_SMALL
    if not sent.all():
        # A letter that is never sent adds nothing; a letter that only the other row never sends makes the divergence infinite.
        bound[sent.astype(float) @ (~sent).T.astype(float) > 0] = np.inf
    return _ShiftedSums(bound, exact)


def _largest_exponents(centred: FloatArray) -> FloatArray:
    """Return the largest log-ratio of every pair of rows, to a few units in the last place."""
    sent = np.isfinite(centred)
    own, other = (np.where(sent, centred, absent).T.copy() for absent in (-np.inf, 0.0))
    largest = np.full((len(centred), len(centred)), -np.inf)
    ratios = np.empty((BLOCK_ROWS, len(centred)))
    for start in range(0, len(centred), BLOCK_ROWS):
        block = largest[start : start + BLOCK_ROWS]
        part = ratios[: len(block)]
        for letter in range(len(own)):
            np.subtract(own[letter, start : start + BLOCK_ROWS, None], other[letter], out=part)
            np.maximum(block, part, out=block)
    if not sent.all():
        largest[sent.astype(float) @ (~sent).T.astype(float) > 0] = np.inf
    return largest


class PairSearch:
    """Groups of pairs of rows, and a search for each group's largest pair.

    The search takes a bound for every pair.
    """

    def __init__(self, table: Table, pairs: IndexArray, counts: IndexArray) -> None:
        """Divide the pairs, indices into the matrix of all pairs, into consecutive groups."""
        self.table, self.counts = table, counts
        self.rows, self.others = np.divmod(pairs, len(table))
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.group = np.repeat(np.arange(len(counts)), counts)
        self.best = self.starts.copy()

    def _spans(self, groups: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Return the starts and the sizes of some groups."""
        return list(zip(self.starts[groups].tolist(), self.counts[groups].tolist(), strict=True))

    def maxima(self, values: FloatArray) -> FloatArray:
        """Return the largest value of each group."""
        return np.asarray(np.maximum.reduceat(values, self.starts))

    def divergences(self, chosen: IndexArray, order: float) -> FloatArray:
        """Return the divergences of some pairs."""
        return pair_divergences(self.table, self.rows[chosen], self.others[chosen], order)

    def candidates(self, bound: FloatArray, least: FloatArray) -> IndexArray:
        """Return the pairs whose bounds are at least their group's given value."""
        return np.flatnonzero(bound >= np.repeat(least, self.counts))

    def largest(
        self, order: float, bound: FloatArray, allowance: FloatArray, attained: FloatArray | None = None, value: FloatArray | None = None
    ) -> FloatArray:
        """Return the largest divergence of each group, and lower `bound` to computed values.

        Parameters
        ----------
        order : float
            Rényi order above 1; infinity gives the largest log-ratio.
        bound : ndarray of shape (pairs,)
            Logarithm of each pair's sum, or the largest log-ratio, or a bound on it.
        allowance : ndarray of shape (groups,)
            Rounding error of the bounds.
        attained : ndarray of shape (groups,) or None
            Lower bound on the largest value, up to rounding; None if the bounds are exact up to the allowance.
        value : ndarray of shape (groups,) or None
            Divergences of `best`.
        """
        factor = 1.0 if math.isinf(order) else order - 1
        top = self.maxima(bound)
        least = top if attained is None else attained
        near = bound >= np.repeat(least - allowance, self.counts)
        sizes = np.add.reduceat(near, self.starts, dtype=np.intp)
        effort = int(sizes.sum()) * self.table.shape[1]
        # A single pair stands for many that hardly differ, and the result adds their possible difference: tables of randomised response
        # have only such pairs.
        spread = allowance + np.subtract(top, least, out=np.zeros(len(top)), where=np.isfinite(least))
        stands_for_all = (sizes > 1) & (spread <= NEGLIGIBLE * max(1.0, effort / MANY) * np.abs(least)) & (effort > FEW)
        first = [start + int(near[start : start + count].argmax()) for start, count in self._spans(stands_for_all)]
        near &= np.repeat(~stands_for_all, self.counts)
        near[first] = True
        candidates = np.flatnonzero(near)
        value = np.full(len(self.counts), -np.inf) if value is None else value.copy()
        stand_in = value if attained is None else attained / factor
        least = least.copy()
        while len(candidates):
            most = BATCH * len(self.table)
            if len(candidates) > most:
                excess = bound[candidates] - np.where(np.isinf(least), 0.0, least)[self.group[candidates]]
                chosen = np.sort(candidates[np.argpartition(excess, -most)[-most:]])
            else:
                chosen = candidates
            exact = self.divergences(chosen, order)
            bound[chosen] = factor * exact
            rising = np.argsort(exact, kind="stable")
            # The last pair written is the largest of its group.
            largest = np.full(len(self.counts), -1)
            largest[self.group[chosen[rising]]] = rising
            groups = np.flatnonzero(largest >= 0)
            groups = groups[exact[largest[groups]] > value[groups]]
            value[groups], self.best[groups] = exact[largest[groups]], chosen[largest[groups]]
            if len(chosen) == len(candidates):
                break
            least = np.maximum(least, factor * value)
            rest = np.setdiff1d(candidates, chosen, assume_unique=True)
            candidates = rest[bound[rest] >= (least - allowance)[self.group[rest]]]
        return np.where(stands_for_all, np.maximum(value, stand_in) + spread / factor, value)


def pair_divergences(table: Table, rows: IndexArray, others: IndexArray, order: float) -> FloatArray:
    """Return the divergence of `rows` from `others`, indices into a table, in nats.

    The divergence is infinite if a row sends a letter that the other never sends. Divergences have about twelve digits, for similar and
    different rows. At order 1 it is the Kullback-Leibler divergence.
    """
    total = float(table[0].sum())
    result = np.empty(len(rows))
    pairs = max(1, CHUNK // table.shape[1])
    for start in range(0, len(rows), pairs):
        own, other = table[rows[start : start + pairs]], table[others[start : start + pairs]]
        # The difference of integers is exact, so that log1p keeps all digits of the ratio of two nearly equal weights.
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio = np.log1p((own - other) / other)
        log_ratio[(own == 0) & (other == 0)] = 0.0
        result[start : start + pairs] = _divergence(own / total, other / total, log_ratio, order)
    return result


def _divergence(own: FloatArray, other: FloatArray, log_ratio: FloatArray, order: float) -> FloatArray:
    """Return one divergence per row of probabilities."""
    if math.isinf(order):
        return np.asarray(log_ratio.max(axis=1))
    impossible = np.isinf(log_ratio) & (log_ratio > 0)
    ratio = np.where(impossible, 0.0, log_ratio)
    # Large exponents alone overflow, and their sum is large: logarithms would cost a sum near 1 its digits.
    steep = order * ratio.max(axis=1) > LARGEST_EXPONENT
    mild = np.where(steep[:, None], 0.0, ratio)
    if order == 1.0:
        divergence = (other * _excess(ratio, order)).sum(axis=1)
    else:
        divergence = np.log1p((order - 1) * (other * _excess(mild, order)).sum(axis=1)) / (order - 1)
        with np.errstate(divide="ignore"):
            logarithms = np.log(own[steep]) + (order - 1) * ratio[steep]
        largest = logarithms.max(axis=1, keepdims=True)
        divergence[steep] = (largest[:, 0] + np.log(np.exp(logarithms - largest).sum(axis=1))) / (order - 1)
    divergence[impossible.any(axis=1)] = np.inf
    return np.asarray(divergence)


def _excess(log_ratio: FloatArray, order: float) -> FloatArray:
    """Return psi(l) = e^l (e^((a-1) l) - 1)/(a-1) - (e^l - 1) with full relative precision.

    At a = 1 it is l e^l - (e^l - 1).
    """
    finite = np.where(np.isinf(log_ratio), 0.0, log_ratio)
    power = finite if order == 1.0 else np.expm1((order - 1) * finite) / (order - 1)
    direct = np.exp(finite) * power - np.expm1(finite)
    near = order * np.abs(finite) < 1
    # psi(l) = sum over k >= 2 of (1 + a + ... + a^(k-2)) a l^k / k!.
    small = finite[near]
    term, geometric, series = small.copy(), 0.0, np.zeros_like(small)
    for k in range(2, SERIES_TERMS + 2):
        term = term * small / k
        geometric = 1 + order * geometric
        series += order * geometric * term
    direct[near] = series
    # A letter that only the other row sends has e^l = 0.
    direct[np.isinf(log_ratio)] = 1.0
    return direct
