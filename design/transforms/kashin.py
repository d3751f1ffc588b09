"""Kashin's representation: vectors as combinations of frame columns with small coefficients.

The frame has somewhat more columns than a vector has coordinates.

In a tight frame U of shape (dimension, size), U U^T = I, every vector x has many representations x = U a. The shortest representation, a =
U^T x, has some large coefficients; Kashin's representation has no coefficient above K / sqrt(size) times the length of x, for a constant K,
so that every coefficient can be sent in one bit at a similar cost (Lyubarskii, Vershynin 2010, *Uncertainty principles and vector
quantization*).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...solvers.numerics.walsh_hadamard import walsh_hadamard
from .vector_dithering import row_blocks

# K = 1 / ((1 - eta) sqrt(delta)), at eta = 0.4 and delta = 0.8, is Lyubarskii and Vershynin's constant for frames with an uncertainty
# principle.
KASHIN_CONSTANT = 1 / (0.6 * math.sqrt(0.8))
LARGEST_DIMENSION = 2**24
LARGEST_SEED = 2**63 - 1
# Size of the projections' box relative to the final box; with a smaller box, a finite number of projections suffices.
INNER_BOX = 0.93
# Relative sizes of the first projections' boxes. With smaller boxes, the parts beyond them are closer to the right direction, which saves
# one or two steps of four or five.
FIRST_BOXES = (0.75, 0.87, 0.93)
MOST_EXTRAPOLATIONS, MOST_PROJECTIONS = 16, 64
# Largest number of steps if a representation is certain; two or three are usual.
MOST_CERTAIN_STEPS = 10_000
# Share of a level that rounding may add to coefficients.
ROUNDING = 1e-13
# Largest multiple of the projection's step by which coefficients move: rounding errors of the plane grow by at most this factor.
FARTHEST = 4.0
# Batch size, half a megabyte of numbers in single precision.
BLOCK = 2**17


class TightFrame(ABC):
    """A matrix U of shape (dimension, size) with U U^T = I, from a public seed.

    The frame's columns have the squared norm dimension / size.

    Attributes
    ----------
    dimension : int
        Length of the vectors.
    seed : int
        Public seed.
    """

    dimension: int
    seed: int

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of the frame's columns."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Length of the Walsh-Hadamard transform of each of the frame's bases."""

    @property
    @abstractmethod
    def rows(self) -> NDArray[np.bool_]:
        """Indicators of the places of a transform that hold the coordinates, in their order, shape (length,)."""

    @property
    @abstractmethod
    def negative(self) -> NDArray[np.bool_]:
        """Indicators of the coordinates' sign -1, shape (bases, dimension)."""

    @property
    @abstractmethod
    def certain_constant(self) -> float:
        """Upper bound on the constant K with which every vector has a representation.

        The level of the representation is K / sqrt(size) times the vector's length.
        """

    @abstractmethod
    def analysis(self, vectors: FloatArray) -> FloatArray:
        """Return the inner products U^T x of vectors with the columns, shape (clients, size).

        The inner products are the vectors' shortest coefficients.
        """

    @abstractmethod
    def synthesis(self, coefficients: FloatArray) -> FloatArray:
        """Return the vectors U a of coefficients, shape (clients, dimension)."""

    def shortest(self, coefficients: FloatArray) -> FloatArray:
        """Return the shortest coefficients U^T U a of the coefficients' vectors.

        The coefficients' shape is (clients, size).
        """
        return self.analysis(self.synthesis(coefficients))

    def first_coefficients(self, vectors: FloatArray, level: float) -> FloatArray:  # noqa: ARG002
        """Return coefficients from which projections to a level start.

        The result has the shortest coefficients, or coefficients closer to the level.
        """
        return self.analysis(vectors)


