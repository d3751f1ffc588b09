"""The best table with two letters, in closed form."""

import numpy as np

from ..bounds.privacy_constraint import RatioConstraint
from .starting_alphabets import least_reach
from .table import Table


def one_bit_table(inputs_count: int, constraint: RatioConstraint) -> Table:
    """Return the best table with two letters, for every objective.

    Unbiased rows with letters a < b have probabilities linear in x and variance (x - a)(b - x), smallest for every x when both letters
    reach no farther than privacy demands. For local privacy this is the one-bit mechanism of Girgis et al. (CLDP).
    """
    reach = least_reach(inputs_count, constraint)
    upper = (np.linspace(0.0, 1.0, inputs_count) + reach) / (1 + 2 * reach)
    return Table(np.stack([1 - upper, upper], axis=1), np.array([-reach, 1 + reach]))
