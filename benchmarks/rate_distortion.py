"""Both methods for the rate-distortion function of 1000 x 1000 letters, slope search included, beside their cheapest steps, on one core."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from shared.processor_time import seconds

from quietbits.arrays import FloatArray
from quietbits.errors import ConvergenceError
from quietbits.solvers.limits.rate_distortion import rate_distortion

LETTERS = 1000
# With Blahut and Arimoto's method; enough for gaps of 1e-4.
MOST_ITERATIONS = 20_000
RUNS = (("blahut-arimoto", 1e-4), ("blahut-arimoto", 1e-6), ("interior-point", 1e-4), ("interior-point", 1e-6), ("interior-point", 1e-9))


@dataclass(frozen=True)
class Problem:
    """A source, a distortion measure and a target."""

    name: str
    source: FloatArray
    distortion: FloatArray
    target: float


def problems() -> Iterator[Problem]:
    """Yield problems with few outputs in use, with many, and with forbidden pairs."""
    rng = np.random.default_rng(0)
    uniform = np.full(LETTERS, 1 / LETTERS)
    grid = np.linspace(-4, 4, LETTERS)
    gaussian = np.exp(-(grid**2) / 2)
    gaussian /= gaussian.sum()
    squares, random = (grid[:, None] - grid) ** 2, rng.random((LETTERS, LETTERS))
    yield Problem("Gaussian, squared error, D 0.25", gaussian, squares, 0.25)
    yield Problem("Gaussian, squared error, D 0.01", gaussian, squares, 0.01)
    yield Problem("uniform, squared error, D 0.1", uniform, squares, 0.1)
    yield Problem("uniform, squared error, D 3", uniform, squares, 3.0)
    yield Problem("uniform, absolute error, D 0.1", uniform, np.abs(grid[:, None] - grid), 0.1)
    yield Problem("random distortions, D 0.1", uniform, random, 0.1)
    yield Problem("random distortions, D 0.4", uniform, random, 0.4)
    yield Problem("random, 30 % forbidden, D 0.3", uniform, np.where(rng.random(random.shape) < 0.3, np.inf, random), 0.3)
    yield Problem("Dirichlet, Hamming, D 0.3", rng.dirichlet(np.full(LETTERS, 0.3)), 1 - np.eye(LETTERS), 0.3)
    points, codes = rng.normal(size=(LETTERS, 3)), rng.normal(size=(LETTERS, 3))
    yield Problem("points in 3 dimensions, D 1", uniform, ((points[:, None] - codes) ** 2).sum(axis=2), 1.0)


def main() -> None:
    """Print times, gaps and iterations."""
    matrix = np.random.default_rng(0).random((LETTERS, LETTERS))
    steps = {
        "blahut-arimoto": seconds(lambda: (matrix @ matrix[0], matrix[0] @ matrix), 50),
        "interior-point": seconds(lambda: (matrix @ matrix.T, np.linalg.cholesky(matrix @ matrix.T + np.eye(LETTERS))), 5),
    }
    print(f"two products with a vector {1e3 * steps['blahut-arimoto']:.2f} ms; with the transpose, and a Cholesky factor", end=" ")
    print(f"{1e3 * steps['interior-point']:.0f} ms")
    for problem in problems():
        for method, tolerance in RUNS:
            most = MOST_ITERATIONS if method == "blahut-arimoto" else None
            arguments = (problem.source, problem.distortion, problem.target)
            started = time.process_time()
            try:
                found = rate_distortion(*arguments, tolerance=tolerance, method=method, max_iterations=most)
            except ConvergenceError as error:
                print(f"{problem.name:<32} {method} {tolerance:g}: {time.process_time() - started:.2f} s: {error}")
                continue
            taken = time.process_time() - started
            print(
                f"{problem.name:<32} {method} {tolerance:g}: {taken:5.2f} s, {taken / steps[method]:5.0f} steps' time, "
                f"{found.iterations:6d} iterations; rate {found.rate:.6f}, gap {found.gap:.1e} bits",
                flush=True,
            )


if __name__ == "__main__":
    main()
