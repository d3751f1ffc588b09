"""Two methods for the rate-distortion function of 1000 x 1000 letters.

The baselines are the methods' cheapest steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from shared.growth import exponent
from shared.physical_limit import beside_limit
from shared.processor_time import seconds, timed

from quietbits.arrays import FloatArray
from quietbits.errors import ConvergenceError
from quietbits.solvers.limits.rate_distortion import RateDistortion, rate_distortion

LETTERS = 1000
SIZES = (250, 500, 1000)
# Largest number of iterations of Blahut and Arimoto's method; it suffices for gaps of 1e-4.
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


def solving(method: str, letters: int) -> Callable[[], object]:
    """Return a run for the uniform source and squared errors, with fewer letters."""
    grid = np.linspace(-4, 4, letters)
    return partial(rate_distortion, np.full(letters, 1 / letters), (grid[:, None] - grid) ** 2, 3.0, tolerance=1e-4, method=method)


def run_of(problem: Problem, method: str, tolerance: float) -> tuple[RateDistortion | None, str]:
    """Return a method's result and no message, or None and the error's message."""
    most = MOST_ITERATIONS if method == "blahut-arimoto" else None
    try:
        curve = rate_distortion(problem.source, problem.distortion, problem.target, tolerance=tolerance, method=method, max_iterations=most)
    except ConvergenceError as error:
        return None, str(error)
    return curve, ""


def main() -> None:
    """Print times, ratios to a method's cheapest step, gaps and iterations."""
    matrix = np.random.default_rng(0).random((LETTERS, LETTERS))
    steps = {
        "blahut-arimoto": seconds(lambda: (matrix @ matrix[0], matrix[0] @ matrix), 50),
        "interior-point": seconds(lambda: (matrix @ matrix.T, np.linalg.cholesky(matrix @ matrix.T + np.eye(LETTERS))), 5),
    }
    print(
        f"physical limits: two products with a vector {1e3 * steps['blahut-arimoto']:.2f} ms; with the transpose, and a Cholesky factor "
        f"{1e3 * steps['interior-point']:.0f} ms"
    )
    for method in steps:
        power = exponent(partial(solving, method), SIZES, 2)
        print(f"uniform, squared error, D 3, {method} 0.0001: time grows with the {power:.2f}th power of the number of letters", flush=True)
    for problem in problems():
        for method, tolerance in RUNS:
            (curve, message), taken = timed(partial(run_of, problem, method, tolerance))
            line = f"{problem.name:<32} {method} {tolerance:g}: {taken:5.2f} s, {beside_limit(taken, steps[method])}"
            if curve is None:
                print(f"{line}: {message}", flush=True)
            else:
                print(f"{line}, {curve.iterations:6d} iterations; rate {curve.rate:.6f}, gap {curve.gap:.1e} bits", flush=True)


if __name__ == "__main__":
    main()
