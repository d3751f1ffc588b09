"""Named populations of clients' items, drawn in chunks."""

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from ...arguments import check_choice
from ...arrays import FloatArray, IntegerArray

CHUNK_CLIENTS = 2**18
# Of the geometric population: the ratio of one item's probability to that of the one before.
RATIO = 0.8

SHARES: dict[str, Callable[[int], FloatArray]] = {
    "uniform": lambda size: np.ones(size),
    "zipf": lambda size: 1 / np.arange(1, size + 1, dtype=float),
    # Beyond a thousand items they are below 1e-96, and never drawn.
    "geometric": lambda size: RATIO ** np.minimum(np.arange(size, dtype=float), 3000),
}
"""Weights of the items by the population's name: equal ones, 1/k, and 0.8^k."""


@lru_cache(maxsize=8)
def item_probabilities(kind: str, size: int) -> FloatArray:
    """Return the probability of each item of a population, truncated to a number of items; not to be changed."""
    weights = SHARES[check_choice("population", kind, SHARES)](size)
    probabilities = np.asarray(weights / weights.sum())
    probabilities.flags.writeable = False
    return probabilities


def item_chunks(kind: str, size: int, clients: int, rng: np.random.Generator) -> Iterator[IntegerArray]:
    """Return clients' items, independent of each other, in chunks of at most 2**18 clients.

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
