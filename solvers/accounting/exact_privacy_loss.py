"""The privacy loss of one distribution against another, value by value.

Hockey-stick and Rényi divergences are computed without cancellation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IndexArray
from ..numerics.bisection import bisect
from .pure_privacy import check_orders
from .renyi_curve import check_delta

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf, PLDPmf

# Share of a delta that rounding may hide. Probabilities down to e^-700 are off by 1400 units as exponentials of rounded logarithms, and a
# pairwise sum of up to 2^24 terms adds 200. The margin is five hundred times the error of sums. A unit of a loss is a unit of epsilon.
ROUNDING = 1e-10
HALVINGS = 200
# Largest number of Newton's steps before halving, and their largest relative gap below the allowed delta.
MOST_TANGENTS, CLOSE = 40, 1e-12
# Largest logarithm of a sum near 1. Larger sums are computed directly, in log space.
LARGEST_NEAR_ONE = 0.5
# Largest order * certain of a sum near 1. By Jensen's inequality a sum is at least (1 - certain)^order.
NEAR_WHOLE = 0.1
# Largest exponent; larger exponents belong to values of negligible probability.
LARGEST_EXPONENT = 300.0
SERIES_TERMS = 20
# Falling bounds on losses, between which moments are summed: every Rényi order has bounds just below its inverse. Beyond orders of 2^60,
# losses below the order's inverse are rounding errors.
EDGES = np.exp2(-np.arange(240) / 4)
FACTORIALS = np.cumprod(np.arange(1.0, SERIES_TERMS + 2))[1:, None]
# Rényi sums omit terms below e^-150. Together, up to 2^24 such terms are less than 1e-57.
NEGLIGIBLE_EXPONENT = -150.0
BLOCK = 2**13
# Number of neighbouring values that are judged together whether they count.
STRETCH = 2**6
# Largest number of values whose sums at several orders are computed together, and largest number of their terms for more values.
FEW_VALUES, MOST_TOGETHER = 2**11, 2**15
# Number of orders whose sums take the same values.
ORDERS_TOGETHER = 16
# Number of losses discretised per batch (about 1 MB).
GRID_BLOCK = 2**17
# Number of steps of a grid of losses up to the largest relevant loss, and the share of delta that larger losses may have.
STEPS = 4000
SMALLEST_REACH = 1e-12
NEGLECTED = 1e-8
# Smallest delta of composed losses; below it, the rounding errors of a fast Fourier transform could be mistaken for a failure probability.
SMALLEST_COMPOSED_DELTA = 1e-11


@dataclass(frozen=True, eq=False)
class ExactPrivacyLoss:
    """The common values of two discrete distributions P and Q, with their log-ratios.

    Attributes
    ----------
    log_masses : ndarray of shape (values,)
        Logarithms of the values' probabilities under P, finite.
    losses : ndarray of shape (values,)
        Log-ratios ln(P / Q), finite.
    certain : float
        Probability under P of all other values: values that Q cannot have, and rare values that count as such.
    unseen : float
        Probability under Q of all other values.
    """

    log_masses: FloatArray
    losses: FloatArray
    certain: float
    unseen: float

    @cached_property
    def masses(self) -> FloatArray:
        """Probabilities under P, of shape (values,)."""
        return np.asarray(np.exp(self.log_masses))

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence sum max(0, P - e^epsilon Q).

        The sum of positive terms is right to about twelve digits.
        """
        return self._delta(check_real("epsilon", epsilon, low=0.0, high=1e300))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon with at most a given delta.

        The result is an upper bound, too large by as much as a relative error of 1e-10 in delta. It is infinite if values that only P can
        have are more probable than delta.
        """
        allowed = check_delta(delta) * (1 - ROUNDING)
        if self.certain > allowed:
            return math.inf
        if self._delta(0.0) <= allowed:
            return 0.0
        return self._by_tangents(allowed)

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return 1/(a-1) ln sum P^a Q^(1-a), in nats, over the common values.

        At infinite order the result is the largest loss. Without `certain` values it is the Rényi divergence. Otherwise it belongs to the
        rest of P, whose mass is less than 1, and may be negative; with it, P is (epsilon, `certain` + delta')-close to Q for every
        (epsilon, delta') of the usual conversion, because that is a bound value by value. Masses of several uses multiply, and so do the
        sums.

        With l = ln(P/Q) the sum is 1 - u + a (u - c) + sum Q phi(l), phi(l) = e^(a l) - 1 - a (e^l - 1) >= 0, where c and u are the omitted
        masses of P and of Q: where the sum is near 1, nothing cancels for any distributions.
        """
        array = check_orders(orders)
        if len(self.log_masses) == 0:
            return np.full(len(array), -np.inf)
        finite = np.isfinite(array)
        divergences_at = np.full(len(array), self.losses.max())
        given = array[finite]
        divergences = np.empty(len(given))
        # Neighbouring orders have nearly the same values that count.
        places = np.argsort(given, kind="stable")
        for start in range(0, len(given), ORDERS_TOGETHER):
            together = places[start : start + ORDERS_TOGETHER]
            divergences[together] = self._finite_divergences(given[together])
        divergences_at[finite] = divergences
        return divergences_at

    def _finite_divergences(self, orders: FloatArray) -> FloatArray:
        """Return the divergences at finite orders, which rise."""
        few = self._few_values(orders)
        logarithms = self._logarithms(orders) if few is None else _log_sums(orders, few)
        divergences = logarithms / (orders - 1)
        near_one = np.abs(logarithms) <= LARGEST_NEAR_ONE
        if near_one.any():
            near = orders[near_one]
            excess = sum((block.excesses(near) for block in (self._blocks if few is None else (few,))), np.zeros(len(near)))
            divergences[near_one] = np.log1p(excess - self.unseen + near * (self.unseen - self.certain)) / (near - 1)
        return divergences

    def _few_values(self, orders: FloatArray) -> "_Block | None":
        """Return the values that count at some of the orders and those between them, or None if they are many.

        All values are omitted whose probabilities, and terms of a sum relative to its largest term, are negligible.
        """
        if len(self.losses) <= FEW_VALUES:
            return self._run(0, len(self.losses))
        log_masses, other_log_masses, losses, tops, losses_at_tops = self._stretches
        powers = orders[:, None] - 1
        # A sum is at least its term at a stretch's most probable value.
        largest = np.minimum(0.0, (tops + powers * losses_at_tops).max(axis=1, keepdims=True))
        highest = np.maximum(log_masses + powers * losses, np.maximum(log_masses, other_log_masses))
        counting = np.flatnonzero((highest > largest + NEGLIGIBLE_EXPONENT).any(axis=0))
        first, last = (0, 0) if not len(counting) else (int(counting[0]), int(counting[-1]))
        few = (last + 1 - first) * STRETCH * len(orders) <= MOST_TOGETHER
        return self._run(first * STRETCH, min((last + 1) * STRETCH, len(self.losses))) if few else None

    @cached_property
    def _stretches(self) -> tuple[FloatArray, ...]:
        """Largest logarithms of probabilities and largest losses of stretches of values, and their most probable values."""
        starts = np.arange(0, len(self.losses), STRETCH)
        log_masses = np.maximum.reduceat(self.log_masses, starts)
        ends = np.append(starts[1:], len(self.losses)) - 1
        # The most probable value of a stretch with one peak elsewhere is at one of its ends; any value gives a lower bound.
        tops = np.where(self.log_masses[starts] > self.log_masses[ends], starts, ends)
        others = np.maximum.reduceat(self.log_masses - self.losses, starts)
        return log_masses, others, np.maximum.reduceat(self.losses, starts), self.log_masses[tops], self.losses[tops]

    @cached_property
    def _run(self) -> "Callable[[int, int], _Block]":
        return cache(lambda first, last: _block(self.log_masses[first:last], self.losses[first:last]))

    @cached_property
    def _blocks(self) -> "list[_Block]":
        return [self._run(start, min(start + BLOCK, len(self.losses))) for start in range(0, len(self.losses), BLOCK)]

    def _logarithms(self, orders: FloatArray) -> FloatArray:
        """Return the logarithm of the sum at each order; 0 if the sum is certainly near 1."""
        logarithms, near_one = np.zeros(len(orders)), False
        # Start from the highest order. The sum's logarithm is convex, so the sum is near 1 for all orders below an order with a sum near 1.
        for position in reversed(range(len(orders))):
            order = float(orders[position])
            if not near_one or order * self.certain > NEAR_WHOLE:
                logarithms[position] = _log_sum(order, self._blocks)
            near_one = abs(logarithms[position]) <= LARGEST_NEAR_ONE
        return logarithms

    def without_rare_values(self, mass: float) -> "ExactPrivacyLoss":
        """Return the privacy loss with the rarest values counted among all other values.

        The omitted values' probability under P together is at most `mass`.
        """
        mass = check_real("mass", mass, low=0.0, high=1.0)
        by_mass = np.argsort(self.masses, kind="stable")
        rare = by_mass[: int(np.searchsorted(np.cumsum(self.masses[by_mass]), mass, side="right"))]
        kept = np.ones(len(self.masses), dtype=bool)
        kept[rare] = False
        certain = self.certain + float(self.masses[rare].sum())
        unseen = self.unseen + float(np.exp(self.log_masses[rare] - self.losses[rare]).sum())
        return ExactPrivacyLoss(self.log_masses[kept], self.losses[kept], certain, unseen)

    def on_grid(self, interval: float, steps: int) -> "DensePLDPmf":
        """Return the distribution of the loss on multiples of an interval, for composition.

        The grid goes from ``-steps`` to ``steps`` times the interval. Each value's mass is split between the two neighbouring multiples so
        that both its P-mass and its Q-mass stay the same (Doroshenko et al. 2022, *Connect the dots: tighter discrete approximations of
        privacy loss distributions*); losses above the grid count as certain, and losses below it as its lowest point. The result is an
        upper bound, under composition too.
        """
        from dp_accounting.pld.pld_pmf import DensePLDPmf

        probabilities, certain = self.grid_masses(interval, steps)
        return DensePLDPmf(interval, -steps, probabilities, certain, True)

    def grid_masses(self, interval: float, steps: int) -> tuple[FloatArray, float]:
        """Return the masses of `on_grid`, and the mass that counts as certain."""
        interval = check_real("interval", interval, low=1e-300, high=1e300)
        steps = check_integer("steps", steps, low=1, high=10**7)
        above = self.losses > steps * interval
        certain = min(1.0, self.certain + float(self.masses[above].sum()))
        probabilities = np.zeros(2 * steps + 1)
        for start in range(0, len(above), GRID_BLOCK):
            block = slice(start, start + GRID_BLOCK)
            below = ~above[block]
            losses, masses = np.maximum(self.losses[block][below], -steps * interval), self.masses[block][below]
            lower = np.clip(np.floor(losses / interval), -steps, steps - 1)
            share = np.clip(np.expm1(lower * interval - losses) / math.expm1(-interval), 0.0, 1.0)
            index = (lower + steps).astype(np.intp)
            probabilities += np.bincount(index, masses * (1 - share), 2 * steps + 1)
            probabilities += np.bincount(index + 1, masses * share, 2 * steps + 1)
        return probabilities, certain

    def _by_tangents(self, allowed: float) -> float:
        """Return the epsilon where delta falls just below the allowed delta.

        The method is Newton's on the logarithm of delta, inside a bracket.
        """
        low, high, epsilon = 0.0, float(self.losses.max()), 0.0
        for _ in range(MOST_TANGENTS):
            above = self.losses > epsilon
            masses, shares = self.masses[above], -np.expm1(epsilon - self.losses[above])
            delta = self.certain + float((masses * shares).sum())
            if allowed * (1 - CLOSE) <= delta <= allowed:
                return epsilon
            low, high = (epsilon, high) if delta > allowed else (low, epsilon)
            # The derivative of delta is minus the sum of P e^(epsilon - l).
            slope = float((masses * (1 - shares)).sum())
            epsilon += delta * math.log(delta / (allowed * (1 - CLOSE / 2))) / slope if slope > 0 < delta else math.inf
            if not low < epsilon < high:
                epsilon = (low + high) / 2
        return bisect(lambda epsilon: self._delta(epsilon) > allowed, low, high, HALVINGS).fails

    def _delta(self, epsilon: float) -> float:
        above = self.losses > epsilon
        return self.certain + float((self.masses[above] * -np.expm1(epsilon - self.losses[above])).sum())


