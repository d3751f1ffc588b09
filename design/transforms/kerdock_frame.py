"""Kerdock's frame: mutually unbiased bases, in which every vector has a Kashin representation at a level that is proven."""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ...solvers.numerics.walsh_hadamard import walsh_hadamard
from .kashin import FARTHEST, INNER_BOX, LARGEST_SEED, TightFrame

LARGEST_KERDOCK_DIMENSION = 1024
# Steps in single precision: a vector rarely needs a third.
FIRST_STEPS = 2
# Irreducible polynomials over the field of two elements, by degree; bit i is the coefficient of x**i.
POLYNOMIALS = {1: 0b11, 3: 0b1011, 5: 0b100101, 7: 0b10000011, 9: 0b1000010001}


@dataclass(frozen=True)
class KerdockFrame(TightFrame):
    """A tight frame of p / 2 bases of p vectors each, p the next power of 4: columns of different bases have the inner product 1 / sqrt(p).

    Basis a consists of the rows of the Walsh-Hadamard matrix times the signs of a quadratic form; the forms are Kerdock's
    (Calderbank, Cameron, Kantor, Seidel 1997, *Z4-Kerdock codes, orthogonal spreads, and extremal Euclidean line-sets*). The frame
    takes the first `dimension` coordinates of all columns, whose squared norm is dimension / size.

    **Every vector has coefficients of at most sqrt(3 - 2 / p) / sqrt(size) times its length.** Let y be a unit vector of p coordinates, r =
    p / 2 the number of bases, and t the inner products of y with the r p unit vectors of all bases. The matrices u u^T - I / p of one
    basis are orthogonal to those of another, as (u^T v)**2 = 1 / p. The squared length of y y^T - I / p, which is 1 - 1 / p, is at
    least the sum of the squared lengths of its projections on the spans of all bases, sum (t**2 - 1 / p)**2 = sum t**4 - r / p. By
    Hölder's inequality r = sum t**2 is at most (sum |t|)**(2/3) (sum t**4)**(1/3). So ``||U^T y||_1``, which is (sum |t|) / sqrt(r), is at
    least r / sqrt(3 / 2 - 1 / p). The least largest coefficient of a vector x is the largest <x, y> / ||U^T y||_1, by the duality of
    linear programmes.

    Attributes
    ----------
    dimension : int
        Length of the vectors, 1 to 1024.
    seed : int
        Public seed of the signs of coordinates, from 0 to 2**63 - 1. The bound above holds for every seed.

    Examples
    --------
    >>> frame = KerdockFrame(dimension=12, seed=1)
    >>> frame.size, np.allclose(frame.synthesis(frame.analysis(np.eye(12))), np.eye(12)), round(frame.certain_constant, 4)
    (128, True, 1.8232)
    """

    dimension: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields' ranges."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=LARGEST_KERDOCK_DIMENSION))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=LARGEST_SEED))

    @property
    def length(self) -> int:
        """Coordinates of a padded vector p: a power of 4."""
        return 1 << 2 * max(1, -(-(self.dimension - 1).bit_length() // 2))

    @property
    def size(self) -> int:
        """Number of columns, p**2 / 2."""
        return self.length**2 // 2

    @property
    def certain_constant(self) -> float:
        """``sqrt(3 - 2 / p)``, with room for the projections to end; or sqrt(dimension), which the shortest coefficients keep."""
        return min(math.sqrt(self.dimension), math.sqrt(3 - 2 / self.length) / INNER_BOX)

    def analysis(self, vectors: FloatArray) -> FloatArray:
        """Return the inner products of vectors with the columns, shape (clients, size), in the vectors' precision."""
        return self._analysed(vectors, self._signs)

    def synthesis(self, coefficients: FloatArray) -> FloatArray:
        """Return the vectors that coefficients stand for, shape (clients, dimension)."""
        return self._synthesised(coefficients, self._signs)

    def first_coefficients(self, vectors: FloatArray, level: float) -> FloatArray:
        """Return coefficients after steps as `kashin_representation` takes them, in single precision, and a correction in double precision.

        A vector whose steps are too large for single precision gets its shortest coefficients.
        """
        single, signs = np.float32, self._signs.astype(np.float32)
        # In units of the level.
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            current = self._analysed((vectors * (1 / level)).astype(single), signs)
            for _ in range(FIRST_STEPS):
                excess = current - np.clip(current, single(-INNER_BOX), single(INNER_BOX))
                across = self._analysed(self._synthesised(excess, signs), signs)
                squares = np.vecdot(excess, excess)
                projected = squares - np.vecdot(excess, across)
                excess -= across
                steps = squares / np.maximum(projected, np.maximum(squares / single(FARTHEST), np.finfo(single).tiny))
                excess *= steps[:, None]
                current -= excess
        usable = np.isfinite(squares)
        current[~usable] = 0.0
        coefficients = current.astype(float)
        coefficients *= level
        # Correct the error of single precision; for unusable steps it is the vector itself.
        rest = vectors - self.synthesis(coefficients)
        coefficients += self.analysis(rest)
        return coefficients

    def _analysed(self, vectors: NDArray[Any], signs: NDArray[Any]) -> NDArray[Any]:
        padded = np.zeros((len(vectors), len(signs), self.length), dtype=vectors.dtype)
        np.multiply(vectors[:, None, :], signs, out=padded[:, :, : self.dimension])
        return np.asarray(walsh_hadamard(padded).reshape(len(vectors), self.size))

    def _synthesised(self, coefficients: NDArray[Any], signs: NDArray[Any]) -> NDArray[Any]:
        transformed = walsh_hadamard(coefficients.reshape(len(coefficients), -1, self.length))
        return np.asarray(np.einsum("cbi,bi->ci", transformed[:, :, : self.dimension], signs))

    @cached_property
    def _signs(self) -> FloatArray:
        """Signs of each basis, with the seed's and the frame's scale, shape (bases, dimension)."""
        chosen = np.random.default_rng(self.seed).choice([-1.0, 1.0], self.dimension)
        return kerdock_signs(self.length)[:, : self.dimension] * (chosen / math.sqrt(self.size))


@cache
def kerdock_signs(length: int) -> NDArray[np.int8]:
    """Return (-1)**Q_a(x) for Kerdock's quadratic forms Q_a and all binary vectors x, shape (length / 2, length), of 1 and -1.

    With m odd and length = 2**(m + 1), x is a pair of an element v of the field of 2**m elements and a bit y, a is an element, and

        Q_a(v, y) = sum over i from 1 to (m - 1) / 2 of Tr((a v)**(2**i + 1))  +  y Tr(a v).
    """
    degree = length.bit_length() - 2
    logarithms, powers = _field(degree)
    order = 2**degree - 1
    products = np.zeros((order + 1, order + 1), dtype=np.int64)
    products[1:, 1:] = powers[(logarithms[1:, None] + logarithms[1:]) % order]

    def power(elements: IntegerArray, exponent: int) -> IntegerArray:
        return np.where(elements == 0, 0, powers[logarithms[elements] * exponent % order])

    traces = np.bitwise_xor.reduce([power(np.arange(order + 1), 2**i) for i in range(degree)])
    forms = np.zeros_like(products)
    for i in range(1, (degree - 1) // 2 + 1):
        forms ^= traces[power(products, 2**i + 1)]
    return np.asarray(1 - 2 * np.hstack([forms, forms ^ traces[products]]), dtype=np.int8)


def _field(degree: int) -> tuple[IntegerArray, IntegerArray]:
    """Return the logarithm of each element of the field of 2**degree elements, 0 for the element 0, and the powers of x."""
    order = 2**degree - 1
    powers = np.empty(order, dtype=np.int64)
    element = 1
    for exponent in range(order):
        powers[exponent] = element
        element <<= 1
        if element >> degree:
            element ^= POLYNOMIALS[degree]
    logarithms = np.zeros(order + 1, dtype=np.int64)
    logarithms[powers] = np.arange(order)
    return logarithms, powers
