"""Numbers of docs/explanations/distributed-discrete-laplace.md."""

from functools import cache

import quietbits
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.solvers.divergences.polya_divergence import polya_epsilon

CLIENTS = 10_000
NUMBERS, ITEMS = quietbits.Interval(), quietbits.Categories(100)


@cache
def error(
    name: str, domain: quietbits.Interval | quietbits.Categories, delta: float, rounds: int = 1, dropout: float = 0.0, **options: int
) -> float:
    task = quietbits.Task(domain, CLIENTS, 1.0, delta, "replace-one", rounds=rounds, dropout=dropout)
    return build_mechanism(name, task, options).error().of_mean(CLIENTS)


def numbers() -> float:
    return error("distributed-discrete-laplace", NUMBERS, 0.0)


def numbers_with_delta() -> float:
    return error("distributed-discrete-gaussian", NUMBERS, 1e-6, bits=32)


def histogram() -> float:
    return error("distributed-discrete-laplace", ITEMS, 0.0)


def histogram_with_delta() -> float:
    return error("sketched-discrete-gaussian-frequencies", ITEMS, 1e-6)


def last_round_won() -> int:
    """Return the largest number of rounds in which pure noise on numbers has less error than Gaussian noise."""

    def wins(rounds: int) -> bool:
        pure, gaussian = (error(name, NUMBERS, 1e-6, rounds) for name in ("distributed-discrete-laplace", "central-gaussian"))
        return pure < gaussian

    return max(rounds for rounds in range(1, 20) if wins(rounds))


def spread() -> float:
    return polya_epsilon(0.8, 1000.0, 1000, 1000)


def together() -> float:
    return polya_epsilon(0.8, 1000.0, 1000, 1)


def two_counts() -> float:
    return polya_epsilon(0.8, 2.0, 2, 100)


def one_count() -> float:
    return polya_epsilon(0.8, 2.0, 2, 1)


def planned_price() -> float:
    return error("distributed-discrete-laplace", ITEMS, 0.0, dropout=0.2) / histogram()


def to_a_client() -> float:
    mechanism = build_mechanism("distributed-discrete-laplace", quietbits.Task(ITEMS, CLIENTS, 1.0, 0.0, "replace-one"))
    return float(mechanism.facts()["epsilon_to_a_client"])
