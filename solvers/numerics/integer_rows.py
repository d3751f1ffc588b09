"""Whole-number rows with a prescribed sum and first moment, close to a given row.

`reduced_basis` reduces integer lattice bases by the LLL algorithm in whole numbers.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import gcd, lcm, prod, sqrt

Vector = list[int]

# Weight that makes every vector that violates an equation longer than every reduced vector that meets both, which has far fewer bits.
PENALTY = 2**200


@dataclass(frozen=True)
class RowLattice:
    """All integer vectors d, sorted by sum_j d_j and sum_j d_j m_j, for fixed integers m_j.

    Attributes
    ----------
    sum_step, moment_step : list of int
        Vectors with sum 1 and moment 0, and with sum 0 and moment 1.
    kernel : list of list of int
        Reduced basis of the vectors whose sum and moment are both 0; two fewer than there are letters.
    scales : list of int
        Weight of each component in the norm.
    """

    sum_step: Vector
    moment_step: Vector
    kernel: list[Vector]
    scales: Vector

    def coarseness(self, costs: list[float]) -> float:
        """Return half the cost of a kernel vector's costliest entry; 0.0 without a kernel.

        Each component has a cost per unit. The result is of the order of the distance between a target and the result of `nearest`.
        """
        return max((abs(entry) * cost / 2 for vector in self.kernel for entry, cost in zip(vector, costs, strict=True)), default=0.0)

    @cached_property
    def projections(self) -> list[Vector]:
        """Multiples of the kernel vectors' components orthogonal to the previous vectors.

        Orthogonality is in the weighted norm.
        """
        return _projections(self.kernel, self.scales)

    def nearest(self, target: Vector, total: int, moment: int) -> Vector:
        """Return an integer vector with a given sum and moment, near a target.

        The vector w has sum_j w_j = `total` and sum_j w_j m_j = `moment` exactly (Babai's nearest plane); the target need not meet the
        equations. The vector is near the target's projection on their plane.
        """
        error = [
            total * sum_part + moment * moment_part - wish
            for sum_part, moment_part, wish in zip(self.sum_step, self.moment_step, target, strict=True)
        ]
        for vector, projection in zip(reversed(self.kernel), reversed(self.projections), strict=True):
            multiple = nearest_integer(dot(error, projection), dot(vector, projection))
            error = [own - multiple * moment_part for own, moment_part in zip(error, vector, strict=True)]
        return [wish + own for wish, own in zip(target, error, strict=True)]


def row_lattice(positions: Vector, scales: Vector) -> RowLattice:
    """Prepare the search for rows with given sum and moment.

    One LLL reduction of the rows [scale_j e_j | N | N m_j], with a large N, gives the kernel (the vectors with N-part zero come first) and,
    in the last two vectors, solutions of the two equations. It includes the extended Euclidean algorithm.

    Parameters
    ----------
    positions : list of int
        The integers m_j, at least two different numbers; the greatest common divisor of their differences must be 1, for every moment to be
        attainable.
    scales : list of int
        Positive weight of each component in the norm: components with large weights are changed least.

    Examples
    --------
    >>> lattice = row_lattice([0, 3, 7], [1, 1, 1])
    >>> lattice.kernel, lattice.nearest([10, 10, 10], 31, 101)
    ([[-4, 7, -3]], [12, 8, 11])
    """
    divisor = gcd(*(position - positions[0] for position in positions))
    if divisor != 1:
        raise ValueError(f"positions must have differences with no common divisor, got {positions!r} with divisor {divisor}")
    letters = len(positions)
    rows = [
        [*(scale if i == j else 0 for i in range(letters)), PENALTY, PENALTY * position]
        for j, (scale, position) in enumerate(zip(scales, positions, strict=True))
    ]
    vectors = [[entry // scale for entry, scale in zip(row[:letters], scales, strict=True)] for row in reduced_basis(rows)]
    kernel, (first, second) = vectors[:-2], vectors[-2:]
    (first_sum, first_moment), (second_sum, second_moment) = ((sum(vector), dot(vector, positions)) for vector in (first, second))
    # The two remaining vectors map one to one onto the plane of (sum, moment). The determinant is 1 or -1, which is its own inverse.
    sign = first_sum * second_moment - second_sum * first_moment
    sum_step = [
        sign * (second_moment * first_entry - first_moment * second_entry) for first_entry, second_entry in zip(first, second, strict=True)
    ]
    moment_step = [
        sign * (first_sum * second_entry - second_sum * first_entry) for first_entry, second_entry in zip(first, second, strict=True)
    ]
    return RowLattice(sum_step, moment_step, kernel, scales)


def least_coarseness(positions: Vector, costs: list[float]) -> float:
    """Return a lower bound on `RowLattice.coarseness`, up to floating-point rounding.

    The bound needs no search for short vectors. Let the kernel's entries be multiplied by the costs. By Hadamard's inequality, no basis of
    the kernel has only vectors that are shorter than its determinant allows. That determinant is the product of the costs times the root of
    the Gram determinant of the two equations, their entries divided by the costs.
    """
    letters = len(positions)
    if letters == 2:
        return 0.0
    gram = sum(((positions[i] - positions[j]) / (costs[i] * costs[j])) ** 2 for i, j in combinations(range(letters), 2))
    return float((prod(costs) * sqrt(gram)) ** (1 / (letters - 2)) / sqrt(letters) / 2)


def _projections(kernel: list[Vector], scales: Vector) -> list[Vector]:
    squares = [scale**2 for scale in scales]
    orthogonal: list[list[Fraction]] = []
    for vector in kernel:
        exact = [Fraction(entry) for entry in vector]
        rest = exact
        for earlier in orthogonal:
            weighted = [square * entry for square, entry in zip(squares, earlier, strict=True)]
            share = _product(weighted, exact) / _product(weighted, earlier)
            rest = [own - share * other for own, other in zip(rest, earlier, strict=True)]
        orthogonal.append(rest)
    projections = []
    for vector_part in orthogonal:
        denominator = lcm(*(entry.denominator for entry in vector_part))
        projections.append([int(entry * denominator) * square for entry, square in zip(vector_part, squares, strict=True)])
    return projections


def _product(left: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((left_entry * right_entry for left_entry, right_entry in zip(left, right, strict=True)), Fraction(0))


def reduced_basis(basis: list[Vector]) -> list[Vector]:
    """Return an LLL-reduced basis (delta = 3/4) of a lattice: short, nearly orthogonal vectors.

    The vectors of `basis` must be linearly independent.

    References
    ----------
    Lenstra, Lenstra, Lovász, *Factoring polynomials with rational coefficients*, 1982, in the all-integer form of Cohen, *A Course in
    Computational Algebraic Number Theory*, 1993, algorithm 2.6.7.

    Examples
    --------
    >>> reduced_basis([[1, 0, 1000], [0, 1, 1001]])
    [[-1, 1, 1], [334, -333, 667]]
    """
    vectors = [list(vector) for vector in basis]
    count = len(vectors)
    # gram[k] is the Gram determinant of the first k vectors; lower[k][j] / gram[j + 1] is the Gram-Schmidt coefficient mu_kj.
    gram = [1, dot(vectors[0], vectors[0]), *([0] * (count - 1))]
    lower = [[0] * count for _ in range(count)]
    orthogonal, k = 0, 1
    while k < count:
        if k > orthogonal:
            orthogonal = k
            _orthogonalise(vectors, gram, lower, k)
        _reduce_size(vectors, gram, lower, k, k - 1)
        if 4 * (gram[k + 1] * gram[k - 1] + lower[k][k - 1] ** 2) < 3 * gram[k] ** 2:
            _swap(vectors, gram, lower, k, orthogonal)
            k = max(1, k - 1)
        else:
            for j in range(k - 2, -1, -1):
                _reduce_size(vectors, gram, lower, k, j)
            k += 1
    return vectors


def dot(left: Vector, right: Vector) -> int:
    """Return the inner product of two integer vectors, exactly."""
    return sum(left_entry * right_entry for left_entry, right_entry in zip(left, right, strict=True))


def nearest_integer(numerator: int, denominator: int) -> int:
    """Return the integer nearest to a fraction; halves go up.

    The denominator must be positive.
    """
    return (2 * numerator + denominator) // (2 * denominator)


def _orthogonalise(vectors: list[Vector], gram: list[int], lower: list[Vector], k: int) -> None:
    for j in range(k + 1):
        product = dot(vectors[k], vectors[j])
        for i in range(j):
            product = (gram[i + 1] * product - lower[k][i] * lower[j][i]) // gram[i]
        if j < k:
            lower[k][j] = product
        else:
            gram[k + 1] = product


def _reduce_size(vectors: list[Vector], gram: list[int], lower: list[Vector], k: int, j: int) -> None:
    multiple = nearest_integer(lower[k][j], gram[j + 1])
    if multiple == 0:
        return
    vectors[k] = [own - multiple * other for own, other in zip(vectors[k], vectors[j], strict=True)]
    lower[k][j] -= multiple * gram[j + 1]
    for i in range(j):
        lower[k][i] -= multiple * lower[j][i]


def _swap(vectors: list[Vector], gram: list[int], lower: list[Vector], k: int, orthogonal: int) -> None:
    vectors[k], vectors[k - 1] = vectors[k - 1], vectors[k]
    for j in range(k - 1):
        lower[k][j], lower[k - 1][j] = lower[k - 1][j], lower[k][j]
    coefficient = lower[k][k - 1]
    determinant = (gram[k - 1] * gram[k + 1] + coefficient**2) // gram[k]
    for i in range(k + 1, orthogonal + 1):
        old = lower[i][k]
        lower[i][k] = (gram[k + 1] * lower[i][k - 1] - coefficient * old) // gram[k]
        lower[i][k - 1] = (determinant * old + coefficient * lower[i][k]) // gram[k + 1]
    gram[k] = determinant
