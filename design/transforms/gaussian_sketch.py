"""The Gaussian ensemble: a sketch whose stored matrix has independent Gaussian entries.

The sketch serves small sizes and comparisons.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray
from .linear_sketch import LinearSketch

# Largest number of entries, which take a gigabyte.
MOST_ENTRIES = 2**27


@dataclass(frozen=True)
class GaussianSketch(LinearSketch):
    """An m x d matrix of independent Gaussian entries of variance 1/m.

    Attributes
    ----------
    dimension : int
        Number d of coordinates of the vectors, from 1 to 2**27.
    size : int
        Number m of coordinates of a sketch, from 1; at most 2**27 / d.
    seed : int
        Public seed, from 0 to 2**128 - 1.

    Examples
    --------
    >>> sketch = GaussianSketch(dimension=1000, size=500, seed=1)
    >>> sketch.encode(np.ones(1000)).shape, sketch.distortion
    ((500,), 2.002)
    """

    dimension: int
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()
        check_integer("dimension", self.dimension, low=1, high=MOST_ENTRIES)
        object.__setattr__(self, "size", check_integer("sketch_dimension", self.size, low=1, high=MOST_ENTRIES // self.dimension))

    @property
    def sketch_dimension(self) -> int:
        """Number of coordinates of a sketch, the field `size`."""
        return self.size

    @property
    def distortion(self) -> float:
        """Expected squared error for unit vectors: ``(d + 1) / m``.

        Each other coordinate adds 1/m, and the length of the coordinate's own column adds 2/m.
        """
        return (self.dimension + 1) / self.size

    @property
    def squared_operator_norm_bound(self) -> float:
        """Bound ``(1 + sqrt(d/m))**2 + 1/m`` on the mean square of the largest singular value.

        Gordon's theorem bounds the mean, and Poincaré's inequality the variance.
        """
        return (1 + math.sqrt(self.dimension / self.size)) ** 2 + 1 / self.size

    @property
    def operator_norm_bound(self) -> float:
        """Root of the sum of all squared entries of this seed's matrix."""
        return float(np.linalg.norm(self._matrix))

    def _sketched(self, vectors: FloatArray) -> FloatArray:
        return vectors @ self._matrix.T

    def _restored(self, sketches: FloatArray) -> FloatArray:
        return sketches @ self._matrix

    @cached_property
    def _matrix(self) -> FloatArray:
        words = np.random.Generator(np.random.Philox(key=self.seed, counter=1 << 192))
        return words.normal(scale=1 / math.sqrt(self.size), size=(self.size, self.dimension))
