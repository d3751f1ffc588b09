"""Named populations of clients' numbers, vectors and items, drawn in chunks."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import LARGEST_DIMENSION, MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from .digit_gradients import hidden_widths, population_of_gradients

CHUNK_CLIENTS = 2**18
# Ratio of the probabilities of successive items in the geometric population.
RATIO = 0.8

SHARES: dict[str, Callable[[int], FloatArray]] = {
    "uniform": lambda size: np.ones(size),
    "zipf": lambda size: 1 / np.arange(1, size + 1, dtype=float),
    # Number of items with a probability above 0; probabilities of later items would be below 1e-96.
    "geometric": lambda size: RATIO ** np.minimum(np.arange(size, dtype=float), 3000),
}
"""Weights of the items by the population's name: equal ones, 1/k, and 0.8^k."""
# Number of coordinates per chunk. The chunks, and so the vectors, depend only on the dimension, not on memory or workers.
CHUNK_COORDINATES = 2**18
# Number of coordinates per non-zero coordinate of a sparse vector, by default.
SPARSITY = 16
DIGITS_GRADIENTS = "digits-gradients"

Draw = Callable[[int, int, int, np.random.Generator], FloatArray]
# Largest dimension of drawn inputs, for which a vector takes an eighth of a gigabyte, and its encoding a few times that memory.
MOST_DRAWN_COORDINATES = 2**24

NUMBERS: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {
    "uniform": lambda clients, rng: rng.uniform(-1.0, 1.0, clients),
    # The distribution function is the square of the share of the interval.
    "rising": lambda clients, rng: 2 * np.sqrt(rng.random(clients)) - 1,
    "ends": lambda clients, rng: np.where(rng.integers(0, 2, clients) == 1, 1.0, -1.0),
}
"""Numbers from -1 to 1, by the population's name."""


@lru_cache(maxsize=8)
def item_probabilities(kind: str, size: int) -> FloatArray:
    """Return the items' probabilities, truncated to a number of items, read-only."""
    weights = SHARES[check_choice("population", kind, SHARES)](size)
    probabilities = np.asarray(weights / weights.sum())
    probabilities.flags.writeable = False
    return probabilities


def item_chunks(kind: str, size: int, clients: int, rng: np.random.Generator) -> Iterator[IntegerArray]:
    """Yield clients' independent items, in chunks of at most 2**18 clients.

    Examples
    --------
    >>> [chunk.tolist() for chunk in item_chunks("geometric", 100, 8, np.random.default_rng(0))]
    [[4, 1, 0, 0, 7, 10, 4, 5]]
    """
    reached = np.cumsum(item_probabilities(kind, size))
    for start in range(0, clients, CHUNK_CLIENTS):
        drawn = rng.random(min(CHUNK_CLIENTS, clients - start))
        # Rounding may leave the last sum below 1.
        yield np.minimum(np.searchsorted(reached, drawn, side="right"), size - 1).astype(np.int64)


def _uniform_l1(clients: int, dimension: int, _: int, rng: np.random.Generator) -> FloatArray:
    # The draws are from (0, 1] instead of [0, 1), because a vector of zeros has no direction.
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
    # The places do not depend on the stream, which a chunk would otherwise advance.
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
# Names of populations that take a number of non-zero coordinates.
SPARSE_POPULATIONS = ("sparse", "sparse-mean")


