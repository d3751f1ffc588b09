"""Frequencies by short sketches in a secure sum, for a bounded number of different items."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CATEGORIES, MOST_ITEMS, check_integer
from ...arrays import FloatArray, IndexArray
from ..contracts.error import Error
from ..contracts.mechanism import FrequencyEstimate, check_frequencies
from ..contracts.options import parameter
from ..contracts.sketched_mechanism import error_of_draws
from ..contracts.task import Budget
from .item_sketch import ItemSketch
from .noisy_sketch import SketchedDiscreteGaussianFrequencies
from .sketch_calibration import ItemSketchChoice, calibrate_discrete_gaussian_frequencies

if TYPE_CHECKING:
    from ...solvers.decoders.subspace_pursuit import PursuedSupport

# Number of rows of a sketch that pursuit decodes: three rows need twice as many buckets, and more rows gain little.
PURSUIT_ROWS = 7
# Ratio of the mean squares of two rows that a failed pursuit exceeds; chance rarely exceeds it.
FAILED = 4.0


def pursuit_buckets(categories: int, distinct_items: int) -> int:
    """Return the approximate number of buckets that pursuit needs: ``2 s ln(e d / s)``.

    The number is for s held items of d. In measurements, half as many buckets fail to recover the items, and one and a half times as many
    gain little.

    Examples
    --------
    >>> pursuit_buckets(100_000, 100), pursuit_buckets(100_000, 1000)
    (1582, 11211)
    """
    return math.ceil(2 * distinct_items * (1 + math.log(categories / distinct_items)))


@dataclass(frozen=True)
class SparseFrequencies(SketchedDiscreteGaussianFrequencies):
    """Sketches with discrete Gaussian noise and a sparse decoder for at most s different items.

    Messages and the guarantee are those of `SketchedDiscreteGaussianFrequencies`; at most s items have estimates above 0. `pursue_support`
    finds the items above a level that noise alone exceeds for s of d items, and least squares on them has no collisions left. If clients
    hold more than s items, only `bias_bound` holds for `decode`. `variance` is the variance of least squares on the right s items;
    `predicted_error` is for given frequencies, some of which noise hides.

    Use `decode` for all frequencies together: its projection lowers their squared error, and subtracts an equal part of the excess of their
    sum over 1 from each selected item. Use `estimate` for single items: it has no selection, threshold or projection, so that its standard
    error is right for any number of held items.

    Attributes
    ----------
    distinct_items : int
        Largest number s of different items, which must be below the number of buckets of a sketch.

    Examples
    --------
    >>> sketch = ItemSketch(categories=10_000, rows=7, width=10, signed=False)
    >>> mechanism = SparseFrequencies(sketch, clients=1000, steps=8, local_sigma=3.0, delta=1e-5, distinct_items=3)
    >>> messages = mechanism.encode(np.array([7] * 500 + [20] * 300 + [4000] * 200), np.random.default_rng(0))
    >>> estimate = mechanism.decode(mechanism.aggregate(messages), 1000)
    >>> np.flatnonzero(estimate).tolist(), estimate[[7, 20, 4000]].round(1).tolist()
    ([7, 20, 4000], [0.5, 0.3, 0.2])
    """

    distinct_items: int = parameter("Different items that are held, at most.", 1, MOST_ITEMS, default=1)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        most = self.categories if self.sketch.direct else min(self.categories, self.sketch.coordinates - 1)
        object.__setattr__(self, "distinct_items", check_integer("distinct_items", self.distinct_items, low=1, high=most))

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the squared error if decoding selects the right items."""
        return {**super().facts(), "oracle_squared_error": self.variance_bound / self.clients}

    @property
    def dense(self) -> SketchedDiscreteGaussianFrequencies:
        """The mechanism with the same messages and an unbiased decoder for any frequencies."""
        return SketchedDiscreteGaussianFrequencies(
            self.sketch, self.clients, self.steps, self.local_sigma, self.delta, self.adjacency, self.survivors
        )

    def sum_weights(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Return the weights of `dense`: sparse decoding is not linear in the sum."""
        return self.dense.sum_weights(first, second)

    @property
    def item_variance(self) -> float:
        """Variance of least squares: m / (m - s) times the variance of items with own buckets."""
        return self._item_variance(self.sketch.rows, self.distinct_items)

    @property
    def variance_bound(self) -> float:
        """The number of distinct items times `item_variance`."""
        return self.distinct_items * self.item_variance

    @property
    def bias_bound(self) -> float:
        """The square root of 2: estimates have no negative entries and a sum of at most 1."""
        return math.sqrt(2)

    @property
    def seed_bias_bound(self) -> float:
        """The bound `bias_bound`, which holds for every seed."""
        return self.bias_bound

    @property
    def worst_shared_variance(self) -> float:
        """Shared variance, 0.0, because the right items have no remaining collisions."""
        return 0.0

    def shared_variance(self, mean: FloatArray) -> float:  # noqa: ARG002
        """Return 0.0, because the right items have no remaining collisions."""
        return 0.0

    @property
    def decodes_linearly(self) -> bool:
        """Whether the estimate is linear in the sum: False, as pursuit is not linear."""
        return False

    def predicted_error(self, mean: FloatArray, variance: float, draws: int = 64) -> Error:  # noqa: ARG002
        """Return the error of decoding noisy sketches of frequencies, each draw with a new sketch."""
        held = np.flatnonzero(mean > 0)
        deviation = math.sqrt(self.step_noise_variance / self.clients) / self.steps
        rng = np.random.default_rng(self.sketch.seed)

        def errors() -> Iterator[FloatArray]:
            for _ in range(draws):
                mechanism = self.renewed(int(rng.integers(2**63)))
                buckets = _columns(mechanism.sketch, held, range(self.sketch.rows)) @ mean[held] + deviation * rng.standard_normal(
                    self.padded_dimension
                )
                yield mechanism._decoded(buckets) - mean

        return error_of_draws(errors(), self.clients)

    @property
    def threshold(self) -> float:
        """Frequency that noise alone exceeds for at most about s of d items.

        The frequency is ``sqrt(2 ln(d / s))`` standard errors.
        """
        return self._threshold(self.sketch.rows, self.distinct_items)

    def variance(self, items: ArrayLike) -> FloatArray:
        """Return `variance_bound` for each item, as the noise does not depend on the item."""
        return np.full(len(self.domain.clip(items)), self.variance_bound)

    def standard_errors(self, frequencies: ArrayLike, clients: int) -> FloatArray:
        """Return the standard error of least squares on s items, for every item."""
        return np.full(check_frequencies(frequencies).shape, math.sqrt(self.item_variance / clients))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return at most `distinct_items` positive frequencies, with a sum of at most 1, and zeros."""
        return self._decoded(self.bucket_counts(aggregate, clients) / clients)

    def _decoded(self, buckets: FloatArray) -> FloatArray:
        """Return the decoded frequencies from the sums of sketches, shaped as rows or flat."""
        if not self.sketch.direct:
            return self._projected(self._pursued(buckets.reshape(self.sketch.rows, -1), range(self.sketch.rows)))
        estimate, values = np.zeros(self.categories), buckets.ravel()[: self.categories]
        items = np.argsort(-values, kind="stable")[: self.distinct_items]
        items = items[values[items] > self.threshold]
        estimate[items] = values[items]
        return _within_simplex(estimate)

    def estimate(self, aggregate: NDArray[Any], clients: int) -> FrequencyEstimate:
        """Return every item's unbiased frequency with its standard error, for any number of items.

        Noise raises the items that pursuit selects, and least squares on them takes noise out of the residual: neither gives a standard
        error. So each row of the sketch is held out in turn, and the other rows are decoded. The decoded frequencies do not depend on the
        noise and the hash functions of the held-out row. An item's decoded frequency plus the residual in its bucket is unbiased, and the
        mean square of the residuals is its variance (cross-fitting: Chernozhukov et al. 2018, *Double/debiased machine learning for
        treatment and structural parameters*). The estimate is a mean over rows. A sketch of one row is decoded without pursuit, as by
        `dense`.
        """
        decoded, sketch = self.decode(aggregate, clients), self.sketch
        if sketch.rows == 1:
            return replace(self.dense.estimate(aggregate, clients), decoded=decoded)
        buckets = self.bucket_counts(aggregate, clients) / clients
        # An item's own bucket has the share (w - 1) / w in a centred row.
        kept = 1.0 if sketch.signed else 1 - 1 / sketch.width
        decoded_rows, variances = [], []
        for row in range(sketch.rows):
            pursued = self._pursued(buckets, [other for other in range(sketch.rows) if other != row])
            left = buckets[row] - _columns(sketch, pursued.support, [row]) @ pursued.values
            decoded_rows.append((pursued, left))
            variances.append(float(np.square(left if sketch.signed else left - left.mean()).mean()) / kept**2)
        # Rows have equal weights unless pursuit failed, as random differences of their variances are no reason to prefer a row.
        weights = 1 / np.maximum(variances, max(FAILED * min(variances), 1e-300))
        weights /= weights.sum()
        frequencies = np.zeros(self.categories)
        for row, (pursued, left) in enumerate(decoded_rows):
            frequencies += weights[row] * sketch.decoded_row(left, row)
            frequencies[pursued.support] += weights[row] * pursued.values
        error = math.sqrt(float(np.square(weights) @ variances))
        return FrequencyEstimate(frequencies, np.full(self.categories, error), decoded)

    def _item_variance(self, rows: int, distinct_items: int) -> float:
        """Return `item_variance` for a number of rows of the sketch and of different items."""
        share, coordinates = 1.0, rows * self.sketch.width
        if not self.sketch.direct:
            share = coordinates / (coordinates - distinct_items) / rows
        return share * self.step_noise_variance / self.steps**2

    def _threshold(self, rows: int, distinct_items: int) -> float:
        """Return `threshold` for a number of rows of the sketch and of different items."""
        variance = self._item_variance(rows, distinct_items) / self.clients
        return math.sqrt(2 * math.log(self.categories / distinct_items) * variance)

    def _projected(self, pursued: "PursuedSupport") -> FloatArray:
        estimate = np.zeros(self.categories)
        estimate[pursued.support] = np.maximum(pursued.values, 0.0)
        return _within_simplex(estimate)

    def _pursued(self, buckets: FloatArray, rows: Sequence[int]) -> "PursuedSupport":
        """Return the items of some rows of a sketch, from its buckets, shape (rows, width)."""
        from ...solvers.decoders.subspace_pursuit import pursue_support

        sketch, coordinates = self.sketch, len(rows) * self.sketch.width
        distinct = min(self.distinct_items, coordinates - 1)

        def proxy(residual: FloatArray) -> FloatArray:
            estimates = np.zeros(self.categories)
            for row, sums in zip(rows, residual.reshape(len(rows), sketch.width), strict=True):
                estimates += sketch.decoded_row(sums, row)
            return estimates / len(rows)

        threshold = self._threshold(len(rows), distinct)
        return pursue_support(lambda items: _columns(sketch, items, rows), proxy, buckets[list(rows)].ravel(), distinct, threshold)


def _columns(sketch: ItemSketch, items: IndexArray, rows: Sequence[int]) -> Any:
    """Return some rows of the sketches of items as the columns of a sparse matrix."""
    from scipy.sparse import csc_array

    held, of_rows = np.asarray(items, dtype=np.int64), list(rows)
    places = sketch.buckets(held)[:, of_rows] + sketch.width * np.arange(len(of_rows))
    entries = sketch.signs(held)[:, of_rows].astype(float) if sketch.signed else np.ones(places.shape)
    starts = np.arange(0, len(of_rows) * len(held) + 1, len(of_rows))
    return csc_array((entries.ravel(), places.ravel(), starts), shape=(len(of_rows) * sketch.width, len(held)))


def _within_simplex(estimate: FloatArray) -> FloatArray:
    """Return the nearest non-negative vector whose sum is at most 1."""
    from ...solvers.decoders.simplex_projection import project_onto_simplex

    return estimate if estimate.sum() <= 1 else project_onto_simplex(estimate)


def calibrate_sparse_frequencies(
    categories: int,
    clients: int,
    budget: Budget,
    distinct_items: int | None = None,
    *,
    rows: int = PURSUIT_ROWS,
    width: int | None = None,
    signed: bool = False,
    seed: int = 0,
) -> SparseFrequencies:
    """Return the mechanism for at most `distinct_items` different items within a budget.

    The default for `distinct_items` is the smaller of the numbers of clients and items; larger values are lowered to it. Without a width
    the sketch has `pursuit_buckets`; if a histogram of all items is no longer, the sketch is that histogram. Raises the errors of
    `calibrate_discrete_gaussian_frequencies`.

    Examples
    --------
    >>> mechanism = calibrate_sparse_frequencies(100_000, 50_000, Budget(1.0, 1e-5, "replace-one"), distinct_items=100)
    >>> mechanism.sketch.coordinates, round(mechanism.bits_per_client), 0 <= 1.0 - mechanism.guarantee.epsilon <= 1e-6
    (1582, 32051, True)
    """
    categories = check_integer("categories", categories, low=2, high=MOST_CATEGORIES)
    most = min(categories, clients)
    distinct = most if distinct_items is None else min(most, check_integer("distinct_items", distinct_items, low=1, high=MOST_CATEGORIES))
    if width is None:
        width = max(2, -(-pursuit_buckets(categories, distinct) // rows))
        if rows * width >= categories:
            rows, width = 1, categories
    elif width >= categories:
        rows = 1
    choice = ItemSketchChoice(rows=rows, width=width, signed=signed, seed=seed)
    dense = calibrate_discrete_gaussian_frequencies(categories, clients, budget, choice)
    return SparseFrequencies(
        dense.sketch, dense.clients, dense.steps, dense.local_sigma, dense.delta, dense.adjacency, dense.survivors, distinct_items=distinct
    )
