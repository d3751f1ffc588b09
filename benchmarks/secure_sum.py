"""A round of 1000 clients with 2**16 coordinates of 16 bits, against drawing vectors."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from shared.growth import exponent
from shared.opendp_noise import discrete_gaussian, load_opendp
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import beside_limit, drawing_and_copying
from shared.processor_time import seconds, timed

from quietbits.analysis.catalogue.central_reference import central_squared_error
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget, Task
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words
from quietbits.design.secure_sum.binomial_account import binomial_account
from quietbits.design.secure_sum.poisson_binomial_mechanism import calibrate_theta

CLIENTS, DIMENSION, BITS, CHUNK = 1000, 2**16, 16, 50
ENCODED, REPETITIONS = 4, 20
# cpSGD needs this many bits for the same budget, also in 2**18 dimensions.
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


def encoding(name: str, random_words: WordSource) -> Callable[[int], Callable[[], object]]:
    """Return a function that makes a run of a dimension's encoding of one message."""

    def run(dimension: int) -> Callable[[], object]:
        vectors = np.random.default_rng(3).standard_normal((1, dimension))
        return partial(built(name, dimension).encode, vectors, random_words)

    return run


def show_encoding(dp: ModuleType | None) -> None:
    """Print the time per coordinate against its limit: the words drawn, the vectors copied.

    Seeded words are compared with NumPy's normal numbers, and secure words with OpenDP's discrete Gaussian noise alone.
    """
    generator, vectors = np.random.default_rng(2), np.random.default_rng(3).standard_normal((ENCODED, DIMENSION))
    normal = seconds(lambda: generator.standard_normal(vectors.size)) / vectors.size
    references = {"seeded": ("numpy's normal numbers", normal)}
    if dp is not None:
        other = seconds(discrete_gaussian(dp, OPENDP_SIGMA, OPENDP_COORDINATES)) / OPENDP_COORDINATES
        print(f"OpenDP's discrete Gaussian noise, sigma {OPENDP_SIGMA:g}: {1e9 * other:.0f} ns a coordinate")
        references["secure"] = ("OpenDP's noise", other)
    for name in ("distributed-discrete-gaussian", "distributed-skellam", "cpsgd"):
        mechanism = built(name, DIMENSION)
        for kind, words in (("seeded", seeded_words(generator)), ("secure", secure_words)):
            taken = seconds(partial(mechanism.encode, vectors, words), REPETITIONS)
            power = exponent(encoding(name, words), (2**14, 2**16, 2**18))
            limit = drawing_and_copying(partial(mechanism.encode, vectors), words, vectors)
            line = f"{f'{name}, {kind},':39} encoding {1e9 * taken / vectors.size:.1f} ns a coordinate"
            if kind in references:
                whose, reference = references[kind]
                line += f", {taken / vectors.size / reference:.3g} x {whose}"
            print(f"{line}, {beside_limit(taken, limit, power)} of the dimension")


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
