"""The L_p ball to which clients clip their vectors."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_norm
from ...arrays import FloatArray
from ...solvers.divergences.vector_composition import LARGEST_NORM
from ..transforms.dithering import check_finite, real_values
from .options import check_parameters, parameter

LARGEST_CLIP_NORM = 1e100
# Limits between which sums of squares have neither overflowed nor lost significant digits.
LEAST_SQUARE, LARGEST_SQUARE = 1e-250, 1e300
# Factor at vectors of 2**31 finite coordinates whose norms, in units of any clip norm, are not finite.
SHORTENING = 2.0**-512


def parse_norm(text: str) -> float:
    """Return p of an L_p norm from its text: a number of at least 1, or ``"inf"``.

    The number may follow an ``l``, as in ``"l2"``.
    """
    try:
        norm = float(text.removeprefix("l"))
    except ValueError:
        raise ValueError(f"norm must be a number of at least 1, or inf, got {text!r}") from None
    return check_norm(norm, high=LARGEST_NORM)


@dataclass(frozen=True)
class NormBall:
    """All vectors x with ``||x||_p <= clip_norm``.

    Attributes
    ----------
    dimension : int
        Length of the vectors, at least 1.
    norm : float
        Order p of the L_p norm, from 1 to 64 or infinity; a text such as ``"inf"`` is parsed as on the command line.
    clip_norm : float
        Largest norm that a vector keeps, in the vectors' units; above 0.

    Examples
    --------
    >>> ball = NormBall(dimension=2, norm=2.0, clip_norm=1.0)
    >>> ball.clip([[0.3, 0.4], [3.0, 4.0]]).round(12).tolist(), ball.clipped_count([[0.3, 0.4], [3.0, 4.0]])
    ([[0.3, 0.4], [0.6, 0.8]], 1)
    """

    dimension: int = parameter("Number of coordinates.", 1, LARGEST_DIMENSION, unit="coordinates")
    norm: float = parameter("p of the L_p norm of the vectors' ball, 1 or more, or inf.", kind=str, numeric=True)
    clip_norm: float = parameter(
        "Norm that vectors are clipped to.", 1 / LARGEST_CLIP_NORM, LARGEST_CLIP_NORM, default=1.0, name="clip", unit="vectors' units"
    )

    def __post_init__(self) -> None:
        """Check the fields' ranges."""
        norm = parse_norm(self.norm) if isinstance(self.norm, str) else check_norm(self.norm, high=LARGEST_NORM)
        check_parameters(self)
        object.__setattr__(self, "norm", norm)

    def check(self, vectors: ArrayLike) -> FloatArray:
        """Return finite vectors as a float array of shape (clients, dimension)."""
        array = self._of_shape(vectors)
        check_finite("vectors", array)
        return array

    def _of_shape(self, vectors: ArrayLike) -> FloatArray:
        array = real_values("vectors", vectors)
        if array.ndim != 2 or array.shape[1] != self.dimension:
            raise ValueError(f"vectors must have the shape (clients, {self.dimension}), got {array.shape}")
        return array

    def norms(self, vectors: FloatArray) -> FloatArray:
        """Return the L_p norm of each vector, shape (clients,); a norm beyond the largest float is infinite."""
        if (plain := self._plain_norms(vectors)) is not None:
            return plain
        # Scaling by the largest coordinate keeps powers from overflow and underflow.
        largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
        scale = np.where(largest > 0, largest, 1.0)
        scaled = vectors / scale[:, None]
        with np.errstate(over="ignore"):
            return np.asarray(scale * np.linalg.norm(scaled, ord=self.norm, axis=1))

    def _plain_norms(self, vectors: FloatArray) -> FloatArray | None:
        """Return L2 norms from sums of squares; None for other norms, and if a sum lost digits or is not finite."""
        if self.norm != 2:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.vecdot(vectors, vectors)
        kept = squares.size == 0 or (squares.min() > LEAST_SQUARE and squares.max() < LARGEST_SQUARE)
        return np.asarray(np.sqrt(squares)) if kept else None

    def clip(self, vectors: ArrayLike, *, out: FloatArray | None = None) -> FloatArray:
        """Return vectors clipped to the ball, in the L_p norm, written to `out` if it is given.

        Vectors are scaled down for finite p, and each coordinate is truncated for p = infinity. Results are in the ball up to rounding.
        """
        array = self._of_shape(vectors)
        clipped = np.empty_like(array) if out is None else out
        if (norms := self._plain_norms(array)) is not None:
            # All numbers are finite, as the sums of their squares are.
            return self._scaled_down(array, norms, clipped)
        check_finite("vectors", array)
        return self.clip_checked(array, clipped)

    def clip_checked(self, vectors: FloatArray, out: FloatArray) -> FloatArray:
        """Write the clipped vectors to another array of their shape, and return it.

        The vectors must be the return value of `check`.
        """
        if math.isinf(self.norm):
            return np.clip(vectors, -self.clip_norm, self.clip_norm, out=out)
        norms = self.norms(vectors)
        with np.errstate(over="ignore"):
            huge = np.isinf(norms / self.clip_norm)
        if huge.any():
            # Shorter vectors of the same directions are clipped alike: they are far outside of the ball, and their norms are finite.
            return self.clip_checked(np.where(huge[:, None], vectors * SHORTENING, vectors), out)
        return self._scaled_down(vectors, norms, out)

    def _scaled_down(self, vectors: FloatArray, norms: FloatArray, out: FloatArray) -> FloatArray:
        return np.divide(vectors, np.maximum(norms / self.clip_norm, 1.0)[:, None], out=out)

    def total(self, vectors: NDArray[Any]) -> FloatArray:
        """Return the sum of clients' vectors, shape (dimension,)."""
        return np.asarray(vectors.sum(axis=0))

    @property
    def middle(self) -> float:
        """Value of each coordinate of the estimate of a server that receives no message."""
        return 0.0

    def ball(self, adjacency: str) -> "NormBall":  # noqa: ARG002
        """Return the ball itself, as a trusted server's Gaussian noise is for its vectors."""
        return self

    def clipped_count(self, vectors: ArrayLike) -> int:
        """Return the number of vectors outside the ball by more than floating-point rounding."""
        return int(np.count_nonzero(self.norms(self.check(vectors)) > self.clip_norm * (1 + 1e-12)))


def check_ball(ball: object, name: str, norm: float | None = None) -> NormBall:
    """Return the ball, or refuse anything that is not a ball of the required norm.

    `name` is the mechanism in words.
    """
    if not isinstance(ball, NormBall):
        likely = f": NormBall({ball}, {2.0 if norm is None else norm})" if isinstance(ball, int) and not isinstance(ball, bool) else ""
        raise ValueError(f"ball must be a NormBall for {name}, got {ball!r}{likely}")
    if norm is not None and ball.norm != norm:
        raise ValueError(f"ball must be of norm {norm:g} for {name}, got norm {ball.norm:g}")
    return ball
