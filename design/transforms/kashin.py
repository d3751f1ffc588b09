"""Kashin's representation: a vector as a combination of somewhat more unit vectors than it has coordinates, all with small coefficients.

In a tight frame U of shape (dimension, size), U U^T = I, every vector x has many representations x = U a. Its shortest, a = U^T x, has
some large coefficients; Kashin's has none above K / sqrt(size) times the length of x, for a constant K, so that every coefficient can be
sent in one bit at much the same cost (Lyubarskii, Vershynin 2010, *Uncertainty principles and vector quantization*).
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

# K = 1 / ((1 - eta) sqrt(delta)), at eta = 0.4 and delta = 0.8: Lyubarskii and Vershynin's for frames with an uncertainty principle.
KASHIN_CONSTANT = 1 / (0.6 * math.sqrt(0.8))
LARGEST_DIMENSION = 2**24
LARGEST_SEED = 2**63 - 1
# Projections go to a smaller box than the final one, so that a finite number of them suffices.
INNER_BOX = 0.93
# The first ones go farther: what sticks out of smaller boxes shows more of the direction. They save one or two steps of four or five.
FIRST_BOXES = (0.75, 0.87, 0.93)
MOST_EXTRAPOLATIONS, MOST_PROJECTIONS = 16, 64
# Steps where a representation is certain: two or three are needed.
MOST_CERTAIN_STEPS = 10_000
# Share of a level that rounding may add to coefficients.
ROUNDING = 1e-13
# Times the projection's step that coefficients are moved at most: rounding errors of the plane grow no more than this.
FARTHEST = 4.0
# Numbers worked on together, half a megabyte in single precision.
BLOCK = 2**17


class TightFrame(ABC):
    """A matrix U of shape (dimension, size) with U U^T = I, from a public seed; its columns have the squared norm dimension / size.

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
        """Number of columns."""

    @property
    @abstractmethod
    def certain_constant(self) -> float:
        """K for which every vector is represented at the level K / sqrt(size) times its length, whatever it is; an upper bound."""

    @abstractmethod
    def analysis(self, vectors: FloatArray) -> FloatArray:
        """Return the inner products of vectors with the columns, U^T x, shape (clients, size): their shortest coefficients."""

    @abstractmethod
    def synthesis(self, coefficients: FloatArray) -> FloatArray:
        """Return the vectors that coefficients stand for, U a, shape (clients, dimension)."""

    def shortest(self, coefficients: FloatArray) -> FloatArray:
        """Return the shortest coefficients of the vectors that coefficients stand for, U^T U a, shape (clients, size)."""
        return self.analysis(self.synthesis(coefficients))

    def first_coefficients(self, vectors: FloatArray, level: float) -> FloatArray:  # noqa: ARG002
        """Return coefficients of vectors from which projections to a level start: the shortest ones, or better ones."""
        return self.analysis(vectors)


