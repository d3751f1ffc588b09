"""Reduction of integer lattice bases: the LLL algorithm in whole numbers."""

Vector = list[int]


def reduced_basis(basis: list[Vector]) -> list[Vector]:
    """Return an LLL-reduced basis (delta = 3/4) of the lattice of linearly independent vectors: short, and nearly orthogonal.

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
    known, k = 0, 1
    while k < count:
        if k > known:
            known = k
            _orthogonalise(vectors, gram, lower, k)
        _reduce_size(vectors, gram, lower, k, k - 1)
        if 4 * (gram[k + 1] * gram[k - 1] + lower[k][k - 1] ** 2) < 3 * gram[k] ** 2:
            _swap(vectors, gram, lower, k, known)
            k = max(1, k - 1)
        else:
            for j in range(k - 2, -1, -1):
                _reduce_size(vectors, gram, lower, k, j)
            k += 1
    return vectors


def dot(left: Vector, right: Vector) -> int:
    """Return the inner product of two integer vectors, exactly."""
    return sum(one * other for one, other in zip(left, right, strict=True))


def nearest_integer(numerator: int, denominator: int) -> int:
    """Return the integer nearest to a fraction with a positive denominator; halves go up."""
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


def _swap(vectors: list[Vector], gram: list[int], lower: list[Vector], k: int, known: int) -> None:
    vectors[k], vectors[k - 1] = vectors[k - 1], vectors[k]
    for j in range(k - 1):
        lower[k][j], lower[k - 1][j] = lower[k - 1][j], lower[k][j]
    coefficient = lower[k][k - 1]
    determinant = (gram[k - 1] * gram[k + 1] + coefficient**2) // gram[k]
    for i in range(k + 1, known + 1):
        old = lower[i][k]
        lower[i][k] = (gram[k + 1] * lower[i][k - 1] - coefficient * old) // gram[k]
        lower[i][k - 1] = (determinant * old + coefficient * lower[i][k]) // gram[k + 1]
    gram[k] = determinant
