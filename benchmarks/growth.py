"""Growth of processor time and memory with dimension, clients, bits and rounds, as fitted exponents.

An exponent is the slope of the logarithm of the processor time over that of a size, between the sizes shown. The peak of memory is the most
that Python and NumPy hold at once in a run of the largest size, beyond what they held before. Copying the input is the physical limit.
"""

import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from shared.growth import slope
from shared.processor_time import seconds

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget, Task
from quietbits.design.tables.mvu import design_mvu

CLIENTS, DIMENSION = 1000, 128
BUDGET = Budget(2.0, 1e-5, "replace-one")
DIMENSIONS, POPULATIONS, BITS, ROUNDS = (256, 1024, 4096), (500, 2000, 8000), (12, 16, 20), (1, 10, 100)
MECHANISMS = ("distributed-discrete-gaussian", "distributed-skellam", "poisson-binomial", "sqkr", "mvu")
Run = Callable[[], object]


def task(dimension: int, clients: int, rounds: int = 1) -> Task:
    """Return a task of unit vectors."""
    return Task(NormBall(dimension, 2.0), clients, BUDGET.epsilon, BUDGET.delta, BUDGET.adjacency, rounds=rounds)


def unit_vectors(clients: int, dimension: int) -> np.ndarray:
    """Return random vectors of length 1."""
    vectors = np.random.default_rng(0).standard_normal((clients, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def built(name: str, dimension: int, clients: int, bits: int = 16) -> Mechanism:
    """Return a mechanism; the bits are those of a sum's coordinate."""
    return build_mechanism(name, task(dimension, clients), {"bits": bits} if name.startswith("distributed") else {})


def encoding(name: str, dimension: int, clients: int) -> Run:
    """Return a run that encodes vectors of a dimension."""
    return partial(built(name, dimension, clients).encode, unit_vectors(clients, dimension), np.random.default_rng(1))


def simulation(name: str, clients: int, bits: int = 16) -> Run:
    """Return a run that simulates a round."""
    mechanism, vectors = built(name, DIMENSION, clients, bits), unit_vectors(clients, DIMENSION)
    return lambda: simulate_mean(mechanism, np.array_split(vectors, max(1, clients // 500)), np.random.default_rng(1))


def peak_mebibytes(run: Run) -> float:
    """Return the most memory that a run adds at once."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def show(what: str, size: str, sizes: Sequence[int], runs: Callable[[int], Run], limit: float | None = None, repetitions: int = 3) -> None:
    """Print a row of the table: exponent, time and memory at the largest size."""
    made = [runs(value) for value in sizes]
    times = [seconds(run, repetitions) for run in made]
    over = "" if limit is None else f"{times[-1] / limit:.3g} x"
    peak = peak_mebibytes(made[-1])
    row = f"{what:<46} {size:<10} {sizes[0]:>6} to {sizes[-1]:<6} {slope(sizes, times):5.2f} {1e3 * times[-1]:9.1f} ms"
    print(f"{row} {over:>9} {peak:8.1f} MiB")


def main() -> None:
    """Print the table."""
    print(f"{'what':<46} {'grows with':<10} {'sizes':>16} power    time of the largest, beside a copy, and its memory")
    for name in MECHANISMS:
        vectors = unit_vectors(100, DIMENSIONS[-1])
        show(f"encode {name}", "dimension", DIMENSIONS, partial(encoding, name, clients=100), seconds(vectors.copy, 9))
        vectors = unit_vectors(POPULATIONS[-1], DIMENSION)
        show(f"simulate {name}", "clients", POPULATIONS, partial(simulation, name), seconds(vectors.copy, 9))
    show("simulate distributed-discrete-gaussian", "bits out", BITS, lambda bits: simulation(MECHANISMS[0], CLIENTS, bits))
    show("design mvu, 2 bits out, epsilon 1", "bits in", (2, 3, 4), lambda bits: partial(design_mvu, 1.0, bits, 2), repetitions=1)
    show("design mvu, 3 bits in, epsilon 1", "bits out", (1, 2, 3), lambda bits: partial(design_mvu, 1.0, 3, bits), repetitions=1)
    # Epsilons differ from call to call, because results of a task are cached.
    fresh = iter(np.linspace(2.0, 2.5, 1000).tolist())

    def planning(dimension: int, rounds: int = 1) -> Run:
        ball = NormBall(dimension, 2.0)
        return lambda: plan_task(Task(ball, 10_000, next(fresh), 1e-5, "replace-one", rounds=rounds), timed=False)

    show("plan, 10000 clients", "dimension", (100, 1000, 10_000), planning, repetitions=1)
    show("plan, 100 coordinates", "rounds", ROUNDS, lambda rounds: planning(100, rounds), repetitions=1)


if __name__ == "__main__":
    main()
