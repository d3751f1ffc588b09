"""Secure sums of sketches: clients compress their vectors by a common linear sketch.

The mechanism is algorithm 2 of Chen, Choquette-Choo, Kairouz, Suresh 2022, *The Fundamental Price of Secure Aggregation in Differentially
Private Federated Learning*. More privacy needs more noise, under which shorter sketches are as good.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from ..contracts.error import Error, VarianceParts
from ..contracts.norm_ball import NormBall
from ..contracts.sketched_mechanism import SketchedMechanism, error_of_draws
from ..transforms.count_sketch import CountMeanSketch
from ..transforms.linear_sketch import LinearSketch
from .delegated_sum import DelegatedSum
from .rounded_secure_sum import RoundedSecureSum


class SketchedSecureSum(DelegatedSum, SketchedMechanism):
    """Clients send clipped sketches of their clipped vectors by a secure sum.

    The guarantee is that of the secure sum of sketches, whose sensitivity is the clip norm of the sketches.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    sketch : LinearSketch
        The sketch, which keeps lengths on average.
    inner : RoundedSecureSum
        The secure sum of sketches: its ball has the sketch's dimension and clip norm.
    """

    ball: NormBall
    sketch: LinearSketch
    inner: RoundedSecureSum

    def facts(self) -> dict[str, Any]:
        """Return the facts, with those of the sum of rotated sketches."""
        return {**self.inner.facts(), "rotation": self.inner.rotation, **super().facts()}

    @property
    def sketch_clip(self) -> float:  # type: ignore[override]
        """L2 norm to which sketches are clipped."""
        return self.inner.ball.clip_norm

    def _vectors(self, inputs: ArrayLike) -> FloatArray:
        return self.sketched(inputs)

    def _check_fields(self) -> None:
        """Check that the parts fit each other."""
        self._check_sketch()
        if self.inner.ball.dimension != self.sketch.sketch_dimension:
            raise ValueError(f"inner must be for {self.sketch.sketch_dimension} coordinates of a sketch, got {self.inner.ball.dimension}")


@dataclass(frozen=True)
class SketchedSum(SketchedSecureSum):
    """A sum of sketches that the server decodes without bias, except for clipping and rounding.

    The fields are those of `SketchedSecureSum`.

    Examples
    --------
    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> from quietbits.design.transforms.count_sketch import CountMeanSketch
    >>> sums = DistributedDiscreteGaussianMechanism(NormBall(150, 2.0, 1.1), 1000, bits=16, granularity=0.01, local_sigma=0.2, delta=1e-5)
    >>> mechanism = SketchedSum(NormBall(1000, 2.0), CountMeanSketch(1000, rows=15, width=10, seed=1), sums)
    >>> mechanism.guarantee == sums.guarantee, mechanism.bits_per_client, round(mechanism.shared_variance(np.full(1000, 0.01)), 3)
    (True, 4096.0, 0.666)
    """

    ball: NormBall
    sketch: LinearSketch
    inner: RoundedSecureSum

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()

    @property
    def bias_bound(self) -> float:
        """Upper bound on the bias of clipping sketches and of the secure sum."""
        aligned = self.inner.bias_bound * math.sqrt(self.sketch.squared_operator_norm_bound) / self.sketch.length_factor
        return super().bias_bound + aligned

    @property
    def seed_bias_bound(self) -> float:
        """Sum of the bias bounds of decoded sketches and of the decoded secure sum."""
        decoded = self.inner.seed_bias_bound * self.sketch.operator_norm_bound / self.sketch.length_factor
        return super().seed_bias_bound + decoded

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance over the ball, on average over the sketch, without wrapping.

        Each of the sketch's d columns has length 1 on average, and the sum's variance along it is at most the largest directional variance.
        """
        return self.ball.dimension * self.inner.largest_directional_variance / self.sketch.length_factor**2

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return ``S^T`` times the mean of the sketches."""
        return self.sketch.decode(self.inner.decode(aggregate, clients))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of each client's sketch, times the mean gain of decoding, about d/m.

        The variance is at most `variance_bound`.
        """
        return np.minimum(self.inner.variance(self.sketched(vectors)) * self.sketch.noise_gain, self.variance_bound)

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each client's sketch by cause, in the shares that the secure sum has.

        `shared_variance` is that of compression.
        """
        parts = self.inner.variance_parts(self.sketched(vectors))
        return parts.scaled(self.variance(vectors) / parts.total)


@dataclass(frozen=True)
class MedianSum(SketchedSecureSum):
    """A sum of count-mean sketches that the server decodes by the median over rows.

    A few large coordinates hardly move the median, but it is biased, and has about the noise of a single row. At least half of the t rows
    err by as much as their median, so that its squared error is at most ``t / ceil(t / 2)`` times the rows' average
    (`docs/proofs/sketch-medians.md`). `variance_bound` and `worst_shared_variance` are the parts of this bound from noise and from
    collisions, and `bias_bound` has its root.

    The fields are those of `SketchedSecureSum`; the sketch is a count-mean sketch.

    Examples
    --------
    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> sums = DistributedDiscreteGaussianMechanism(NormBall(150, 2.0, 1.1), 1000, bits=16, granularity=0.01, local_sigma=0.2, delta=1e-5)
    >>> mechanism = MedianSum(NormBall(1000, 2.0), CountMeanSketch(1000, rows=15, width=10, seed=1), sums)
    >>> mean = SketchedSum(mechanism.ball, mechanism.sketch, sums)
    >>> round(mechanism.variance_bound / mean.variance_bound, 3), mechanism.decodes_linearly
    (28.125, False)
    """

    ball: NormBall
    sketch: CountMeanSketch
    inner: RoundedSecureSum

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()
        if not isinstance(self.sketch, CountMeanSketch):
            raise ValueError(
                f"sketch must be a CountMeanSketch for a median over rows, got {type(self.sketch).__name__}: decode by the mean"
            )

    @property
    def _factor(self) -> float:
        """Largest squared error of the median over that of a mean over rows."""
        rows = self.sketch.rows
        return rows * rows / -(-rows // 2)

    @property
    def variance_bound(self) -> float:
        """Upper bound on the squared error from noise and rounding, on average over the sketch, without wrapping."""
        return self._factor * self.ball.dimension * self.inner.largest_directional_variance / self.sketch.length_factor**2

    @property
    def worst_shared_variance(self) -> float:
        """Upper bound on the squared error from collisions, for clients that all hold one longest vector."""
        return self._factor * self.sketch.distortion * self.ball.clip_norm**2

    def shared_variance(self, mean: FloatArray) -> float:
        """Return the upper bound on the squared error from collisions of a mean."""
        return self._factor * self.sketch.compression_error(mean)

    @property
    def bias_bound(self) -> float:
        """Upper bound on the bias over the sketch's seed, of the median, of clipping sketches and of rounding.

        The median's bias is at most the root of its squared error. The parts that clipping takes away move it by at most their largest row,
        whose square is at most the sum over rows.
        """
        rows, length = self.sketch.rows, self.sketch.length_factor
        of_median = math.sqrt(self.variance_bound / self.inner.clients + self.worst_shared_variance)
        clipped = self.ball.clip_norm * math.sqrt(rows * (1 + rows * self.sketch.distortion) * self.clipping_probability)
        return of_median + clipped + self._gain * self.inner.bias_bound / length

    @property
    def seed_bias_bound(self) -> float:
        """Upper bound on the distance of the decoded sketches without noise from the vectors' mean, with the sum's own bound."""
        return self._gain * (self.sketch_clip + self.inner.seed_bias_bound) / self.sketch.length_factor + self.ball.clip_norm

    @property
    def _gain(self) -> float:
        """Largest length of all rows' estimates together over that of a sketch, all coordinates being in one bucket."""
        return math.sqrt(self.sketch.rows * self.ball.dimension)

    @property
    def decodes_linearly(self) -> bool:
        """Whether the estimate is linear in the sum: False, as the median is not linear."""
        return False

    def sum_weights(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Return the weights of the sum of sketches, as the median is not linear in the sum."""
        return self.inner.sum_weights(self.sketched(first), self.sketched(second))

    def predicted_error(self, mean: FloatArray, variance: float, draws: int = 64) -> Error:  # noqa: ARG002
        """Return the error of decoding noisy sketches of the mean, by draws of the sketch and of normal noise."""
        clipped = self.ball.clip(mean[None])[0]
        deviation = math.sqrt(self.inner.largest_directional_variance / self.inner.clients)
        rng = np.random.default_rng(self.sketch.seed)
        errors = list[FloatArray]()
        for _ in range(draws):
            mechanism = self.renewed(int(rng.integers(2**63)))
            observed = self.inner.ball.clip(mechanism.sketched(mean[None]))[0] + deviation * rng.standard_normal(self.sketch_dimension)
            errors.append(mechanism.sketch.decode_median(observed) - clipped)
        return error_of_draws(errors, self.inner.clients)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the median over rows of the mean of the sketches."""
        return self.sketch.decode_median(self.inner.decode(aggregate, clients))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return `variance_bound` for each vector."""
        return np.full(len(self.ball.check(vectors)), self.variance_bound)
