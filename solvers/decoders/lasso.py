"""The Lasso: a sparse vector from noisy linear observations, with a certified duality gap.

Tibshirani 1996; as a decoder of sums under secure aggregation: Chen, Choquette-Choo, Kairouz, Suresh 2022, algorithm 3. scikit-learn's
coordinate descent solves dense problems, the accelerated proximal gradient method all others; `noise_penalty` derives the penalty from the
noise in the observations.

The accelerated proximal gradient method (FISTA: Beck, Teboulle 2009) has an adaptive restart (O'Donoghue, Candes 2015). A step from a place
b with curvature L is soft-thresholding: x_i = sign(u_i) max(|u_i| - penalty / L, 0), u = b + S^T (y - S b) / (m L). It lowers the objective
below that of b if |S (x - b)|^2 <= m L |x - b|^2, which the method checks. Each step starts beyond the last place, in the direction of the
previous step. If that direction points uphill, or raises the objective by more than rounding, the method restarts from the last place
itself: it cannot diverge. Images and correlations are affine in the vector, so that those of a place between or beyond others need no
product: an iteration takes one product with S and one with its transpose, which also give its duality gap.

`refit_support` solves least squares on the support of the Lasso's solution: the Lasso shrinks entries, and the refit undoes that.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, lsmr

from ...arguments import check_choice, check_integer, check_probability, check_real
from ...arrays import FloatArray, IndexArray
from ...errors import ConvergenceError
from ...extras import optional
from ..numerics.rounding import SLACK
from .lasso_problem import Approximation, CertifiedPlace, LassoProblem, Place, finite_array, pose_problem

# Status with which LSMR stops at its iteration limit.
LIMIT_REACHED = 7

LARGEST_DIMENSION = 2**62
LARGEST_SCALE = 1e150

# Share of the tolerance that scikit-learn gets: the rest is for rounding.
SHARE = 0.5

# Ratio of the first step's curvature to its estimate, which is a lower bound.
CAUTION = 1.02

SOLVERS = ("auto", "coordinate-descent", "fista")
SMALLEST_PENALTY, LARGEST_PENALTY = 1e-300, 1e300
# Smallest gap; below it, rounding errors could be the whole gap.
SMALLEST_TOLERANCE = 1e-11
MOST_ITERATIONS = 10**9


@dataclass(frozen=True, eq=False)
class LassoSolution:
    """A vector x with a bound on its distance from the Lasso's least objective.

    The objective is ``|y - S x|^2 / (2 m) + penalty |x|_1``. The gap is a certificate: objective minus a dual value, both recomputed from
    `solution` alone, whichever solver found it, plus a bound on their rounding errors. For a matrix that bound is proven, except for
    underflow. For an operator it assumes that products are off by at most 1024 roundings of the numbers that they return, 1.1e-13 for
    float64, relative to the operator's largest singular value, as estimated, times the vector's norm.

    Attributes
    ----------
    solution : ndarray of shape (dimension,)
        The vector; most entries are exactly 0.
    penalty : float
        Weight of the L1 norm.
    objective : float
        The objective at the solution.
    duality_gap : float
        Upper bound on the objective minus the least objective.
    relative_gap : float
        The gap over ``|y|^2 / (2 m)``, the objective at zero; 0 if that is 0.
    iterations : int
        Number of iterations of the solver; 0 if zero is the solution, or the start was good enough.
    solver : str
        ``"coordinate-descent"`` or ``"fista"``.
    """

    solution: FloatArray
    penalty: float
    objective: float
    duality_gap: float
    relative_gap: float
    iterations: int
    solver: str

    @property
    def support(self) -> IndexArray:
        """Indices of the entries that are not 0, rising."""
        return np.flatnonzero(self.solution)


@dataclass(frozen=True, eq=False)
class LassoPath:
    """Solutions at several penalties, from the largest to the smallest."""

    solutions: tuple[LassoSolution, ...]

    @property
    def penalties(self) -> FloatArray:
        """The penalties, falling."""
        return np.array([solution.penalty for solution in self.solutions])


def solve_lasso(
    matrix_or_operator: Any,
    observations: ArrayLike,
    penalty: float,
    *,
    solver: str = "auto",
    start: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 10_000,
) -> LassoSolution:
    """Minimise ``|y - S x|^2 / (2 m) + penalty |x|_1`` over x, and certify the result.

    Parameters
    ----------
    matrix_or_operator : array_like, sparse matrix or LinearOperator, of shape (m, d)
        Matrix S: real, with m below, at or above d. An operator needs ``matvec`` and ``rmatvec``; it is never turned into a matrix.
    observations : array_like of shape (m,)
        Observations y.
    penalty : float
        Weight of the L1 norm, above 0; `noise_penalty` derives one from the noise. From `critical_penalty` on, the solution is exactly 0.
    solver : str
        ``"coordinate-descent"``, by scikit-learn, for arrays; ``"fista"``, accelerated proximal gradients, for everything; ``"auto"``, the
        first for arrays, the second for sparse matrices and operators.
    start : array_like of shape (d,) or None
        Vector to start from; None for 0.
    tolerance : float
        Largest duality gap, relative to the objective at zero, ``|y|^2 / (2 m)``; 1e-11 to 1.
    max_iterations : int
        Largest number of iterations, each of one product with S and one with its transpose, or equivalent work.

    Raises
    ------
    ValueError
        If an argument is out of range, not finite, or of the wrong shape, or `rmatvec` does not multiply by the transpose.
    ConvergenceError
        If the tolerance is not reached: the function returns nothing then.

    Examples
    --------
    >>> lasso = solve_lasso([[1.0, 0.0], [0.0, 1.0]], [3.0, -0.5], penalty=0.5)
    >>> lasso.solution.tolist(), lasso.duality_gap < 1e-11
    ([2.0, 0.0], True)
    """
    problem = pose_problem(matrix_or_operator, observations)
    chosen = _choose(solver, problem)
    begin = None if start is None else _check_start(start, problem)
    return _solve(problem, _check_penalty("penalty", penalty), chosen, begin, *_check_effort(tolerance, max_iterations))


def lasso_path(
    matrix_or_operator: Any,
    observations: ArrayLike,
    penalties: Iterable[float],
    *,
    solver: str = "auto",
    tolerance: float = 1e-6,
    max_iterations: int = 10_000,
) -> LassoPath:
    """Solve for several penalties, each from the solution of the next larger penalty.

    Parameters and errors are those of `solve_lasso`.

    Examples
    --------
    >>> path = lasso_path([[1.0, 0.0], [0.0, 1.0]], [3.0, -0.5], penalties=[0.1, 1.5])
    >>> [(lasso.penalty, lasso.solution.round(9).tolist()) for lasso in path.solutions]
    [(1.5, [0.0, 0.0]), (0.1, [2.8, -0.3])]
    """
    problem = pose_problem(matrix_or_operator, observations)
    chosen = _choose(solver, problem)
    effort = _check_effort(tolerance, max_iterations)
    falling = sorted((_check_penalty("penalties", penalty) for penalty in penalties), reverse=True)
    if not falling:
        raise ValueError("penalties must have at least one number, got none")
    solutions: list[LassoSolution] = []
    for penalty in falling:
        start = solutions[-1].solution if solutions else None
        solutions.append(_solve(problem, penalty, chosen, start, *effort))
    return LassoPath(tuple(solutions))


def critical_penalty(matrix_or_operator: Any, observations: ArrayLike) -> float:
    """Return the least penalty at which the Lasso's solution is zero, |S^T y|_inf / m.

    A path of penalties begins at this penalty.

    Examples
    --------
    >>> critical_penalty([[1.0, 0.0], [0.0, 1.0]], [3.0, -0.5])
    1.5
    """
    return pose_problem(matrix_or_operator, observations).critical_penalty


def _solve(
    problem: LassoProblem, penalty: float, solver: str, start: FloatArray | None, tolerance: float, max_iterations: int
) -> LassoSolution:
    place = problem.certify(np.zeros(problem.dimension), penalty)
    iterations = 0
    if penalty < problem.critical_penalty:
        if start is not None:
            begin = problem.certify(start, penalty)
            # Ignore a start that is worse than zero.
            place = begin if begin.objective < place.objective else place
        run = coordinate_descent if solver == "coordinate-descent" else accelerated_proximal
        # Adding 0.0 removes the signs of zeros.
        approximation = run(problem, penalty, place, tolerance, max_iterations)
        place, iterations = problem.certify(approximation.vector + 0.0, penalty), approximation.iterations
    scale = problem.objective_at_zero
    relative = place.gap / scale if scale > 0 else 0.0
    return LassoSolution(place.vector, penalty, place.objective, place.gap, relative, iterations, solver)


def _choose(solver: str, problem: LassoProblem) -> str:
    check_choice("solver", solver, SOLVERS)
    if solver == "auto":
        return "fista" if problem.matrix is None else "coordinate-descent"
    if solver == "coordinate-descent" and problem.matrix is None:
        raise ValueError(
            "solver must be 'fista' or 'auto' for sparse matrices and operators, got 'coordinate-descent', which needs an array"
        )
    return solver


def _check_penalty(name: str, penalty: float) -> float:
    return check_real(name, penalty, low=SMALLEST_PENALTY, high=LARGEST_PENALTY)


def _check_start(start: ArrayLike, problem: LassoProblem) -> FloatArray:
    vector = finite_array("start", start, 1)
    if len(vector) != problem.dimension:
        raise ValueError(f"start must have {problem.dimension} numbers, one for each column of the matrix, got {len(vector)}")
    return vector


def _check_effort(tolerance: float, max_iterations: int) -> tuple[float, int]:
    return (
        check_real("tolerance", tolerance, low=SMALLEST_TOLERANCE, high=1.0),
        check_integer("max_iterations", max_iterations, low=1, high=MOST_ITERATIONS),
    )


def accelerated_proximal(
    problem: LassoProblem, penalty: float, start: CertifiedPlace, tolerance: float, max_iterations: int
) -> Approximation:
    """Return a vector whose duality gap is at most `tolerance` times the objective at zero.

    Raises
    ------
    ConvergenceError
        If the gap is larger after `max_iterations`.
    """
    target = tolerance * problem.objective_at_zero
    curvature = max(CAUTION * problem.spectral_norm**2 / problem.measurements, math.ulp(0.0))
    last, base, momentum = start, Place(start.vector, start.image, start.correlations), 1.0
    for iteration in range(max_iterations + 1):
        if last.gap <= target:
            return Approximation(last.vector, iteration)
        vector = _proximal_step(base, penalty, curvature)
        if (base.vector - vector) @ (vector - last.vector) > 0:
            base, momentum = last, 1.0
            vector = _proximal_step(base, penalty, curvature)
        image = problem.forward(vector)
        length = float(np.linalg.norm(vector - base.vector))
        rounding = 4 * problem.product_error * float(np.linalg.norm(vector))
        if float(np.linalg.norm(image - base.image)) > math.sqrt(problem.measurements * curvature) * length + rounding:
            curvature *= 2
            base, momentum = last, 1.0
            continue
        place = problem.certify(vector, penalty, image)
        if place.objective > last.objective * (1 + SLACK) and base is not last:
            base, momentum = last, 1.0
            continue
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        base, last, momentum = _beyond(last, place, (momentum - 1) / grown), place, grown
    raise problem.not_converged(last.gap, tolerance, max_iterations)


def _proximal_step(base: Place, penalty: float, curvature: float) -> FloatArray:
    moved = base.vector + base.correlations / curvature
    # Entries within the clipping range become exactly zero.
    stepped: FloatArray = moved - np.clip(moved, -penalty / curvature, penalty / curvature)
    return stepped


def _beyond(before: Place, place: Place, weight: float) -> Place:
    """Return the place beyond `place`, by a share of its distance from the previous place."""
    if weight == 0:
        return place
    return Place(
        place.vector + weight * (place.vector - before.vector),
        place.image + weight * (place.image - before.image),
        place.correlations + weight * (place.correlations - before.correlations),
    )


def coordinate_descent(
    problem: LassoProblem, penalty: float, start: CertifiedPlace, tolerance: float, max_iterations: int
) -> Approximation:
    """Return a vector whose duality gap is at most `tolerance` times the objective at zero.

    An iteration updates every coordinate once.

    Raises
    ------
    ConvergenceError
        If the gap is larger after `max_iterations`.
    """
    # Loading scikit-learn takes about a second.
    with optional("sklearn", "the solver coordinate-descent"):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso

    # scikit-learn's gap is m times this gap, and its tolerance is relative to |y|^2, 2 m times the objective at zero.
    model = Lasso(alpha=penalty, fit_intercept=False, tol=SHARE * tolerance / 2, max_iter=max_iterations, warm_start=True)
    model.coef_ = np.array(start.vector)
    with warnings.catch_warnings():
        # The gap computed below decides about convergence.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(problem.matrix, problem.observations)
    vector = np.array(model.coef_, dtype=float)
    gap = problem.certify(vector, penalty).gap
    if gap > tolerance * problem.objective_at_zero:
        raise problem.not_converged(gap, tolerance, max_iterations)
    return Approximation(vector, int(model.n_iter_))


def noise_penalty(
    dimension: int, noise_deviation: float, largest_column_norm: float, measurements: int, failure_probability: float = 0.05
) -> float:
    """Return a penalty that exceeds the noise's correlations with high probability.

    For a matrix S of m rows and d columns, noise w has |S^T w|_inf / m <= penalty, except with probability q. The penalty is sqrt(2 ln(2 d
    / q)) * noise deviation * largest column norm / m, rounded up. It holds for independent Gaussian numbers w_i of mean 0, and for
    sub-Gaussian numbers, E exp(s w_i) <= exp(s^2 deviation^2 / 2) for every s, such as discrete Gaussian noise; S may be random, if it is
    independent of w. Proof: s_j.w, for a column s_j, is a sum of independent terms, hence sub-Gaussian with t = |s_j| deviation. By
    Chernoff's bound |s_j.w| >= u has a probability of at most 2 exp(-u^2 / (2 t^2)), which is q / d for u = t sqrt(2 ln(2 d / q)); there
    are d columns, and each has at most the largest norm.

    Chen, Choquette-Choo, Kairouz, Suresh 2022, corollary H.6, as printed, is larger by a factor of about sqrt(m) / 2.

    Parameters
    ----------
    dimension : int
        Number d of columns.
    noise_deviation : float
        Standard deviation of the noise of one measurement, or its sub-Gaussian parameter; above 0.
    largest_column_norm : float
        Largest Euclidean norm of a column, about sqrt(m) for entries of variance 1; above 0.
    measurements : int
        Number m of rows.
    failure_probability : float
        Probability q, above 0 and below 1.

    Examples
    --------
    >>> round(noise_penalty(dimension=1000, noise_deviation=1.0, largest_column_norm=200**0.5, measurements=200), 3)
    0.326
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    deviation = check_real("noise_deviation", noise_deviation, low=1 / LARGEST_SCALE, high=LARGEST_SCALE)
    norm = check_real("largest_column_norm", largest_column_norm, low=1 / LARGEST_SCALE, high=LARGEST_SCALE)
    measurements = check_integer("measurements", measurements, low=1, high=LARGEST_DIMENSION)
    probability = check_probability("failure_probability", failure_probability)
    return math.sqrt(2 * math.log(2 * dimension / probability)) * deviation * norm / measurements


