"""Random rounding of vectors to whole numbers that keeps a whole bound on their L1 norm.

Systematic sampling rounds all coordinates of a vector with a single random number u: the absolute values are laid end to end, and each
becomes the number of points u, u + 1, u + 2, ... that it covers. Each result is one of two neighbours and right on average, and all points
together number at most the bound. Independent rounding would exceed the bound by up to a step for each coordinate.
"""

import numpy as np

from ...arrays import FloatArray, IntegerArray, WordArray
from ..noise.random_words import WordSource
from .vector_dithering import row_blocks

# Largest bound on the norm. Sums of fixed-point numbers have SUM_BITS bits, of which the fraction takes those that the bound leaves.
MOST_STEPS = 2**40
SUM_BITS, MOST_FRACTION_BITS, WORD_BITS = 61, 52, 64


def rounded_within(vectors: FloatArray, most: int, random_words: WordSource) -> IntegerArray:
    """Return vectors rounded to whole numbers of L1 norm at most `most`, shape (clients, dimension).

    The expectation of a coordinate is the coordinate, to within 2**-21, and to within 2**-42 for bounds up to 2**19.

    Parameters
    ----------
    vectors : ndarray of float64, shape (clients, dimension)
        Vectors of L1 norm at most `most`, up to floating-point rounding, in steps.
    most : int
        The bound, from 1 to 2**40.
    random_words : WordSource
        Source of one random number for each vector.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> vectors = np.tile([0.5, -1.25, 0.25], (10_000, 1))
    >>> rounded = rounded_within(vectors, 2, seeded_words(np.random.default_rng(0)))
    >>> rounded.mean(axis=0).round(1).tolist(), int(np.abs(rounded).sum(axis=1).max())
    ([0.5, -1.2, 0.3], 2)
    """
    rounded = np.empty(vectors.shape, dtype=np.int64)
    for rows in row_blocks(*vectors.shape):
        _round_within(vectors[rows], most, random_words(len(vectors[rows])), rounded[rows])
    return rounded


def _round_within(vectors: FloatArray, most: int, words: WordArray, out: IntegerArray) -> None:
    out[...] = vectors
    if np.array_equal(out, vectors) and np.abs(out).sum(axis=1).max() <= most:
        # Whole numbers need no rounding, as those of items.
        return
    bits = min(MOST_FRACTION_BITS, SUM_BITS - most.bit_length())
    scaled = np.abs(vectors)
    scaled *= 2.0**bits
    ends = np.rint(scaled, out=scaled).astype(np.int64)
    np.cumsum(ends, axis=1, out=ends)
    # Rounding in floating point must not take a vector out of the ball.
    np.minimum(ends, most << bits, out=ends)
    ends += (words >> np.uint64(WORD_BITS - bits)).astype(np.int64)[:, None]
    ends >>= bits
    out[:, 0] = ends[:, 0]
    np.subtract(ends[:, 1:], ends[:, :-1], out=out[:, 1:])
    np.negative(out, out=out, where=vectors < 0)


def rounding_variance(vectors: FloatArray) -> FloatArray:
    """Return the sum of the variances of each vector's rounded coordinates, in squared steps."""
    fractions = np.abs(vectors) % 1
    return np.asarray((fractions * (1 - fractions)).sum(axis=1))


def largest_rounding_variance(dimension: int, most: int) -> float:
    """Return the largest `rounding_variance` of vectors of L1 norm at most `most`.

    The sum of f (1 - f) over fractions f of a given sum is largest for equal fractions.

    Examples
    --------
    >>> largest_rounding_variance(100, 1), largest_rounding_variance(2, 1)
    (0.99, 0.5)
    """
    return dimension / 4 if 2 * most >= dimension else most * (1 - most / dimension)
