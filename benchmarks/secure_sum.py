"""A round of 1000 clients with 2**16 coordinates of 16 bits, against drawing vectors."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from shared.growth import slope
from shared.opendp_noise import discrete_gaussian, load_opendp
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import WORDS, CountedWords
from shared.processor_time import seconds, timed

from quietbits.analysis.catalogue.central_reference import central_squared_error
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget, Task
from quietbits.design.noise.binomial_noise import add_binomial
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words
from quietbits.design.secure_sum.binomial_account import binomial_account
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.poisson_binomial_mechanism import calibrate_theta
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

CLIENTS, DIMENSION, BITS, CHUNK = 1000, 2**16, 16, 50
# Clients and dimensions of the encoded vectors.
ENCODED = ((64, 2**10), (4, 2**14), (1, 2**16), (4, 2**16), (1, 2**20))
REPETITIONS = 10
# cpSGD needs this many bits for the same budget, also in 2**20 dimensions.
MORE_BITS = 22
OPENDP_COORDINATES, OPENDP_SIGMA = 10_000, 100.0


def chunks(rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield unit vectors, a few clients at a time."""
    for _ in range(0, CLIENTS, CHUNK):
        vectors = rng.standard_normal((CHUNK, DIMENSION))
        yield vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def built(name: str, dimension: int) -> Mechanism:
    """Return a mechanism for the given dimension."""
    task = Task(NormBall(dimension, 2.0), CLIENTS, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")
    return build_mechanism(name, task, {"bits": MORE_BITS if name == "cpsgd" else BITS})


def noise(mechanism: Mechanism, clients: int, random_words: WordSource) -> Callable[[], object]:
    """Return a run that adds the noise of messages to zeros, and does nothing else."""
    total = np.zeros((clients, mechanism.padded_dimension), dtype=np.min_scalar_type(mechanism.modulus - 1))
    if isinstance(mechanism, CpsgdMechanism):
        return partial(add_binomial, total, mechanism.trials, mechanism.probability, random_words)
    return partial(mechanism._add_noise, total, random_words)


def show_encoding(dp: ModuleType | None) -> None:
    """Print the time per coordinate beside one Walsh-Hadamard transform, and the parts that no message does without.

    A message needs the transform, random words and exact noise. Seeded words are also compared with NumPy's normal numbers, and secure
    words with OpenDP's discrete Gaussian noise alone.
    """
    generator = np.random.default_rng(2)
    normal = seconds(lambda: generator.standard_normal(DIMENSION)) / DIMENSION
    print(f"numpy's normal numbers: {1e9 * normal:.1f} ns a number")
    if dp is not None:
        other = seconds(discrete_gaussian(dp, OPENDP_SIGMA, OPENDP_COORDINATES)) / OPENDP_COORDINATES
        print(f"OpenDP's discrete Gaussian noise, sigma {OPENDP_SIGMA:g}: {1e9 * other:.0f} ns a coordinate")
    for kind, words in (("seeded", seeded_words(generator)), ("secure", secure_words)):
        word = seconds(partial(words, WORDS), calls=20) / WORDS
        for name in ("distributed-discrete-gaussian", "distributed-skellam", "cpsgd"):
            print(f"{name}, {kind} words")
            times = []
            for clients, dimension in ENCODED:
                mechanism = built(name, dimension)
                vectors = np.random.default_rng(3).standard_normal((clients, dimension))
                calls = max(1, DIMENSION // vectors.size)
                transformed, counted = np.empty_like(vectors), CountedWords()
                # The transform and the encoding take turns, so that other programs slow down both.
                pairs = [
                    (
                        seconds(partial(walsh_hadamard, vectors, transformed), calls=calls, repetitions=2),
                        seconds(partial(mechanism.encode, vectors, words), calls=calls, repetitions=2),
                    )
                    for _ in range(REPETITIONS)
                ]
                transform, taken = (min(series) / vectors.size for series in zip(*pairs, strict=True))
                alone = seconds(noise(mechanism, clients, words), calls=calls) / vectors.size
                mechanism.encode(vectors, counted)
                drawn = counted.count / vectors.size * word
                print(
                    f"    {clients:2} x 2^{dimension.bit_length() - 1}: {1e9 * taken:.1f} ns a coordinate, {taken / transform:.2f} x one "
                    f"transform of {1e9 * transform:.1f} ns; words {1e9 * drawn:.1f} ns, noise {1e9 * alone:.1f} ns"
                )
                times.append(taken * vectors.size / clients)
            print(f"    time of a message grows with the {slope([size for _, size in ENCODED], times):.2f}th power of the dimension")


def main() -> None:
    """Print times, ratios, memory and errors."""
    reference = seconds(lambda: [None for _ in chunks(np.random.default_rng(0))], 1)
    print(f"drawing {CLIENTS} Gaussian unit vectors of length {DIMENSION} with numpy: {reference:.2f} s")
    show_encoding(load_opendp())
    for name in ("distributed-discrete-gaussian", "distributed-skellam"):
        mechanism, calibrated = timed(partial(built, name, DIMENSION))
        simulation, elapsed = timed(partial(simulate_mean, mechanism, chunks(np.random.default_rng(0)), np.random.default_rng(1)))
        central = central_squared_error(NormBall(DIMENSION, 2.0), CLIENTS, mechanism.guarantee)
        print(
            f"{name + ',':30} calibrated in {calibrated:5.2f} s; the round "
            f"{elapsed:6.2f} s, {elapsed / reference:5.2f} x drawing the vectors; squared error over predicted "
            f"{simulation.squared_error / simulation.predicted_squared_error:.3f}, over a trusted server's "
            f"{simulation.squared_error / (central or np.nan):.3f}"
        )
    print(f"largest memory of the process: {peak_mebibytes():.0f} MiB")
    binomial_account(1000, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6)
    elapsed = seconds(partial(binomial_account, 10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6), 1)
    drawing = seconds(partial(np.random.default_rng(0).binomial, 10**6, 0.5, 10**6), 1)
    print(
        f"account of binomial noise with 10**6 trials, all four ways: {elapsed:.3f} s, {elapsed / drawing:.1f} x drawing a million such "
        "numbers with numpy"
    )
    theta, elapsed = timed(partial(calibrate_theta, 10**7, 64, 32, Budget(0.1, 1e-6, "replace-one")))
    print(f"theta of 10**7 clients with 64 trials each, {theta:.4f}: {elapsed:.1f} s, {elapsed / 5:.2g} x the goal")


if __name__ == "__main__":
    main()
