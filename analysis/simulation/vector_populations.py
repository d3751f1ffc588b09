"""Named populations of clients' vectors, drawn in chunks: memory does not grow with the number of clients."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from ...arguments import LARGEST_DIMENSION, MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM
from .digit_gradients import hidden_widths, population_of_gradients

# Coordinates drawn at a time. The chunks, and with them the vectors, depend on the dimension only: not on memory, nor on workers.
CHUNK_COORDINATES = 2**18
# A sparse vector has one non-zero coordinate in this number, unless told otherwise.
SPARSITY = 16
DIGITS_GRADIENTS = "digits-gradients"

Draw = Callable[[int, int, int, np.random.Generator], FloatArray]


def _uniform_l1(clients: int, dimension: int, _: int, rng: np.random.Generator) -> FloatArray:
    # From (0, 1] instead of [0, 1): a vector of zeros has no direction.
    vectors = 1.0 - rng.random((clients, dimension))
    vectors /= vectors.sum(axis=1, keepdims=True)
    return vectors


def _sphere(clients: int, dimension: int, _: int, rng: np.random.Generator) -> FloatArray:
    vectors = rng.standard_normal((clients, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _positive_sphere(clients: int, dimension: int, nonzero: int, rng: np.random.Generator) -> FloatArray:
    vectors = _sphere(clients, dimension, nonzero, rng)
    return np.abs(vectors, out=vectors)


def _uniform_cube(clients: int, dimension: int, _: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(-1.0, 1.0, (clients, dimension))


def _sparse(clients: int, dimension: int, nonzero: int, rng: np.random.Generator) -> FloatArray:
    places = np.argpartition(rng.random((clients, dimension)), nonzero - 1, axis=1)[:, :nonzero]
    vectors = np.zeros((clients, dimension))
    np.put_along_axis(vectors, places, _sphere(clients, nonzero, nonzero, rng), axis=1)
    return vectors


def _sparse_mean(clients: int, dimension: int, nonzero: int, _: np.random.Generator) -> FloatArray:
    vectors = np.zeros((clients, dimension))
    # The places do not depend on the stream, which a chunk would otherwise move on.
    vectors[:, np.random.default_rng([dimension, nonzero]).permutation(dimension)[:nonzero]] = 1 / math.sqrt(nonzero)
    return vectors


def _digits_gradients(clients: int, dimension: int, _: int, rng: np.random.Generator) -> FloatArray:
    return population_of_gradients(clients, dimension, rng)


DRAWS: dict[str, Draw] = {
    "uniform-l1": _uniform_l1,
    "positive-sphere": _positive_sphere,
    "sphere": _sphere,
    "uniform-cube": _uniform_cube,
    "sparse": _sparse,
    "sparse-mean": _sparse_mean,
    DIGITS_GRADIENTS: _digits_gradients,
}
POPULATIONS = tuple(DRAWS)
# Those that take a number of non-zero coordinates.
SPARSE_POPULATIONS = ("sparse", "sparse-mean")


def population_chunks(
    kind: str, clients: int, dimension: int, rng: np.random.Generator, *, scale: float = 1.0, nonzero: int | None = None
) -> Iterator[FloatArray]:
    """Return the vectors of a population, drawn when they are asked for, in chunks whose size depends on the dimension only.

    Parameters
    ----------
    kind : str
        ``"uniform-l1"``: coordinates uniform on (0, 1], divided by their sum, so that the L1 norm is 1; ``"sphere"``: uniform on the
        sphere of L2 norm 1; ``"positive-sphere"``: uniform on the part of it where no coordinate is negative; ``"uniform-cube"``:
        coordinates uniform on [-1, 1]; ``"sparse"``: zero except for `nonzero` coordinates at random places, which are uniform on their
        sphere of L2 norm 1; ``"sparse-mean"``: the same vector for all clients, with `nonzero` equal coordinates, of L2 norm 1;
        ``"digits-gradients"``: gradients of single images at a network that is being trained (`digit_gradients`), which must have as many
        parameters as there are coordinates: one in ten is longer than 1. The first and the third are the data of Chaudhuri, Guo, Rabbat
        2022, section 5.2.
    clients : int
        Number of vectors.
    dimension : int
        Their length.
    rng : numpy.random.Generator
        Source of randomness; used while the chunks are drawn.
    scale : float
        Factor on every vector.
    nonzero : int or None
        For ``"sparse"`` and ``"sparse-mean"`` only: number of non-zero coordinates; None for one in 16, and at least one.

    Returns
    -------
    iterator of ndarray of float64, shape (clients of the chunk, dimension)
        The chunks; they have `clients` rows in all.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> [chunk.shape for chunk in population_chunks("sphere", 5000, 128, rng)]
    [(2048, 128), (2048, 128), (904, 128)]
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    check_population(kind, nonzero, dimension)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    scale = check_real("scale", scale, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
    if nonzero is None:
        nonzero = usual_nonzero(dimension)
    nonzero = check_integer("nonzero", nonzero, low=1, high=dimension)
    size = max(1, CHUNK_COORDINATES // dimension)
    chunks = (DRAWS[kind](min(size, clients - start), dimension, nonzero, rng) for start in range(0, clients, size))
    return chunks if scale == 1 else (scale * chunk for chunk in chunks)


def usual_nonzero(dimension: int) -> int:
    """Return how many coordinates of a sparse vector are not zero, unless told otherwise: one in 16, at least one."""
    return max(1, dimension // SPARSITY)


def check_population(kind: str, nonzero: int | None, dimension: int) -> None:
    """Refuse a population that is not known or has no such dimension, or a number of non-zero coordinates for one that has none."""
    check_choice("population", kind, POPULATIONS)
    if nonzero is not None and kind not in SPARSE_POPULATIONS:
        raise ValueError(f"nonzero must be left out for the population {kind}, it belongs to sparse and sparse-mean only, got {nonzero!r}")
    if kind == DIGITS_GRADIENTS:
        hidden_widths(dimension)
