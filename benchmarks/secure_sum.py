"""A round of 1000 clients with vectors of length 2**16, 16 bits per coordinate, beside drawing the vectors; and an exact account."""

import resource
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from shared.processor_time import seconds

from quietbits.analysis.accounting.binomial import binomial_account
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.simulation.mean import central_squared_error, simulate_mean
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

CLIENTS, DIMENSION, BITS, CHUNK = 1000, 2**16, 16, 50
ENCODED = 16


def chunks(rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield unit vectors, a few clients at a time."""
    for _ in range(0, CLIENTS, CHUNK):
        vectors = rng.standard_normal((CHUNK, DIMENSION))
        yield vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def encode_nanoseconds(mechanism: Mechanism) -> float:
    """Return how long a coordinate of a message takes."""
    vectors = np.random.default_rng(3).standard_normal((ENCODED, DIMENSION))
    rng = np.random.default_rng(4)
    return 1e9 / vectors.size * seconds(lambda: mechanism.encode(vectors, rng))


def main() -> None:
    """Print times, ratios, memory and errors."""
    start = time.perf_counter()
    for _ in chunks(np.random.default_rng(0)):
        pass
    reference = time.perf_counter() - start
    print(f"drawing {CLIENTS} Gaussian unit vectors of length {DIMENSION} with numpy: {reference:.2f} s")
    generator, count = np.random.default_rng(2), ENCODED * DIMENSION
    normal = 1e9 / count * seconds(lambda: generator.standard_normal(count))
    words = 1e9 / count * seconds(lambda: generator.bit_generator.random_raw(2 * count))
    for name in ("distributed-discrete-gaussian", "distributed-skellam"):
        start = time.perf_counter()
        task = Task(NormBall(DIMENSION, 2.0), CLIENTS, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")
        mechanism = build_mechanism(name, task, {"bits": BITS})
        built = time.perf_counter() - start
        start = time.perf_counter()
        found = simulate_mean(mechanism, chunks(np.random.default_rng(0)), np.random.default_rng(1))
        elapsed = time.perf_counter() - start
        central = central_squared_error(NormBall(DIMENSION, 2.0), CLIENTS, mechanism.guarantee)
        coordinate = encode_nanoseconds(mechanism)
        print(
            f"{name + ',':30} encoding {coordinate:.1f} ns a coordinate, {coordinate / normal:.2f} x numpy's normal numbers, "
            f"{coordinate / words:.1f} x the two words that rounding and noise take; calibrated in {built:5.2f} s; the round "
            f"{elapsed:6.2f} s, {elapsed / reference:5.2f} x; squared error over predicted "
            f"{found.squared_error / found.predicted_squared_error:.3f}, over a trusted server's "
            f"{found.squared_error / (central or np.nan):.3f}"
        )
    print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    binomial_account(1000, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    start = time.perf_counter()
    binomial_account(10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    elapsed = time.perf_counter() - start
    start = time.perf_counter()
    np.random.default_rng(0).binomial(10**6, 0.5, 10**6)
    print(
        f"account of binomial noise with 10**6 trials, all four ways: {elapsed:.3f} s, {elapsed / (time.perf_counter() - start):.1f} x "
        "drawing a million such numbers with numpy"
    )


if __name__ == "__main__":
    main()
