"""Stochastic k-level quantisation: unbiased rounding to a neighbouring level.

Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and differentially-private distributed SGD*, section 4.
"""

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...solvers.divergences.quantised_divergence import LARGEST_BOUND, MOST_LEVELS, SMALLEST_BOUND
from ..noise.random_words import WordsLike, word_source
from .dithering import finite_values
from .vector_dithering import PIECE, round_independently


def quantise_k_levels(vectors: ArrayLike, levels: int, bound: float, random_words: WordsLike) -> IntegerArray:
    """Round each coordinate to a neighbouring level, without bias and independently.

    Level r stands for ``-bound + r * quantisation_step(levels, bound)``. Sources in the same state give coupled roundings: the levels
    of two vectors then differ, in each coordinate, by their distance in steps rounded down or up.

    Parameters
    ----------
    vectors : array_like
        Finite numbers of any shape; numbers beyond the bound go to the nearest end.
    levels : int
        Number of levels, 2 to 2**24.
    bound : float
        Levels reach from -bound to bound, in the vectors' units; 1e-105 to 1e101.
    random_words : WordSource or numpy.random.Generator
        Source of randomness: one uniform number per coordinate.

    Returns
    -------
    ndarray of int64, same shape
        Levels, from 0 to levels - 1.

    Examples
    --------
    >>> drawn = quantise_k_levels(np.full(100_000, 0.25), 3, 1.0, np.random.default_rng(0))
    >>> sorted(set(drawn.tolist())), round(float(drawn.mean()), 2)
    ([1, 2], 1.25)
    """
    random_words = word_source(random_words)
    levels, bound = _check_grid(levels, bound)
    array = finite_values("vectors", vectors)
    flat, rounded = array.reshape(-1), np.empty(array.size, dtype=np.int64)
    for start in range(0, array.size, PIECE):
        positions = _positions(flat[start : start + PIECE], levels, bound)
        round_independently(positions, random_words.uniforms(positions.size))
        rounded[start : start + PIECE] = positions.astype(np.int32)
    return rounded.reshape(array.shape)


def quantisation_error(vectors: ArrayLike, levels: int, bound: float) -> FloatArray:
    """Return the exact expected squared L2 distance between vectors and their levels.

    The distance is along the last axis. It is ``step**2 sum f (1 - f)`` with f the fractional parts of the positions in steps. The
    arguments are those of `quantise_k_levels`.

    Examples
    --------
    >>> quantisation_error([[0.0, 1.0, 0.5], [0.0, -1.0, 0.0]], 2, 1.0).tolist()
    [1.75, 2.0]
    """
    levels, bound = _check_grid(levels, bound)
    positions = _positions(finite_values("vectors", vectors), levels, bound)
    fractions = positions - np.floor(positions)
    return np.asarray(quantisation_step(levels, bound) ** 2 * np.sum(fractions * (1 - fractions), axis=-1))


def quantisation_step(levels: int, bound: float) -> float:
    """Return the distance of two neighbouring levels, ``2 * bound / (levels - 1)``.

    Examples
    --------
    >>> quantisation_step(5, 1.0)
    0.5
    """
    levels, bound = _check_grid(levels, bound)
    return 2 * bound / (levels - 1)


def _positions(vectors: FloatArray, levels: int, bound: float) -> FloatArray:
    # The division comes first: at both ends the position is a whole number, without rounding errors.
    positions = np.asarray(vectors / bound)
    np.clip(positions, -1.0, 1.0, out=positions)
    positions += 1
    positions *= (levels - 1) / 2
    return positions


def _check_grid(levels: int, bound: float) -> tuple[int, float]:
    return (
        check_integer("levels", levels, low=2, high=MOST_LEVELS),
        check_real("bound", bound, low=SMALLEST_BOUND, high=LARGEST_BOUND),
    )
