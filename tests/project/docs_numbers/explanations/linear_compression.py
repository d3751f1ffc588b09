"""Numbers of docs/explanations/linear-compression.md."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import quietbits
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.sketched_mechanism import CLIP_MARGIN
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.figures.linear_compression.sparse import measuring_operator
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.decoders.lasso import noise_penalty, refit_support, solve_lasso

CLIENTS, ROUNDS = 1000, 6
ASKED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "clients": CLIENTS, "adjacency": "add-or-remove-one"}


def central(dimension: int) -> float:
    """Return the error of a trusted server's Gaussian noise, in squared clip norms."""
    return quietbits.central_gaussian_error(quietbits.NormBall(dimension, 2.0), CLIENTS, 1.0, 1e-5, "add-or-remove-one")


@cache
def unsketched() -> float:
    """Return a secure sum's error for 65 536 coordinates of 16 bits, in squared clip norms."""
    document: dict[str, Any] = quietbits.calibrate("distributed-discrete-gaussian", dimension=2**16, bits=16, **ASKED).document()
    return float(document["worst_squared_error"])


def least_dimension() -> int:
    """Return the least dimension for a count-mean sketch with a slack of 2, to ten thousand."""
    return round(2**16 / (2 - CLIP_MARGIN**2) / unsketched() / 10_000) * 10_000


@cache
def hadamard_dimension() -> int:
    """Return the length of the shortest Hadamard sketch of 65 536 coordinates at slack 2."""
    options: dict[str, Any] = {"dimension": 2**16, "bits": 16, "transform": "hadamard"}
    document: dict[str, Any] = quietbits.calibrate("sketched-discrete-gaussian", **options, **ASKED).document()
    return int(document["sketch_dimension"])


def over_oracle_norm(rate: int) -> float:
    """Return squared norms of clipped sketches: the paper's c sigma_max(S) over ours."""
    return (1 + math.sqrt(rate)) ** 2 / CLIP_MARGIN**2


@cache
def recoveries(dimension: int, sparsity: int, factor: int) -> list[tuple[float, ...]]:
    """Return the oracle's and least squares' errors, and false and missed coordinates.

    A round has factor s ln d measurements. The nonzero coordinates of the mean have equal sizes and random signs; its norm is the clip
    norm.
    """
    measurements = math.ceil(factor * sparsity * math.log(dimension))
    deviation = CLIP_MARGIN * gaussian_noise_multiplier(1.0, 1e-5) / CLIENTS * math.sqrt(measurements)
    penalty = noise_penalty(dimension, deviation, math.sqrt(measurements), measurements, 0.05)
    results = []
    for draw in range(ROUNDS):
        rng = np.random.default_rng([draw, dimension, sparsity, factor])
        operator = measuring_operator(HadamardSketch(dimension, measurements, seed=draw))
        support = np.sort(rng.choice(dimension, sparsity, replace=False))
        mean = np.zeros(dimension)
        mean[support] = rng.choice([-1.0, 1.0], sparsity) / math.sqrt(sparsity)
        observations = operator.matvec(mean) + deviation * rng.standard_normal(measurements)
        lasso = solve_lasso(operator, observations, penalty, tolerance=1e-8).support
        once = refit_support(operator, observations, lasso).solution
        twice = refit_support(operator, observations, np.flatnonzero(np.abs(once) > penalty)).solution
        oracle = refit_support(operator, observations, support).solution
        errors = (float(np.sum((estimate - mean) ** 2)) for estimate in (oracle, once, twice))
        results.append((*errors, len(np.setdiff1d(lasso, support)), int(np.sum(twice[support] == 0))))
    return results


CASES = ((20_000, 1, 4), (20_000, 4, 3), (20_000, 4, 4), (20_000, 20, 3), (20_000, 20, 4), (100_000, 50, 4))


def recovery_rows() -> Iterator[list[object]]:
    """Return the Lasso's false coordinates, and least squares' errors over the oracle's."""
    for case in CASES:
        oracle, once, twice, false, _ = np.mean(recoveries(*case), axis=0)
        yield [..., ..., ..., f"{false:.2g}", f"{once / oracle:.2f}", f"{twice / oracle:.2f}"]


def missed() -> int:
    """Return the number of missed coordinates over all rounds."""
    return round(sum(result[-1] for case in CASES for result in recoveries(*case)))


def sparse_error() -> float:
    """Return the mean error of a mean with 50 of 100 000 coordinates over rounds."""
    return float(np.mean([result[2] for result in recoveries(100_000, 50, 4)]))


def predicted_sparse_error() -> float:
    """Return the predicted variance for 50 coordinates, that of Gaussian noise on sketches."""
    return 50 * (CLIP_MARGIN * gaussian_noise_multiplier(1.0, 1e-5) / CLIENTS) ** 2


def median_rows() -> Iterator[list[str]]:
    """Return predicted errors of both decoders, and the median's bound, for means of one or many coordinates."""
    task = quietbits.Task(quietbits.NormBall(4096, 2.0), 10_000, 4.0, 1e-5, "add-or-remove-one")
    sketch = {"bits": 20, "rows": 15, "sketch_dimension": 300}
    decoders = [build_mechanism("sketched-skellam", task, {**sketch, "decoder": decoder}) for decoder in ("mean", "median")]
    for text, nonzero in (("one large", 1), ("10 equal", 10), ("all equal", 4096)):
        mean = np.zeros(4096)
        mean[:nonzero] = 0.8 / math.sqrt(nonzero)
        errors = [made.predicted_error(mean, made.variance_bound).of_mean(10_000) for made in decoders]
        bound = decoders[1].variance_bound / 10_000 + decoders[1].shared_variance(mean)
        yield [text, *(f"{number:.3g}" for number in (*errors, bound))]
