"""Rényi divergences between the rows of a table, exact to about twelve digits however alike or unlike the rows are.

`PairSearch` finds the largest divergence of many pairs of rows, given a bound on each.
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

# Terms of the power series that is used where order times log-ratio is below one: the last is below 1e-18 of the first.
SERIES_TERMS = 20
# Exponents up to here are summed directly, larger ones in log space.
LARGEST_EXPONENT = 300.0
# Log-ratios that are computed at a time: their arrays stay in the cache.
CHUNK = 2**15
# Pairs that are computed at a time, for each row, before the others are compared with what was found.
BATCH = 4
# This many probabilities of candidates are computed exactly whatever they are worth. Of more, one candidate is enough where the rounding of
# the product cannot move a divergence by more than this, relative to itself and for each MANY of them.
FEW, MANY = 2**16, 2**20
NEGLIGIBLE = 1e-9

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


def _all_pairs(table: Table, order: float) -> FloatArray:
    rows, others = (index.ravel() for index in np.indices((len(table), len(table))))
    return pair_divergences(table, rows, others, order).reshape(len(table), len(table))


class PairSearch:
    """Groups of pairs of rows: which pair of each is the largest, where a bound is known for every pair."""

    def __init__(self, table: Table, pairs: IndexArray, counts: IndexArray) -> None:
        """Divide the pairs, indices into the matrix of all, into consecutive groups."""
        self.table, self.counts = table, counts
        self.rows, self.others = np.divmod(pairs, len(table))
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.group = np.repeat(np.arange(len(counts)), counts)
        self.best = self.starts.copy()

    def _spans(self, groups: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Return where some groups begin and how many pairs they have."""
        return list(zip(self.starts[groups].tolist(), self.counts[groups].tolist(), strict=True))

    def maxima(self, values: FloatArray) -> FloatArray:
        """Return the largest value of each group."""
        return np.asarray(np.maximum.reduceat(values, self.starts))

    def divergences(self, chosen: IndexArray, order: float) -> FloatArray:
        """Return the divergences of some pairs."""
        return pair_divergences(self.table, self.rows[chosen], self.others[chosen], order)

    def candidates(self, bound: FloatArray, least: FloatArray) -> IndexArray:
        """Return which pairs have bounds of at least what is given for their group."""
        return np.flatnonzero(bound >= np.repeat(least, self.counts))

    def largest(
        self, order: float, bound: FloatArray, allowance: FloatArray, found: FloatArray | None = None, value: FloatArray | None = None
    ) -> FloatArray:
        """Return the largest divergence of each group; `bound` is lowered to those that are computed.

        Parameters
        ----------
        order : float
            Above 1; infinity gives the largest log-ratio.
        bound : ndarray of shape (pairs,)
            The logarithm of each pair's sum, or the largest log-ratio, or a bound on it.
        allowance : ndarray of shape (groups,)
            How far off the bounds are by rounding.
        found : ndarray of shape (groups,) or None
            What the largest is known to be at least, up to rounding; by default the bounds are no bounds but good to the allowance.
        value : ndarray of shape (groups,) or None
            The divergences of `best`.
        """
        factor = 1.0 if math.isinf(order) else order - 1
        top = self.maxima(bound)
        least = top if found is None else found
        near = bound >= np.repeat(least - allowance, self.counts)
        sizes = np.add.reduceat(near, self.starts, dtype=np.intp)
        effort = int(sizes.sum()) * self.table.shape[1]
        # Of many that hardly differ one stands for all, and what they can differ by is added: tables of randomised response
        # have only such.
        spread = allowance + np.subtract(top, least, out=np.zeros(len(top)), where=np.isfinite(least))
        stands_for_all = (sizes > 1) & (spread <= NEGLIGIBLE * max(1.0, effort / MANY) * np.abs(least)) & (effort > FEW)
        first = [start + int(near[start : start + count].argmax()) for start, count in self._spans(stands_for_all)]
        near &= np.repeat(~stands_for_all, self.counts)
        near[first] = True
        candidates = np.flatnonzero(near)
        value = np.full(len(self.counts), -np.inf) if value is None else value.copy()
        stand_in = value if found is None else found / factor
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
            # The last one written is the largest of its group.
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
    """Return the divergence of `rows` from `others`, indices into a table, in nats; infinite where a row sends what the other never does.

    They have about twelve digits however alike or unlike two rows are. At order 1 it is the Kullback-Leibler divergence.
    """
    total = float(table[0].sum())
    result = np.empty(len(rows))
    pairs = max(1, CHUNK // table.shape[1])
    for start in range(0, len(rows), pairs):
        own, other = table[rows[start : start + pairs]], table[others[start : start + pairs]]
        # The difference of integers is exact, so that log1p keeps all digits of the ratio of two weights that are nearly the same.
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
    # Only large exponents would overflow, and their sum is large: of logarithms, a sum near 1 would lose its digits.
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
    """Return psi(l) = e^l (e^((a-1) l) - 1)/(a-1) - (e^l - 1), which is l e^l - (e^l - 1) at a = 1, with full relative precision."""
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
    # A letter that only the other row sends: e^l = 0.
    direct[np.isinf(log_ratio)] = 1.0
    return direct
