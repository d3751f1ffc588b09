"""Rényi differential privacy curves: composed over rounds, and converted to (epsilon, delta) by dp-accounting."""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_choice, check_integer, check_probability
from ...arrays import FloatArray
from .pure_privacy import check_orders

# Dense where small budgets have their optimum, then geometric up to where pure privacy takes over.
DEFAULT_ORDERS: tuple[float, ...] = (
    *(1 + k / 20 for k in range(1, 20)),
    *(2 + k / 4 for k in range(32)),
    *range(10, 64),
    *(float(round(64 * 2 ** (k / 4))) for k in range(41)),
    math.inf,
)
CONVERSIONS = ("optimal", "classic")
MOST_ROUNDS = 10**12


def check_delta(delta: float) -> float:
    """Return a failure probability as a float, if it is above 0 and below 1."""
    return check_probability("delta", delta)


@dataclass(frozen=True)
class EpsilonAtDelta:
    """An (epsilon, delta) guarantee made from a Rényi curve.

    Attributes
    ----------
    epsilon : float
        Privacy parameter; errs upward.
    order : float
        The Rényi order that gave it; infinite where the pure guarantee is the better one.
    at_edge : bool
        Whether the order is the smallest or the largest finite one that was tried, so that others might give less.
    """

    epsilon: float
    order: float
    at_edge: bool


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Bounds on the Rényi divergence of a mechanism's outputs for two neighbouring inputs, one for each order.

    Attributes
    ----------
    orders : ndarray of shape (orders,)
        Orders above 1; infinity, if it is one, stands for the pure guarantee.
    divergences : ndarray of shape (orders,)
        Divergences in nats, at least 0; each errs upward.

    Raises
    ------
    ValueError
        If an order is not above 1, a divergence is negative or NaN, or their numbers differ.

    Examples
    --------
    A Gaussian mechanism with noise multiplier 2, used 10 times.

    >>> curve = RenyiCurve(DEFAULT_ORDERS[:-1], np.array(DEFAULT_ORDERS[:-1]) / 8).composed(10)
    >>> found = curve.epsilon(1e-5)
    >>> round(found.epsilon, 3), found.order, found.at_edge
    (8.083, 3.75, False)
    """

    orders: FloatArray
    divergences: FloatArray

    def __post_init__(self) -> None:
        """Refuse what is no curve."""
        orders = check_orders(self.orders)
        divergences = np.atleast_1d(np.asarray(self.divergences, dtype=float))
        if divergences.shape != orders.shape or not np.all(divergences >= 0):
            raise ValueError(f"divergences must be at least 0, one for each of the {len(orders)} orders, got {self.divergences!r}")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "divergences", divergences)

    def composed(self, rounds: int) -> "RenyiCurve":
        """Return the curve of independent uses on the same data: divergences add up (Mironov 2017, proposition 1)."""
        return RenyiCurve(self.orders, self.divergences * check_integer("rounds", rounds, low=1, high=MOST_ROUNDS))

    def epsilon(self, delta: float, conversion: str = "optimal") -> EpsilonAtDelta:
        """Return the smallest epsilon that the curve proves at a failure probability.

        Parameters
        ----------
        delta : float
            Failure probability, above 0 and below 1.
        conversion : str
            ``"optimal"``: r(a) + ln(1 - 1/a) - ln(delta a) / (a - 1) (Canonne, Kamath, Steinke 2020, proposition 12), as in
            dp-accounting; ``"classic"``: r(a) - ln(delta) / (a - 1) (Mironov 2017, proposition 3), looser, which papers before 2020 used.
        """
        delta = check_delta(delta)
        check_choice("conversion", conversion, CONVERSIONS)
        finite = np.isfinite(self.orders) & np.isfinite(self.divergences)
        pure = float(self.divergences[np.isinf(self.orders)].min(initial=math.inf))
        found = EpsilonAtDelta(pure, math.inf, at_edge=False)
        if finite.any():
            orders, divergences = self.orders[finite], self.divergences[finite]
            if conversion == "optimal":
                epsilon, order = _optimal_conversion(orders, divergences, delta)
            else:
                candidates = divergences - math.log(delta) / (orders - 1)
                epsilon, order = float(candidates.min()), float(orders[candidates.argmin()])
            if epsilon < pure:
                found = EpsilonAtDelta(epsilon, order, at_edge=order in (orders.min(), orders.max()) and epsilon > 0)
        return found


def _optimal_conversion(orders: FloatArray, divergences: FloatArray, delta: float) -> tuple[float, float]:
    """Return epsilon and its order as dp-accounting 0.6 does, whose import takes a second."""
    # Orders below 1.01 are left out, where the formula divides by almost nothing.
    usable = np.where(orders > 1.01, orders, 2.0)
    candidates = divergences + np.log1p(-1 / usable) - np.log(delta * usable) / (usable - 1)
    candidates = np.where(orders > 1.01, candidates, math.inf)
    # Total variation is at most sqrt(1 - e^-KL) (Bretagnolle, Huber 1979), and the divergence of every order above 1 is at least KL.
    candidates = np.where(delta**2 + np.expm1(-divergences) > 0, 0.0, candidates)
    best = int(candidates.argmin())
    return max(0.0, float(candidates[best])), float(orders[best])
