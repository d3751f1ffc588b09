"""Sketches of items: each item counts in a random bucket of each of a few rows.

Charikar, Chen, Farach-Colton 2002, *Finding frequent items in data streams* (with signs); Deng, Rafiei 2007, *New estimation algorithms for
streaming data: count-min can do more* (without signs, less the expected collisions).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, MOST_ITEMS, check_integer
from ...arrays import FloatArray, IntegerArray
from ..contracts.options import check_parameters, parameter
from ..transforms.linear_sketch import LARGEST_SEED

MOST_ROWS = 2**10
# Number of items hashed per batch, whose places take a megabyte.
BLOCK = 2**17
# Number of bits of a hashed word that choose the bucket; another bit is the sign.
BUCKET_BITS = 31
# Counter of the first row. Rotations and sketches of vectors with the same seed use counters whose highest part is below 2**62.
FIRST_ROW = 2**63


@dataclass(frozen=True)
class ItemSketch:
    """A sketch of t rows of w buckets that counts items, with or without random signs.

    An item counts in bucket h_r(item) of row r, as s_r(item) = 1 or -1, or as 1 without signs. Bucket and sign are bits of the
    counter-based generator Philox at (seed, row, item), whose words numpy promises not to change; no table is stored. All are independent
    and signs are fair; the buckets' probabilities differ by at most 2**-31.

    With `categories` buckets or more, hashing is unnecessary: an item's number is its bucket, in one row without signs (`direct`).

    With f the frequencies, each estimate is unbiased over the seed, and has the variance ``collision_share (||f||**2 - f_i**2)`` that
    collisions cause. Without signs a bucket holds on average (1 - f_i) / w of other items. Decoding subtracts the mean of its row, which is
    known without noise, and multiplies by w / (w - 1).

    Attributes
    ----------
    categories : int
        Number d of items, from 2 to 2**31.
    rows : int
        Number t of rows, from 1 to 1024.
    width : int
        Number w of buckets of a row, from 2; None for a histogram, which has no signs.
    seed : int
        Public seed, from 0 to 2**128 - 1.
    signed : bool
        Whether items have signs. The median over rows needs them; without signs, no two items' sketches are further apart than 2 t.

    Examples
    --------
    >>> sketch = ItemSketch(categories=1000, rows=5, width=64, seed=1)
    >>> counts = np.zeros(1000)
    >>> counts[7] = 3
    >>> sums = sketch.counted(counts)
    >>> sums.shape, int(np.abs(sums).sum()), float(sketch.decoded(sums)[7])
    ((5, 64), 15, 3.0)
    """

    categories: int = parameter("Number of items.", 2, MOST_ITEMS, unit="items")
    rows: int = parameter("Rows of the sketch.", 1, MOST_ROWS, usual=1)
    width: int = parameter("Buckets of a row; from the number of items on, a histogram.", 2, MOST_ITEMS)
    seed: int = parameter("Public seed of the sketch.", 0, LARGEST_SEED, default=0, name="sketch_seed")
    signed: bool = parameter("Whether hashed items have signs.", default=True, flags="--signed/--unsigned")

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.width is None:
            object.__setattr__(self, "width", self.categories)
            object.__setattr__(self, "signed", False)
        check_parameters(self)
        object.__setattr__(self, "width", check_integer("width", self.width, low=2, high=LARGEST_DIMENSION // self.rows))
        if self.direct and self.rows > 1:
            raise ValueError(f"rows must be 1 where width is at least categories, {self.categories}, as nothing is hashed, got {self.rows}")
        if self.direct and self.signed:
            raise ValueError(f"signed must be False where width is at least categories, {self.categories}, as nothing is hashed, got True")

    @property
    def direct(self) -> bool:
        """Whether every item has its own bucket."""
        return self.width >= self.categories

    @property
    def coordinates(self) -> int:
        """Number of buckets of all rows, ``rows * width``."""
        return self.rows * self.width

    @property
    def noise_share(self) -> float:
        """Variance of a decoded item if every bucket has independent noise of variance 1."""
        if self.direct:
            return 1.0
        return (1.0 if self.signed else self.width / (self.width - 1)) / self.rows

    @property
    def collision_share(self) -> float:
        """Variance factor of collisions, 1 / (w t), or 1 / ((w - 1) t) unsigned; 0.0 if direct."""
        if self.direct:
            return 0.0
        return 1 / ((self.width if self.signed else self.width - 1) * self.rows)

    def renewed(self, seed: int) -> "ItemSketch":
        """Return a sketch of the same size with another seed."""
        return replace(self, seed=seed)

    def buckets(self, items: IntegerArray) -> IntegerArray:
        """Return the bucket of each item in each row, shape (items, rows); items are not checked."""
        return self._chosen(items) >> 1

    def signs(self, items: IntegerArray) -> IntegerArray:
        """Return the sign of each item in each row, 1 or -1, shape (items, rows)."""
        return 1 - 2 * (self._chosen(items) & 1)

    def counted(self, counts: ArrayLike) -> IntegerArray:
        """Return the sum of items' sketches, shape (rows, width).

        `counts`, shape (categories,), has the number of clients that hold each item.
        """
        weights = np.asarray(counts, dtype=float)
        if weights.shape != (self.categories,):
            raise ValueError(f"counts must have the shape ({self.categories},), got {weights.shape}")
        sums = np.zeros((self.rows, 2 * self.width))
        for row in range(self.rows):
            for part, places in self._places(row):
                sums[row] += np.bincount(places, weights[part], 2 * self.width)
        return (sums[:, 0::2] - sums[:, 1::2]).astype(np.int64)

    def decoded(self, buckets: FloatArray) -> FloatArray:
        """Return unbiased estimates, the mean over rows, shape (categories,).

        `buckets` are bucket sums of shape (rows, width).
        """
        estimates = np.zeros(self.categories)
        for row, sums in enumerate(np.asarray(buckets).reshape(self.rows, self.width)):
            estimates += self.decoded_row(sums, row)
        return estimates / self.rows

    def decoded_row(self, sums: FloatArray, row: int) -> FloatArray:
        """Return unbiased estimates by a single row, shape (categories,).

        `sums` are the row's bucket sums, shape (width,).
        """
        estimates = np.empty(self.categories)
        values = self._signed(sums)
        for part, places in self._places(row):
            estimates[part] = values.take(places)
        return estimates

    def medians(self, buckets: FloatArray) -> FloatArray:
        """Return the median over rows, which needs signs.

        A heavy item in the same bucket of a few rows hardly moves the median.
        """
        if not self.signed:
            raise ValueError("signed must be True for medians, got False: without signs, what falls into a bucket is not symmetric")
        estimates = np.empty(self.categories)
        values = self._signed(buckets)
        for blocks in zip(*(self._places(row) for row in range(self.rows)), strict=True):
            estimates[blocks[0][0]] = np.median([values[row].take(places) for row, (_, places) in enumerate(blocks)], axis=0)
        return estimates

    def places(self, row: int) -> IntegerArray:
        """Return twice the bucket of every item in a row, plus 1 for a negative sign."""
        return np.concatenate([places for _, places in self._places(row)])

    def _chosen(self, items: IntegerArray) -> IntegerArray:
        if self.direct:
            return 2 * np.asarray(items, dtype=np.int64)[:, None]
        return np.stack([self.places(row)[items] for row in range(self.rows)], axis=1)

    def _signed(self, buckets: FloatArray) -> FloatArray:
        """Return each bucket's estimate of its items, and the negative estimate."""
        values = np.asarray(buckets, dtype=float)
        if not (self.signed or self.direct):
            values = (values - values.mean(axis=-1, keepdims=True)) * (self.width / (self.width - 1))
        return np.stack([values, -values], axis=-1).reshape(*values.shape[:-1], -1)

    def _places(self, row: int) -> Iterator[tuple[slice, IntegerArray]]:
        """Yield blocks of items with their places."""
        # Each block of items costs a pass over a row's values, so blocks are at least this long. Their length is even, as a word has two
        # items.
        block = max(BLOCK, 2 * self.width)
        words = np.random.Philox(key=self.seed, counter=(FIRST_ROW + row) << 192)
        for start in range(0, self.categories, block):
            stop = min(start + block, self.categories)
            if self.direct:
                yield slice(start, stop), 2 * np.arange(start, stop)
                continue
            hashed: NDArray[np.uint32] = words.random_raw((stop - start + 1) // 2).astype("<u8", copy=False).view("<u4")[: stop - start]
            places = (hashed >> np.uint32(1)).astype(np.int64)
            places *= self.width
            places >>= BUCKET_BITS
            places <<= 1
            if self.signed:
                places |= hashed & np.uint32(1)
            yield slice(start, stop), places


def usual_rows(categories: int, failure: float) -> int:
    """Return ln(d / failure), rounded up: the number of rows that the median needs.

    Up to a constant factor, this number makes the median right for all items at once, except with the failure probability (Chen, Özgür,
    Cormode, Bharadwaj 2023, theorem A.3).

    Examples
    --------
    >>> usual_rows(100_000, 0.05)
    15
    """
    return max(1, math.ceil(math.log(categories / failure)))
