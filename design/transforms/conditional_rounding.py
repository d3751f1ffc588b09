"""Conditional stochastic rounding: random rounding that repeats until a norm bound holds.

Every coordinate goes up or down at random. The module has algorithm 2 and proposition 26 of Kairouz, Liu, Steinke 2021, *The Distributed
Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation*. The bound and the rounded vectors are whole numbers, in squared
steps and steps. So the check of the bound, the only basis of privacy, needs no floating point.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_choice, check_integer, check_real
from ...arrays import FloatArray, IndexArray, IntegerArray
from ..contracts.norm_ball import NormBall
from ..noise.random_words import WordsLike, WordSource, word_source
from ..noise.redraws import Redraws
from .vector_dithering import PIECE, independent_rounding, rejection_bias_bound, round_independently, row_blocks

# Default beta. A try is accepted with probability at least 1 - exp(-1/2) = 0.39, so that a vector takes at most 2.55 tries on average.
BETA = math.exp(-0.5)
BOUNDS = ("published", "sharp")
# Largest norm in steps, for which squared norms fit into a word of 64 bits, and neighbouring positions stay distinct.
LARGEST_RADIUS = 2.0**31
# Norm in steps below which vectors are rounded to numbers of 32 bits.
LARGEST_SHORT = 2.0**30
# Relative excess over clip_norm that the rounding errors of clipping and rotating may cause.
EXCESS = 1e-9
# The relative error of a bound takes fewer than 60 of these 90 units (`quietbits.solvers.numerics.rounding`). Two terms are subtracted: the
# error of `rest` is counted in units of the square beside it, which is larger, and `root - radius` is at least half of `root`.
ROUNDING = 1e-14


@dataclass(frozen=True)
class ConditionalRounding:
    """Random rounding to whole numbers of steps, with a bound on the norm of the result.

    `quietbits.design.transforms.vector_dithering.systematic_rounding` rounds without bias and without rejection, and takes longer.

    Attributes
    ----------
    dimension : int
        Number of coordinates, from 1 to 2**31.
    granularity : float
        Length of a step, above 0.
    clip_norm : float
        Largest L2 norm of a vector before rounding, above 0, in the same units; below 2**31 steps.
    beta : float
        Bound on the probability that one try is rejected, above 0, at most 0.99. A smaller beta permits longer vectors and takes fewer
        tries, at most 1 / (1 - beta) on average.
    bound : str
        Bound on the norm (`largest_squared_norm`): ``"published"`` for proposition 26, or ``"sharp"``, which is never larger, and far
        smaller if clip_norm is less than ``granularity sqrt(d) / 2``.

    Examples
    --------
    >>> rounding = ConditionalRounding(dimension=4, granularity=1.0, clip_norm=1.0)
    >>> rounded = rounding.round(np.full((1000, 4), 0.5), np.random.default_rng(0))
    >>> rounding.largest_squared_norm, int((rounded**2).sum(axis=1).max())
    (3, 3)
    >>> [round(ConditionalRounding(2**16, 0.05, 1.0, bound=bound).norm_bound, 3) for bound in BOUNDS]
    [6.506, 3.623]
    """

    dimension: int
    granularity: float
    clip_norm: float
    beta: float = BETA
    bound: str = "published"

    def __post_init__(self) -> None:
        """Check the fields, and that squared norms in steps fit into 64-bit integers."""
        check_integer("dimension", self.dimension, low=1, high=LARGEST_DIMENSION)
        check_real("granularity", self.granularity, low=1e-100, high=1e100)
        check_real("clip_norm", self.clip_norm, low=1e-100, high=1e100)
        check_real("beta", self.beta, low=1e-300, high=0.99)
        check_choice("bound", self.bound, BOUNDS)
        room = LARGEST_RADIUS - math.sqrt(self.dimension)
        if self._radius > room:
            raise ValueError(
                f"granularity must be at least {self.clip_norm / room:g} for clip_norm {self.clip_norm!r}, got {self.granularity!r}"
            )

    @cached_property
    def largest_squared_norm(self) -> int:
        """Bound on a rounded vector's squared L2 norm, in squared steps.

        With c = clip_norm / granularity the bound is, for ``"published"``, the smaller of

            c**2 + d/4 + sqrt(2 ln(1/beta)) (c + sqrt(d)/2)      and      (c + sqrt(d))**2

        and, as both are strict and squared norms of whole numbers are whole, the largest whole number below it. The second bound always
        holds, as no coordinate moves by a full step. The first fails with probability at most beta. Proof: let f be the fractional part of
        ``|x|`` for a coordinate x, and b = 1 if it is rounded away from zero. Its square becomes ``x**2 + f (1 - f) + (b - f) w`` with ``w
        = 2 floor(|x|) + 1``. By Hoeffding's inequality the sum exceeds its mean, at most ``c**2 + d/4``, by t or more with probability at
        most ``exp(-2 t**2 / sum w**2)``, and ``sum w**2 <= (2 c + sqrt(d))**2``.

        ``"sharp"`` takes the largest values of both sums over the ball. ``x**2 + f (1 - f)``, as a function of ``u = x**2``, has the
        concave envelope ``sqrt(u)`` up to u = 1/4 and ``u + 1/4`` from there, and ``w**2`` has the concave envelope through the points
        ``(k**2, (2 k + 1)**2)`` for whole k: d times their values at ``u = c**2 / d`` bound the sums.
        """
        # The probable bound is rounded down for privacy; the certain bound is rounded up, since it rejects nothing.
        return min(math.ceil(self._probable_square * (1 - ROUNDING)) - 1, self._certain_squared_norm)

    @property
    def norm_bound(self) -> float:
        """Largest L2 norm of a vector after rounding, in the vectors' units.

        The norm is Delta_2 of the paper, rounded up.
        """
        return self.granularity * math.sqrt(self.largest_squared_norm) * (1 + 1e-15)

    @property
    def rejection_bound(self) -> float:
        """Bound on the probability that a try is rejected.

        The bound is beta, or 0.0 if the bound on the norm always holds.
        """
        return self.beta if self.largest_squared_norm < self._certain_squared_norm else 0.0

    @property
    def bias_bound(self) -> float:
        """Upper bound on the L2 distance of a vector and the mean of its rounding.

        In the vectors' units, and with q the `rejection_bound`, the bound is the smaller of ``granularity sqrt(q / (1 - q)) / 2``, which
        `vector_dithering.rejection_bias_bound` derives, and ``granularity sqrt(d) q / (1 - q)``, the bound of proposition 26: the mean of
        all tries is the vector itself, and no try is farther from it than sqrt(d) steps. For the paper's beta the first bound is the
        smaller, 0.62 steps, in every dimension.
        """
        rejected = self.rejection_bound
        return self.granularity * min(rejection_bias_bound(rejected), math.sqrt(self.dimension) * rejected / (1 - rejected))

    @property
    def error_bound(self) -> float:
        """Upper bound on a vector's expected squared L2 distance from its rounding.

        In squared units of the vectors, the expected error over all tries is ``granularity**2 sum f (1 - f)``, with f the fractional parts.
        The sum is at most d/4, and at most ``c sqrt(d) - c**2`` if c = clip_norm / granularity is below ``sqrt(d) / 2``, as ``f (1 - f)``
        has the concave envelope ``sqrt(u) - u`` for ``u = x**2`` up to 1/4. Over the accepted tries the error is at most ``1 / (1 - q)``
        times as large, with q the `rejection_bound`. `expected_error` is closer to the true error if rejection is rare.
        """
        radius, root = self._radius, math.sqrt(self.dimension)
        steps = self.dimension / 4 if 2 * radius >= root else radius * (root - radius)
        return self.granularity**2 * steps / (1 - self.rejection_bound) * (1 + ROUNDING)

    def expected_error(self, vectors: ArrayLike) -> FloatArray:
        """Return each vector's expected squared L2 distance from its rounding, without rejection.

        The distance is ``granularity**2 sum f (1 - f)``, with f the fractional parts. The vectors are those of `round`.
        """
        return self.granularity**2 * _spread(self._positions(vectors))

    def round(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Round vectors, and draw only the rejected vectors again.

        The number of draws depends on the vector, so an observer of the time learns something about the vector.

        Parameters
        ----------
        vectors : array_like of shape (clients, dimension)
            Finite vectors of L2 norm at most clip_norm, up to a relative 1e-9; longer vectors are shortened to clip_norm.
        random_words : WordSource or numpy.random.Generator
            Source of randomness. The bound on the norm does not depend on its quality.

        Returns
        -------
        ndarray of int64, shape (clients, dimension)
            Grid points, in steps, of squared norm at most `largest_squared_norm`. Only rejected vectors take additional memory.
        """
        array = NormBall(self.dimension, 2.0).check(vectors)
        rounded = np.empty(array.shape, dtype=np.int64)
        self.round_parts((array[part] for part in row_blocks(*array.shape)), rounded, random_words)
        return rounded

    def round_parts(
        self, parts: Iterable[FloatArray], rounded: NDArray[Any], random_words: WordsLike, expected_errors: FloatArray | None = None
    ) -> None:
        """Round finite vectors that come in parts, as `round` does, and write them to rows of an array.

        The same words give the same numbers. They are modulo 2**w if the array's numbers have only w bits. The function adds the vectors'
        `expected_error` to `expected_errors`, shape (count,).
        """
        random_words = word_source(random_words)
        # Double precision adds whole numbers up to 2**53 exactly, and larger sums stay beyond 2**52.
        largest = self.largest_squared_norm
        exact = np.float64 if largest < 2**52 else np.int64
        whole = np.int32 if self._radius < LARGEST_SHORT else np.int64
        # The same memory serves all pieces, which then stay in the processor's cache.
        room = np.empty((3, min(rounded.size, PIECE)))
        rejected: list[IndexArray] = []
        again: list[FloatArray] = []
        start = 0
        for part in parts:
            steps = self._steps(part)
            filled, squares = rounded[start : start + len(part)], np.zeros(len(part), dtype=exact)
            for rows in row_blocks(len(part), self.dimension, PIECE):
                for first in range(0, self.dimension, PIECE):
                    columns = slice(first, first + PIECE)
                    piece = part[rows, columns]
                    positions, lower, uniforms = room[:, : piece.size].reshape(3, *piece.shape)
                    np.divide(piece, steps[rows], out=positions)
                    if expected_errors is not None:
                        expected_errors[start : start + len(part)][rows] += self.granularity**2 * _spread(positions)
                    random_words.fill_uniforms(uniforms)
                    round_independently(positions, uniforms, lower)
                    counted = positions.astype(exact, copy=False)
                    squares[rows] += np.vecdot(counted, counted)
                    # Floats convert to short numbers by way of longer ones.
                    filled[rows, columns] = positions.astype(whole)
            outside = (squares > largest).nonzero()[0]
            if outside.size:
                rejected.append(start + outside)
                again.append(part[outside] / steps[outside])
            start += len(part)
        if rejected:
            self._round_again(np.concatenate(rejected), np.concatenate(again), rounded, random_words)

    def _round_again(self, waiting: IndexArray, positions: FloatArray, rounded: NDArray[Any], random_words: WordSource) -> None:
        """Round the waiting rows again until the bound on the norm holds for each."""
        redraws = Redraws()
        while waiting.size:
            redraws.another()
            candidates = independent_rounding(positions, random_words.uniforms(positions.shape))
            accepted = self._accepted(candidates)
            rounded[waiting[accepted]] = candidates[accepted]
            waiting, positions = waiting[~accepted], positions[~accepted]

    @property
    def _radius(self) -> float:
        """The norm before rounding, in steps."""
        return self.clip_norm / self.granularity

    @property
    def _certain_squared_norm(self) -> int:
        return math.ceil((self._radius + math.sqrt(self.dimension)) ** 2 * (1 + ROUNDING)) - 1

    @property
    def _probable_square(self) -> float:
        radius, root = self._radius, math.sqrt(self.dimension)
        if self.bound == "published":
            mean, weights = radius**2 + self.dimension / 4, 2 * radius + root
        else:
            mean = radius**2 + self.dimension / 4 if 2 * radius >= root else radius * root
            whole = math.floor(radius / root)
            rest = (radius / root) ** 2 - whole**2
            weights = root * math.sqrt((2 * whole + 1) ** 2 + rest * (4 + 4 / (2 * whole + 1)))
        return mean + weights * math.sqrt(-math.log(self.beta) / 2)

    def _accepted(self, rounded: IntegerArray) -> NDArray[np.bool_]:
        return np.asarray(np.einsum("ij,ij->i", rounded, rounded) <= self.largest_squared_norm)

    def _positions(self, vectors: ArrayLike) -> FloatArray:
        array = self._ball.check(vectors)
        return array / self._steps(array)

    def _steps(self, vectors: FloatArray) -> FloatArray:
        """Return the divisors that convert vectors to steps, shape (clients, 1).

        A divisor is a step, or more if rounding errors made the vector too long.
        """
        excess = self._ball.norms(vectors) / self.clip_norm
        if (excess > 1 + EXCESS).any():
            raise ValueError(
                f"vectors must have L2 norms of at most clip_norm, {self.clip_norm!r}, got {float(excess.max() * self.clip_norm)!r}"
            )
        return np.asarray((self.granularity * np.maximum(excess, 1.0))[:, None])

    @cached_property
    def _ball(self) -> NormBall:
        return NormBall(self.dimension, 2.0, self.clip_norm)


def _spread(positions: FloatArray) -> FloatArray:
    """Return the sum of f (1 - f) over each row's fractional parts f."""
    fractions = positions - np.floor(positions)
    return np.asarray(np.vecdot(fractions, 1 - fractions))
