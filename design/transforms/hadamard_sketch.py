"""The subsampled randomised Hadamard transform: random coordinates of a rotated vector.

The rotation consists of random signs and the Walsh-Hadamard transform.

Ailon, Chazelle 2009, *The fast Johnson-Lindenstrauss transform and approximate nearest neighbors*; Tropp 2011, *Improved analysis of the
subsampled randomized Hadamard transform*.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ...solvers.numerics.walsh_hadamard import padded_dimension
from .linear_sketch import LinearSketch
from .rotation import RandomisedHadamard

OTHER_KEYS = 1 << 127


@dataclass(frozen=True)
class HadamardSketch(LinearSketch):
    """A sketch by m random rows of a randomised Hadamard matrix of D = 2^k >= d columns.

    Rows are drawn without replacement and scaled by 1 / sqrt(m). The sketch has a slightly smaller error than a count-mean sketch if m is a
    large part of D, and no error for m = D. It takes D log D operations.

    Attributes
    ----------
    dimension : int
        Number d of coordinates of the vectors, from 1 to 2**31.
    size : int
        Number m of coordinates of a sketch, from 1 to D.
    seed : int
        Public seed, from 0 to 2**128 - 1.

    Examples
    --------
    >>> sketch = HadamardSketch(dimension=1000, size=512, seed=1)
    >>> sketch.encode(np.ones(1000)).shape, round(sketch.distortion, 4)
    ((512,), 0.9765)
    """

    dimension: int
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()
        object.__setattr__(self, "size", check_integer("sketch_dimension", self.size, low=1, high=self._padded))

    @property
    def sketch_dimension(self) -> int:
        """Number of coordinates of a sketch, the field `size`."""
        return self.size

    @property
    def distortion(self) -> float:
        """Expected squared error for unit vectors: ``(d - 1) (D - m) / (m (D - 1))``.

        Off-diagonal entries of S^T S have this variance divided by d - 1, and diagonal entries are 1. Each entry is a mean of m of the D
        products of two columns' entries, which add up to zero, drawn without replacement.
        """
        if self._padded == 1:
            return 0.0
        return (self.dimension - 1) * (self._padded - self.size) / (self.size * (self._padded - 1))

    @property
    def squared_operator_norm_bound(self) -> float:
        """Squared operator norm, exactly ``D/m``: rows are orthogonal."""
        return self._padded / self.size

    def _sketched(self, vectors: FloatArray) -> FloatArray:
        return np.asarray(self._rotation.forward(vectors)[:, self._chosen] * math.sqrt(self._padded / self.size))

    def _restored(self, sketches: FloatArray) -> FloatArray:
        rotated = np.zeros((len(sketches), self._padded))
        rotated[:, self._chosen] = sketches
        return self._rotation.inverse(rotated) * math.sqrt(self._padded / self.size)

    @property
    def _padded(self) -> int:
        return padded_dimension(self.dimension)

    @cached_property
    def _rotation(self) -> RandomisedHadamard:
        # The sketch must not have the same signs as a rotation of the same seed, which may follow it.
        return RandomisedHadamard(self.dimension, self.seed ^ OTHER_KEYS)

    @cached_property
    def _chosen(self) -> IntegerArray:
        # Words of rotations with the same seed have a counter whose highest part is zero.
        words = np.random.Generator(np.random.Philox(key=self.seed, counter=1 << 192))
        return np.sort(words.permutation(self._padded)[: self.size])
