"""Random subspaces that client and server derive from a public seed.

The module computes a vector's coordinates in an orthonormal frame, and vectors from coordinates. A frame is the first columns of a product
of reflections. Each reflection maps a vector of normal numbers, one number shorter than the previous vector, to an axis. The frame is
uniformly random (Haar), as is the frame of the QR decomposition of a matrix of normal numbers (Stewart 1980, *The Efficient Generation of
Random Orthogonal Matrices with an Application to Condition Estimators*). The module decomposes no matrix: its time is in proportion to the
frame's numbers. The rounded normal numbers come from `shared_randomness`; their law differs from the exact law by less than 1e-6.
`client_chunks` splits clients into chunks, so that the numbers derived from their public seeds are not in memory all at once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays import FloatArray
from ...relative_entropy.shared_randomness import vectors_of_seeds

# Largest size of the arrays in memory that hold numbers derived from public seeds, or computed from these numbers.
MOST_NUMBERS = 2**21

# Batch size of normal numbers, small enough for caches and large enough for clients to share the cost of a step.
CHUNK = 2**19


def frame_coordinates(seeds: Sequence[int], vectors: FloatArray, count: int) -> FloatArray:
    """Return each client's vector in the coordinates of its seed's frame.

    The frame has `count` columns; the result's shape is (clients, count).
    """
    dimension = vectors.shape[1]
    coordinates = np.empty((len(vectors), count))
    for part in _parts(coordinates, dimension):
        rest, reached = vectors[part].copy(), coordinates[part]
        for step, normals, heads in _reflections(seeds[part], dimension, range(count)):
            _reflect(rest[:, step:], normals, heads)
            reached[:, step] = -np.sign(heads) * rest[:, step]
    return coordinates


def frame_vectors(seeds: Sequence[int], coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return each client's vector from coordinates in the frame of its seed.

    The result's shape is (clients, dimension).
    """
    vectors = np.zeros((len(coordinates), dimension))
    for part in _parts(coordinates, dimension):
        given = coordinates[part]
        drawn = vectors_of_seeds(seeds[part], dimension, given.shape[1])
        vectors[part] = lifted_vectors([drawn[:, step, step:] for step in range(given.shape[1])], given, dimension)
    return vectors


def lifted_vectors(drawn: Sequence[NDArray[Any]], coordinates: FloatArray, dimension: int) -> FloatArray:
    """Return vectors from coordinates in the frames of normal vectors.

    The normal vectors of step k have the shape (clients, dimension - k).
    """
    vectors = np.zeros((len(coordinates), dimension))
    for step in range(coordinates.shape[1])[::-1]:
        normals, heads = _signed_lengths(drawn[step])
        vectors[:, step] = -np.sign(heads) * coordinates[:, step]
        _reflect(vectors[:, step:], normals, heads)
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
    """Yield each step with its normal vectors and their signed lengths.

    Normal vectors have the shape (clients, dimension - step); the signed lengths have the signs of their first numbers. Adding the signed
    length to the first number gives the direction of the reflection, without cancellation.
    """
    drawn = vectors_of_seeds(seeds, dimension, len(steps))
    for step in steps:
        yield step, *_signed_lengths(drawn[:, step, step:])


def _signed_lengths(drawn: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return normal vectors in double precision, and their lengths with the signs of their first numbers."""
    normals = drawn.astype(float)
    heads = np.copysign(np.sqrt(np.vecdot(normals, normals)), normals[:, 0])
    # The last number of a square frame can be zero, for which either sign serves.
    normals[heads == 0, 0] = heads[heads == 0] = 1.0
    return normals, heads


def _reflect(vectors: FloatArray, normals: FloatArray, heads: FloatArray) -> None:
    """Reflect each vector in place."""
    products = np.vecdot(vectors, normals) + heads * vectors[:, 0]
    products /= heads * (heads + normals[:, 0])
    vectors[:, 0] -= products * heads
    vectors -= products[:, None] * normals


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
