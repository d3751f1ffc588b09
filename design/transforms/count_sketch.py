"""The count-mean sketch, which adds each coordinate to a random bucket of each row.

A sketch has a few rows, and coordinates have random signs.

Charikar, Chen, Farach-Colton 2002, *Finding frequent items in data streams*; as a random projection, t rows of w buckets stacked, Kane,
Nelson 2014, *Sparser Johnson-Lindenstrauss transforms*, and Chen, Choquette-Choo, Kairouz, Suresh 2022.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_choice, check_integer
from ...arrays import FloatArray
from ...solvers.numerics.bisection import bisect
from .linear_sketch import LinearSketch

SCALINGS = ("isometry", "mean")
MOST_ROWS = 2**10
# Smallest number of coordinates hashed at a time, whose places take a megabyte, beside a row of buckets.
BLOCK = 2**17
# Largest number of coordinates, or signed buckets, of short vectors added up at a time, so that they fit into caches.
SIDE_BY_SIDE = 2**12
# Largest number of coordinates of rows that keep their places, in at most 64 megabytes.
MOST_KEPT = 2**14
# Number of bits of a hashed word that choose the bucket; another bit is the sign.
BUCKET_BITS = 31
HALVINGS = 60


@dataclass(frozen=True)
class CountMeanSketch(LinearSketch):
    """A count-mean sketch: t rows of w buckets, to which coordinates are added with signs.

    Coordinate i of a vector is added to bucket h_r(i) of row r, with the sign s_r(i). The sketch stores no matrix: bucket and sign are bits
    of the counter-based generator Philox at (seed, row, coordinate), whose words numpy promises not to change. All are independent and
    signs are fair; the buckets' probabilities differ by at most 2**-31.

    Rows are scaled by 1 / sqrt(t), so that a sketch is about as long as its vector, or by 1/t, as in the paper's training, so that decoding
    is the sum of the rows: the second scaling shortens sketches by a factor of sqrt(t), by which the norm that they are clipped to must be
    shortened, too (`length_factor`). The decoded vector is the same.

    Attributes
    ----------
    dimension : int
        Number d of coordinates of the vectors, from 1 to 2**31.
    rows : int
        Number t of rows, from 1 to 1024. The theory of the paper requires about ln d rows; its experiments have 15.
    width : int
        Number w of buckets of a row, from 1 to 2**31 - 1; at most d/t, as a sketch is no longer than its vector.
    seed : int
        Public seed, from 0 to 2**128 - 1.
    scaling : str
        ``"isometry"``, 1 / sqrt(t), or ``"mean"``, 1/t.

    Examples
    --------
    >>> sketch = CountMeanSketch(dimension=1000, rows=5, width=100, seed=1)
    >>> vector = np.zeros(1000)
    >>> vector[7] = 3.0
    >>> encoded = sketch.encode(vector)
    >>> encoded.shape, round(float(np.linalg.norm(encoded)), 12), sketch.decode(encoded)[7].round(12)
    ((500,), 3.0, np.float64(3.0))
    """

    dimension: int
    rows: int
    width: int
    seed: int = 0
    scaling: str = "isometry"

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()
        object.__setattr__(self, "rows", check_integer("rows", self.rows, low=1, high=min(MOST_ROWS, self.dimension)))
        object.__setattr__(self, "width", check_integer("width", self.width, low=1, high=2**BUCKET_BITS - 1))
        check_choice("scaling", self.scaling, SCALINGS)
        widest = self.dimension // self.rows
        if self.width > widest:
            raise ValueError(f"width must be at most dimension // rows = {widest}, or a sketch is longer than its vector; got {self.width}")

    @classmethod
    def of_size(cls, dimension: int, sketch_dimension: int, rows: int, seed: int = 0) -> "CountMeanSketch":
        """Return the sketch with a given number of coordinates in all.

        The number must be a multiple of the rows and at most the dimension.
        """
        dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
        rows = check_integer("rows", rows, low=1, high=min(MOST_ROWS, dimension))
        size = check_integer("sketch_dimension", sketch_dimension, low=1, high=dimension)
        if size % rows:
            raise ValueError(f"sketch_dimension must be a multiple of rows, {rows}, such as {-(-size // rows) * rows}, got {size}")
        return cls(dimension, rows, size // rows, seed)

    @property
    def sketch_dimension(self) -> int:
        """Number of coordinates of a sketch, ``rows * width``."""
        return self.rows * self.width

    @property
    def length_factor(self) -> float:
        """Length of a sketch over that of its vector: 1, or 1 / sqrt(t) for the scaling ``"mean"``."""
        return 1.0 if self.scaling == "isometry" else 1 / math.sqrt(self.rows)

    @property
    def distortion(self) -> float:
        """Expected squared error for unit vectors: ``(d - 1) / m``, m the sketch dimension.

        The other coordinates in its bucket disturb each coordinate of a row's estimate. The disturbance is x_j for each j with probability
        1/w and a random sign; the average of t independent rows has 1/t of its square.
        """
        return (self.dimension - 1) / self.sketch_dimension

    @property
    def squared_operator_norm_bound(self) -> float:
        """Bound on the fullest bucket's expected number of coordinates.

        Rows of S over sqrt(t) have disjoint supports of such sizes. A bucket's number has a moment generating function of at most
        ``exp((e^s - 1) d/w)``; over w buckets the mean of the largest number is at most ``(ln w + (e^s - 1) d/w) / s`` for every s, least
        where ``s e^s - e^s + 1 = w ln w / d``. The number is always at most d.
        """
        load, buckets = self.dimension / self.width, math.log(self.width)
        root = bisect(lambda s: load * (s * math.exp(s) - math.expm1(s)) <= buckets, 1e-9, 50.0, HALVINGS).holds
        return min(float(self.dimension), (buckets + math.expm1(root) * load) / root)

    def decode_median(self, sketches: ArrayLike) -> FloatArray:
        """Return the median over rows instead of their mean (the count sketch proper).

        The median is biased, and a few large coordinates hardly move it. The shapes are those of `decode`. The median takes memory for
        `rows` blocks of coordinates of each sketch.
        """
        return self._mapped("sketches", sketches, self.sketch_dimension, self.dimension, self._medians)

    def _sketched(self, vectors: FloatArray) -> FloatArray:
        buckets = np.zeros((len(vectors), self.rows, self.width))
        for row in range(self.rows):
            sums = np.zeros((len(vectors), 2 * self.width))
            for part, places in self._places(row):
                # Short vectors lie side by side, in separate buckets.
                at_once = max(1, SIDE_BY_SIDE // max(len(places), 2 * self.width))
                for first in range(0, len(vectors), at_once):
                    some = vectors[first : first + at_once, part]
                    own = places if len(some) == 1 else places + 2 * self.width * np.arange(len(some))[:, None]
                    sums[first : first + at_once] += np.bincount(own.ravel(), some.ravel(), sums[0].size * len(some)).reshape(len(some), -1)
            # Even places have positive signs, odd places negative signs.
            np.subtract(sums[:, 0::2], sums[:, 1::2], out=buckets[:, row])
        buckets *= self.length_factor / math.sqrt(self.rows)
        return buckets.reshape(len(vectors), self.sketch_dimension)

    def _restored(self, sketches: FloatArray) -> FloatArray:
        restored = np.zeros((len(sketches), self.dimension))
        signed = self._signed(sketches) / self.rows
        for row in range(self.rows):
            for part, places in self._places(row):
                for client in range(len(sketches)):
                    restored[client, part] += signed[client, row].take(places)
        return restored

    def _medians(self, sketches: FloatArray) -> FloatArray:
        restored = np.empty((len(sketches), self.dimension))
        signed = self._signed(sketches)
        for blocks in zip(*(self._places(row) for row in range(self.rows)), strict=True):
            part = blocks[0][0]
            for client in range(len(sketches)):
                restored[client, part] = np.median([signed[client, row].take(places) for row, (_, places) in enumerate(blocks)], axis=0)
        return restored

    def _signed(self, sketches: FloatArray) -> FloatArray:
        """Return every bucket and its negative, on the scale of a row's estimates."""
        buckets = sketches.reshape(-1, self.rows, self.width, 1) * (math.sqrt(self.rows) / self.length_factor)
        return np.concatenate([buckets, -buckets], axis=3).reshape(-1, self.rows, 2 * self.width)

    def _places(self, row: int) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield blocks of coordinates with their places in a row of signed buckets.

        A place is twice the bucket, plus 1 for a negative sign.
        """
        if self.dimension <= MOST_KEPT:
            yield slice(0, self.dimension), _kept_places(self.seed, row, self.width, self.dimension)
        else:
            yield from _places(self.seed, row, self.width, self.dimension)


@lru_cache(maxsize=512)
def _kept_places(seed: int, row: int, width: int, dimension: int) -> NDArray[np.int64]:
    """Return the only block of a short row, which a sketch would otherwise hash for each vector."""
    ((_, places),) = _places(seed, row, width, dimension)
    places.flags.writeable = False
    return places


def _places(seed: int, row: int, width: int, dimension: int) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    # Rotations with the same seed, which sketches must not depend on, have a counter whose highest part is zero.
    words = np.random.Philox(key=seed, counter=(row + 1) << 192)
    # Each block takes a pass over a row of buckets, so blocks are at least this long. Their length is even, as a word has two coordinates.
    block = max(BLOCK, 2 * width)
    for start in range(0, dimension, block):
        stop = min(start + block, dimension)
        hashed = words.random_raw((stop - start + 1) // 2).astype("<u8", copy=False).view("<u4")[: stop - start]
        places = (hashed >> np.uint32(1)).astype(np.int64)
        places *= width
        places >>= BUCKET_BITS
        places <<= 1
        places |= hashed & np.uint32(1)
        yield slice(start, stop), places
