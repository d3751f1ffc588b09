"""Random subspaces that client and server derive from a seed: coordinates in an orthonormal frame, and vectors from them.

A frame is the first columns of a product of reflections, each of which maps a vector of normal numbers, one shorter than the one before,
to an axis. It is uniformly random (Haar), as that of the QR decomposition of a matrix of normal numbers (Stewart 1980, *The Efficient
Generation of Random Orthogonal Matrices with an Application to Condition Estimators*), but no matrix is decomposed: time is in proportion
to the frame's numbers. Normal numbers are those of `shared_randomness`, rounded: laws differ by less than 1e-6. `client_chunks` splits
clients into chunks, so that the numbers derived from their public seeds are never all in memory.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ....arrays import FloatArray
from ...relative_entropy.shared_randomness import vectors_of_seeds

# Numbers that public seeds stand for, or vectors made with them, that are held in memory at a time.
MOST_NUMBERS = 2**21

# Normal numbers that are made at a time: few enough for caches, and clients enough to share the cost of a step.
CHUNK = 2**19


def frame_coordinates(seeds: Sequence[int], vectors: FloatArray, count: int) -> FloatArray:
    """Return the coordinates of each client's vector in the frame of `count` columns of its seed, shape (clients, count)."""
    dimension = vectors.shape[1]
    coordinates = np.empty((len(vectors), count))
    for part in _parts(coordinates, dimension):
        rest, reached = vectors[part].copy(), coordinates[part]
        for step, normals, heads in _reflections(seeds[part], dimension, range(count)):
            _reflect(rest[:, step:], normals, heads)
            reached[:, step] = -np.sign(heads) * rest[:, step]
    return coordinates


def frame_vectors(seeds: Sequence[int], coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return each client's vector, with the given coordinates in the frame of its seed, shape (clients, dimension)."""
    vectors = np.zeros((len(coordinates), dimension))
    for part in _parts(coordinates, dimension):
        lifted, given = vectors[part], coordinates[part]
        for step, normals, heads in _reflections(seeds[part], dimension, range(given.shape[1])[::-1]):
            lifted[:, step] = -np.sign(heads) * given[:, step]
            _reflect(lifted[:, step:], normals, heads)
    return vectors


def frame_sum(seeds: Sequence[int], coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return the sum of `frame_vectors` over clients, shape (dimension,)."""
    total = np.zeros(dimension)
    for part in _parts(coordinates, dimension):
        total += frame_vectors(seeds[part], coordinates[part], dimension).sum(axis=0)
    return total


def _parts(coordinates: FloatArray, dimension: int) -> Iterator[slice]:
    return client_chunks(len(coordinates), dimension * coordinates.shape[1], CHUNK)


def _reflections(seeds: Sequence[int], dimension: int, steps: range) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield each step, its normal vectors, shape (clients, dimension - step), and their lengths with the signs of the first numbers.

    The reflection is along the normal vector with that length added to its first number, where nothing cancels.
    """
    drawn = vectors_of_seeds(seeds, dimension, len(steps))
    for step in steps:
        normals = drawn[:, step, step:].astype(float)
        heads = np.copysign(np.sqrt(np.vecdot(normals, normals)), normals[:, 0])
        # The last number of a square frame can be zero; either sign is then as good.
        normals[heads == 0, 0] = heads[heads == 0] = 1.0
        yield step, normals, heads


def _reflect(vectors: FloatArray, normals: FloatArray, heads: FloatArray) -> None:
    """Reflect each vector in place."""
    products = np.vecdot(vectors, normals) + heads * vectors[:, 0]
    products /= heads * (heads + normals[:, 0])
    vectors[:, 0] -= products * heads
    vectors -= products[:, None] * normals


def client_chunks(clients: int, numbers: int, most: int = MOST_NUMBERS) -> Iterator[slice]:
    """Return slices of clients, each of as many as take at most the given count of numbers, but of one at least.

    Examples
    --------
    >>> list(client_chunks(5, numbers=40, most=100))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, most // numbers)
    return (slice(start, start + size) for start in range(0, clients, size))
