"""Linear sketches: random maps to fewer coordinates, from a public seed.

Sketches keep squared lengths on average, and decoding has no bias. A sketch is S x, with E[S^T S] = I over the seed. So S^T S x is an
unbiased estimate of x, with the error `distortion`. Sketches of several clients by the same S add up, so that they can be summed in secret
and decoded once (Chen, Choquette-Choo, Kairouz, Suresh 2022, *The Fundamental Price of Secure Aggregation in Differentially Private
Federated Learning*). Vectors must not depend on the seed.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import LARGEST_DIMENSION, check_integer
from ...arrays import FloatArray
from .dithering import finite_values

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

LARGEST_SEED = 2**128 - 1


class LinearSketch(ABC):
    """Base class of sketches; subclasses are frozen dataclasses with the fields below.

    Attributes
    ----------
    dimension : int
        Number of coordinates of the vectors.
    seed : int
        Public seed, from 0 to 2**128 - 1. Clients and server use the same seed, and a new seed in each round.
    """

    dimension: int
    seed: int

    @property
    @abstractmethod
    def sketch_dimension(self) -> int:
        """Number of coordinates of a sketch."""

    @property
    @abstractmethod
    def distortion(self) -> float:
        """Expected squared error of compression alone for unit vectors.

        The error is ``E||S^T S x - x||**2`` over the seed, for every x of length 1.
        """

    @property
    @abstractmethod
    def squared_operator_norm_bound(self) -> float:
        """Upper bound on ``E[max ||S^T y||**2]`` over all y of length 1.

        For y that does not depend on S, the mean of ``||S^T y||**2`` is d/m.
        """

    @property
    def operator_norm_bound(self) -> float:
        """Upper bound on the length of ``S^T y`` for y of length 1, for every seed.

        Each of the d columns has the length 1.
        """
        return math.sqrt(self.dimension)

    @property
    def length_factor(self) -> float:
        """Length of a sketch over that of its vector, in the root of the mean square.

        Norms to which sketches are clipped follow this factor. If it is not 1, `encode` returns this factor times S x, and `decode` divides
        by it; the other properties are about S.
        """
        return 1.0

    @property
    def length_variance(self) -> float:
        """Bound on the variance of ``||S x||**2`` for every x of length 1.

        The bound is 2/m, as the error is a sum of uncorrelated products.
        """
        return 2 / self.sketch_dimension

    def compression_error(self, vector: FloatArray) -> float:
        """Return ``E||S^T S x - x||**2`` for a vector x."""
        return self.distortion * float(np.sum(np.square(vector)))

    @property
    def noise_gain(self) -> float:
        """Factor by which decoding multiplies the variance of independent noise.

        The noise does not depend on S and has the same variance in each coordinate. The factor is d/m, as columns have length 1 on average,
        divided by the square of `length_factor`.
        """
        return self.dimension / self.sketch_dimension / self.length_factor**2

    def excess_probability(self, factor: float) -> float:
        """Return an upper bound on the probability of a long sketch.

        The sketch is longer than `factor`, above 1, times its average. The bound is Chebyshev's inequality for ``||S x||**2``, whose mean
        is ``||x||**2``.
        """
        return min(1.0, self.length_variance / (factor**2 - 1) ** 2)

    def encode(self, vectors: ArrayLike) -> FloatArray:
        """Return sketches of vectors of shape (..., dimension), as (..., sketch_dimension).

        The sketches are `length_factor` times S x.
        """
        return self._mapped("vectors", vectors, self.dimension, self.sketch_dimension, self._sketched)

    def decode(self, sketches: ArrayLike) -> FloatArray:
        """Return estimates from sketches y of shape (..., sketch_dimension), as (..., dimension).

        The estimates are S^T y over `length_factor`, and unbiased for vectors and sums of vectors.
        """
        return self._mapped("sketches", sketches, self.sketch_dimension, self.dimension, self._restored)

    def renewed(self, seed: int) -> Self:
        """Return a sketch of the same size from another seed."""
        fields: dict[str, Any] = {"seed": seed}
        return replace(self, **fields)  # type: ignore[type-var]

    def operator(self) -> "LinearOperator":
        """Return `encode` as a scipy linear operator with the transpose, for solvers.

        The operator's shape is (sketch_dimension, dimension).
        """
        # The import of scipy is local, as sketches rarely need scipy, and it loads slowly.
        from scipy.sparse.linalg import LinearOperator

        shape, square = (self.sketch_dimension, self.dimension), self.length_factor**2

        def transposed(sketch: FloatArray) -> FloatArray:
            return square * self.decode(np.ravel(sketch))

        return LinearOperator(shape, matvec=lambda x: self.encode(np.ravel(x)), rmatvec=transposed, dtype=float)

    @abstractmethod
    def _sketched(self, vectors: FloatArray) -> FloatArray:
        """Return S x for each row of a matrix."""

    @abstractmethod
    def _restored(self, sketches: FloatArray) -> FloatArray:
        """Return S^T y for each row of a matrix."""

    def _mapped(
        self, name: str, arrays: ArrayLike, length: int, result_length: int, mapping: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        checked = finite_values(name, arrays)
        if checked.ndim == 0 or checked.shape[-1] != length:
            raise ValueError(f"{name} must have a last axis of length {length}, got the shape {checked.shape}")
        return np.asarray(mapping(checked.reshape(-1, length)).reshape(*checked.shape[:-1], result_length))

    def _check_fields(self) -> None:
        """Check the fields that all sketches share."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=LARGEST_DIMENSION))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=LARGEST_SEED))


@dataclass(frozen=True)
class IdentitySketch(LinearSketch):
    """The identity as a sketch, so that code for sketches serves whole vectors too."""

    dimension: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()

    @property
    def sketch_dimension(self) -> int:
        """Number of coordinates of a sketch, the dimension."""
        return self.dimension

    @property
    def distortion(self) -> float:
        """Expected squared error of compression, which is 0.0."""
        return 0.0

    @property
    def length_variance(self) -> float:
        """Variance of squared lengths, which is 0.0."""
        return 0.0

    @property
    def squared_operator_norm_bound(self) -> float:
        """Squared operator norm of the identity, which is 1.0."""
        return 1.0

    @property
    def operator_norm_bound(self) -> float:
        """Operator norm of the identity, which is 1.0."""
        return 1.0

    def _sketched(self, vectors: FloatArray) -> FloatArray:
        return vectors

    def _restored(self, sketches: FloatArray) -> FloatArray:
        return sketches
