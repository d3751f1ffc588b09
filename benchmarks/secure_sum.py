"""A round of 1000 clients with vectors of length 2**16, 16 bits per coordinate, beside drawing the vectors; and an exact account."""

import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from shared.growth import exponent
from shared.opendp_noise import discrete_gaussian, load_opendp
from shared.processor_time import seconds

from quietbits.analysis.accounting.binomial import binomial_account
from quietbits.analysis.calibration.poisson_binomial import calibrate_theta
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.simulation.mean import central_squared_error, simulate_mean
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.registry import Target
from quietbits.design.contracts.task import Task
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words

CLIENTS, DIMENSION, BITS, CHUNK = 1000, 2**16, 16, 50
ENCODED, REPETITIONS = 4, 20
# What cpSGD needs for the same budget, in 2**18 dimensions, too.
MORE_BITS = 22
OPENDP_COORDINATES, OPENDP_SIGMA = 10_000, 100.0


def chunks(rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield unit vectors, a few clients at a time."""
    for _ in range(0, CLIENTS, CHUNK):
        vectors = rng.standard_normal((CHUNK, DIMENSION))
        yield vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def encode_nanoseconds(mechanism: Mechanism, words: WordSource) -> float:
    """Return how long a coordinate of a message takes."""
    vectors = np.random.default_rng(3).standard_normal((ENCODED, DIMENSION))
    return 1e9 / vectors.size * seconds(lambda: mechanism.encode(vectors, words), REPETITIONS)


def built(name: str, dimension: int) -> Mechanism:
    """Return a mechanism for the given dimension."""
    task = Task(NormBall(dimension, 2.0), CLIENTS, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")
    return build_mechanism(name, task, {"bits": MORE_BITS if name == "cpsgd" else BITS})


def encoding(name: str) -> Callable[[int], Callable[[], object]]:
    """Return a function that makes a run for a dimension: the coordinates of one message."""

    def run(dimension: int) -> Callable[[], object]:
        vectors = np.random.default_rng(3).standard_normal((1, dimension))
        return partial(built(name, dimension).encode, vectors, np.random.default_rng(4))

    return run


def show_encoding(dp: ModuleType | None) -> None:
    """Print how long a coordinate takes, beside its physical limit: two words drawn, 8 bytes read, and a narrow word written.

    Seeded words are compared with NumPy's normal numbers, and secure ones with OpenDP's discrete Gaussian noise alone.
    """
    generator, count = np.random.default_rng(2), ENCODED * DIMENSION
    normal = 1e9 / count * seconds(lambda: generator.standard_normal(count))
    numbers = generator.standard_normal(count)
    copied = 1e9 / count * seconds(lambda: numbers.astype(np.float64))
    other = None if dp is None else 1e9 / OPENDP_COORDINATES * seconds(discrete_gaussian(dp, OPENDP_SIGMA, OPENDP_COORDINATES))
    if other is not None:
        print(f"OpenDP's discrete Gaussian noise, sigma {OPENDP_SIGMA:g}: {other:.0f} ns a coordinate")
    for name in ("distributed-discrete-gaussian", "distributed-skellam", "cpsgd"):
        mechanism = built(name, DIMENSION)
        power = exponent(encoding(name), (2**14, 2**16, 2**18))
        for kind, words in (("seeded", seeded_words(generator)), ("secure", secure_words)):
            coordinate = encode_nanoseconds(mechanism, words)
            limit = 1e9 / count * seconds(partial(words, 2 * count)) + copied
            line = f"{f'{name}, {kind},':39} encoding {coordinate:.1f} ns a coordinate, {coordinate / limit:.1f} x two words and a copy"
            if kind == "seeded":
                line += f", {coordinate / normal:.2f} x numpy's normal numbers; grows with the {power:.2f}th power of the dimension"
            elif other is not None:
                line += f", {coordinate / other:.4f} x OpenDP's noise"
            print(line)


def main() -> None:
    """Print times, ratios, memory and errors."""
    start = time.process_time()
    for _ in chunks(np.random.default_rng(0)):
        pass
    reference = time.process_time() - start
    print(f"drawing {CLIENTS} Gaussian unit vectors of length {DIMENSION} with numpy: {reference:.2f} s")
    show_encoding(load_opendp())
    for name in ("distributed-discrete-gaussian", "distributed-skellam"):
        start = time.process_time()
        mechanism = built(name, DIMENSION)
        calibrated = time.process_time() - start
        start = time.process_time()
        found = simulate_mean(mechanism, chunks(np.random.default_rng(0)), np.random.default_rng(1))
        elapsed = time.process_time() - start
        central = central_squared_error(NormBall(DIMENSION, 2.0), CLIENTS, mechanism.guarantee)
        print(
            f"{name + ',':30} calibrated in {calibrated:5.2f} s; the round "
            f"{elapsed:6.2f} s, {elapsed / reference:5.2f} x; squared error over predicted "
            f"{found.squared_error / found.predicted_squared_error:.3f}, over a trusted server's "
            f"{found.squared_error / (central or np.nan):.3f}"
        )
    print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    binomial_account(1000, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    start = time.process_time()
    binomial_account(10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    elapsed = time.process_time() - start
    start = time.process_time()
    np.random.default_rng(0).binomial(10**6, 0.5, 10**6)
    print(
        f"account of binomial noise with 10**6 trials, all four ways: {elapsed:.3f} s, {elapsed / (time.process_time() - start):.1f} x "
        "drawing a million such numbers with numpy"
    )
    start = time.process_time()
    theta = calibrate_theta(10**7, 64, 32, Target(0.1, 1e-6))
    print(f"theta of 10**7 clients with 64 trials each, {theta:.4f}: {time.process_time() - start:.1f} s (goal 5 s)")


if __name__ == "__main__":
    main()
