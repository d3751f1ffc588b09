"""Rényi differential privacy curves: composition, and conversion to (epsilon, delta).

The conversions are those of dp-accounting.
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_choice, check_integer, check_probability
from ...arrays import FloatArray, IndexArray
from ..numerics.rounding import UNIT
from .pure_privacy import check_orders

# Orders are dense at the optima of small budgets, then geometric up to orders where pure privacy is better.
DEFAULT_ORDERS: tuple[float, ...] = (
    *(1 + k / 20 for k in range(1, 20)),
    *(2 + k / 4 for k in range(32)),
    *range(10, 64),
    *(float(round(64 * 2 ** (k / 4))) for k in range(41)),
    math.inf,
)
CONVERSIONS = ("optimal", "classic")
MOST_ROUNDS = 10**12
# Stride of the orders that a lazy curve tries first.
FIRST_STRIDE = 16


def check_order(order: float) -> float:
    """Return a Rényi order, which must be above 1 and may be infinite."""
    if not order > 1:
        raise ValueError(f"order must be a number above 1, got {order!r}")
    return order


def check_delta(delta: float) -> float:
    """Return a failure probability as a float, if it is above 0 and below 1."""
    return check_probability("delta", delta)


@dataclass(frozen=True)
class EpsilonAtDelta:
    """An (epsilon, delta) guarantee made from a Rényi curve.

    Attributes
    ----------
    epsilon : float
        Upper bound on the privacy parameter.
    order : float
        Rényi order of the best conversion; infinite where the pure guarantee is better.
    at_edge : bool
        Whether the order is the smallest or the largest finite order of the curve, so that other orders might give less.
    """

    epsilon: float
    order: float
    at_edge: bool


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Bounds on the Rényi divergence of a mechanism's outputs for two neighbouring inputs.

    Attributes
    ----------
    orders : ndarray of shape (orders,)
        Orders above 1; an infinite order stands for the pure guarantee.
    divergences : ndarray of shape (orders,)
        Upper bounds on the divergences in nats, at least 0.

    Raises
    ------
    ValueError
        If an order is not above 1, a divergence is negative or NaN, or their numbers differ.

    Examples
    --------
    The example uses a Gaussian mechanism with noise multiplier 2 for 10 rounds.

    >>> curve = RenyiCurve(DEFAULT_ORDERS[:-1], np.array(DEFAULT_ORDERS[:-1]) / 8).composed(10)
    >>> converted = curve.epsilon(1e-5)
    >>> round(converted.epsilon, 3), converted.order, converted.at_edge
    (8.083, 3.75, False)
    """

    orders: FloatArray
    divergences: FloatArray

    def __post_init__(self) -> None:
        """Check the orders and the divergences."""
        orders = check_orders(self.orders)
        divergences = np.atleast_1d(np.asarray(self.divergences, dtype=float))
        if divergences.shape != orders.shape or not np.all(divergences >= 0):
            raise ValueError(f"divergences must be at least 0, one for each of the {len(orders)} orders, got {self.divergences!r}")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "divergences", divergences)

    def composed(self, rounds: int) -> "RenyiCurve":
        """Return the curve of independent uses on the same data.

        Divergences add up (Mironov 2017, proposition 1).
        """
        return RenyiCurve(self.orders, self.divergences * check_integer("rounds", rounds, low=1, high=MOST_ROUNDS))

    def at(self, orders: ArrayLike) -> FloatArray:
        """Return bounds on the divergences at any orders.

        (a - 1) r(a), the logarithm of a moment, is convex in the order a and 0 at a = 1: between two orders it lies below the chord. r(a)
        rises with a, so that the pure guarantee bounds all orders. Beyond the largest finite order the bound is infinite without one.

        Examples
        --------
        >>> RenyiCurve(np.array([2.0, 4.0]), np.array([0.2, 0.4])).at([1.5, 3.0, 5.0]).round(4).tolist()
        [0.2, 0.35, inf]
        """
        asked = check_orders(orders)
        finite = np.isfinite(self.orders) & np.isfinite(self.divergences)
        rising = np.argsort(self.orders[finite])
        own, divergences = self.orders[finite][rising], self.divergences[finite][rising]
        pure = float(self.divergences[np.isinf(self.orders)].min(initial=math.inf))
        inside = asked <= own.max(initial=1.0)
        place = np.where(inside, asked, 2.0)
        chords = np.interp(place, [1.0, *own], [0.0, *(own - 1) * divergences]) / (place - 1)
        # The product, the chord and the quotient have 8 units.
        return np.asarray(np.minimum(np.where(inside, chords * (1 + 8 * UNIT), math.inf), pure))

    def epsilon(self, delta: float, conversion: str = "optimal") -> EpsilonAtDelta:
        """Return the smallest epsilon that the curve proves at a failure probability.

        Parameters
        ----------
        delta : float
            Failure probability, above 0 and below 1.
        conversion : str
            ``"optimal"``: r(a) + ln(1 - 1/a) - ln(delta a) / (a - 1) (Canonne, Kamath, Steinke 2020, proposition 12), as in
            dp-accounting; ``"classic"``: r(a) - ln(delta) / (a - 1) (Mironov 2017, proposition 3), looser, the conversion of papers before
            2020.
        """
        delta = check_delta(delta)
        check_choice("conversion", conversion, CONVERSIONS)
        finite = np.isfinite(self.orders) & np.isfinite(self.divergences)
        pure = float(self.divergences[np.isinf(self.orders)].min(initial=math.inf))
        guarantee = EpsilonAtDelta(pure, math.inf, at_edge=False)
        if finite.any():
            orders = self.orders[finite]
            converted = _converted(orders, self.divergences[finite], delta, conversion)
            best = int(converted.argmin())
            epsilon, order = max(0.0, float(converted[best])), float(orders[best])
            if epsilon < pure:
                guarantee = EpsilonAtDelta(epsilon, order, at_edge=order in (orders.min(), orders.max()) and epsilon > 0)
        return guarantee


