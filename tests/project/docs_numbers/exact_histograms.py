"""Numbers of docs/exact-histograms.md."""

import math
from collections.abc import Iterator

import numpy as np

from quietbits.solvers.limits.histogram_code_size import code_size, code_size_of_histogram


def code_size_rows() -> Iterator[list[str]]:
    """Return how many measurements are enough for n items of d."""
    for clients, dimension, name in (
        (30, 1000, "30, 1000"),
        (50, 1000, "50, 1000"),
        (100, 10_000, "100, 10 000"),
        (256, 100_000, "256, 100 000"),
    ):
        distinct = np.repeat((1, 0), (clients, dimension - clients))
        order = clients * math.log(dimension) / math.log(clients)
        yield [name, f"{order:.0f}", str(code_size_of_histogram(distinct, dimension)), str(code_size(clients, dimension))]
