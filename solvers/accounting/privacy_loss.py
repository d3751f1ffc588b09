"""Privacy losses of a table: a distribution that dominates every pair of its inputs.

dp-accounting composes the distribution, whose losses are rounded upward.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray, IndexArray
from ..numerics.rounding import UNIT
from .renyi_divergence import check_weights, largest_divergences, largest_step

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Largest and least number of a table's privacy losses on either side of zero, and the number of multiplications that limits it.
MOST_LOSSES, LEAST_LOSSES = 500, 40
MULTIPLICATIONS = 4e8
# Number of values computed at a time, which stay in the cache, and number of pairs of rows compared before the bounds are checked again.
CHUNK, BATCH = 2**15, 64
# Largest number of letters of all pairs at which computing everything is faster than searching.
FEW = 2**13
# Share of all pairs above which it is faster to bound all pairs together, in a third of the time per pair; and share above which it is
# faster to compute all pairs together.
MANY, MOST = 0.1, 0.5
# Relative and absolute excess over the largest computed value. Pairs with bounds below that sum are not compared, and the result includes
# the excess.
NEGLIGIBLE, LEAST = 1e-12, 1e-15


@dataclass(frozen=True, eq=False)
class DominatingLoss:
    """A privacy loss distribution, given by its hockey-stick divergences.

    The divergences are linear in e^epsilon between grid points. This class accounts for a single use without dp-accounting, which takes a
    second to load; its methods have the names of that package's.

    Attributes
    ----------
    interval : float
        Distance of grid points.
    deltas : ndarray of shape (2 steps + 1,)
        Divergences at epsilon from ``-steps * interval`` to ``steps * interval``, falling; the last is 0.
    """

    interval: float
    deltas: FloatArray

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        """Return the divergence at an epsilon of at least 0."""
        return float(np.interp(math.exp(epsilon), self._factors, self._not_negative, right=0.0))

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the least epsilon of at least 0 with at most this divergence."""
        factors, deltas = self._factors, self._not_negative
        if deltas[0] <= delta:
            return 0.0
        after = int(np.argmax(deltas <= delta))
        share = float((deltas[after - 1] - delta) / (deltas[after - 1] - deltas[after]))
        return math.log(factors[after - 1] + share * (factors[after] - factors[after - 1]))

    def self_compose(self, times: int) -> "PrivacyLossDistribution":
        """Return the distribution of the sum of independent losses."""
        from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        steps = len(self.deltas) // 2
        single_use = PrivacyLossDistribution(create_pmf_pessimistic_connect_dots_fixed_gap(self.interval, -steps, steps, self.deltas))
        return single_use.self_compose(times)

    @property
    def _factors(self) -> FloatArray:
        return np.asarray(np.exp(self.interval * np.arange(len(self.deltas) // 2 + 1)))

    @property
    def _not_negative(self) -> FloatArray:
        return self.deltas[len(self.deltas) // 2 :]


def dominating_privacy_loss(weights: ArrayLike, distance: float = 1.0) -> DominatingLoss:
    """Return a privacy loss distribution that dominates every two close rows of a table.

    Rows are close if their inputs are at most `distance` apart. The largest hockey-stick divergence of any pair, as a function of epsilon,
    belongs to some pair of distributions, which dominates them all (Zhu, Dong, Wang 2022, *Optimal accounting of differential privacy via
    characteristic function*, proposition 10), also under composition. If a pair of rows is the worst at every epsilon, it is this pair.
    Between the losses at which it is computed, the divergence is taken to be linear in e^epsilon, which is an upper bound (Doroshenko et
    al. 2022, *Connect the dots*).

    The grid of losses belongs to the distribution, and is not dp-accounting's usual grid.

    Parameters
    ----------
    weights : array_like of shape (inputs, letters)
        The table; rows have the same sum.
    distance : float
        Largest distance of two inputs, on the table's unit scale; above 0.

    Raises
    ------
    ValueError
        If the weights are no table, or two of its rows can be distinguished with certainty.

    Examples
    --------
    >>> loss = dominating_privacy_loss([[3, 1], [1, 3]])
    >>> round(loss.get_delta_for_epsilon(0.0), 6), round(loss.get_epsilon_for_delta(0.0), 6)
    (0.5, 1.098612)
    """
    table = check_weights(weights)
    inputs, letters = table.shape
    distance = check_real("distance", distance, low=1e-9, high=1e6)
    reach = largest_step(inputs, distance)
    epsilon = float(largest_divergences(table, math.inf, reach)[0])
    if math.isinf(epsilon):
        raise ValueError("weights must give no letter that one input sends and another one never does, within the distance")
    if epsilon == 0:
        return DominatingLoss(1.0, np.array([-math.expm1(-1.0), 0.0, 0.0]))
    rows, others = (index.ravel() for index in np.indices((inputs, inputs)))
    near = np.abs(rows - others) <= reach
    rows, others = rows[near], others[near]
    losses = int(np.clip(MULTIPLICATIONS / (2 * len(rows) * letters), LEAST_LOSSES, MOST_LOSSES))
    interval = epsilon / losses * (1 + 1e-9)
    factors = np.exp(interval * np.arange(losses + 1))
    above = largest_hockey_sticks(table / float(table[0].sum()), rows, others, factors)
    # Swapping the rows gives sum max(P - Q / f, 0) = 1 - 1 / f + sum max(Q - f P, 0) / f; pairs come in both orders.
    below = -np.expm1(-interval * np.arange(losses, 0, -1)) + above[:0:-1] / factors[:0:-1]
    deltas = np.concatenate([below, above])
    # No losses lie beyond the largest log-ratio; rounding errors there would count as certain failure.
    deltas[-1] = 0.0
    return DominatingLoss(interval, np.minimum(np.minimum.accumulate(deltas), 1.0))


def largest_hockey_sticks(probabilities: FloatArray, rows: IndexArray, others: IndexArray, factors: FloatArray) -> FloatArray:
    """Return the largest hockey-stick divergence of any pair of rows, for every factor.

    For a factor f the divergence is sum_j max(P_j - f Q_j, 0) of rows P and Q; results are rounded up. The divergence is convex in f and
    zero from the largest ratio R on: the total variation at f = 1 and R bound it between the two, and values at other factors bound it
    better. At each factor the function computes pairs with the largest bounds until no other pair can be larger; it computes all pairs if
    there are few.

    Parameters
    ----------
    probabilities : ndarray of shape (inputs, letters)
        Positive probabilities wherever another row of a pair has them.
    rows, others : ndarray of shape (pairs,)
        Indices of P and Q.
    factors : ndarray of shape (factors,)
        Rising factors from 1; the last is above all ratios.
    """
    if len(rows) * probabilities.shape[1] <= FEW:
        return _of_few(probabilities[rows], probabilities[others], factors)
    bounds = np.zeros((len(factors), len(rows)))
    bounds[0] = _all_hockey_sticks(probabilities, 1.0)[rows, others]
    ratios = _largest_ratios(probabilities)[rows, others]
    different = ratios > 1
    share = np.where(different, bounds[0], 0.0) / np.where(different, ratios - 1, 1.0)
    for bound, factor in zip(bounds[1:-1], factors[1:-1], strict=True):
        np.multiply(share, np.maximum(ratios - factor, 0.0), out=bound)
    result = np.zeros(len(factors))
    result[0] = bounds[0].max()
    brackets = [(0, len(factors) - 1)]
    while brackets:
        low, high = brackets.pop()
        middle = (low + high) // 2
        if middle == low:
            continue
        brackets += [(low, middle), (middle, high)]
        before = bounds[middle].copy()
        result[middle] = _largest_hockey_stick(bounds[middle], probabilities, rows, others, float(factors[middle]))
        compared = np.flatnonzero(bounds[middle] < before)
        _interpolate(bounds, factors, compared, low, middle)
        _interpolate(bounds, factors, compared, middle, high)
    return result


def _of_few(own: FloatArray, other: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the largest sum of any pair at every factor, from the rows of each pair."""
    size = max(1, CHUNK // own.size)
    largest = []
    for start in range(0, len(factors), size):
        differences = own - factors[start : start + size, None, None] * other
        largest.append(np.maximum(differences, 0.0, out=differences).sum(axis=2).max(axis=1))
    return np.concatenate(largest)


def _largest_hockey_stick(bound: FloatArray, probabilities: FloatArray, rows: IndexArray, others: IndexArray, factor: float) -> float:
    """Return the largest sum of any pair at a factor, and lower the bounds on the way."""

    def compare(pairs: IndexArray) -> float:
        bound[pairs] = _hockey_sticks(probabilities, rows[pairs], others[pairs], factor)
        return float(bound[pairs].max())

    batch = min(BATCH, len(bound))
    largest = compare(np.argpartition(bound, -batch)[-batch:])
    left = np.flatnonzero(bound > largest * (1 + NEGLIGIBLE) + LEAST)
    if len(left) > MANY * len(bound):
        np.minimum(bound, _bounded_hockey_sticks(probabilities, rows, others, factor), out=bound)
        left = np.flatnonzero(bound > largest * (1 + NEGLIGIBLE) + LEAST)
        if len(left) > MOST * len(bound):
            bound[:] = _all_hockey_sticks(probabilities, factor)[rows, others]
            return float(bound.max())
    while len(left):
        batch = min(2 * batch, len(left))
        part = np.argpartition(bound[left], -batch)[-batch:]
        largest = max(largest, compare(left[part]))
        left = np.delete(left, part)
        left = left[bound[left] > largest * (1 + NEGLIGIBLE) + LEAST]
    return max(largest, float(bound.max()))


def _bounded_hockey_sticks(probabilities: FloatArray, rows: IndexArray, others: IndexArray, factor: float) -> FloatArray:
    """Return upper bounds on the sums, exact up to rounding.

    The bounds use sum max(d, 0) = (sum |d| + sum d) / 2.
    """
    from scipy.spatial.distance import cdist

    letters = probabilities.shape[1]
    sums = probabilities.sum(axis=1)
    doubled = sums[:, None] - factor * sums
    size = math.isqrt(letters) + 1
    for start in range(0, letters, size):
        own = probabilities[:, start : start + size]
        doubled += cdist(own, factor * own, "cityblock")
    # A sum of n terms in a row is off by at most n units of the terms' total, which is 1 + factor; blocks keep n small.
    rounding = 2 * UNIT * (size + letters // size + 8) * (1 + factor)
    return np.asarray(np.maximum(doubled[rows, others], 0.0) / 2 + rounding)


def _all_hockey_sticks(probabilities: FloatArray, factor: float) -> FloatArray:
    """Return the sums of all pairs as a matrix.

    At factor 1 the matrix is symmetric, as the rows have the same sum.
    """
    sums = np.empty((len(probabilities), len(probabilities)))
    negative = -factor * probabilities
    size = max(1, CHUNK // probabilities.shape[1])
    room = np.empty((size, probabilities.shape[1]))
    for start in range(0, len(probabilities), size):
        block = negative[start : start + size]
        for row, own in enumerate(probabilities[: start + size] if factor == 1 else probabilities):
            np.add(block, own, out=room[: len(block)])
            np.maximum(room[: len(block)], 0.0, out=room[: len(block)]).sum(axis=1, out=sums[row, start : start + size])
    if factor == 1:
        below = np.tril_indices(len(sums), -1)
        sums[below] = sums.T[below]
    return sums


def _hockey_sticks(probabilities: FloatArray, rows: IndexArray, others: IndexArray, factor: float) -> FloatArray:
    sums = np.empty(len(rows))
    negative = -factor * probabilities
    pairs = max(1, CHUNK // probabilities.shape[1])
    for start in range(0, len(rows), pairs):
        part = slice(start, start + pairs)
        differences = negative[others[part]]
        differences += probabilities[rows[part]]
        sums[part] = np.maximum(differences, 0.0, out=differences).sum(axis=1)
    return sums


def _interpolate(bounds: FloatArray, factors: FloatArray, pairs: IndexArray, low: int, high: int) -> None:
    """Lower the bounds of pairs between two factors to the line through both.

    A convex function lies on or below that line.
    """
    at_low, at_high = bounds[low, pairs], bounds[high, pairs]
    for between in range(low + 1, high):
        share = (factors[between] - factors[low]) / (factors[high] - factors[low])
        bounds[between, pairs] = np.minimum(bounds[between, pairs], at_low + share * (at_high - at_low))


def _largest_ratios(probabilities: FloatArray) -> FloatArray:
    """Return the largest P_j / Q_j of every pair of rows, over letters that Q sends."""
    largest = np.zeros((len(probabilities), len(probabilities)))
    for probability in probabilities.T:
        divisor = np.where(probability > 0, probability, np.inf)
        np.maximum(largest, probability[:, None] / divisor, out=largest)
    return largest
