"""Privacy of shuffled letters of a table, or of their histogram, by the privacy blanket.

Let w_y be the least probability of letter y over all rows, and g the sum of these. Each of the n - 1 other clients can be thought of as
drawing from the blanket w / g with probability g, and otherwise from the rest of its own row. Assume that an observer knows the clients
that did not use the blanket, and their letters. The observer also sees a histogram of the letters of the remaining clients and of the
hidden client, whose row is a or b. Compare with the law of n letters, each of which is y with probability w_y, and missing with probability
1 - g. Relative to this law the histogram has the density 1/n sum_i a(Y_i) / w(Y_i), so that the hockey-stick divergence is

    D = E[max(0, 1/n sum_i T_i)],    T_i = (a(y) - e^epsilon b(y)) / w_y with probability w_y, and 0 with probability 1 - g

(Balle, Bell, Gascón, Nissim 2019, *The privacy blanket of the shuffle model*, lemma 5.3), for any inputs of the other clients. No other
decomposition of rows proves more (Su, Cheng, Wang 2025, *Decomposition-based optimal bounds for privacy amplification via shuffling*).

`positive_part_bound` is an upper bound, close to the expected positive part of such a sum of independent, identical variables with few
values. Every value is split between its two neighbours on a lattice so that its mean stays, which raises the expectation of every
convex function; the law of the sum is tilted towards zero, so that a tail is computed with full relative precision, and computed by a
fast Fourier transform. The bound includes rounding errors and the mass beyond the lattice. `positive_part_estimate` approximates the same
expectation without a transform, by a normal law of the tilted sum (the saddlepoint); searches start from it, and no guarantee rests on it.

`clones_epsilon` is the published closed form of privacy amplification by shuffling, which uses only the local epsilon of a mechanism.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ..accounting.renyi_curve import MOST_ROUNDS, check_delta
from ..accounting.renyi_divergence import check_weights
from ..numerics.rounding import UNIT
from ..numerics.safe_root import falling_root

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

LARGEST_EPSILON = 100.0

# Least and largest number of points of the lattice. With fewer points than the accuracy needs, the bound is looser.
FEWEST_POINTS, MOST_POINTS = 2**10, 2**22
# Reach of the lattice, in standard deviations of the tilted sum and in lengths on which the tilt falls by a factor of e.
DEVIATIONS, DECAYS = 11.0, 42.0
# FFT_UNITS bounds the relative error of a fast Fourier transform in the L2 norm, for each doubling of its length. Higham 2002, *Accuracy
# and stability of numerical algorithms*, theorem 24.2, has 7 units where roots of unity are good to a unit.
FFT_UNITS = 16
# Exponent of negligible powers. The program omits powers of a transform below exp(-90), and counts their norm as an error.
NEGLIGIBLE = 90.0
# Largest number of steps of Newton's method, or bisection, and the relative size of the last step.
MOST_NEWTON_STEPS, LAST_STEP = 60, 1e-12
# Largest exponent; larger exponents are cut off if they can only be too large to matter.
LARGEST_EXPONENT = 700.0

MOST_CLIENTS = 10**12
# MOST_ENTRIES limits pairs of rows times letters; CHUNK limits the numbers held in memory at a time.
MOST_ENTRIES, CHUNK = 2**21, 2**20
# Number of points for a standard deviation of T, and largest number of points, of the lattice for the worst of all pairs.
STEPS_PER_DEVIATION, MOST_STEPS = 32, 2**13
# Relative margins by which the bound exceeds the divergence: for epsilon, and for the many divergences of a loss distribution.
ACCURACY, LOSS_ACCURACY = 1e-2, 5e-2
# At the returned epsilon, the divergence is within a relative CLOSENESS of delta, or epsilon within JUMP of a jump. SMALLEST_DELTA stands
# for a divergence of zero.
CLOSENESS, JUMP, SMALLEST_DELTA = 1e-6, 1e-8, 1e-320
# Relative accuracy to which the estimated epsilon is solved for, and first relative step from it to the other side of the root.
ESTIMATED, FIRST_STEP, LONGER = 1e-3, 4e-3, 4.0
# Number of losses of a distribution on either side of zero; losses beyond them may have a share NEGLECTED of delta.
LOSSES, NEGLECTED = 80, 1e-3
LARGEST_LOG_RATIO = 100.0


@dataclass(frozen=True, eq=False)
class ShuffledLetters:
    """Letters of n clients in unknown order, without senders; replace-one adjacency.

    Attributes
    ----------
    weights : array_like of shape (rows, letters)
        Probabilities of a client's letters, for every input, up to a common factor; the numbers are non-negative, and all rows have the
        same sum. Inputs between rows, whose letters are drawn from a mixture of rows, are covered: hockey-stick divergences are convex.
    clients : int
        Number n of clients, including the hidden client; the other clients draw by the table, for any inputs. From 1 to 10**12.

    Raises
    ------
    ValueError
        If the weights are no table, or a letter of one row is impossible for another.
    InfeasibleError
        If the table has too many rows and letters for all pairs of rows to be compared.

    Examples
    --------
    >>> letters = ShuffledLetters([[3, 1], [1, 3]], clients=1000)
    >>> round(letters.epsilon(1e-6), 3), round(letters.pure_epsilon, 3)
    (0.168, 1.099)
    """

    weights: NDArray[np.float64] | NDArray[np.int64]
    clients: int

    def __init__(self, weights: ArrayLike, clients: int) -> None:
        """Check the table and the number of clients."""
        table = np.unique(_without_copies(check_weights(weights)), axis=0)
        object.__setattr__(self, "weights", table)
        object.__setattr__(self, "clients", check_integer("clients", clients, low=1, high=MOST_CLIENTS))
        if not (table.min() > 0 and self.pure_epsilon <= LARGEST_LOG_RATIO):
            raise ValueError(
                f"weights must be at most e^{LARGEST_LOG_RATIO:g} apart in each column, got entries from {table.min()} to {table.max()}"
            )
        if len(table) ** 2 * table.shape[1] > MOST_ENTRIES:
            raise InfeasibleError(
                f"weights must have at most {MOST_ENTRIES} letters of pairs of rows, got {len(table)} different rows of {table.shape[1]}"
            )

    @cached_property
    def pure_epsilon(self) -> float:
        """Largest log-ratio of a column, rounded upward.

        A shuffled letter reveals no more than the letter itself.
        """
        ratio = float((self.weights.max(axis=0) / self.weights.min(axis=0)).max())
        return 0.0 if ratio == 1 else math.log(ratio) + 8 * UNIT * (1 + math.log(ratio))

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on the largest hockey-stick divergence of two rows.

        The bound usually exceeds the divergence by at most 1 %.
        """
        return self._delta(check_real("epsilon", epsilon, low=0.0, high=LARGEST_LOG_RATIO), ACCURACY)

    def epsilon(self, delta: float) -> float:
        """Return an upper bound, at most `pure_epsilon`, on the smallest epsilon for this delta."""
        delta = check_delta(delta)
        if self.pure_epsilon == 0:
            return 0.0

        @cache
        def excess(epsilon: float) -> float:
            return depth(delta) - depth(self._delta(epsilon, ACCURACY))

        # The root lies near the estimate: each further step from it is four times as long, until the root is bracketed.
        low = high = self.estimated_epsilon(delta)
        step = max(FIRST_STEP * high, JUMP * self.pure_epsilon)
        while high < self.pure_epsilon and excess(high) > 0:
            low, high, step = high, min(high + step, self.pure_epsilon), LONGER * step
        if excess(high) > 0:
            return self.pure_epsilon
        while excess(low) <= 0:
            if low == 0:
                return 0.0
            low, high, step = max(low - step, 0.0), low, LONGER * step
        # A logarithm changes by at most this multiple of a change of `depth`.
        multiple = 2 * max(depth(delta), 1.0)
        return falling_root(excess, low, high, tolerance=CLOSENESS / multiple, jump=JUMP)

    def estimated_epsilon(self, delta: float) -> float:
        """Return an estimate of `epsilon` without transforms, which is no bound."""
        aim = depth(check_delta(delta))

        @cache
        def excess(epsilon: float) -> float:
            return aim - depth(self.estimated_delta(epsilon))

        if excess(0.0) <= 0:
            return 0.0
        if excess(self.pure_epsilon) > 0:
            return self.pure_epsilon
        return falling_root(excess, 0.0, self.pure_epsilon, tolerance=ESTIMATED, jump=JUMP)

    def estimated_delta(self, epsilon: float) -> float:
        """Return an estimate of `delta` without transforms, which is no bound."""
        return self._largest(check_real("epsilon", epsilon, low=0.0, high=LARGEST_LOG_RATIO), positive_part_estimate)

    def loss(self, delta: float, times: int) -> "PrivacyLossDistribution":
        """Return a dominating privacy loss distribution, for composition over `times` uses.

        The distribution dominates every pair of rows. It is the loss distribution of the pairs' largest divergence as a function of
        epsilon, linear in e^epsilon between the computed points (Zhu, Dong, Wang 2022, proposition 10; Doroshenko et al. 2022). Losses
        beyond the grid count as certain failure.
        """
        from dp_accounting.pld import privacy_loss_distribution as pld
        from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

        reach = self.epsilon(check_delta(delta) * NEGLECTED / check_integer("times", times, low=1, high=MOST_ROUNDS))
        if reach == 0:
            return pld.from_two_probability_mass_functions({0: 0.0}, {0: 0.0})
        interval = reach / LOSSES
        epsilons = interval * np.arange(LOSSES + 1)
        above = np.array([self._delta(epsilon, LOSS_ACCURACY) for epsilon in epsilons.tolist()])
        # The divergence at -epsilon is 1 - e^-epsilon + e^-epsilon delta, where delta is the divergence of the swapped pair at epsilon.
        below = -np.expm1(-epsilons[:0:-1]) + np.exp(-epsilons[:0:-1]) * above[:0:-1]
        # Divergences are convex in e^epsilon, so the lower convex hull of their bounds is also a bound.
        deltas = _lower_hull(np.exp(interval * np.arange(-LOSSES, LOSSES + 1)), np.minimum(np.concatenate([below, above]), 1.0))
        return pld.PrivacyLossDistribution(create_pmf_pessimistic_connect_dots_fixed_gap(interval, -LOSSES, LOSSES, deltas))

    @cached_property
    def _blanket(self) -> FloatArray:
        return np.asarray(self.weights.min(axis=0) / self._total)

    @cached_property
    def _total(self) -> float:
        return float(self.weights[0].sum())

    @cached_property
    def _rest(self) -> float:
        # Whole numbers of up to 2**62 are added exactly.
        least = self.weights.min(axis=0).tolist()
        exact = sum(self.weights[0].tolist()) - sum(least) if self.weights.dtype.kind == "i" else self._total - math.fsum(least)
        return max(0.0, exact / self._total)

    @cached_property
    def _ratios(self) -> FloatArray:
        return np.asarray(self.weights / self.weights.min(axis=0))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first, second = (index.ravel() for index in np.indices((len(self.weights),) * 2))
        return first[first != second], second[first != second]

    def _values(self, factor: float, pairs: slice) -> FloatArray:
        """Return T for each letter of pairs of rows, shape (pairs, letters), rounded upward."""
        first, second = (index[pairs] for index in self._pairs)
        own, other = self._ratios[first], factor * self._ratios[second]
        # Quotients and products are good to at most 12 units each, and may cancel.
        return np.asarray(own - other + 16 * UNIT * (own + other))

    def _delta(self, epsilon: float, accuracy: float) -> float:
        return self._largest(epsilon, partial(positive_part_bound, accuracy=accuracy))

    def _largest(self, epsilon: float, positive_part: Callable[[FloatArray, FloatArray, float, int], float]) -> float:
        """Return the largest positive part over all pairs of rows, by a bound or an estimate of it."""
        factor, everything = math.exp(epsilon), slice(None)
        if len(self.weights) == 1:
            return 0.0
        if len(self.weights) == 2:
            both = self._values(factor, everything)
            # Randomised response has the same law in both directions.
            laws = [sorted(zip(values.tolist(), self._blanket.tolist(), strict=True)) for values in both]
            different = both[:1] if laws[0] == laws[1] else both
            return min(max(positive_part(values, self._blanket, self._rest, self.clients) for values in different), 1.0)
        law = self._dominating_law(factor)
        return min(positive_part(law.values, law.probabilities, 0.0, self.clients), 1.0)

    def _dominating_law(self, factor: float) -> "_Law":
        """Return a law that is larger in convex order than T of every pair of rows.

        The sum of n such numbers is then larger in convex order, too. All T have the same mean. The largest of their E[max(0, T - k)], as a
        function of k on a lattice and linear in between, belongs to another law, whose probabilities are its second differences.
        """
        extremes = [self._ratios.max(axis=0) - factor, 1 - factor * self._ratios.max(axis=0)]
        spread = math.sqrt(float(self._blanket @ np.maximum(extremes[0] ** 2, extremes[1] ** 2)))
        low, high = float(extremes[1].min()), float(extremes[0].max())
        step = max(spread / STEPS_PER_DEVIATION, (high - low) / MOST_STEPS)
        lattice = step * np.arange(math.floor(low / step) - 2, math.ceil(high / step) + 3)
        zero = 2 - math.floor(low / step)
        size = max(1, CHUNK // len(lattice))
        best = np.zeros(len(lattice))
        # For the best pair at each point, the arrays hold its probability at the point, and its E[max(0, T - k)] one point before and one
        # after.
        masses, before, after = (np.zeros(len(lattice)) for _ in range(3))
        for start in range(0, len(self._pairs[0]), size):
            values = self._values(factor, slice(start, start + size))
            laws = self._on_lattice(values / step + zero, len(lattice), zero)
            above = np.zeros_like(laws)
            above[:, :-1] = np.cumsum(np.cumsum(laws[:, :0:-1], axis=1), axis=1)[:, ::-1]
            winner = above.argmax(axis=0)
            own = np.arange(len(lattice))
            better = above[winner, own] > best
            best = np.where(better, above[winner, own], best)
            masses = np.where(better, laws[winner, own], masses)
            before = np.where(better, above[winner, np.maximum(own - 1, 0)], before)
            after = np.where(better, above[winner, np.minimum(own + 1, len(lattice) - 1)], after)
        # The second difference of the maximum is that of the best pair at the point, plus the excess of other pairs on either side.
        gains = np.zeros(len(lattice))
        gains[1:-1] = np.maximum(best[:-2] - before[1:-1], 0.0) + np.maximum(best[2:] - after[1:-1], 0.0)
        # A sum of this many terms has at most two units per term.
        gains += np.where(gains > 0, 8 * UNIT * len(lattice) * (best + np.append(best[1:], 0.0) + np.append(0.0, best[:-1])), 0.0)
        return _Law(np.asarray(lattice, dtype=np.float64), masses + gains)

    def _on_lattice(self, places: FloatArray, points: int, zero: int) -> FloatArray:
        """Return each pair's lattice probabilities, with each value split between its neighbours."""
        lower = np.floor(places).astype(np.intp)
        share = places - lower
        laws = np.zeros((len(places), points))
        rows = np.arange(len(places))[:, None]
        np.add.at(laws, (rows, lower), self._blanket * (1 - share))
        np.add.at(laws, (rows, lower + 1), self._blanket * share)
        laws[:, zero] += self._rest
        return laws


@dataclass(frozen=True, eq=False)
class _Law:
    """Values of a variable with their probabilities."""

    values: FloatArray
    probabilities: FloatArray


def _without_copies(table: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64] | NDArray[np.int64]:
    """Return two rows that stand for a table like randomised response, with like letters merged.

    In such a table all pairs of rows are alike: one number is on the diagonal, another number elsewhere.
    """
    rows, letters = table.shape
    elsewhere = table[~np.eye(rows, letters, dtype=bool)]
    if rows != letters or rows < 4 or np.ptp(elsewhere) > 0 or np.ptp(np.diag(table)) > 0:
        return table
    return np.stack([np.append(row[:2], row[2:].sum()) for row in table[:2]])


def _lower_hull(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return the largest convex function below values at increasing points, at these points."""
    kept: list[int] = []
    for place in range(len(points)):
        # Drop points on or above the chord from their predecessor to the new point.
        while len(kept) > 1 and (values[kept[-1]] - values[kept[-2]]) * (points[place] - points[kept[-1]]) >= (
            values[place] - values[kept[-1]]
        ) * (points[kept[-1]] - points[kept[-2]]):
            kept.pop()
        kept.append(place)
    return np.asarray(np.interp(points, points[kept], values[kept]))


def positive_part_bound(values: FloatArray, probabilities: FloatArray, rest: float, count: int, accuracy: float) -> float:
    """Return an upper bound on E[max(0, sum)] / count.

    The bound exceeds the expectation by a relative error of about `accuracy`, or twice that if sums are often exactly 0.

    Parameters
    ----------
    values : ndarray of shape (values,)
        Values of the variable other than 0.
    probabilities : ndarray of shape (values,)
        Probabilities of the values.
    rest : float
        Probability of 0. All probabilities together may exceed 1: a larger measure gives a larger bound.
    count : int
        Number of variables.
    accuracy : float
        Largest relative increase by the splitting of values, if the lattice has points enough: from 1e-6 to 1.

    Examples
    --------
    The example bounds the mean absolute deviation of heads among 100 tosses, halved and per toss:

    >>> bound = positive_part_bound(np.array([-0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 100, 1e-4)
    >>> exact = math.comb(100, 50) / 2**102
    >>> 1 <= bound / exact < 1.002
    True
    """
    if values.max(initial=0.0) <= 0:
        return 0.0
    deviation = math.sqrt(float(probabilities @ values**2) - float(probabilities @ values) ** 2) if len(values) else 0.0
    tilt = max(_centring_tilt(values, probabilities), 1 / (max(deviation, 1e-300) * math.sqrt(count)))
    tilt = min(tilt, LARGEST_EXPONENT / float(values.max()))
    weights = probabilities * np.exp(np.maximum(tilt * values, -LARGEST_EXPONENT))
    total = float(weights.sum()) + rest
    # Shares come first: a weight times a square may be beyond the largest float.
    shares = weights / total
    mean = float(shares @ values)
    spread = math.sqrt(count * max(float(shares @ values**2) - mean**2, 0.0))
    # A split over a step h multiplies each variable's moment by at most cosh(t h / 2) <= exp((t h)^2 / 8); it adds h^2 / 4 to its variance.
    step = math.sqrt(4 * accuracy / count) / tilt
    reach = abs(count * mean) + DEVIATIONS * spread + DECAYS / tilt
    points = int(min(max(2.0 ** math.ceil(math.log2(reach / step)), FEWEST_POINTS), MOST_POINTS))
    step = max(step, reach / points)

    law = _lattice_law(values, probabilities, rest, tilt, step, points)
    mass = float(law.sum())
    law /= mass
    transform = np.fft.rfft(law)
    # Both errors are in the L2 norm, the inverse transform's error and the power's error, as the power's base has the forward transform's
    # error.
    doublings = FFT_UNITS * UNIT * math.log2(points)
    base_error = doublings * math.sqrt(points) * float(np.linalg.norm(law)) + 64 * UNIT
    sizes = np.abs(transform)
    logs = np.log(np.minimum(sizes + base_error, 1.0 + base_error))
    alive = count * logs > -NEGLIGIBLE
    # Sizes and angles are computed apart: complex logarithms and exponentials take twice as long.
    raised, turned = np.exp(count * np.log(np.maximum(sizes[alive], UNIT))), count * np.angle(transform[alive])
    power = np.zeros(len(transform), dtype=complex)
    power.real[alive], power.imag[alive] = raised * np.cos(turned), raised * np.sin(turned)
    summed = np.fft.irfft(power, points)
    squares = float(np.exp(2 * (count - 1) * logs[alive]).sum()) + len(transform) * math.exp(-2 * NEGLIGIBLE * (1 - 1 / count))
    error = doublings * float(np.linalg.norm(summed)) + count * base_error * math.sqrt(2 * squares / points) + math.exp(-NEGLIGIBLE)

    # Sums above zero count up to the point where the tilt makes them negligible; higher or far lower sums wrap around, and are only added.
    above = min(points - 1, math.ceil(DECAYS / (tilt * step)))
    sums = step * np.arange(1, above + 1)
    untilted = sums * np.exp(-tilt * sums)
    beyond = (sums[-1] + step) * math.exp(-tilt * sums[-1])
    value = float(untilted @ summed[1 : above + 1]) + float(np.linalg.norm(untilted)) * error + beyond
    # Exponents of at most 700 and masses are good to 2000 units each, for every variable.
    slack = count * UNIT * (4000 + 16 / max(rest, 1e-12) * (rest > 0))
    exponent = count * math.log(mass) + math.log(value / count) + slack
    return math.exp(min(exponent, _each_alone(values, probabilities, rest, count), LARGEST_EXPONENT))


def positive_part_estimate(values: FloatArray, probabilities: FloatArray, rest: float, count: int) -> float:
    """Return an estimate of E[max(0, sum)] / count, of the arguments of `positive_part_bound`.

    The sum, tilted so that its mean is nearly zero, is taken to be normal.

    Examples
    --------
    >>> estimate = positive_part_estimate(np.array([-0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 100)
    >>> round(estimate / (math.comb(100, 50) / 2**102), 3)
    1.003
    """
    if values.max(initial=0.0) <= 0:
        return 0.0
    tilt = _centring_tilt(values, probabilities)
    weights = probabilities * np.exp(np.maximum(tilt * values, -LARGEST_EXPONENT))
    total = float(weights.sum()) + rest
    shares = weights / total
    spread = math.sqrt(count * max(float(shares @ values**2) - float(shares @ values) ** 2, 0.0))
    # E[exp(-a Z) max(0, Z)] of a normal Z, for the tilt in standard deviations.
    steepness = tilt * spread
    if steepness == 0:
        part = 1 / math.sqrt(2 * math.pi)
    else:
        part = 1 / math.sqrt(2 * math.pi) - steepness * _scaled_tail(steepness / math.sqrt(2)) / 2
    exponent = count * math.log(total) + math.log(max(spread * part, SMALLEST_DELTA) / count)
    return math.exp(min(exponent, LARGEST_EXPONENT))


def depth(delta: float) -> float:
    """Return the root of -ln(delta), in which delta is nearly linear in epsilon."""
    return math.sqrt(-math.log(min(max(delta, SMALLEST_DELTA), 1.0)))


def _each_alone(values: FloatArray, probabilities: FloatArray, rest: float, count: int) -> float:
    """Return the logarithm of a simpler bound: the sum of the variables' positive parts.

    This bound serves for values that are so large and so rare that the lattice is too coarse for them.
    """
    alone = float(probabilities @ np.maximum(values, 0.0))
    together = max(float(probabilities.sum()) + rest, 1.0)
    slack = count * UNIT * (16 + 4 * len(values))
    return (math.log(alone) if alone > 0 else -math.inf) + (count - 1) * math.log(together) + slack


def _centring_tilt(values: FloatArray, probabilities: FloatArray) -> float:
    """Return the tilt that makes the mean nearly zero; 0 if no tilt does or is needed."""
    possible = probabilities > 0
    values, probabilities = values[possible], probabilities[possible]
    if values.max(initial=0.0) <= 0 or float(probabilities @ values) >= 0:
        return 0.0

    def newton_step(tilt: float) -> float:
        """Return the tilted mean over its derivative; a common factor of both cancels."""
        exponents = tilt * values
        weighed = probabilities * np.exp(exponents - exponents.max()) * values
        return float(weighed.sum() / (weighed @ values))

    low, high = 0.0, LARGEST_EXPONENT / float(values.max())
    if newton_step(high) < 0:
        return high
    tilt = 0.0
    for _ in range(MOST_NEWTON_STEPS):
        step = newton_step(tilt)
        if abs(step) <= LAST_STEP * tilt:
            break
        low, high = (tilt, high) if step < 0 else (low, tilt)
        tilt -= step
        if not low < tilt < high:
            tilt = math.sqrt(low * high) if low > 0 else high / 16
    return tilt


def _lattice_law(values: FloatArray, probabilities: FloatArray, rest: float, tilt: float, step: float, points: int) -> FloatArray:
    """Return tilted weights of lattice points, with each value split between neighbours."""
    lower = np.floor(values / step)
    share = values / step - lower
    law = np.zeros(points)
    law[0] = rest
    for place, part in ((lower, 1 - share), (lower + 1, share)):
        weights = probabilities * part * np.exp(np.maximum(tilt * step * place, -LARGEST_EXPONENT))
        np.add.at(law, np.mod(place, points).astype(np.int64), weights)
    return law


def largest_clones_epsilon(clients: int, delta: float) -> float:
    """Return the largest local epsilon of the closed form: ln(n / (8 ln(2 / delta)) - 1).

    The result is minus infinity if the form covers no local epsilon.
    """
    clients, delta = check_integer("clients", clients, low=1, high=MOST_CLIENTS), check_delta(delta)
    ratio = clients / (8 * math.log(2 / delta)) - 1
    return math.log(ratio) if ratio > 0 else -math.inf


def clones_epsilon(local_epsilon: float, clients: int, delta: float) -> float:
    """Return the published epsilon of n shuffled messages, if the closed form covers it.

    The result is infinite above `largest_clones_epsilon`.

    The bound is ln(1 + (e^e0 - 1) (4 sqrt(2 ln(4 / delta)) / sqrt((e^e0 + 1) n) + 4 / n)), for replace-one adjacency (Feldman, McMillan,
    Talwar 2023, *Stronger privacy amplification by shuffling for Rényi and approximate differential privacy*, theorem 3.2). The function
    states the theorem as published, and does not repeat its proof.

    Examples
    --------
    >>> round(clones_epsilon(1.0, 10_000, 1e-6), 4), clones_epsilon(8.0, 10_000, 1e-6)
    (0.18, inf)
    """
    local = check_real("local_epsilon", local_epsilon, low=0.0, high=LARGEST_EPSILON)
    if local > largest_clones_epsilon(clients, delta):
        return math.inf
    share = 4 * math.sqrt(2 * math.log(4 / delta) / ((math.exp(local) + 1) * clients)) + 4 / clients
    return math.log1p(math.expm1(local) * share)


def _scaled_tail(point: float) -> float:
    """Return exp(point**2) erfc(point) for a point from 0, for estimates: the relative error is below 1e-3.

    The function of scipy would take longer to import than the account takes.
    """
    if point < 5:
        return math.exp(point * point) * math.erfc(point)
    return (1 - 1 / (2 * point * point)) / (point * math.sqrt(math.pi))
