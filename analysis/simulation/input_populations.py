"""Named populations of what clients hold, for every domain that has means: numbers of an interval, and vectors of a ball."""

from collections.abc import Callable, Iterator

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.mechanism import MOST_CLIENTS
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from .vector_populations import CHUNK_COORDINATES, check_population, population_chunks

MeanDomain = NormBall | Interval

NUMBERS: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {
    "uniform": lambda clients, rng: rng.uniform(-1.0, 1.0, clients),
    "ends": lambda clients, rng: np.where(rng.integers(0, 2, clients) == 1, 1.0, -1.0),
}
"""Numbers from -1 to 1, by the population's name."""


def input_chunks(
    kind: str, domain: Domain, clients: int, rng: np.random.Generator, *, scale: float = 1.0, nonzero: int | None = None
) -> Iterator[FloatArray]:
    """Return what clients hold, drawn when it is asked for, in chunks whose size does not depend on the number of clients.

    Parameters
    ----------
    kind : str
        For a ball, as in `population_chunks`, scaled by its clip_norm. For an interval, ``"uniform"`` on it, or ``"ends"``: either end with
        probability 1/2.
    domain : NormBall or Interval
        What mechanisms clip to.
    clients : int
        Number of clients.
    rng : numpy.random.Generator
        Source of randomness; used while the chunks are drawn. The draws do not depend on the ball's norm or radius, or on the interval.
    scale : float
        Factor on every vector, or on every number's distance from the middle: above 1, inputs may lie outside the domain.
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
    return _number_chunks(kind, domain, check_integer("clients", clients, low=1, high=MOST_CLIENTS), rng, scale)


def check_inputs(kind: str, domain: Domain, nonzero: int | None) -> MeanDomain:
    """Return a domain that has a population, or raise ValueError; and refuse a number of non-zero coordinates for one that has none."""
    domain = mean_domain(domain)
    if isinstance(domain, NormBall):
        check_population(kind, nonzero, domain.dimension)
    else:
        check_choice("population", kind, NUMBERS)
        if nonzero is not None:
            raise ValueError(f"nonzero must be left out for numbers of an interval, got {nonzero!r}")
    return domain


def mean_domain(domain: Domain) -> MeanDomain:
    """Return a domain whose inputs have a mean, or raise ValueError."""
    if isinstance(domain, Categories):
        raise ValueError(f"domain must be a ball or an interval, whose inputs have a mean, got {domain}")
    return domain


def _number_chunks(kind: str, interval: Interval, clients: int, rng: np.random.Generator, scale: float) -> Iterator[FloatArray]:
    for start in range(0, clients, CHUNK_COORDINATES):
        shares = (1 + scale * NUMBERS[kind](min(CHUNK_COORDINATES, clients - start), rng)) / 2
        # The ends themselves come out as they are.
        yield interval.low * (1 - shares) + interval.high * shares
