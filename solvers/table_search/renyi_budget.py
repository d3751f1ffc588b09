"""Rényi budgets of a coordinate from the (epsilon, delta) budget of a whole vector.

A budget allows two inputs of a coordinate a Rényi divergence for each distance.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ..accounting.renyi_curve import DEFAULT_ORDERS
from ..accounting.renyi_divergence import largest_step
from ..divergences.vector_composition import distance_prices
from ..numerics.concave_envelope import concave_envelope

# Least and largest Rényi order. Lower orders are not converted to (epsilon, delta); at higher orders tables differ little from those for a
# pure guarantee.
SMALLEST_ORDER, LARGEST_ORDER = 1.01, 256.0


@dataclass(frozen=True)
class RenyiBudget:
    """A budget for vectors whose coordinates share a table, over T rounds.

    For each order, the conversion to (epsilon, delta) permits a round's message a divergence rho. A table keeps the budget if the
    relaxation of Chaudhuri, Guo, Rabbat 2022 (program 4) is at most rho: d E(K/d) <= rho, where E is the concave envelope of the largest
    divergences of inputs k steps apart as a function of k**p, and K the p-th power of the vectors' distance. E lies below a line s u + t
    through (K/d, rho/d) if and only if its value there is at most rho/d: so a table keeps the budget if and only if, for some s from 0 to
    rho/K, no two inputs k steps apart, k**p <= K, have a divergence above ``s k**p + t``, t = (rho - s K)/d. The share s K / rho determines
    the line.

    Attributes
    ----------
    inputs, dimension : int
        Number of rows of the table, and number of coordinates of the vectors.
    norm, distance : float
        Finite order p, and largest L_p distance of two vectors on the table's unit scale.
    epsilon, delta : float
        Privacy parameters of all rounds; delta above 0.
    rounds : int
        Number T of rounds.
    """

    inputs: int
    dimension: int
    norm: float
    distance: float
    epsilon: float
    delta: float
    rounds: int = 1

    @property
    def reach(self) -> int:
        """Largest number of steps between two inputs of a coordinate."""
        return largest_step(self.inputs, self.distance)

    def divergence(self, order: float) -> float:
        """Return rho, at most 0 if the order proves nothing.

        The function inverts Canonne, Kamath, Steinke 2020, proposition 12.
        """
        if math.isinf(order):
            return self.epsilon / self.rounds
        return (self.epsilon - math.log1p(-1 / order) + math.log(self.delta * order) / (order - 1)) / self.rounds

    def orders(self) -> list[float]:
        """Return the accounts' orders, up to 256 and rising, that can prove the budget."""
        return [order for order in DEFAULT_ORDERS if SMALLEST_ORDER < order <= LARGEST_ORDER and self.divergence(order) > 0]

    def limits(self, order: float, share: float) -> FloatArray:
        """Return the divergence allowed to inputs 0, 1, ... steps apart, by a share's line.

        The shape is (inputs,).
        """
        rho = self.divergence(order)
        return rho * ((1 - share) / self.dimension + share * self.relative_prices())

    def slopes(self, order: float) -> FloatArray:
        """Return the derivative of `limits` in the share."""
        return self.divergence(order) * (self.relative_prices() - 1 / self.dimension)

    def share(self, divergences: FloatArray) -> float:
        """Return the share of the line that touches the envelope of a table's divergences.

        The divergences, of shape (inputs,), are the largest for each distance, and the line touches the envelope at K/d. With that line,
        scaled, the table itself is within its limits.
        """
        reachable = slice(self.reach + 1)
        prices = self.relative_prices()[reachable]
        envelope = concave_envelope(prices, divergences[reachable])
        segment = int(np.searchsorted(envelope.costs, 1 / self.dimension))
        if segment == len(envelope.costs):
            return 0.0
        slope = (envelope.values[segment] - envelope.values[segment - 1]) / (envelope.costs[segment] - envelope.costs[segment - 1])
        return float(slope / self.dimension / envelope.value(1 / self.dimension))

    def relative_prices(self) -> FloatArray:
        """Return ``k**p / K`` for each distance."""
        spending = distance_prices(self.inputs, self.norm, self.distance)
        return spending.prices / spending.budget
