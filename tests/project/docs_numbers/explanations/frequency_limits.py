"""Numbers of docs/explanations/frequency-limits.md."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import scipy

import quietbits
from quietbits.analysis.simulation.populations import item_probabilities
from quietbits.arrays import FloatArray
from quietbits.errors import ConvergenceError
from quietbits.solvers.limits.histogram_entropy import EntropyBounds, multinomial_histogram_entropy, uniform_histogram_entropy

LETTERS = 200
MOST_ITERATIONS = 20_000


def histogram_bits(clients: int, dimension: int) -> float:
    """Return the entropy of a uniformly random histogram."""
    return uniform_histogram_entropy(dimension, clients).lower


@cache
def zipf_entropy() -> EntropyBounds:
    """Return the entropy of the histogram of 50 000 items by Zipf's law."""
    return multinomial_histogram_entropy(item_probabilities("zipf", 10**6), 50_000)


def sign_factor() -> float:
    """Return a quarter of the maximum of x**2 / cosh(x / 2)**2, the sign bound's factor."""
    return -float(scipy.optimize.minimize_scalar(lambda x: -((x / math.cosh(x / 2)) ** 2), bounds=(0, 10), method="bounded").fun) / 4


def problems() -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """Yield sources, distortions and targets of problems of several kinds."""
    rng = np.random.default_rng(0)
    uniform, grid = np.full(LETTERS, 1 / LETTERS), np.linspace(-4, 4, LETTERS)
    gaussian = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()
    distances, random = np.abs(grid[:, None] - grid), rng.random((LETTERS, LETTERS))
    yield gaussian, distances**2, 0.25
    yield gaussian, distances**2, 0.01
    yield uniform, distances**2, 0.1
    yield uniform, distances**2, 3.0
    yield uniform, distances, 0.1
    yield uniform, random, 0.1
    yield uniform, random, 0.4
    yield uniform, np.where(rng.random(random.shape) < 0.3, np.inf, random), 0.3
    yield rng.dirichlet(np.full(LETTERS, 0.3)), 1 - np.eye(LETTERS), 0.3
    points, codes = rng.normal(size=(LETTERS, 3)), rng.normal(size=(LETTERS, 3))
    yield uniform, ((points[:, None] - codes) ** 2).sum(axis=2), 1.0


def iteration_rows() -> Iterator[list[object]]:
    """Return the number of solved problems of each method, with its least and most iterations."""
    for method, gaps in (
        ("blahut-arimoto", ("1e-4", "1e-6")),
        ("interior-point", ("1e-4", "1e-6", "1e-9")),
    ):
        for gap in gaps:
            counts = [count for problem in problems() if (count := iterations(*problem, method, float(gap))) is not None]
            yield [..., gap, str(len(counts)), str(min(counts)), str(max(counts))]


def iterations(source: FloatArray, distortion: FloatArray, target: float, method: str, gap: float) -> int | None:
    """Return the number of iterations of a method, or None if too many."""
    try:
        return quietbits.rate_distortion(
            source, distortion, target, tolerance=gap, method=method, max_iterations=MOST_ITERATIONS
        ).iterations
    except ConvergenceError:
        return None