@dataclass(frozen=True)
class KashinFrame(TightFrame):
    """A random tight frame: rows of a Walsh-Hadamard matrix, drawn at random without replacement, with random signs.

    All columns have the squared norm dimension / size. Both choices matter, and both are public. Consecutive rows of the matrix would
    repeat the same few columns over and over, which gains nothing over an orthonormal basis; random signs of the rows keep any one
    vector, chosen without knowing the seed, from being aligned with a column. (Random signs of the columns would change nothing: the
    sizes of coefficients stay the same.)

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
        """Check the fields' ranges."""
        object.__setattr__(self, "dimension", check_integer("dimension", self.dimension, low=1, high=LARGEST_DIMENSION))
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=LARGEST_SEED))

    @property
    def size(self) -> int:
        """Number of columns, 2**(ceil(log2(dimension)) + 1): from twice to four times the dimension."""
        return 2 << (self.dimension - 1).bit_length()

    @property
    def certain_constant(self) -> float:
        """``sqrt(dimension)``: no shortest coefficient is above a column's norm. Nothing smaller is proven of these frames."""
        return math.sqrt(self.dimension)

    def analysis(self, vectors: FloatArray) -> FloatArray:
        """Return the inner products of vectors with the columns."""
        return np.asarray(walsh_hadamard(self.scattered(vectors)))

    def scattered(self, vectors: FloatArray) -> FloatArray:
        """Return what the Walsh-Hadamard transform makes the shortest coefficients of, shape (clients, size): 0.0 off the frame's rows."""
        sources, factors = self._sources_and_factors
        scattered = vectors.take(sources, axis=1, mode="clip")
        scattered *= factors
        return scattered

    def synthesis(self, coefficients: FloatArray) -> FloatArray:
        """Return the vectors that coefficients stand for."""
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
        """1 / size for the rows of the Hadamard matrix that are not the frame's, and 0 for those that are."""
        return 1 / self.size - self._kept

    @cached_property
    def _sources_and_factors(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Coordinates of a vector that `scattered` places at each row, and what it multiplies them by."""
        rows, signs = self._rows_and_signs
        sources, factors = np.zeros(self.size, dtype=np.intp), np.zeros(self.size)
        sources[rows], factors[rows] = np.arange(self.dimension), signs
        return sources, factors

    @cached_property
    def _kept(self) -> FloatArray:
        """What U^T U multiplies the Walsh-Hadamard transform by, 1 / size for the frame's rows and 0 for others."""
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
    """Coefficients whose frame combination is a vector or, where none small enough were found, a multiple of it.

    Attributes
    ----------
    coefficients : ndarray of shape (clients, size)
        Coefficients, none above the level in absolute value.
    scales : ndarray of shape (clients,)
        ``synthesis(coefficients) = scale * vector``: 1 where the vector itself is represented, else between 0 and 1.
    """

    coefficients: FloatArray
    scales: FloatArray


def kashin_representation(vectors: FloatArray, frame: TightFrame, level: float) -> KashinRepresentation:
    """Represent vectors, shape (clients, dimension), exactly by coefficients of at most a level above 0, in the vectors' units.

    The coefficients with U a = x are a plane, those below the level a box. Starting from U^T x, coefficients are cut off to a smaller box
    (`INNER_BOX`), projected to the plane, and moved on in that direction, in turns, until they lie in the full box. Moving on, by the
    squared distance to the box over that to the projection (Bauschke, Combettes, Kruk 2006, *Extrapolation algorithm for affine-convex
    feasibility problems*), takes half the steps; random rows take the first steps for smaller boxes, in single precision. Lyubarskii
    and Vershynin's own algorithm adds up what is cut off at levels that fall by eta = 0.4; it does not cut again what it has added, and
    with these frames at K = 1.86 it leaves most vectors of 1000 dimensions unrepresented where the projections represent all.

    At the level ``certain_constant / sqrt(size)`` times the largest length, or above, every vector is represented. Either its shortest
    coefficients are, or it has coefficients c in the smaller box: a step lowers the squared distance from c by the squared distance from
    that box at least, which is above ``((1 - INNER_BOX) level)**2`` as long as a coefficient is above the level. So steps end.

    Below that level a vector may have no representation, and then no quantiser at the level is unbiased for it: every frame of random
    rows has a few such directions, to which no vector chosen without knowing the seed is close. Such a vector is scaled down, by no more
    than level * sqrt(size / dimension) over its length, as the shortest coefficients show.

    ``synthesis(coefficients) = scale * vector`` holds up to rounding errors, a relative 1e-15 or so.

    Examples
    --------
    >>> frame, vector = KashinFrame(100), np.ones((1, 100)) / 10
    >>> found = kashin_representation(vector, frame, KASHIN_CONSTANT / np.sqrt(frame.size))
    >>> bool(np.abs(found.coefficients).max() <= KASHIN_CONSTANT / np.sqrt(frame.size)), found.scales.tolist()
    (True, [1.0])
    """
    coefficients, scales = np.empty((len(vectors), frame.size)), np.ones(len(vectors))
    for part, block in kashin_blocks(vectors, frame, level):
        coefficients[part], scales[part] = block.coefficients, block.scales
    return KashinRepresentation(coefficients, scales)


def kashin_blocks(vectors: FloatArray, frame: TightFrame, level: float) -> Iterator[tuple[slice, KashinRepresentation]]:
    """Yield the representation of a few vectors at a time, with their place: all coefficients may be too many to hold."""
    level = check_real("level", level, low=1e-300, high=1e300)
    for part in row_blocks(len(vectors), frame.size, BLOCK):
        yield part, _represent(vectors[part], frame, level)


def largest_bias(frame: TightFrame, constant: float) -> float:
    """Return a bound on the norm that scaling down takes off a unit vector at the level constant / sqrt(size); 0.0 where it never does."""
    return 0.0 if constant >= frame.certain_constant else 1 - constant / math.sqrt(frame.dimension)


def _represent(vectors: FloatArray, frame: TightFrame, level: float) -> KashinRepresentation:
    """Return coefficients and scales of one block of vectors."""
    found, scales = frame.first_coefficients(vectors, level), np.ones(len(vectors))
    waiting = np.flatnonzero(_largest(found) > level)
    current, shortest = found[waiting], frame.analysis(vectors[waiting])
    # Rounding of shortest coefficients at the level is cut off.
    fitting = _largest(shortest) <= level * (1 + ROUNDING)
    found[waiting] = np.where(fitting[:, None], np.clip(shortest, -level, level), shortest)
    waiting, current = waiting[~fitting], current[~fitting]
    certain = level * math.sqrt(frame.size) >= frame.certain_constant * float(_lengths(vectors[waiting]).max(initial=0.0)) * (1 - ROUNDING)
    most_steps = MOST_CERTAIN_STEPS if certain else MOST_EXTRAPOLATIONS + MOST_PROJECTIONS
    for step in range(most_steps):
        if not waiting.size:
            return KashinRepresentation(found, scales)
        if step == MOST_EXTRAPOLATIONS and not certain:
            # Where there may be no representation at all, plain projections end nearer to one.
            current = found[waiting]
        _approach(current, frame, INNER_BOX * level, FARTHEST if certain or step < MOST_EXTRAPOLATIONS else 1.0)
        outside = _largest(current) > level
        found[waiting[~outside]] = current[~outside]
        waiting, current = waiting[outside], current[outside]
    if certain and waiting.size:
        raise ConvergenceError(
            f"largest Kashin coefficient must be at most {level:g}, got {_largest(current).max():g} after {most_steps} steps"
        )
    # Where the projections made things worse, take the shortest coefficients: none is above sqrt(dimension / size).
    shortest = found[waiting]
    largest, largest_shortest = _largest(current), _largest(shortest)
    better = largest <= largest_shortest
    scales[waiting] = level / np.where(better, largest, largest_shortest)
    scaled = np.where(better[:, None], current, shortest) * scales[waiting, None]
    found[waiting] = np.clip(scaled, -level, level)
    return KashinRepresentation(found, scales)


def _free_parts(spectra: FloatArray, frame: KashinFrame, level: float) -> FloatArray:
    """Return what the first steps, in single precision, add to the transforms of shortest coefficients: 0.0 on the frame's rows.

    The steps are those of `_approach`. Off the frame's rows is the plane's direction: a move is what the transform of the excess has there,
    and by Parseval's identity its length is known before it is transformed back.
    """
    free = frame.free.astype(np.float32)
    # In units of the level, what is too large for single precision is left to double precision.
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
    """Move coefficients along the plane toward the box, at most `farthest` times as far as projections go."""
    excess = np.clip(coefficients, -level, level)
    np.subtract(coefficients, excess, out=excess)
    # What sticks out of the box, without its part across the plane.
    move = frame.shortest(excess)
    np.subtract(excess, move, out=move)
    squares, projected = np.einsum("ij,ij->i", excess, excess), np.einsum("ij,ij->i", move, move)
    move *= (squares / np.maximum(projected, np.maximum(squares / farthest, np.finfo(float).tiny)))[:, None]
    coefficients -= move


def _lengths(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.vecdot(vectors, vectors)))


def _largest(coefficients: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(coefficients.max(axis=1), -coefficients.min(axis=1)))
