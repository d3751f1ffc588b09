"""Lower bounds on an estimate's error from priors: the worst case is at least the average.

`docs/proofs/compression-limits.md` has the proofs.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...arrays import FloatArray

# Share by which bounds are lowered, which exceeds the rounding error of all their formulas.
ROUNDING = 1e-9
# Ratio of successive group sizes that the search tries.
GROUP_RATIO = 1.1


@dataclass(frozen=True, eq=False)
class PriorRisks:
    """Proven risks of some priors, with an entry for each prior.

    Attributes
    ----------
    second_moments : ndarray
        Mean squared norm P of the estimated vector.
    odds : ndarray
        Upper bounds on P/D - 1, explained over unexplained variance, where D is the least mean squared error of any estimate.
    """

    second_moments: FloatArray
    odds: FloatArray

    def error(self) -> float:
        """Return the best lower bound P/(1 + odds) <= D on the worst mean squared error."""
        return float(np.max(self.second_moments / (1 + self.odds))) * (1 - ROUNDING)

    def unbiased_error(self) -> float:
        """Return the best lower bound P/odds <= P D/(P - D) for unbiased estimates."""
        with np.errstate(divide="ignore"):
            return float(np.max(self.second_moments / self.odds)) * (1 - ROUNDING)


# The parts of a bound need the group sizes of the same numbers of clients; even the most clients have only a few hundred sizes.
@lru_cache(maxsize=256)
def group_sizes(most: int) -> FloatArray:
    """Return whole numbers from 1 to `most`, about `GROUP_RATIO` apart, as a read-only array."""
    count = int(np.ceil(np.log(most) / np.log(GROUP_RATIO))) + 1
    sizes: FloatArray = np.unique(np.append(np.floor(np.geomspace(1, most, count)), most))
    sizes.setflags(write=False)
    return sizes


def group_weights(sizes: FloatArray, clients: int) -> FloatArray:
    """Return the second moment of the mean when each group of a given size shares a vector.

    The vectors have second moment 1. Groups are independent, and clients that are left over hold zero.
    """
    return np.floor(clients / sizes) * (sizes / clients) ** 2
