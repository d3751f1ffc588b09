"""Frequencies by sketches in a secure sum where few different items are held, and how many is known: shorter sketches, less noise."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IndexArray
from ..contracts.mechanism import Error, error_of_draws
from .item_sketch import ItemSketch
from .noisy_sketch import SketchedDiscreteGaussianFrequencies

# Rows of a sketch that is decoded by pursuit: with three, twice as many buckets are needed; more gain little.
PURSUIT_ROWS = 7


def pursuit_buckets(categories: int, distinct_items: int) -> int:
    """Return how many buckets pursuit needs, about: ``2 s ln(e d / s)`` for s items of d that are held.

    Measured: half as many fail to find the items, half as many again gain little.

    Examples
    --------
    >>> pursuit_buckets(100_000, 100), pursuit_buckets(100_000, 1000)
    (1582, 11211)
    """
    return math.ceil(2 * distinct_items * (1 + math.log(categories / distinct_items)))


@dataclass(frozen=True)
class SparseFrequencies(SketchedDiscreteGaussianFrequencies):
    """Sketches with discrete Gaussian noise, decoded for at most a number s of different items: all others are estimated as 0.

    What clients send, and the guarantee, are those of `SketchedDiscreteGaussianFrequencies`. Items are found by `pursue_support`, above
    what noise alone exceeds for s of d items, and least squares on them has no collisions left. If more than s items are held, nothing
    is promised except for `bias_bound`. `variance` is a prediction, for items that stand out of the noise: that of least squares on s
    of them.

    Attributes
    ----------
    distinct_items : int
        s, which must be below the number of buckets of a sketch.

    Examples
    --------
    >>> sketch = ItemSketch(categories=10_000, rows=7, width=10, signed=False)
    >>> mechanism = SparseFrequencies(sketch, clients=1000, steps=8, local_sigma=3.0, delta=1e-5, distinct_items=3)
    >>> messages = mechanism.encode(np.array([7] * 500 + [20] * 300 + [4000] * 200), np.random.default_rng(0))
    >>> estimate = mechanism.decode(mechanism.aggregate(messages), 1000)
    >>> np.flatnonzero(estimate).tolist(), estimate[[7, 20, 4000]].round(1).tolist()
    ([7, 20, 4000], [0.5, 0.3, 0.2])
    """

    distinct_items: int = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        most = self.categories if self.sketch.direct else min(self.categories, self.sketch.coordinates - 1)
        object.__setattr__(self, "distinct_items", check_integer("distinct_items", self.distinct_items, low=1, high=most))

    @property
    def dense(self) -> SketchedDiscreteGaussianFrequencies:
        """The same messages, decoded without bias for any number of different items."""
        return SketchedDiscreteGaussianFrequencies(
            self.sketch, self.clients, self.steps, self.local_sigma, self.delta, adjacency=self.adjacency
        )

    @property
    def item_variance(self) -> float:
        """That of least squares: m / (m - s) times as much as where every item had buckets of its own."""
        share = 1.0
        if not self.sketch.direct:
            share = self.sketch.coordinates / (self.sketch.coordinates - self.distinct_items) / self.sketch.rows
        return share * self.step_noise_variance / self.steps**2

    @property
    def worst_variance(self) -> float:
        """Distinct items times `item_variance`."""
        return self.distinct_items * self.item_variance

    @property
    def bias_bound(self) -> float:
        """The square root of 2: estimates, as frequencies, have no negative entries, and a sum of at most 1."""
        return math.sqrt(2)

    @property
    def seed_bias_bound(self) -> float:
        """`bias_bound`."""
        return self.bias_bound

    @property
    def worst_shared_variance(self) -> float:
        """0.0: items that are found are not taken for each other."""
        return 0.0

    def shared_variance(self, mean: FloatArray) -> float:  # noqa: ARG002
        """Return 0.0."""
        return 0.0

    @property
    def decodes_linearly(self) -> bool:
        """False."""
        return False

    def predicted_error(self, mean: FloatArray, variance: float, draws: int = 64) -> Error:  # noqa: ARG002
        """Return the error of decoding sketches of the frequencies that have Gaussian noise, each draw with another sketch."""
        held = np.flatnonzero(mean > 0)
        deviation = math.sqrt(self.step_noise_variance / self.clients) / self.steps
        rng = np.random.default_rng(self.sketch.seed)

        def errors() -> Iterator[FloatArray]:
            for _ in range(draws):
                mechanism = self.renewed(int(rng.integers(2**63)))
                buckets = _columns(mechanism.sketch, held) @ mean[held] + deviation * rng.standard_normal(self.padded_dimension)
                yield mechanism.estimate(buckets) - mean

        return error_of_draws(errors(), self.clients)

    @property
    def threshold(self) -> float:
        """Frequency that noise alone exceeds for about s of d items at most: ``sqrt(2 ln(d / s))`` standard errors."""
        return math.sqrt(2 * math.log(self.categories / self.distinct_items) * self.item_variance / self.clients)

    def standard_errors(self, frequencies: ArrayLike, clients: int) -> FloatArray:
        """Return that of an item which was found, for every item."""
        return np.full(np.shape(frequencies), math.sqrt(self.item_variance / clients))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return at most `distinct_items` positive frequencies, with a sum of at most 1, and zeros."""
        self._check_clients(clients)
        return self.estimate(self.bucket_counts(aggregate).ravel() / self.clients)

    def estimate(self, buckets: FloatArray) -> FloatArray:
        """Return what `decode` does from the sum of sketches over the number of clients, shape (padded_dimension,)."""
        estimate = np.zeros(self.categories)
        if self.sketch.direct:
            values = buckets[: self.categories]
            found = np.argsort(-values, kind="stable")[: self.distinct_items]
            found = found[values[found] > self.threshold]
            estimate[found] = values[found]
        else:
            from ...solvers.decoders.subspace_pursuit import pursue_support

            sketch = self.sketch

            def proxy(residual: FloatArray) -> FloatArray:
                return sketch.decoded(residual.reshape(sketch.rows, sketch.width))

            pursued = pursue_support(lambda items: _columns(sketch, items), proxy, buckets, self.distinct_items, self.threshold)
            estimate[pursued.support] = np.maximum(pursued.values, 0.0)
        return _within_simplex(estimate)


def _columns(sketch: ItemSketch, items: IndexArray) -> Any:
    """Return the sketches of items as the columns of a sparse matrix."""
    from scipy.sparse import csc_array

    held = np.asarray(items, dtype=np.int64)
    places = sketch.buckets(held) + sketch.width * np.arange(sketch.rows)
    entries = sketch.signs(held).astype(float) if sketch.signed else np.ones(places.shape)
    starts = np.arange(0, sketch.rows * len(held) + 1, sketch.rows)
    return csc_array((entries.ravel(), places.ravel(), starts), shape=(sketch.coordinates, len(held)))


def _within_simplex(estimate: FloatArray) -> FloatArray:
    """Return the nearest vector without negative entries whose sum is at most 1, of one without negative entries."""
    from ...solvers.decoders.simplex_projection import project_onto_simplex

    return estimate if estimate.sum() <= 1 else project_onto_simplex(estimate)
