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
from ..contracts.norm_ball import NormBall
from ..contracts.sketched_mechanism import SketchedMechanism
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