def population_chunks(
    kind: str, clients: int, dimension: int, rng: np.random.Generator, *, scale: float = 1.0, nonzero: int | None = None
) -> Iterator[FloatArray]:
    """Yield the vectors of a population, in chunks whose size depends on the dimension only.

    Parameters
    ----------
    kind : str
        ``"uniform-l1"``: coordinates uniform on (0, 1], divided by their sum, so that the L1 norm is 1; ``"sphere"``: uniform on the sphere
        of L2 norm 1; ``"positive-sphere"``: uniform on the part of it where no coordinate is negative; ``"uniform-cube"``: coordinates
        uniform on [-1, 1]; ``"sparse"``: zero except for `nonzero` coordinates at random places, which are uniform on their sphere of L2
        norm 1; ``"sparse-mean"``: the same vector for all clients, with `nonzero` equal coordinates, of L2 norm 1; ``"digits-gradients"``:
        gradients of single images at a network in training (`digit_gradients`), which must have as many parameters as there are
        coordinates; one gradient in ten is longer than 1. The first and the third are the data of Chaudhuri, Guo, Rabbat 2022, section 5.2.
    clients : int
        Number of vectors.
    dimension : int
        Length of the vectors.
    rng : numpy.random.Generator
        Source of randomness, used while the chunks are drawn.
    scale : float
        Factor of all vectors.
    nonzero : int or None
        Number of non-zero coordinates, only for ``"sparse"`` and ``"sparse-mean"``; None for one in 16, and at least one.

    Returns
    -------
    iterator of ndarray of float64, shape (clients of the chunk, dimension)
        The chunks; all chunks together have `clients` rows.

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
    """Return the default number of non-zero coordinates, one in 16, at least one."""
    return max(1, dimension // SPARSITY)


def check_population(kind: str, nonzero: int | None, dimension: int) -> None:
    """Raise ValueError for an unknown population, or a dimension that it does not have.

    It also raises ValueError for a number of non-zero coordinates if the population has no such number.
    """
    check_choice("population", kind, POPULATIONS)
    if nonzero is not None and kind not in SPARSE_POPULATIONS:
        raise ValueError(f"nonzero must be left out for the population {kind}, it belongs to sparse and sparse-mean only, got {nonzero!r}")
    if kind == DIGITS_GRADIENTS:
        hidden_widths(dimension)


def input_chunks(
    kind: str, domain: Domain, clients: int, rng: np.random.Generator, *, scale: float = 1.0, nonzero: int | None = None
) -> Iterator[NDArray[Any]]:
    """Yield the clients' inputs, in chunks whose size does not depend on the number of clients.

    Parameters
    ----------
    kind : str
        For a ball, as in `population_chunks`, scaled by its clip_norm. For an interval, ``"uniform"`` on it, ``"rising"``: with a density
        that rises linearly from 0 at the low end, or ``"ends"``: either end with probability 1/2. For categories, as in `item_chunks`.
    domain : NormBall, Interval or Categories
        Domain of the mechanisms.
    clients : int
        Number of clients.
    rng : numpy.random.Generator
        Source of randomness; used while the chunks are drawn. The draws do not depend on the ball's norm or radius, or on the interval.
    scale : float
        Factor on every vector, or on every number's distance from the middle; above 1, inputs may lie outside the domain. Items have no
        factor.
    nonzero : int or None
        Number of non-zero coordinates for ``"sparse"`` and ``"sparse-mean"``, as in `population_chunks`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> [chunk.tolist() for chunk in input_chunks("ends", Interval(0.0, 5.0), 4, rng)]
    [[0.0, 5.0, 5.0, 5.0]]
    """
    domain = check_inputs(kind, domain, nonzero)
    scale = check_real("scale", scale, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
    if isinstance(domain, NormBall):
        return population_chunks(kind, clients, domain.dimension, rng, scale=scale * domain.clip_norm, nonzero=nonzero)
    if isinstance(domain, Categories):
        return item_chunks(kind, domain.size, check_integer("clients", clients, low=1, high=MOST_CLIENTS), rng)
    return _number_chunks(kind, domain, check_integer("clients", clients, low=1, high=MOST_CLIENTS), rng, scale)


def check_inputs(kind: str, domain: Domain, nonzero: int | None) -> Domain:
    """Return a domain that has a population, or raise ValueError.

    It refuses a number of non-zero coordinates if the population has no such number.
    """
    check_drawable(domain)
    if isinstance(domain, NormBall):
        check_population(kind, nonzero, domain.dimension)
        return domain
    check_choice("population", kind, SHARES if isinstance(domain, Categories) else NUMBERS)
    if nonzero is not None:
        raise ValueError(f"nonzero must be left out for numbers and items, got {nonzero!r}")
    return domain


def check_drawable(domain: Domain) -> None:
    """Raise ValueError if a single input or estimate exceeds the memory for simulations."""
    if domain.dimension > MOST_DRAWN_COORDINATES:
        name = "categories" if isinstance(domain, Categories) else "dimension"
        raise ValueError(f"{name} must be at most {MOST_DRAWN_COORDINATES} where inputs are drawn, got {domain.dimension}")


def _number_chunks(kind: str, interval: Interval, clients: int, rng: np.random.Generator, scale: float) -> Iterator[FloatArray]:
    for start in range(0, clients, CHUNK_COORDINATES):
        shares = (1 + scale * NUMBERS[kind](min(CHUNK_COORDINATES, clients - start), rng)) / 2
        # The ends of the interval stay exact.
        yield interval.low * (1 - shares) + interval.high * shares
