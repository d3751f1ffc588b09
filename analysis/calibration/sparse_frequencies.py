"""Sketches for a known number of different items, with the least noise within a budget."""

from ...arguments import MOST_ITEMS, check_integer
from ...design.contracts.task import Budget
from ...design.frequencies.sparse_frequencies import PURSUIT_ROWS, SparseFrequencies, pursuit_buckets
from .frequency_sums import calibrate_discrete_gaussian_frequencies
from .item_sketches import ItemSketchChoice


def calibrate_sparse_frequencies(
    categories: int,
    clients: int,
    budget: Budget,
    distinct_items: int | None = None,
    *,
    rows: int = PURSUIT_ROWS,
    width: int | None = None,
    signed: bool = False,
    seed: int = 0,
) -> SparseFrequencies:
    """Return the mechanism for at most `distinct_items` different items, by default as many as there are clients or items.

    Without a width the sketch has `pursuit_buckets`; it is a histogram of all items where that is shorter. Raises as
    `calibrate_discrete_gaussian_frequencies`.

    Examples
    --------
    >>> found = calibrate_sparse_frequencies(100_000, 50_000, Budget(1.0, 1e-5, "replace-one"), distinct_items=100)
    >>> found.sketch.coordinates, round(found.bits_per_client), 0 <= 1.0 - found.guarantee.epsilon <= 1e-6
    (1582, 32051, True)
    """
    categories = check_integer("categories", categories, low=2, high=MOST_ITEMS)
    most = min(categories, clients)
    distinct = most if distinct_items is None else min(most, check_integer("distinct_items", distinct_items, low=1, high=MOST_ITEMS))
    if width is None:
        width = max(2, -(-pursuit_buckets(categories, distinct) // rows))
        if rows * width >= categories:
            rows, width = 1, categories
    elif width >= categories:
        rows = 1
    choice = ItemSketchChoice(rows=rows, width=width, signed=signed, seed=seed)
    found = calibrate_discrete_gaussian_frequencies(categories, clients, budget, choice)
    return SparseFrequencies(
        found.sketch, found.clients, found.steps, found.local_sigma, found.delta, adjacency=found.adjacency, distinct_items=distinct
    )
