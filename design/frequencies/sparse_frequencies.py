"""Frequencies by sketches in a secure sum where few different items are held, and how many is known: shorter sketches, less noise."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IndexArray
from ..contracts.mechanism import Error, FrequencyEstimate, check_frequencies, error_of_draws
from ..contracts.options import parameter
from .item_sketch import MOST_CATEGORIES, ItemSketch
from .noisy_sketch import SketchedDiscreteGaussianFrequencies

if TYPE_CHECKING:
    from ...solvers.decoders.subspace_pursuit import PursuedSupport

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
    is promised except for `bias_bound`. `variance` is that of least squares on the right s items; `predicted_error` is for the frequencies
    that are asked about, of which noise hides some.

    `decode` is for all frequencies together: the projection lowers their squared error, and each found item by as much as their sum
    exceeds 1. `estimate` is for single items: without cut and projection, so that an error is as large as the standard error says.

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

    distinct_items: int = parameter("Different items that are held, at most.", 1, MOST_CATEGORIES, default=1)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        most = self.categories if self.sketch.direct else min(self.categories, self.sketch.coordinates - 1)
        object.__setattr__(self, "distinct_items", check_integer("distinct_items", self.distinct_items, low=1, high=most))

    def facts(self) -> dict[str, Any]:
        """Return also the squared error where the right items are found."""
        return {**super().facts(), "oracle_squared_error": self.worst_variance / self.clients}

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
                yield mechanism._decoded(buckets) - mean

        return error_of_draws(errors(), self.clients)

    @property
    def threshold(self) -> float:
        """Frequency that noise alone exceeds for about s of d items at most: ``sqrt(2 ln(d / s))`` standard errors."""
        return math.sqrt(2 * math.log(self.categories / self.distinct_items) * self.item_variance / self.clients)

    def variance(self, items: ArrayLike) -> FloatArray:
        """Return `worst_variance` for each item: the noise does not depend on it."""
        return np.full(len(self.domain.clip(items)), self.worst_variance)

    def standard_errors(self, frequencies: ArrayLike, clients: int) -> FloatArray:
        """Return that of least squares on s items, for every item, where no more are held."""
        return np.full(check_frequencies(frequencies).shape, math.sqrt(self.item_variance / clients))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return at most `distinct_items` positive frequencies, with a sum of at most 1, and zeros."""
        self._check_clients(clients)
        return self._decoded(self.bucket_counts(aggregate) / self.clients)

    def _decoded(self, buckets: FloatArray) -> FloatArray:
        """Return what `decode` does from the sum of sketches over the number of clients, as rows or flat."""
        if not self.sketch.direct:
            return self._projected(self._pursued(buckets))
        estimate, values = np.zeros(self.categories), buckets.ravel()[: self.categories]
        found = np.argsort(-values, kind="stable")[: self.distinct_items]
        found = found[values[found] > self.threshold]
        estimate[found] = values[found]
        return _within_simplex(estimate)

    def estimate(self, aggregate: NDArray[Any], clients: int) -> FrequencyEstimate:
        """Return every item's frequency before cut and projection, with its standard error.

        For items that pursuit has found it is that of least squares. For others it is what the residual shows of them, as in the debiased
        lasso (Zhang, Zhang 2014, *Confidence intervals for low dimensional parameters in high dimensional linear models*): least squares
        on k items takes k/m of it away, for m buckets. The residual's own variance is that of noise and of items that were not found.
        """
        sketch = self.sketch
        if sketch.direct:
            return replace(self.dense.estimate(aggregate, clients), decoded=self.decode(aggregate, clients))
        self._check_clients(clients)
        buckets = self.bucket_counts(aggregate) / self.clients
        pursued = self._pursued(buckets)
        residual = buckets - (_columns(sketch, pursued.support) @ pursued.values).reshape(sketch.rows, sketch.width)
        left = 1 - len(pursued.support) / sketch.coordinates
        frequencies = sketch.decoded(residual) / left
        frequencies[pursued.support] = pursued.values
        centred = residual if sketch.signed else residual - residual.mean(axis=1, keepdims=True)
        free = sketch.coordinates - len(pursued.support) - (0 if sketch.signed else sketch.rows)
        variance = float(np.square(centred).sum()) / max(free, 1) * sketch.noise_share / left
        return FrequencyEstimate(frequencies, np.full(self.categories, math.sqrt(variance)), self._projected(pursued))

    def _projected(self, pursued: "PursuedSupport") -> FloatArray:
        estimate = np.zeros(self.categories)
        estimate[pursued.support] = np.maximum(pursued.values, 0.0)
        return _within_simplex(estimate)

    def _pursued(self, buckets: FloatArray) -> "PursuedSupport":
        from ...solvers.decoders.subspace_pursuit import pursue_support

        sketch = self.sketch

        def proxy(residual: FloatArray) -> FloatArray:
            return sketch.decoded(residual.reshape(sketch.rows, sketch.width))

        return pursue_support(lambda items: _columns(sketch, items), proxy, buckets.ravel(), self.distinct_items, self.threshold)


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
