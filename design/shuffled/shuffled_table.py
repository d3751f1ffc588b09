"""Mean estimation by shuffled letters of a lookup table."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_probability
from ...arrays import FloatArray
from ...solvers.divergences.shuffled_letters import MOST_CLIENTS
from ..contracts.guarantee import Guarantee
from ..contracts.privacy import Privacy
from ..tables.lookup_table import LookupTable
from ..tables.table_facts import realised_epsilon
from ..tables.table_mean import TableMeanMechanism
from ..transforms.dithering import finite_values, grid_position
from .shuffled_mechanism import CountedMechanism
from .shuffled_privacy import shuffled_privacy


def shuffled_table_privacy(table: LookupTable, clients: int) -> Privacy:
    """Return the privacy of a table's shuffled letters, from its whole numbers."""
    return shuffled_privacy(table.weights, realised_epsilon(table.weights, None), clients)


@dataclass(frozen=True, eq=False)
class ShuffledTableMechanism(CountedMechanism, TableMeanMechanism):
    """Mean estimation with a lookup table whose server sees the number of each letter.

    Attributes
    ----------
    table : LookupTable
        The table.
    clients : int
        Number of clients, from 1 to 10**12.
    delta : float
        Failure probability of `guarantee`, from 0, for the letters' own privacy, to below 1.
    survivors : int or None
        Number of clients whose letters suffice for the guarantee, if others drop out; None for all clients.

    Examples
    --------
    >>> import numpy as np
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> mechanism = ShuffledTableMechanism(generalised_randomised_response(3.0, 2), clients=10_000, delta=1e-6)
    >>> round(mechanism.guarantee.epsilon, 3), mechanism.guarantee.trust_model
    (0.215, 'shuffled')
    >>> mechanism.bits_per_client, round(mechanism.secure_sum_bits, 1)
    (2.0, 53.2)
    """

    clients: int = 1
    delta: float = 1e-5
    survivors: int | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))
        if self.survivors is not None:
            object.__setattr__(self, "survivors", check_integer("survivors", self.survivors, low=1, high=MOST_CLIENTS))
        object.__setattr__(self, "delta", 0.0 if self.delta == 0 else check_probability("delta", self.delta))

    @property
    def letters(self) -> int:
        """Number of the table's letters."""
        return len(self.table.alphabet)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of the histogram of a number of clients' letters, for any other clients' values."""
        return shuffled_table_privacy(self.table, clients)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one round for any two inputs, without the metric."""
        return self.privacy().guarantee(self.delta, self.adjacency)

    def letter_law(self, value: ArrayLike) -> FloatArray:
        """Return each letter's probability, by a mixture of two rows between grid points."""
        steps = len(self.table.weights) - 1
        position = float(grid_position(finite_values("value", value), self.interval, steps))
        lower = min(int(position), steps - 1)
        rows = self.table.probabilities[lower : lower + 2]
        return np.asarray(rows[0] + (position - lower) * (rows[1] - rows[0]))
