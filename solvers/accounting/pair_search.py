"""Pairs of a table's rows: their Rényi divergences, and the largest of many where a bound on each is known."""

import math

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IndexArray

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