class LazyRenyiCurve:
    """A Rényi curve that computes only the orders that the least epsilon needs.

    Divergences rise with the order, so that those at smaller orders bound an order's epsilon from below: most orders need no evaluation.

    Parameters
    ----------
    divergences : callable
        Function from an array of orders to divergences, as in `RenyiCurve`; each order is computed once, so that values may differ by
        rounding from those of all orders at once.
    orders : array_like of shape (orders,)
        Orders that may be tried.

    Examples
    --------
    >>> computed = []
    >>> gaussian = LazyRenyiCurve(lambda orders: computed.extend(orders) or orders / 8, DEFAULT_ORDERS[:-1])
    >>> round(gaussian.composed(10).epsilon(1e-5).epsilon, 3), len(computed), len(DEFAULT_ORDERS)
    (8.083, 23, 147)
    """

    def __init__(self, divergences: Callable[[FloatArray], FloatArray], orders: ArrayLike = DEFAULT_ORDERS) -> None:
        self._divergences, self._orders, self._rounds = divergences, np.unique(check_orders(orders)), 1
        self._found = np.full(len(self._orders), np.nan)

    def whole(self) -> RenyiCurve:
        """Return the curve at all orders."""
        self._compute(np.arange(len(self._orders)))
        return RenyiCurve(self._orders.copy(), self._found).composed(self._rounds)

    def composed(self, rounds: int) -> "LazyRenyiCurve":
        """Return the curve of independent uses on the same data; both share computed values."""
        composed = copy(self)
        composed._rounds = self._rounds * check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
        return composed

    def epsilon(self, delta: float, conversion: str = "optimal") -> EpsilonAtDelta:
        """Return the whole curve's epsilon, as `RenyiCurve.epsilon` does.

        An epsilon of 0 may come from another order.
        """
        last = len(self._orders) - 1
        asked = np.unique([*range(0, last, FIRST_STRIDE), max(0, last - 1), last])
        while True:
            self._compute(asked)
            unknown = np.isnan(self._found)
            computed = RenyiCurve(self._orders[~unknown], self._found[~unknown]).composed(self._rounds)
            best = computed.epsilon(delta, conversion)
            below = np.maximum.accumulate(np.where(unknown, 0.0, self._found))
            places = np.flatnonzero(unknown & np.isfinite(below))
            places = places[_converted(self._orders[places], below[places] * self._rounds, delta, conversion) < best.epsilon]
            if not len(places) or best.epsilon == 0:
                return best
            stretches = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
            asked = np.array([stretch[len(stretch) // 2] for stretch in stretches])

    def _compute(self, places: IndexArray) -> None:
        places = places[np.isnan(self._found[places])]
        if len(places):
            self._found[places] = RenyiCurve(self._orders[places], self._divergences(self._orders[places])).divergences


def _converted(orders: FloatArray, divergences: FloatArray, delta: float, conversion: str) -> FloatArray:
    """Return the epsilon of each finite order, which may be below 0.

    The epsilon rises with the divergence.
    """
    if conversion == "classic":
        return divergences - math.log(delta) / (orders - 1)
    # The conversion follows dp-accounting 0.6, whose import takes a second. It omits orders below 1.01, where the formula divides by almost
    # nothing.
    usable = np.where(orders > 1.01, orders, 2.0)
    candidates = divergences + np.log1p(-1 / usable) - np.log(delta * usable) / (usable - 1)
    candidates = np.where(orders > 1.01, candidates, math.inf)
    # Total variation is at most sqrt(1 - e^-KL) (Bretagnolle, Huber 1979), and the divergence of every order above 1 is at least KL.
    return np.asarray(np.where(delta**2 + np.expm1(-divergences) > 0, 0.0, candidates))
