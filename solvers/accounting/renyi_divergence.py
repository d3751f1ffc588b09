"""Rényi divergences between the rows of a table, exact to about twelve digits however alike or unlike the rows are."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IndexArray
from ..numerics.rounding import SLACK, UNIT
from .pure_privacy import check_orders

# Terms of the power series that is used where order times log-ratio is below one: the last is below 1e-18 of the first.
SERIES_TERMS = 20
# Exponents up to here are summed directly, larger ones in log space.
LARGEST_EXPONENT = 300.0
# Rows of a block, in which products of shifted rows are made; smaller exponents count as this one, and smaller sums are made anew.
BLOCK_ROWS, LEAST_EXPONENT, TOO_SMALL = 32, -300.0, 1e-100
# Log-ratios that are held in memory at a time.
CHUNK = 2**19
# This many probabilities of candidates are computed exactly whatever they are worth. Of more, one candidate is enough where the rounding of
# the product cannot move a divergence by more than this, relative to itself and for each MANY of them.
FEW, MANY = 2**16, 2**20
NEGLIGIBLE = 1e-9


def check_weights(weights: ArrayLike) -> NDArray[np.float64] | NDArray[np.int64]:
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
    return array[:, array.any(axis=0)]


def largest_step(inputs: int, distance: float) -> int:
    """Return how many rows two inputs can be apart that are so far apart on the unit scale; a rounded product counts as a whole number."""
    return min(inputs - 1, int((inputs - 1) * distance * (1 + SLACK)))


def renyi_matrix(weights: ArrayLike, order: float) -> FloatArray:
    """Return the Rényi divergence of every row from every other one.

    D_a(P || Q) = 1/(a-1) ln sum_j P_j^a Q_j^(1-a). With l_j = ln(P_j / Q_j) the sum is 1 + (a-1) sum_j Q_j psi(l_j), where
    psi(l) = e^l (e^((a-1) l) - 1)/(a-1) - (e^l - 1) is nowhere negative: nothing cancels, so that rows that differ by a millionth have
    as exact a divergence as others. (Two of the papers print the factor 1/a, which is wrong.)

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    order : float
        Above 1; infinity gives the largest log-ratio.

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
    (order,) = check_orders(order).tolist()
    return _all_pairs(table, order)


def kullback_leibler_matrix(weights: ArrayLike) -> FloatArray:
    """Return the Kullback-Leibler divergence of every row from every other one, in nats: the limit of `renyi_matrix` at order 1.

    Examples
    --------
    >>> kullback_leibler_matrix([[3, 1], [1, 3]]).round(6).tolist()
    [[0.0, 0.549306], [0.549306, 0.0]]
    """
    return _all_pairs(check_weights(weights), 1.0)


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
    array = check_orders(orders)
    inputs = len(table)
    rows, others = (index.ravel() for index in np.indices((inputs, inputs)))
    by_distance = np.argsort(np.abs(rows - others), kind="stable")
    rows, others = rows[by_distance], others[by_distance]
    # Distance 0 has one pair for each input, distance k > 0 has two for each of inputs - k.
    counts = np.concatenate([[inputs], 2 * np.arange(inputs - 1, 0, -1)])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    # A factor for each letter cancels from the ratios; one between its extremes keeps the exponents small, and their errors too.
    lowest = np.where(table > 0, table, np.inf).min(axis=0)
    middle = np.sqrt(lowest) * np.sqrt(table.max(axis=0))
    with np.errstate(divide="ignore"):
        centred = np.log(table / middle)
    log_scale = np.log(middle / float(table[0].sum()))
    result = np.empty((len(array), inputs))
    for position, order in enumerate(array.tolist()):
        coarse, slack, in_logs = _coarse(centred, log_scale, order)
        sorted_coarse = coarse.ravel()[by_distance]
        largest = np.maximum.reduceat(sorted_coarse, starts)
        allowance = slack * (1 + np.abs(np.where(np.isinf(largest), 0.0, largest)))
        candidates = np.flatnonzero(sorted_coarse >= np.repeat(largest - allowance, counts))
        # Of the rows that are compared with themselves one is enough.
        candidates = candidates[(candidates == 0) | (candidates >= inputs)]
        # Of many that hardly differ one stands for all, and what they can differ by is added: tables of randomised response
        # have only such.
        size = np.abs(largest) if in_logs else largest * np.log(np.maximum(largest, 1.0))
        group = np.searchsorted(starts, candidates, side="right") - 1
        alone = np.bincount(group, minlength=inputs) == 1
        effort = len(candidates) * table.shape[1]
        stands_for_all = ~alone & (allowance <= NEGLIGIBLE * max(1.0, effort / MANY) * size) & (effort > FEW)
        candidates = candidates[(np.diff(group, prepend=-1) > 0) | ~stands_for_all[group]]
        exact = _pairs(table, rows[candidates], others[candidates], order)
        uncertainty = allowance / (1.0 if in_logs else largest) / (1.0 if math.isinf(order) else order - 1)
        result[position] = np.maximum.reduceat(exact, np.searchsorted(candidates, starts)) + np.where(stands_for_all, uncertainty, 0.0)
    return result


