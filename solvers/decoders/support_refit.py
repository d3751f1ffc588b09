"""Least squares on a support: takes back by how much the Lasso has shrunk the entries that it found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, lsmr

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IndexArray
from ...errors import ConvergenceError
from .lasso_problem import LassoProblem, pose_problem

MOST_ITERATIONS = 10**9
# How LSMR says that it stopped at its iteration limit.
LIMIT_REACHED = 7


@dataclass(frozen=True, eq=False)
class SupportRefit:
    """The vector with the least |y - S x|^2 among those that are 0 outside a support; of several, the one with the least norm.

    Attributes
    ----------
    solution : ndarray of shape (dimension,)
        The vector.
    support : ndarray of shape (entries,)
        The support, rising.
    residual_norm : float
        |y - S x|.
    iterations : int
        Iterations of LSMR; 0 for a matrix, which is factorised.
    """

    solution: FloatArray
    support: IndexArray
    residual_norm: float
    iterations: int


def refit_support(
    matrix_or_operator: Any, observations: ArrayLike, support: ArrayLike, *, tolerance: float = 1e-10, max_iterations: int = 10_000
) -> SupportRefit:
    """Return the least squares on a support, such as a `LassoSolution`'s; it has no bias if the support holds all entries that are not 0.

    Parameters
    ----------
    matrix_or_operator, observations
        S and y, as in `solve_lasso`. An operator is only multiplied by (LSMR: Fong, Saunders 2011).
    support : array_like of shape (entries,)
        Different indices from 0, in any order; at most as many as observations, and there may be none.
    tolerance : float
        LSMR's: |S^T r| <= tolerance |S| |r| on the support, r the residual, or |r| as small as tolerance (|S| |x| + |y|); 1e-14 to 1.
    max_iterations : int
        Most iterations of LSMR.

    Raises
    ------
    ValueError
        If an argument is out of range, not finite, or of the wrong shape.
    ConvergenceError
        If LSMR does not reach the tolerance.

    Examples
    --------
    >>> refit_support([[1.0, 0.0], [0.0, 2.0]], [3.0, -0.5], support=[1]).solution.tolist()
    [0.0, -0.25]
    """
    problem = pose_problem(matrix_or_operator, observations)
    indices = _check_support(support, problem)
    tolerance = check_real("tolerance", tolerance, low=1e-14, high=1.0)
    max_iterations = check_integer("max_iterations", max_iterations, low=1, high=MOST_ITERATIONS)
    solution = np.zeros(problem.dimension)
    iterations = 0
    if len(indices) and problem.matrix is not None:
        solution[indices] = np.linalg.lstsq(problem.matrix[:, indices], problem.observations)[0]
    elif len(indices):
        values, stopped, iterations, *_ = lsmr(
            _restricted(problem, indices), problem.observations, atol=tolerance, btol=tolerance, conlim=0, maxiter=max_iterations
        )
        if stopped == LIMIT_REACHED:
            raise ConvergenceError(
                f"least squares on {len(indices)} columns did not reach the tolerance {tolerance:g} in {max_iterations} iterations; "
                "a smaller support or a larger tolerance takes fewer"
            )
        solution[indices] = values
    residual = problem.observations - problem.forward(solution)
    return SupportRefit(solution, indices, float(np.linalg.norm(residual)), int(iterations))


def _restricted(problem: LassoProblem, indices: IndexArray) -> Any:
    """Return the operator of some columns."""

    def forward(values: FloatArray) -> FloatArray:
        vector = np.zeros(problem.dimension)
        vector[indices] = values
        return problem.forward(vector)

    def adjoint(values: FloatArray) -> FloatArray:
        return problem.adjoint(values)[indices]

    return LinearOperator((problem.measurements, len(indices)), matvec=forward, rmatvec=adjoint, dtype=float)


def _check_support(support: ArrayLike, problem: LassoProblem) -> IndexArray:
    array = np.asarray(support)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"support must be a list of indices, got an array of {array.dtype} and shape {array.shape}")
    indices = np.unique(array).astype(np.intp)
    if len(indices) < len(array):
        raise ValueError(f"support must have different indices, got {len(array) - len(indices)} of them more than once")
    if len(indices) and not 0 <= indices[0] <= indices[-1] < problem.dimension:
        outside = indices[0] if indices[0] < 0 else indices[-1]
        raise ValueError(f"support must have indices from 0 to {problem.dimension - 1}, got {outside}")
    if len(indices) > problem.measurements:
        raise ValueError(
            f"support must have at most {problem.measurements} indices, one for each observation, got {len(indices)}: a larger penalty has "
            "fewer"
        )
    return indices
