"""Stochastic k-level quantisation: unbiased rounding to a neighbouring level.

Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and differentially-private distributed SGD*, section 4.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray, IntegerArray, flat_view
from ...solvers.divergences.quantised_divergence import LARGEST_BOUND, MOST_LEVELS, SMALLEST_BOUND
from ..noise.random_words import WordsLike, WordSource, word_source
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
    levels, bound = _check_grid(levels, bound)
    array = finite_values("vectors", vectors)
    rounded = np.empty(array.shape, dtype=np.int64)
    write_k_levels(array, levels, bound, word_source(random_words), rounded)
    return rounded


def write_k_levels(vectors: FloatArray, levels: int, bound: float, random_words: WordSource, rounded: NDArray[Any]) -> None:
    """Write the result of `quantise_k_levels` for finite vectors into a contiguous array, modulo 2**w for numbers of w bits."""
    flat, filled = vectors.reshape(-1), flat_view("rounded", rounded)
    # The same memory serves all pieces, which then stay in the processor's cache.
    room = np.empty((3, min(flat.size, PIECE)))
    for start in range(0, flat.size, PIECE):
        piece = slice(start, start + PIECE)
        positions, lower, uniforms = room[:, : flat[piece].size]
        _write_positions(flat[piece], levels, bound, positions)
        random_words.fill_uniforms(uniforms)
        round_independently(positions, uniforms, lower)
        filled[piece] = positions.astype(np.int32)


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
    array = finite_values("vectors", vectors)
    positions = np.empty_like(array)
    _write_positions(array, levels, bound, positions)
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


def _write_positions(vectors: FloatArray, levels: int, bound: float, positions: FloatArray) -> None:
    """Write positions in steps, from 0 to levels - 1, into another array."""
    # The division comes first: at both ends the position is a whole number, without rounding errors.
    np.divide(vectors, bound, out=positions)
    np.clip(positions, -1.0, 1.0, out=positions)
    positions += 1
    positions *= (levels - 1) / 2


def _check_grid(levels: int, bound: float) -> tuple[int, float]:
    return (
        check_integer("levels", levels, low=2, high=MOST_LEVELS),
        check_real("bound", bound, low=SMALLEST_BOUND, high=LARGEST_BOUND),
    )
