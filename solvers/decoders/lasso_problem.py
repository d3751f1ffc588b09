"""A Lasso problem: its products, and the duality gap of every point.

With r = y - S x, the objective is P(x) = |r|^2 / (2 m) + penalty |x|_1. For every vector t with |S^T t|_inf <= m penalty,
D(t) = (|y|^2 - |y - t|^2) / (2 m) is at most the least objective (Fenchel duality). Here t = a r, with the best admissible a. Then

    P(x) - D(a r) = (1 - a)^2 |r|^2 / (2 m) + sum_i (penalty |x_i| - a (S^T r)_i x_i / m),

a sum without a negative term, so that the gap keeps its digits however small it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ..numerics.rounding import SLACK, UNIT

# Number of roundings of a product with an operator of unknown code, relative to the operator's norm times the vector's.
OPERATOR_UNITS = 1024
# Number of steps of the power iteration. A rough result suffices, since the solver corrects a step that is too long.
POWER_STEPS = 20
# Larger numbers have squares that overflow, and smaller observations have squares that lose digits.
LARGEST_NUMBER, SMALLEST_OBSERVATION = 1e140, 1e-140


@dataclass(frozen=True, eq=False)
class Place:
    """A vector, its image S x, and the correlations S^T (y - S x) / m.

    All three are affine in the vector.
    """

    vector: FloatArray
    image: FloatArray
    correlations: FloatArray


@dataclass(frozen=True, eq=False)
class CertifiedPlace(Place):
    """A place with its objective, and a bound on its excess over the least objective."""

    objective: float
    gap: float


@dataclass(frozen=True, eq=False)
class Approximation:
    """A solver's vector, and the number of its iterations."""

    vector: FloatArray
    iterations: int


@dataclass(frozen=True, eq=False)
class LassoProblem:
    """Matrix and observations of a Lasso; the penalty is an argument of the methods.

    A path of penalties shares the computations with the matrix.

    Attributes
    ----------
    observations : ndarray of shape (measurements,)
        Vector of observations.
    dimension : int
        Number of columns.
    matrix : ndarray of shape (measurements, dimension) or None
        Matrix, or None for an operator.
    forward, adjoint : callable
        Products with the matrix, and with its transpose, in double precision and finite.
    unit : float
        Half the distance of 1 from the next number, in the precision of the products.
    """

    observations: FloatArray
    dimension: int
    matrix: FloatArray | None
    forward: Callable[[FloatArray], FloatArray]
    adjoint: Callable[[FloatArray], FloatArray]
    unit: float

    @property
    def measurements(self) -> int:
        """Number of observations, which is the number of the matrix's rows."""
        return len(self.observations)

    @cached_property
    def spectral_norm(self) -> float:
        """Lower bound on the largest singular value, by power iteration."""
        # The start is fixed, so that the same problem has the same solution.
        vector = np.random.default_rng(0).standard_normal(self.dimension)
        norm = 0.0
        for _ in range(POWER_STEPS):
            image = self.forward(vector / np.linalg.norm(vector))
            norm = float(np.linalg.norm(image))
            vector = self.adjoint(image)
            if not vector.any():
                break
        return norm

    @cached_property
    def product_error(self) -> float:
        """Bound on the Euclidean norm of a product's rounding error, for a vector of norm 1.

        The bound is proven for a matrix, for every order of the sums; for an operator it is the assumption that `LassoSolution` states.
        """
        if self.matrix is None:
            return OPERATOR_UNITS * self.unit * self.spectral_norm
        return float(1.01 * (max(self.matrix.shape) + 2) * self.unit * np.linalg.norm(self.matrix))

    @cached_property
    def objective_at_zero(self) -> float:
        """Objective at zero, |y|^2 / (2 m)."""
        return float(self.observations @ self.observations) / (2 * self.measurements)

    @cached_property
    def critical_penalty(self) -> float:
        """Least penalty at which the solution is zero."""
        return float(np.abs(self.adjoint(self.observations)).max()) / self.measurements

    def certify(self, vector: FloatArray, penalty: float, image: FloatArray | None = None) -> CertifiedPlace:
        """Return the objective at a vector and an upper bound on its duality gap."""
        measurements = self.measurements
        image = self.forward(vector) if image is None else image
        residual = self.observations - image
        correlations = self.adjoint(residual) / measurements
        norm, size = float(np.linalg.norm(residual)), float(np.abs(vector).sum())
        # The residual and each of its correlations have these errors, which may lower the admissible a.
        residual_error = self.product_error * float(np.linalg.norm(vector)) + 2 * UNIT * norm
        correlation_error = self.product_error * norm / measurements
        largest = float(np.abs(correlations).max()) + correlation_error
        allowed = penalty / largest * (1 - 8 * UNIT) if largest > 0 else math.inf
        square = norm * norm
        share = min(allowed, max(float(residual @ self.observations) / square, 0.0) if square > 0 else 1.0)
        distance = abs(1 - share) * norm + residual_error
        quadratic = distance * distance / (2 * measurements)
        linear = float(np.sum(penalty * np.abs(vector) - share * correlations * vector)) + share * correlation_error * size
        # A norm has at most as many roundings as numbers. numpy's sums are pairwise, so that none of 2**40 terms passes more than 200
        # additions.
        gap = quadratic * (1 + SLACK + 2 * measurements * UNIT) + linear + SLACK * penalty * size
        return CertifiedPlace(vector, image, correlations, square / (2 * measurements) + penalty * size, gap)

    def not_converged(self, gap: float, tolerance: float, max_iterations: int) -> ConvergenceError:
        """Return the error of a solver that has stopped too early."""
        return ConvergenceError(
            f"the Lasso's duality gap is {gap / self.objective_at_zero:.3g} of the objective at zero, above the tolerance {tolerance:g}, "
            f"after {max_iterations} iterations; a larger penalty, a path of falling penalties or a larger tolerance takes fewer"
        )


