"""Mechanisms whose clients compress vectors by a common linear sketch."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import FloatArray
from ..transforms.linear_sketch import LinearSketch
from .error import Error
from .mechanism import VectorMechanism
from .norm_ball import check_ball

# Ratio of the norm at which sketches are clipped to the clip norm times `length_factor`. Few sketches are longer, as lengths vary by 1 /
# sqrt(2 m).
CLIP_MARGIN = 1.1


class SketchedMechanism(VectorMechanism):
    """A mechanism whose clients clip vectors, sketch them, and clip the sketches.

    The guarantee holds for all vectors and sketches. Vectors must not depend on the sketch's public seed, or the estimate has a larger
    error than stated. The error of compression, ``distortion ||mean||**2``, is common to all clients of a round, whatever their number.

    A frozen dataclass that derives from this class has the fields below.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    sketch : LinearSketch
        The sketch, which keeps lengths on average.
    sketch_clip : float
        L2 norm to which sketches are clipped.
    """

    sketch: LinearSketch
    sketch_clip: float

    def facts(self) -> dict[str, Any]:
        """Return the size of the sketch, and bounds on error and bias."""
        return {
            "dimension": self.ball.dimension,
            "clip": self.ball.clip_norm,
            "sketch_dimension": self.sketch_dimension,
            "rows": getattr(self.sketch, "rows", None),
            "compression_rate": self.ball.dimension / self.sketch_dimension,
            "sketch_clip": self.sketch_clip,
            "worst_squared_error": self.error().of_mean(self.joint_clients or 1),
            "bias_bound": self.bias_bound,
            "clipping_probability": self.clipping_probability,
        }

    @property
    def sketch_dimension(self) -> int:
        """Number of coordinates of a sketch."""
        return self.sketch.sketch_dimension

    @property
    def clipping_probability(self) -> float:
        """Upper bound on the probability, over the seed, that a longest vector's sketch is clipped."""
        factor = self.sketch_clip / (self.ball.clip_norm * self.sketch.length_factor)
        return self.sketch.excess_probability(factor) if factor > 1 else 1.0

    @property
    def bias_bound(self) -> float:
        """Upper bound on the norm of the bias from clipping sketches, over the sketch's seed.

        Clipping removes at most the whole of ``S^T S x``: by Cauchy and Schwarz ``E||S^T S x|| 1[clipped]`` is at most the root of ``(1 +
        distortion) ||x||**2`` times the probability.
        """
        return self.ball.clip_norm * math.sqrt((1 + self.sketch.distortion) * self.clipping_probability)

    @property
    def seed_bias_bound(self) -> float:
        """Largest length of a decoded sketch plus that of a vector, which bounds their distance."""
        return self.sketch.operator_norm_bound * self.sketch_clip / self.sketch.length_factor + self.ball.clip_norm

    @property
    def worst_shared_variance(self) -> float:
        """The value ``distortion clip_norm**2``, for clients that all hold one longest vector."""
        return self.sketch.distortion * self.ball.clip_norm**2

    def shared_variance(self, mean: FloatArray) -> float:
        """Return the squared error of compression alone, without the clipping of sketches."""
        return self.sketch.compression_error(mean)

    def renewed(self, seed: int) -> Self:
        """Return the mechanism with another sketch of the same size."""
        fields: dict[str, Any] = {"sketch": self.sketch.renewed(seed)}
        return replace(self, **fields)  # type: ignore[type-var]

    def sketched(self, vectors: ArrayLike) -> FloatArray:
        """Return the sketches of the clipped vectors, before the sketches are clipped."""
        return self.sketch.encode(self.ball.clip(vectors))

    def _check_sketch(self) -> None:
        """Check that ball and sketch fit each other."""
        check_ball(self.ball, "sketches", 2)
        if self.sketch.dimension != self.ball.dimension:
            raise ValueError(f"sketch must be of {self.ball.dimension} coordinates, as the ball is, got {self.sketch.dimension}")


def error_of_draws(errors: Iterable[FloatArray], clients: int, excess: float = 0.0) -> Error:
    """Return the error of a mean of clients from independent draws of its error, at least two.

    `excess` is the known excess of the draws' mean square over its expectation. The estimate of the squared bias does not count the
    variance of the draws' mean.
    """
    draws, square, total = 0, 0.0, np.zeros(())
    for error in errors:
        draws, square, total = draws + 1, square + float(error @ error), total + error
    square = max(0.0, square / draws - excess)
    bias = min(square, max(0.0, (float(np.sum((total / draws) ** 2)) * draws - square) / (draws - 1)))
    return Error(clients * (square - bias), math.sqrt(bias))
