"""Random subspaces that client and server derive from public words.

The module computes a vector's coordinates in an orthonormal frame, and vectors from coordinates. A frame is the first columns of a product
of reflections. Each reflection maps a vector of normal numbers, one number shorter than the previous vector, to an axis. The frame is
uniformly random (Haar), as is the frame of the QR decomposition of a matrix of normal numbers (Stewart 1980, *The Efficient Generation of
Random Orthogonal Matrices with an Application to Condition Estimators*). The module decomposes no matrix: its time is in proportion to the
frame's numbers. The normal numbers come from `shared_normals`; their law differs from the exact law by less than 2e-6. The words of a seed
are those of Philox, and deployments derive words from their hash. Coordinates have the same bits as in clients of all languages: sums run
in the order of the coordinates (`clients.simplex.next_coordinate`).

`client_chunks` splits clients into chunks, so that the numbers derived from their public words are not in memory all at once.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from ....arrays import FloatArray, WordArray
from ...relative_entropy.shared_randomness import philox_words
from .shared_normals import normal_numbers

# Largest size of the arrays in memory that hold numbers derived from public seeds, or computed from these numbers.
MOST_NUMBERS = 2**21

# Batch size of a frame's numbers, which are in memory, and of the numbers of a step, small enough for caches.
CHUNK, STEP = 2**22, 2**15
# Number of columns from which sums of rows are faster than sums of columns.
FEW_COLUMNS = 8


def frame_words(dimension: int, count: int) -> int:
    """Return the number of words of a frame of `count` columns: each step takes two numbers from each of its words."""
    return sum(_step_words(dimension, step) for step in range(count))


def frame_coordinates(seeds: Sequence[int], vectors: FloatArray, count: int) -> FloatArray:
    """Return each client's vector in the coordinates of its seed's frame.

    The frame has `count` columns; the result's shape is (clients, count).
    """
    dimension = vectors.shape[1]
    coordinates = np.empty((len(vectors), count))
    for part in _parts(coordinates, dimension):
        coordinates[part] = reflected_vectors(philox_words(seeds[part], frame_words(dimension, count)), vectors[part], count)
    return coordinates


def frame_vectors(seeds: Sequence[int], coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return each client's vector from coordinates in the frame of its seed.

    The result's shape is (clients, dimension).
    """
    vectors = np.empty((len(coordinates), dimension))
    for part in _parts(coordinates, dimension):
        vectors[part] = lifted_vectors(
            philox_words(seeds[part], frame_words(dimension, coordinates.shape[1])), coordinates[part], dimension
        )
    return vectors


def frame_sum(seeds: Sequence[int], coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return the sum of `frame_vectors` over clients, shape (dimension,)."""
    total = np.zeros(dimension)
    for part in _parts(coordinates, dimension):
        total += frame_vectors(seeds[part], coordinates[part], dimension).sum(axis=0)
    return total


def reflected_vectors(words: WordArray, vectors: FloatArray, count: int) -> FloatArray:
    """Return the coordinates of vectors in the frames of words, shapes (clients, frame_words) and (clients, dimension)."""
    rest = vectors.T.copy()
    coordinates = np.empty((len(vectors), count))
    for step, normals, heads in _reflections(words, len(rest), range(count)):
        _reflect(rest[step:], normals, heads)
        coordinates[:, step] = -np.sign(heads) * rest[step]
    return coordinates


def lifted_vectors(words: WordArray, coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return vectors from coordinates in the frames of words, shapes (clients, frame_words) and (clients, columns)."""
    vectors = np.zeros((dimension, len(coordinates)))
    for step, normals, heads in _reflections(words, dimension, range(coordinates.shape[1])[::-1]):
        vectors[step] = -np.sign(heads) * coordinates[:, step]
        _reflect(vectors[step:], normals, heads)
    return np.ascontiguousarray(vectors.T)


def _step_words(dimension: int, step: int) -> int:
    return (dimension - step + 1) // 2


def _parts(coordinates: FloatArray, dimension: int) -> Iterator[slice]:
    of_step = max(FEW_COLUMNS, STEP // dimension) * dimension
    return client_chunks(len(coordinates), dimension * coordinates.shape[1], min(CHUNK, of_step * coordinates.shape[1]))


def _reflections(words: WordArray, dimension: int, steps: range) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield each step with its normal vectors and their signed lengths.

    Normal vectors have the shape (dimension - step, clients); the signed lengths have the signs of their first numbers. Adding the signed
    length to the first number gives the direction of the reflection, without cancellation.
    """
    halves = np.ascontiguousarray(words, dtype="<u8").view("<u4").astype(np.uint32, copy=False)
    starts = [0, *accumulate(2 * _step_words(dimension, step) for step in range(len(steps)))]
    for step in steps:
        normals = normal_numbers(halves[:, starts[step] : starts[step] + dimension - step].T)
        squares = _sums(normals * normals)
        # The last number of a square frame can be zero, for which either sign serves.
        normals[0, squares == 0] = squares[squares == 0] = 1.0
        yield step, normals, np.where(normals[0] < 0, -1.0, 1.0) * np.sqrt(squares)


def _reflect(vectors: FloatArray, normals: FloatArray, heads: FloatArray) -> None:
    """Reflect each column in place."""
    products = (_sums(vectors * normals) + heads * vectors[0]) / (heads * (heads + normals[0]))
    vectors[0] -= products * heads
    vectors -= products * normals


def _sums(terms: FloatArray) -> FloatArray:
    """Return the sum of each column, term by term from the first on; the terms may be lost."""
    # The sum of whole rows is faster, but it takes the terms of a few columns in another order.
    if terms.shape[1] < FEW_COLUMNS:
        return np.asarray(np.add.accumulate(terms, axis=0, out=terms)[-1])
    return np.asarray(np.add.reduce(terms, axis=0))


def client_chunks(clients: int, numbers: int, most: int = MOST_NUMBERS) -> Iterator[slice]:
    """Return slices of clients that take at most `most` numbers together.

    A client takes `numbers` numbers; each slice has at least one client.

    Examples
    --------
    >>> list(client_chunks(5, numbers=40, most=100))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, most // numbers)
    return (slice(start, start + size) for start in range(0, clients, size))