def pose_problem(matrix_or_operator: Any, observations: ArrayLike) -> LassoProblem:
    """Check matrix and observations, and return the problem.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite, or an operator has no transpose, or the transpose of another operator.
    """
    if isinstance(matrix_or_operator, LinearOperator) or scipy.sparse.issparse(matrix_or_operator):
        return _pose_operator(aslinearoperator(matrix_or_operator), observations)
    matrix = finite_array("matrix_or_operator", matrix_or_operator, 2)
    values = _check_observations(observations, matrix.shape)

    def forward(vector: FloatArray) -> FloatArray:
        return _product(matrix.__matmul__, vector)

    def adjoint(vector: FloatArray) -> FloatArray:
        return _product(matrix.T.__matmul__, vector)

    return LassoProblem(values, matrix.shape[1], matrix, forward, adjoint, UNIT)


def _pose_operator(operator: Any, observations: ArrayLike) -> LassoProblem:
    values = _check_observations(observations, operator.shape)
    if np.dtype(operator.dtype).kind not in "biuf":
        raise ValueError(f"matrix_or_operator must be of real numbers, got an operator of {operator.dtype}")

    def forward(vector: FloatArray) -> FloatArray:
        return _product(operator.matvec, vector)

    def adjoint(vector: FloatArray) -> FloatArray:
        return _product(operator.rmatvec, vector)

    rng = np.random.default_rng(1)
    right, left = rng.standard_normal(operator.shape[1]), rng.standard_normal(operator.shape[0])
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            types = operator.matvec(right).dtype, operator.rmatvec(left).dtype
    except NotImplementedError as error:
        raise ValueError(f"matrix_or_operator must be a LinearOperator with rmatvec, products with the transpose: {error}") from None
    units = [float(np.finfo(kind).eps) / 2 for kind in types if kind.kind == "f"]
    problem = LassoProblem(values, operator.shape[1], None, forward, adjoint, max([UNIT, *units]))
    # A certificate is valid only if rmatvec multiplies by the transpose of the matrix of matvec.
    difference = abs(float(forward(right) @ left) - float(right @ adjoint(left)))
    if difference > 2 * problem.product_error * float(np.linalg.norm(right) * np.linalg.norm(left)):
        raise ValueError(
            "matrix_or_operator must have an rmatvec that multiplies by the transpose of matvec, in the precision of the numbers that they "
            f"return; for random vectors, u.(S v) and (S^T u).v differ by {difference:.3g}"
        )
    return problem


def finite_array(name: str, values: ArrayLike, dimensions: int) -> FloatArray:
    """Return finite values as a float array with the given number of axes.

    No axis may have length 0.
    """
    try:
        raw = np.asarray(values)
        array = raw.astype(float, copy=False) if raw.dtype.kind in "biuf" else None
    except (OverflowError, TypeError, ValueError):
        array = None
    if array is None or array.ndim != dimensions or array.size == 0:
        shape = "a matrix" if dimensions == 2 else "a vector"
        got = f"an array of {raw.dtype} and shape {raw.shape}" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
        raise ValueError(f"{name} must be {shape} of real numbers that is not empty, got {got}")
    inside = np.abs(array) <= LARGEST_NUMBER
    if not inside.all():
        raise ValueError(f"{name} must hold numbers from {-LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}, got {float(array[~inside][0])!r}")
    return array


def _check_observations(observations: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    if min(shape) == 0:
        raise ValueError(f"matrix_or_operator must have rows and columns, got the shape {shape}")
    values = finite_array("observations", observations, 1)
    if len(values) != shape[0]:
        raise ValueError(f"observations must have {shape[0]} numbers, one for each row of the matrix, got {len(values)}")
    largest = float(np.abs(values).max())
    if 0 < largest < SMALLEST_OBSERVATION:
        raise ValueError(f"observations must be 0, or one of them at least {SMALLEST_OBSERVATION:g}, got {largest:g} as the largest")
    return values


def _product(multiply: Callable[[FloatArray], Any], vector: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        product: FloatArray = np.asarray(multiply(vector), dtype=float)
    largest = float(np.abs(product).max())
    if not largest <= LARGEST_NUMBER:
        raise ValueError(f"matrix_or_operator must have products of absolute value up to {LARGEST_NUMBER:g}, got {largest:g}")
    return product
