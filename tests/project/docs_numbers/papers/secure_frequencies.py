"""Numbers of docs/papers/secure-frequencies.md."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from quietbits.figures.frequencies.simulated_errors import CENTRAL, SERIES, FrequencyPoint

ITEMS, CLIENTS = 100_000, 50_000
# Names of the series with measured errors.
HADAMARD, PROJECTIVE = "Hadamard response", "projective geometry"
TOSSES_SKETCH, TOSSES_BEST = "Poisson-binomial sketch, L = 10", "Poisson-binomial, best"


@cache
def measured(series: str, population: str, epsilon: float, clients: int = CLIENTS) -> float:
    """Return the mean of three rounds' largest errors, the number that figures draw."""
    point = FrequencyPoint(seed=0, series=series, population=population, categories=ITEMS, clients=clients, epsilon=epsilon)
    return float(np.mean([row["largest_error"] for row in point.run()]))


CELLS = (("geometric", 1.0), ("geometric", 5.0), ("geometric", 10.0), ("zipf", 1.0), ("zipf", 10.0))


def error_rows(number: Callable[[float], str]) -> Iterator[list[str]]:
    """Return largest errors, times 10^4."""
    for series in (*SERIES, CENTRAL):
        yield [series, *(number(1e4 * measured(series, *cell)) for cell in CELLS)]


def error_ratio(upper: str, lower: str, population: str, epsilon: float) -> float:
    """Return the ratio of the largest errors of two series."""
    return measured(upper, population, epsilon) / measured(lower, population, epsilon)
