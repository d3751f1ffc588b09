"""Numbers of docs/explanations/unit-vectors.md."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

import quietbits
from quietbits.design.local.unit_vectors.candidate_coding import MinimalRandomCodingMechanism, minimal_random_coding_mechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.solvers.limits.mean_privacy import unbiased_local_bound

EPSILONS = (1.0, 4.0, 6.0)


@cache
def unit_vector_error(name: str, epsilon: float, option: str = "", value: float = 0) -> float:
    """Return the variance of one unit vector in 200 dimensions."""
    task = quietbits.Task(quietbits.NormBall(200, 2.0), clients=1, epsilon=epsilon, delta=0.0, adjacency="replace-one")
    mechanism = quietbits.build_mechanism(name, task, {option: value} if option else {})
    return float(mechanism.variance(np.eye(1, 200))[0])


def unit_vector_rows() -> Iterator[list[object]]:
    """Return the errors of a unit vector."""
    yield ["the bound", "", *(f"{unbiased_local_bound(200, 1, epsilon):.2f}" for epsilon in EPSILONS)]
    for title, bits, name, option, digits in (
        ("PrivUnit", "12 800", "privunit", (), (2, 2, 2)),
        ("PrivUnitG", "12 800", "privunit-g", (), (1, 2, 2)),
        ("ProjUnit, k = 64", "4096", "projunit", ("projected", 64), (1, 2, 2)),
        ("FastProjUnit, k = 64, at most", "4096", "fast-projunit", ("projected", 64), (1, 2, 2)),
        ("rotating simplex", "7", "rotating-simplex", ("message_bits", 7), (1, 2, 2)),
        ("rotating simplex", "4", "rotating-simplex", ("message_bits", 4), (1, 1, 2)),
        ("minimal random coding (MMRC)", "8", "minimal-random-coding", ("message_bits", 8), (1, 1, 2)),
    ):
        errors = (unit_vector_error(name, epsilon, *option) for epsilon in EPSILONS)
        yield [title, bits, *(f"{error:.{places}f}" for error, places in zip(errors, digits, strict=True))]
    first, second, third = (unit_vector_error("poisson-private-representation", epsilon, "alpha", 2.0) for epsilon in EPSILONS)
    yield ["Poisson representation, alpha = 2", "4 to 5", f"{first:,.0f}".replace(",", " "), f"{second:.0f}", f"{third:.1f}"]


def shared_rows() -> Iterator[list[str]]:
    """Return errors with a seed for every 16 clients, and with 16 candidates, relative to 256 candidates of a client's own."""
    ball, group = quietbits.NormBall(200, 2.0), 16
    own = [MinimalRandomCodingMechanism(epsilon, 8, ball) for epsilon in EPSILONS]
    equal = [1 + group * replace(mechanism, seed_bits=0).worst_shared_variance / mechanism.variance_bound for mechanism in own]
    few = [MinimalRandomCodingMechanism(mechanism.epsilon, 4, ball).variance_bound / mechanism.variance_bound for mechanism in own]
    yield ["a seed for 16 clients, orthogonal vectors, about", *[f"{1 + group / 256:.2f}"] * len(own)]
    yield ["a seed for 16 clients, equal vectors", *(f"{ratio:.2f}" for ratio in equal)]
    yield ["16 candidates of each client's own", *(f"{ratio:.2f}" for ratio in few)]


def coded(epsilon: float, candidates: int = 256) -> float:
    """Return the proven epsilon of plain random coding of an epsilon-private law."""
    ratio = math.exp(epsilon)
    return epsilon + math.log((1 + (candidates - 1) * ratio) / (ratio + candidates - 1))


@cache
def modified(epsilon: float) -> tuple[float, float]:
    """Return MMRC's number of bits in 200 dimensions, and the ratio of its error to PrivUnitG's."""
    ball = quietbits.NormBall(200, 2.0)
    mechanism = minimal_random_coding_mechanism(epsilon, ball)
    vector = np.eye(200)[:1]
    return mechanism.bits_per_client, float(mechanism.variance(vector)[0] / PrivUnitGMechanism(epsilon, ball).variance(vector)[0])


def coded_bits(epsilon: float) -> str:
    return f"{modified(epsilon)[0]:.0f}"


def largest_coded_excess() -> float:
    """Return the largest excess of MMRC's error over PrivUnitG's, in percent."""
    return 100 * max(modified(epsilon)[1] - 1 for epsilon in (0.5, 1.0, 2.0, 4.0))