@dataclass(frozen=True)
class KashinFrame(TightFrame):
    """A random tight frame: random rows of a Walsh-Hadamard matrix with random signs.

    Rows are drawn without replacement, and all columns have the squared norm dimension / size. Both random choices matter, and both are
    public. Consecutive rows of the matrix would repeat the same few columns, which gains nothing over an orthonormal basis; random signs of
    the rows keep any single vector, chosen without knowing the seed, from being aligned with a column. (Random signs of the columns would
    have no effect, as the sizes of coefficients would stay the same.)

    Attributes
    ----------
    dimension : int
        Length of the vectors, 1 to 2**24.
    seed : int
        Public seed of rows and signs, from 0 to 2**63 - 1.

    Examples
    --------
    >>> frame = KashinFrame(dimension=5, seed=1)
    >>> frame.size, np.allclose(frame.synthesis(frame.analysis(np.eye(5))), np.eye(5))
    (16, True)
    """

    dimension: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges of the fields."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=LARGEST_DIMENSION))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=LARGEST_SEED))

    @property
    def size(self) -> int:
        """Number of columns, 2**(ceil(log2(dimension)) + 1).

        The size is from twice to four times the dimension.
        """
        return 2 << (self.dimension - 1).bit_length()

    @property
    def length(self) -> int:
        """Length of the transform, the number of columns."""
        return self.size

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Indicators of the frame's rows, in the order of the coordinates, shape (size,)."""
        return self._kept > 0

    @property
    def negative(self) -> NDArray[np.bool_]:
        """Indicators of the rows' sign -1, shape (1, dimension)."""
        return np.asarray(self._rows_and_signs[1][None] < 0)

    @property
    def certain_constant(self) -> float:
        """Constant K of a certain representation, ``sqrt(dimension)``.

        No shortest coefficient is above a column's norm. No smaller constant is proven for these frames.
        """
        return math.sqrt(self.dimension)

    def analysis(self, vectors: FloatArray) -> FloatArray:
        """Return the inner products of vectors with the frame's columns."""
        return np.asarray(walsh_hadamard(self.scattered(vectors)))

    def scattered(self, vectors: FloatArray) -> FloatArray:
        """Return the vectors whose Walsh-Hadamard transforms are the shortest coefficients.

        The shape is (clients, size), with 0.0 off the frame's rows.
        """
        sources, factors = self._sources_and_factors
        scattered = vectors.take(sources, axis=1, mode="clip")
        scattered *= factors
        return scattered

    def synthesis(self, coefficients: FloatArray) -> FloatArray:
        """Return the vectors of coefficients."""
        rows, signs = self._rows_and_signs
        return np.asarray(walsh_hadamard(coefficients)[:, rows] * signs)

    def shortest(self, coefficients: FloatArray) -> FloatArray:
        """Return the shortest coefficients by two transforms of length `size`."""
        spectrum = walsh_hadamard(coefficients)
        spectrum *= self._kept
        return np.asarray(walsh_hadamard(spectrum))

    def first_coefficients(self, vectors: FloatArray, level: float) -> FloatArray:
        """Return coefficients after a few steps in single precision."""
        spectra = self.scattered(vectors)
        free_parts = _free_parts(spectra, self, level)
        free_parts += spectra
        return np.asarray(walsh_hadamard(free_parts))

    @cached_property
    def free(self) -> FloatArray:
        """Factors of Hadamard rows: 1 / size off the frame, and 0 for the frame's own rows."""
        return 1 / self.size - self._kept

    @cached_property
    def _sources_and_factors(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Coordinates that `scattered` places at each row, and their factors."""
        rows, signs = self._rows_and_signs
        sources, factors = np.zeros(self.size, dtype=np.intp), np.zeros(self.size)
        sources[rows], factors[rows] = np.arange(self.dimension), signs
        return sources, factors

    @cached_property
    def _kept(self) -> FloatArray:
        """Factors of the Walsh-Hadamard transform in U^T U: 1 / size on the frame's rows, else 0."""
        kept = np.zeros(self.size)
        kept[self._rows_and_signs[0]] = 1 / self.size
        return kept

    @cached_property
    def _rows_and_signs(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Rows of the Hadamard matrix in rising order, and signs divided by sqrt(size)."""
        rng = np.random.default_rng(self.seed)
        rows = np.sort(rng.choice(self.size, self.dimension, replace=False))
        return rows, rng.choice([-1.0, 1.0], self.dimension) / math.sqrt(self.size)


@dataclass(frozen=True, eq=False)
class KashinRepresentation:
    """Coefficients whose frame combination is a vector, or a multiple of it.

    The multiple is below 1 if the search ends without coefficients that are small enough.

    Attributes
    ----------
    coefficients : ndarray of shape (clients, size)
        Coefficients, none above the level in absolute value.
    scales : ndarray of shape (clients,)
        Factors with ``synthesis(coefficients) = scale * vector``: 1 if the vector itself is represented, otherwise between 0 and 1.
    """

    coefficients: FloatArray
    scales: FloatArray


def kashin_representation(vectors: FloatArray, frame: TightFrame, level: float) -> KashinRepresentation:
    """Represent vectors by coefficients of at most a level above 0.

    Vectors have the shape (clients, dimension), the level is in their units, and the representation is exact unless a vector is scaled
    down. The coefficients with U a = x form a plane, and the coefficients below the level form a box. Starting from U^T x, the search
    repeats three moves until the coefficients lie in the full box. It clips coefficients to a smaller box (`INNER_BOX`), projects them to
    the plane, and moves on in that direction. The last move is by the squared distance to the box over the squared distance to the
    projection (Bauschke, Combettes, Kruk 2006, *Extrapolation algorithm for affine-convex feasibility problems*), and halves the number of
    steps; random rows take the first steps for smaller boxes, in single precision. Lyubarskii and Vershynin's own algorithm adds up the
    cut-off parts at levels that fall by eta = 0.4; it does not clip the added parts again, and with these frames at K = 1.86 it leaves most
    vectors of 1000 dimensions unrepresented, while the projections represent all.

    At the level ``certain_constant / sqrt(size)`` times the largest length, or above, every vector is represented. Either its shortest
    coefficients are within the level, or it has coefficients c in the smaller box: a step lowers the squared distance from c by at least
    the squared distance from that box, which is above ``((1 - INNER_BOX) level)**2`` as long as a coefficient is above the level. So the
    number of steps is finite.

    Below that level a vector may have no representation, and then no quantiser at the level is unbiased for it: every frame of random rows
    has a few such directions, to which no vector chosen without knowing the seed is close. The search scales such a vector down, by at most
    level * sqrt(size / dimension) over its length, as the shortest coefficients show.

    ``synthesis(coefficients) = scale * vector`` holds up to rounding errors, a relative 1e-15 or so.

    Examples
    --------
    >>> frame, vector = KashinFrame(100), np.ones((1, 100)) / 10
    >>> representation = kashin_representation(vector, frame, KASHIN_CONSTANT / np.sqrt(frame.size))
    >>> bool(np.abs(representation.coefficients).max() <= KASHIN_CONSTANT / np.sqrt(frame.size)), representation.scales.tolist()
    (True, [1.0])
    """
    coefficients, scales = np.empty((len(vectors), frame.size)), np.ones(len(vectors))
    for part, block in kashin_blocks(vectors, frame, level):
        coefficients[part], scales[part] = block.coefficients, block.scales
    return KashinRepresentation(coefficients, scales)


def kashin_blocks(vectors: FloatArray, frame: TightFrame, level: float) -> Iterator[tuple[slice, KashinRepresentation]]:
    """Yield the representation of a few vectors at a time, with the vectors' rows.

    Memory may not hold the coefficients of all vectors.
    """
    level = check_real("level", level, low=1e-300, high=1e300)
    for part in row_blocks(len(vectors), frame.size, BLOCK):
        yield part, _represent(vectors[part], frame, level)


def largest_bias(frame: TightFrame, constant: float) -> float:
    """Return a bound on the norm that scaling down takes off a unit vector.

    The level is constant / sqrt(size); the bound is 0.0 if no vector is scaled down.
    """
    return 0.0 if constant >= frame.certain_constant else 1 - constant / math.sqrt(frame.dimension)


def _represent(vectors: FloatArray, frame: TightFrame, level: float) -> KashinRepresentation:
    """Return the coefficients and scales of a block of vectors."""
    coefficients, scales = frame.first_coefficients(vectors, level), np.ones(len(vectors))
    waiting = np.flatnonzero(_largest(coefficients) > level)
    current, shortest = coefficients[waiting], frame.analysis(vectors[waiting])
    # The clipping cuts off the rounding errors of shortest coefficients at the level.
    fitting = _largest(shortest) <= level * (1 + ROUNDING)
    coefficients[waiting] = np.where(fitting[:, None], np.clip(shortest, -level, level), shortest)
    waiting, current = waiting[~fitting], current[~fitting]
    certain = level * math.sqrt(frame.size) >= frame.certain_constant * float(_lengths(vectors[waiting]).max(initial=0.0)) * (1 - ROUNDING)
    most_steps = MOST_CERTAIN_STEPS if certain else MOST_EXTRAPOLATIONS + MOST_PROJECTIONS
    for step in range(most_steps):
        if not waiting.size:
            return KashinRepresentation(coefficients, scales)
        if step == MOST_EXTRAPOLATIONS and not certain:
            # If a vector may have no representation, plain projections end closer to the level.
            current = coefficients[waiting]
        _approach(current, frame, INNER_BOX * level, FARTHEST if certain or step < MOST_EXTRAPOLATIONS else 1.0)
        outside = _largest(current) > level
        coefficients[waiting[~outside]] = current[~outside]
        waiting, current = waiting[outside], current[outside]
    if certain and waiting.size:
        raise ConvergenceError(
            f"largest Kashin coefficient must be at most {level:g}, got {_largest(current).max():g} after {most_steps} steps"
        )
    # If the projections increased the largest coefficient, the search uses the shortest coefficients instead, whose values are at most
    # sqrt(dimension / size).
    shortest = coefficients[waiting]
    largest, largest_shortest = _largest(current), _largest(shortest)
    better = largest <= largest_shortest
    scales[waiting] = level / np.where(better, largest, largest_shortest)
    scaled = np.where(better[:, None], current, shortest) * scales[waiting, None]
    coefficients[waiting] = np.clip(scaled, -level, level)
    return KashinRepresentation(coefficients, scales)


def _free_parts(spectra: FloatArray, frame: KashinFrame, level: float) -> FloatArray:
    """Return the first steps' additions to the transforms of shortest coefficients.

    The steps are those of `_approach`, in single precision, and the additions are 0.0 on the frame's rows. The plane's directions lie off
    the frame's rows: a move is the transform of the excess off these rows, and Parseval's identity gives its length before the inverse
    transform.
    """
    free = frame.free.astype(np.float32)
    # Values that are too large for single precision, in units of the level, are left to double precision.
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        current = (spectra * (1 / level)).astype(np.float32)
        for box in FIRST_BOXES:
            excess = walsh_hadamard(current)
            excess -= np.clip(excess, np.float32(-box), np.float32(box))
            move = walsh_hadamard(excess)
            move *= free
            squares, projected = np.vecdot(excess, excess), frame.size * np.vecdot(move, move)
            steps = squares / np.maximum(projected, np.maximum(squares / np.float32(FARTHEST), np.finfo(np.float32).tiny))
            move *= steps[:, None]
            current -= move
        current[~np.isfinite(squares)] = 0.0
        return current * (level * (frame.free > 0))


def _approach(coefficients: FloatArray, frame: TightFrame, level: float, farthest: float) -> None:
    """Move coefficients along the plane toward the box, up to `farthest` projection steps."""
    excess = np.clip(coefficients, -level, level)
    np.subtract(coefficients, excess, out=excess)
    # The excess is the part beyond the box, without its component across the plane.
    move = frame.shortest(excess)
    np.subtract(excess, move, out=move)
    squares, projected = np.einsum("ij,ij->i", excess, excess), np.einsum("ij,ij->i", move, move)
    move *= (squares / np.maximum(projected, np.maximum(squares / farthest, np.finfo(float).tiny)))[:, None]
    coefficients -= move


def _lengths(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.vecdot(vectors, vectors)))


def _largest(coefficients: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(coefficients.max(axis=1), -coefficients.min(axis=1)))
