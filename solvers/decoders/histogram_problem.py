"""The problem of a histogram with given sums, and bounds that need no search.

The linear relaxation allows real counts of any size, none negative, with the same sums.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ...errors import ConvergenceError, InfeasibleError

MOST_CLIENTS = 2**20
MOST_ENTRIES = 2**28


@dataclass(frozen=True, eq=False)
class HistogramProblem:
    """The problem to find whole numbers mu >= 0 of sum n with S mu = y.

    Attributes
    ----------
    matrix : ndarray of bool, shape (measurements, dimension)
        Matrix S: whether an item counts in a measurement.
    sums : ndarray of int64, shape (measurements,)
        Sums y.
    clients : int
        Number n of items.
    """

    matrix: NDArray[np.bool_]
    sums: IntegerArray
    clients: int

    def solved_by(self, counts: NDArray[Any]) -> bool:
        """Return whether whole numbers solve the problem; exact."""
        nonzero = np.flatnonzero(counts)
        values = counts[nonzero]
        if (values < 0).any() or int(values.sum()) != self.clients:
            return False
        return bool(np.array_equal(self.matrix[:, nonzero] @ values, self.sums))

    def caps(self, lower: IntegerArray, upper: IntegerArray) -> IntegerArray | None:
        """Return upper bounds that follow from each equation alone, or None without a solution.

        Each equation and the lower bounds on all counts bound every count. A measurement that counts an item bounds it by the rest of y;
        any other measurement bounds it by the rest of n - y.
        """
        fixed = np.flatnonzero(lower)
        left = self.clients - int(lower[fixed].sum())
        inside = self.sums - self.matrix[:, fixed] @ lower[fixed]
        outside = left - inside
        if left < 0 or (inside < 0).any() or (outside < 0).any():
            return None
        room = np.full(upper.shape, left)
        # Only nearly empty or nearly full measurements can improve on n: other measurements give bounds above every upper bound.
        ceiling = int((upper - lower).max(initial=0))
        for measurement in np.flatnonzero(np.minimum(inside, outside) < ceiling):
            np.minimum(room, np.where(self.matrix[measurement], inside[measurement], outside[measurement]), out=room)
        capped: IntegerArray = np.minimum(upper, lower + room)
        return capped


def pose_histogram_problem(matrix: ArrayLike, sums: ArrayLike, clients: int) -> HistogramProblem:
    """Check shapes and values: a matrix of zeros and ones, sums from 0 to n.

    Raises
    ------
    ValueError
        If an argument has another shape or value; a sum outside 0..n is no sum of n items' entries.
    """
    clients = check_integer("clients", clients, low=0, high=MOST_CLIENTS)
    entries = np.asarray(matrix)
    if entries.ndim != 2 or 0 in entries.shape or entries.size > MOST_ENTRIES:
        raise ValueError(f"matrix must have two axes, (measurements, dimension), and at most 2**28 entries, got the shape {entries.shape}")
    if entries.dtype != np.bool_ and not np.isin(entries, (0, 1)).all():
        raise ValueError(f"matrix must have entries 0 and 1, got {entries[~np.isin(entries, (0, 1))][0]}")
    observed = np.asarray(sums)
    if observed.shape != entries.shape[:1] or observed.dtype.kind not in "iu":
        raise ValueError(f"sums must be {entries.shape[0]} whole numbers, got shape {observed.shape} of {observed.dtype}")
    outside = (observed < 0) | (observed > clients)
    if outside.any():
        raise ValueError(f"sums must be from 0 to {clients}, the number of clients, got {int(observed[outside][0])}")
    return HistogramProblem(entries.astype(np.bool_), observed.astype(np.int64), clients)


def relaxed_histogram(problem: HistogramProblem) -> FloatArray:
    """Return real numbers mu >= 0 with sum n and S mu = y, up to the solver's tolerances.

    The result, of shape (dimension,), is a vertex of the set of all such vectors, and the histogram itself if the set has no other point.
    All such vectors have the same L1 norm, as their sum is fixed: this is basis pursuit for counts that are not negative.

    Raises
    ------
    InfeasibleError
        If no such numbers exist.
    ConvergenceError
        If the solver stops early.

    Examples
    --------
    >>> from quietbits.solvers.decoders.histogram_problem import pose_histogram_problem
    >>> relaxed_histogram(pose_histogram_problem([[1, 0, 0], [1, 1, 0]], [3, 4], clients=4)).tolist()
    [3.0, 1.0, 0.0]
    """
    from scipy.optimize import linprog

    equations = np.vstack([problem.matrix, np.ones(problem.matrix.shape[1], dtype=bool)]).astype(float)
    sums = np.append(problem.sums, problem.clients).astype(float)
    program = linprog(np.zeros(equations.shape[1]), A_eq=equations, b_eq=sums, method="highs-ds")
    if program.status == 2:
        raise InfeasibleError(f"no vector without negative entries has these {len(problem.sums)} sums and the sum {problem.clients}")
    if program.status != 0:
        raise ConvergenceError(f"the linear relaxation of a histogram was not solved: {program.message}")
    return np.asarray(program.x, dtype=float)
