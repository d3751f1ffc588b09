"""Lower bounds on the error of an estimate from priors: what holds on average over a prior holds in the worst case.

`docs/limits.md` has the proofs.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...arrays import FloatArray

# Bounds are lowered by this share, which is more than what rounding costs in any of their formulas.
ROUNDING = 1e-9
# Numbers of clients in a group that are tried are this far apart, as a ratio.
GROUP_RATIO = 1.1


@dataclass(frozen=True, eq=False)
class PriorRisks:
    """What is proven of some priors, one entry each.

    Attributes
    ----------
    second_moments : ndarray
        P: mean squared norm of what is estimated.
    odds : ndarray
        Upper bounds on P/D - 1, where D is the least mean squared error of any estimate: explained over unexplained variance.
    """

    second_moments: FloatArray
    odds: FloatArray

    def error(self) -> float:
        """Return the best bound D = P/(1 + odds) on the largest mean squared error of every estimate; errs downward."""
        return float(np.max(self.second_moments / (1 + self.odds))) * (1 - ROUNDING)

    def unbiased_error(self) -> float:
        """Return the best bound P D/(P - D) = P/odds on the largest mean squared error of every unbiased estimate; errs downward."""
        with np.errstate(divide="ignore"):
            return float(np.max(self.second_moments / self.odds)) * (1 - ROUNDING)


# Every part of a bound asks for the sizes of the same numbers; with the most clients there are a few hundred of them.
@lru_cache(maxsize=256)
def group_sizes(most: int) -> FloatArray:
    """Return whole numbers from 1 to `most`, about `GROUP_RATIO` apart; not to be written to."""
    count = int(np.ceil(np.log(most) / np.log(GROUP_RATIO))) + 1
    sizes: FloatArray = np.unique(np.append(np.floor(np.geomspace(1, most, count)), most))
    sizes.setflags(write=False)
    return sizes


def group_weights(sizes: FloatArray, clients: int) -> FloatArray:
    """Return the second moment of the mean over the clients where groups of this size hold one vector of second moment 1 each.

    Groups are independent, and clients that are left over hold zero.
    """
    return np.floor(clients / sizes) * (sizes / clients) ** 2
