"""Subspace pursuit: a vector with few positive entries from noisy linear observations.

The algorithm guesses, refits and corrects a support of limited size in turns.

Needell, Tropp 2009, *CoSaMP: iterative signal recovery from incomplete and inaccurate samples*; Dai, Milenkovic 2009, *Subspace pursuit*.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IndexArray

MOST_ENTRIES = 2**31
MOST_ROUNDS = 20
# Largest number of iterations of LSMR. A few columns of a sketch are nearly orthogonal, and take about ten iterations.
MOST_ITERATIONS, TOLERANCE = 100, 1e-10


@dataclass(frozen=True, eq=False)
class PursuedSupport:
    """Least squares on the pursued support.

    Attributes
    ----------
    support : ndarray of int, shape (entries,)
        Indices of entries that are not 0, rising; at most `sparsity` of them.
    values : ndarray, shape (entries,)
        Values of the entries, which exceeded the threshold when the support was chosen.
    residual_norm : float
        Norm of the observations' residual.
    rounds : int
        Number of corrections of the support.
    """

    support: IndexArray
    values: FloatArray
    residual_norm: float
    rounds: int


def pursue_support(
    columns: Callable[[IndexArray], Any],
    proxy: Callable[[FloatArray], FloatArray],
    observations: ArrayLike,
    sparsity: int,
    threshold: float = 0.0,
) -> PursuedSupport:
    """Find at most `sparsity` positive entries with small residuals, each above a threshold.

    In each round, the largest entries of the residual's `proxy` join the support; least squares on the joined support decides which entries
    to keep. The search ends when the residual no longer falls.

    Parameters
    ----------
    columns : callable
        Function that returns some columns of the matrix, as a sparse array of shape (observations, places).
    proxy : callable
        Function that returns a rough estimate of all entries from observations.
    observations : array_like of shape (observations,)
        Noisy linear observations.
    sparsity : int
        Largest number of entries that are not 0, below the number of observations.
    threshold : float
        Threshold that kept entries exceed, at least 0.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> matrix = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    >>> pursued = pursue_support(lambda places: csc_array(matrix[:, places]), lambda rest: matrix.T @ rest / 2, [3.0, 3.0, 0.0], 1)
    >>> pursued.support.tolist(), pursued.values.round(6).tolist()
    ([1], [3.0])
    """
    observed = np.asarray(observations, dtype=float)
    sparsity = check_integer("sparsity", sparsity, low=1, high=min(MOST_ENTRIES, len(observed) - 1))
    threshold = check_real("threshold", threshold, low=0.0, high=1e300)
    support: IndexArray = np.empty(0, dtype=np.intp)
    best = PursuedSupport(support, np.empty(0), float(np.linalg.norm(observed)), 0)
    residual = observed
    for rounds in range(1, MOST_ROUNDS + 1):
        estimate = proxy(residual)
        # Least squares can distinguish at most as many columns as observations.
        joining = min(sparsity, len(estimate), len(observed) - 1 - len(best.support))
        if joining < 1:
            break
        candidates = np.union1d(best.support, np.argpartition(-estimate, joining - 1)[:joining])
        fitted = _least_squares(columns(candidates), observed)
        kept = np.argsort(-fitted, kind="stable")[:sparsity]
        support = np.sort(candidates[kept[fitted[kept] > threshold]])
        matrix = columns(support)
        values = _least_squares(matrix, observed)
        residual = observed - matrix @ values
        norm = float(np.linalg.norm(residual))
        if norm >= best.residual_norm * (1 - 1e-9):
            break
        best = PursuedSupport(support, values, norm, rounds)
    return best


def _least_squares(matrix: Any, observed: FloatArray) -> FloatArray:
    from scipy.sparse.linalg import lsmr

    if matrix.shape[1] == 0:
        return np.empty(0)
    return np.asarray(lsmr(matrix, observed, atol=TOLERANCE, btol=TOLERANCE, maxiter=MOST_ITERATIONS)[0])
