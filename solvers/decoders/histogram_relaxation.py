"""The linear relaxation of a histogram's integer program: counts of any size, none negative, with the same sums."""

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from .histogram_problem import HistogramProblem


def relaxed_histogram(problem: HistogramProblem) -> FloatArray:
    """Return real numbers mu >= 0 with sum n and S mu = y, shape (dimension,), up to the tolerances of the solver.

    A vertex of all such vectors, which is the histogram where it is the only one. As their sum is known, all have the same L1 norm: this is
    basis pursuit that knows no count to be negative.

    Raises
    ------
    InfeasibleError
        If there is none.
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
    found = linprog(np.zeros(equations.shape[1]), A_eq=equations, b_eq=sums, method="highs-ds")
    if found.status == 2:
        raise InfeasibleError(f"no vector without negative entries has these {len(problem.sums)} sums and the sum {problem.clients}")
    if found.status != 0:
        raise ConvergenceError(f"the linear relaxation of a histogram was not solved: {found.message}")
    return np.asarray(found.x, dtype=float)