def composed_exact_epsilon(
    forth: ExactPrivacyLoss, back: ExactPrivacyLoss | None, uses: int, delta: float, *, adaptive: bool = False
) -> float | None:
    """Return the epsilon of several independent uses of a pair of distributions.

    Each use may go in either direction. If the direction may depend on the results of earlier uses, the larger hockey-stick divergence of
    both directions, as a function of epsilon, belongs to a pair that dominates both, also under composition (Zhu, Dong, Wang 2022, *Optimal
    accounting of differential privacy via characteristic function*, proposition 10 and theorem 10).

    Parameters
    ----------
    forth, back : ExactPrivacyLoss
        Privacy losses in both directions; `back` is None if both are the same.
    uses : int
        Number of uses, at least 1.
    delta : float
        Failure probability, above 0 and below 1.
    adaptive : bool
        Whether directions may depend on earlier results.

    Returns
    -------
    float or None
        Upper bound on the largest epsilon over all choices of a direction for each use, too large by a relative error of about 1e-6 for two
        uses or more (a grid of losses). It is infinite if no epsilon suffices, and None if rounding errors exceed so small a delta.
    """
    uses = check_integer("uses", uses, low=1, high=10**9)
    delta = check_delta(delta)
    directions = [forth] if back is None else [forth, back]
    if uses == 1:
        return max(direction.epsilon(delta) for direction in directions)
    if any(-math.expm1(uses * math.log1p(-min(direction.certain, 0.5))) >= delta for direction in directions):
        return math.inf
    if delta < SMALLEST_COMPOSED_DELTA:
        return None
    reach = max(loss_reach(direction, NEGLECTED * delta / uses) for direction in directions)
    interval = reach / STEPS
    truncation = NEGLECTED * delta
    if adaptive and back is not None:
        return float(_dominating_masses(forth, back, interval).self_compose(uses, truncation).get_epsilon_for_delta(delta))
    grids = [direction.on_grid(interval, STEPS) for direction in directions]
    if len(grids) == 1:
        return float(grids[0].self_compose(uses, truncation).get_epsilon_for_delta(delta))
    epsilons = []
    for number in range(uses + 1):
        parts = [grid.self_compose(times, truncation) for grid, times in zip(grids, (number, uses - number), strict=True) if times]
        composed = parts[0] if len(parts) == 1 else parts[0].compose(parts[1])
        epsilons.append(float(composed.get_epsilon_for_delta(delta)))
    return max(epsilons)