def _coarse(centred: FloatArray, log_scale: FloatArray, order: float) -> tuple[FloatArray, float, bool]:
    """Return a number for each pair of rows that rises with their divergence, how far off it is relative to one plus itself, and its kind.

    It is sum_j P_j^a Q_j^(1-a), or the logarithm of that where the sum would overflow, or the largest log-ratio.
    """
    if math.isinf(order):
        return _largest_exponents(centred), 8 * UNIT, True
    exponent = order * np.abs(centred[np.isfinite(centred)]).max(initial=0.0)
    # Each centred logarithm is off by about the machine epsilon, and is then multiplied by the order.
    slack = 16 * UNIT * (centred.shape[1] + order + exponent)
    if exponent <= LARGEST_EXPONENT and np.isfinite(centred).all():
        return (np.exp(order * centred) * np.exp(log_scale)) @ np.exp((1 - order) * centred).T, slack, False
    # Centring again and shifting rows round numbers of at most four times the exponent, in both factors.
    return _log_sums(centred, log_scale, order), 2 * slack, True


def _log_sums(centred: FloatArray, log_scale: FloatArray, order: float) -> FloatArray:
    """Return ln sum_j P_j^a Q_j^(1-a) for every pair of rows, by products of matrices whose rows are shifted.

    A block of rows and another one are centred between the two: where neighbouring rows are alike, both factors of a pair's sum are then
    largest at about the same letters, and the sum does not underflow. Sums that do are computed one by one.
    """
    sent = np.isfinite(centred)
    own, other = order * np.where(sent, centred, -np.inf) + log_scale, np.where(sent, (1 - order) * centred, -np.inf)
    result = np.empty((len(centred), len(centred)))
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, len(centred), BLOCK_ROWS)]
    known = np.where(sent, centred, 0.0)
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
            result[above, beside] = np.where(sums < TOO_SMALL, np.nan, np.log(sums) + shift + other_shift.T)
    np.fill_diagonal(result, 0.0)
    rows, columns = np.nonzero(np.isnan(result))
    pairs = max(1, CHUNK // centred.shape[1])
    for start in range(0, len(rows), pairs):
        part = slice(start, start + pairs)
        exponents = own[rows[part]] + other[columns[part]]
        largest = exponents.max(axis=1, keepdims=True)
        largest[np.isinf(largest)] = 0.0
        exponents -= largest
        np.exp(np.maximum(exponents, -LARGEST_EXPONENT, out=exponents), out=exponents)
        result[rows[part], columns[part]] = largest[:, 0] + np.log(exponents.sum(axis=1))
    if not sent.all():
        # A letter that is never sent adds nothing; one that only the other row never sends makes the divergence infinite.
        result[sent.astype(float) @ (~sent).T.astype(float) > 0] = np.inf
    return result


def _largest_exponents(centred: FloatArray) -> FloatArray:
    """Return the largest log-ratio of every pair of rows."""
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


def _all_pairs(table: NDArray[np.float64] | NDArray[np.int64], order: float) -> FloatArray:
    rows, others = (index.ravel() for index in np.indices((len(table), len(table))))
    return _pairs(table, rows, others, order).reshape(len(table), len(table))


def _pairs(table: NDArray[np.float64] | NDArray[np.int64], rows: IndexArray, others: IndexArray, order: float) -> FloatArray:
    """Return the divergences of given pairs of rows."""
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
