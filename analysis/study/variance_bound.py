"""The certified lower bound on the variance of unbiased mechanisms under a guarantee."""

from dataclasses import dataclass

import numpy as np

from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import ScalarMechanism
from ...design.tables.lookup_table import LookupTable


@dataclass(frozen=True)
class VarianceBound:
    """Lower bound on the objective of unbiased mechanisms with a guarantee and any bits.

    Attributes
    ----------
    value : float
        The lower bound, in squared units of the values.
    objective : str
        Objective: the average (``"mean"``), the largest (``"worst"``) or the prior-weighted average (``"prior"``) of the variances at the
        grid inputs.
    guarantee : Guarantee
        The guarantee of the bounded mechanisms.
    interval : tuple of float
        The grid's ends (low, high).
    bits_in : int
        Number of bits of the grid index.
    prior : tuple of float or None
        Weights of the grid inputs, for ``"prior"``.
    """

    value: float
    objective: str
    guarantee: Guarantee
    interval: tuple[float, float]
    bits_in: int
    prior: tuple[float, ...] | None = None

    def objective_of(self, protocol: ScalarMechanism) -> float:
        """Return the objective of a mechanism on the same interval, in squared units of the values."""
        variances = protocol.variance(np.linspace(*self.interval, 2**self.bits_in))
        return float(variances.max() if self.objective == "worst" else np.average(variances, weights=self.prior))

    def holds_for(self, guarantee: Guarantee) -> bool:
        """Return whether the bound also holds for mechanisms with another guarantee.

        The bound holds if the other guarantee is at least as strong. Metric privacy implies local privacy with the same epsilon, but not
        the reverse.
        """
        own = self.guarantee
        same_kind = (guarantee.adjacency, guarantee.trust_model) == (own.adjacency, own.trust_model)
        return same_kind and guarantee.epsilon <= own.epsilon and guarantee.delta == 0 and own.metric in (None, guarantee.metric)


def certified_bound(table: LookupTable) -> VarianceBound | None:
    """Return the bound of a table's certificate, on the table's interval, or None."""
    if table.certificate.lower_bound is None:
        return None
    low, high = table.interval
    value = table.certificate.lower_bound * (high - low) ** 2
    return VarianceBound(value, table.certificate.objective, table.guarantee, table.interval, table.bits_in, table.prior)
