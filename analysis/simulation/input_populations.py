"""Named populations of what clients hold, for every domain that has means: numbers of an interval, and vectors of a ball."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from .category_populations import SHARES, item_chunks
from .vector_populations import CHUNK_COORDINATES, check_population, population_chunks

# Of inputs that are drawn: a vector then takes an eighth of a gigabyte, and encoding one a few of them.
MOST_DRAWN_COORDINATES = 2**24

NUMBERS: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {
    "uniform": lambda clients, rng: rng.uniform(-1.0, 1.0, clients),
    "ends": lambda clients, rng: np.where(rng.integers(0, 2, clients) == 1, 1.0, -1.0),
}
"""Numbers from -1 to 1, by the population's name."""


def input_chunks(
    kind: str, domain: Domain, clients: int, rng: np.random.Generator, *, scale: float = 1.0, nonzero: int | None = None
) -> Iterator[NDArray[Any]]:
    """Return what clients hold, drawn when it is asked for, in chunks whose size does not depend on the number of clients.

    Parameters
    ----------
    kind : str
        For a ball, as in `population_chunks`, scaled by its clip_norm. For an interval, ``"uniform"`` on it, or ``"ends"``: either end with
        probability 1/2. For categories, as in `item_chunks`.
    domain : NormBall, Interval or Categories
        What mechanisms clip to.
    clients : int
        Number of clients.
    rng : numpy.random.Generator
        Source of randomness; used while the chunks are drawn. The draws do not depend on the ball's norm or radius, or on the interval.
    scale : float
        Factor on every vector, or on every number's distance from the middle: above 1, inputs may lie outside the domain. Not for items.
    nonzero : int or None
        For ``"sparse"`` and ``"sparse-mean"`` only, as in `population_chunks`.

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
    """Return a domain that has a population, or raise ValueError; and refuse a number of non-zero coordinates for one that has none."""
    check_drawable(domain)
    if isinstance(domain, NormBall):
        check_population(kind, nonzero, domain.dimension)
        return domain
    check_choice("population", kind, SHARES if isinstance(domain, Categories) else NUMBERS)
    if nonzero is not None:
        raise ValueError(f"nonzero must be left out for numbers and items, got {nonzero!r}")
    return domain


def check_drawable(domain: Domain) -> None:
    """Raise ValueError where a single input, or estimate, would take more memory than simulations allow for."""
    if domain.dimension > MOST_DRAWN_COORDINATES:
        name = "categories" if isinstance(domain, Categories) else "dimension"
        raise ValueError(f"{name} must be at most {MOST_DRAWN_COORDINATES} where inputs are drawn, got {domain.dimension}")


def _number_chunks(kind: str, interval: Interval, clients: int, rng: np.random.Generator, scale: float) -> Iterator[FloatArray]:
    for start in range(0, clients, CHUNK_COORDINATES):
        shares = (1 + scale * NUMBERS[kind](min(CHUNK_COORDINATES, clients - start), rng)) / 2
        # The ends themselves come out as they are.
        yield interval.low * (1 - shares) + interval.high * shares