def _dominating_masses(forth: ExactPrivacyLoss, back: ExactPrivacyLoss, interval: float) -> "PLDPmf":
    """Return a distribution of the loss, on a grid, that dominates both directions."""
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

    deltas = np.maximum(*(_grid_deltas(*direction.grid_masses(interval, STEPS), interval) for direction in (forth, back)))
    return create_pmf_pessimistic_connect_dots_fixed_gap(interval, -STEPS, STEPS, np.clip(deltas, 0.0, 1.0))


def _grid_deltas(masses: FloatArray, certain: float, interval: float) -> FloatArray:
    """Return the hockey-stick divergence at each loss of a grid.

    Divergences are ``c + sum_(i > k) p_i (1 - e^((k - i) h))``; each follows from the next higher one by positive terms.
    """
    stays, rises = math.exp(-interval), -math.expm1(-interval)
    above = certain + np.cumsum(masses[::-1])
    deltas, delta = [certain], certain
    for mass in above[:-1].tolist():
        delta = stays * delta + rises * mass
        deltas.append(delta)
    return np.array(deltas[::-1])


def loss_reach(loss: ExactPrivacyLoss, mass: float) -> float:
    """Return a positive loss that is exceeded with at most a given probability."""
    positive = loss.losses > 0
    losses, masses = loss.losses[positive], loss.masses[positive]
    by_loss = np.argsort(-losses, kind="stable")
    above = np.cumsum(masses[by_loss])
    position = int(np.searchsorted(above, mass, side="right"))
    return max(float(losses[by_loss[position]]) if position < len(above) else 0.0, SMALLEST_REACH)