@dataclass(frozen=True, eq=False)
class SupportRefit:
    """The vector of least |y - S x|^2 on a support, of least norm among several.

    Attributes
    ----------
    solution : ndarray of shape (dimension,)
        Least-squares vector.
    support : ndarray of shape (entries,)
        Indices of the support, rising.
    residual_norm : float
        Norm of the residual, |y - S x|.
    iterations : int
        Number of iterations of LSMR; 0 for a matrix, which is factorised.
    """

    solution: FloatArray
    support: IndexArray
    residual_norm: float
    iterations: int


def refit_support(
    matrix_or_operator: Any, observations: ArrayLike, support: ArrayLike, *, tolerance: float = 1e-10, max_iterations: int = 10_000
) -> SupportRefit:
    """Return the least squares on a support, such as a `LassoSolution`'s.

    The estimate has no bias if the support holds all entries that are not 0.

    Parameters
    ----------
    matrix_or_operator, observations
        Matrix S and observations y, as in `solve_lasso`. An operator is only multiplied by (LSMR: Fong, Saunders 2011).
    support : array_like of shape (entries,)
        Distinct indices from 0, in any order; possibly none, and at most as many as observations.
    tolerance : float
        Tolerance of LSMR, from 1e-14 to 1: |S^T r| <= tolerance |S| |r| on the support, with r the residual, or |r| <= tolerance (|S| |x| +
        |y|).
    max_iterations : int
        Largest number of iterations of LSMR.

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