@dataclass(frozen=True, eq=False)
class _Block:
    """Neighbouring values that fit in the cache, by rising absolute value of their losses.

    Most blocks are negligible as a whole, because their values are neighbours.
    """

    log_masses: FloatArray
    losses: FloatArray

    @cached_property
    def others(self) -> FloatArray:
        """Probabilities under Q."""
        return np.asarray(np.exp(self.log_masses - self.losses))

    @cached_property
    def highest_mass(self) -> float:
        return float(self.log_masses.max())

    @cached_property
    def highest_loss(self) -> float:
        return float(self.losses.max())

    @cached_property
    def highest(self) -> float:
        """Largest logarithm of a probability under either distribution."""
        return max(self.highest_mass, float((self.log_masses - self.losses).max()))

    def highest_exponent(self, order: float) -> float:
        return self.highest_mass + (order - 1) * self.highest_loss

    def excesses(self, orders: FloatArray) -> FloatArray:
        """Return sum Q phi(l) at each order; 0 if the sum is negligible.

        The function is phi(l) = e^(a l) - 1 - a (e^l - 1).
        """
        sizes = np.abs(self.losses)
        # Smaller losses are near zero at an order, larger losses are not, and the likelihood ratio of the last losses would overflow.
        near, excesses = self._near_excesses(orders)
        steep = np.searchsorted(sizes, LARGEST_EXPONENT / orders, side="right")
        far = near < len(sizes)
        together = far & (steep == len(sizes))
        if together.any() and (len(sizes) <= FEW_VALUES or len(sizes) * len(orders) <= MOST_TOGETHER):
            # Take all orders together, as in `_log_sums`.
            grid, first = orders[together, None], int(near.min())
            phi = np.expm1(grid * self.losses[first:]) - grid * np.expm1(self.losses[first:])
            phi[np.arange(first, len(sizes)) < near[together, None]] = 0.0
            excesses[together] += phi @ self.others[first:]
            far &= ~together
        for position in np.flatnonzero(far):
            order, middle, last = float(orders[position]), slice(near[position], steep[position]), slice(steep[position], None)
            losses, others = self.losses[middle], self.others[middle]
            excesses[position] += others @ (np.expm1(order * losses) - order * np.expm1(losses))
            # A tiny probability offsets a large ratio: their terms come from logarithms.
            log_masses, losses, others = self.log_masses[last], self.losses[last], self.others[last]
            excesses[position] += (np.exp(log_masses + (order - 1) * losses) - others - order * (np.exp(log_masses) - others)).sum()
        counted = np.maximum(self.highest, self.highest_mass + (orders - 1) * self.highest_loss) > NEGLIGIBLE_EXPONENT
        return np.asarray(np.where(counted, excesses, 0.0))

    def _near_excesses(self, orders: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Return for each order the number of first values near zero, and their sum of phi.

        A value is near zero if a |l| is below 1. The sum comes from the series of phi, over k >= 2 of (a^k - a) l^k / k!, with a^k - a = a
        (a - 1) (1 + a + ... + a^(k-2)). The series needs only the moments of the losses, the same for all orders.
        """
        counts, cuts, sums = self._moments
        # Take the first edge that is at most 1/a.
        near = counts[len(EDGES) - np.searchsorted(EDGES[::-1], 1 / orders, side="right")]
        moments = sums[:, np.searchsorted(cuts, near)]
        powers = np.arange(1, SERIES_TERMS + 1)[:, None]
        # If powers of an order overflow, the powers of the losses vanished before.
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.expm1(powers * np.log(orders)) / FACTORIALS * moments
        return near, np.where(moments == 0, 0.0, terms).sum(axis=0) * orders

    @cached_property
    def _moments(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Numbers of losses below each edge, their distinct values, and moments.

        The moments are sum Q l^k over these losses, for each k from 2 on.
        """
        counts = np.append(np.searchsorted(np.abs(self.losses), EDGES), 0)
        cuts = np.unique(counts)
        sums = np.zeros((SERIES_TERMS, len(cuts)))
        powers = self.others[: cuts[-1]] * self.losses[: cuts[-1]] ** 2
        for row in sums[:, 1:] if len(cuts) > 1 else ():
            np.add.reduceat(powers, cuts[:-1], out=row)
            powers *= self.losses[: cuts[-1]]
        return counts, cuts, np.cumsum(sums, axis=1)


def _block(log_masses: FloatArray, losses: FloatArray) -> _Block:
    order = np.argsort(np.abs(losses))
    return _Block(log_masses[order], losses[order])


def _log_sum(order: float, blocks: list[_Block]) -> float:
    """Return ln sum P^a Q^(1-a)."""
    largest, total = -math.inf, 0.0
    for block in sorted(blocks, key=lambda block: -block.highest_exponent(order)):
        if block.highest_exponent(order) < largest + NEGLIGIBLE_EXPONENT:
            break
        exponents = block.log_masses + (order - 1) * block.losses
        highest = max(largest, float(exponents.max()))
        total = total * math.exp(largest - highest) + float(np.exp(exponents - highest).sum())
        largest = highest
    return largest + math.log(total)


def _log_sums(orders: FloatArray, block: _Block) -> FloatArray:
    """Return `_log_sum` at all orders together, which is many times faster with few values."""
    exponents = block.log_masses + (orders[:, None] - 1) * block.losses
    largest = exponents.max(axis=1)
    exponents -= largest[:, None]
    np.exp(exponents, out=exponents)
    return np.asarray(largest + np.log(exponents.sum(axis=1)))
