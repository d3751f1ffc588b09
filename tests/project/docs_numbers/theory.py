"""Numbers of docs/theory.md."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

import quietbits
from quietbits.design.local.sqkr import SQKRMechanism
from quietbits.design.transforms.kashin import KASHIN_CONSTANT
from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound, shrinkage
from quietbits.solvers.limits.mean_privacy import unbiased_local_bound
from quietbits.solvers.numerics.projected_norm import hadamard_bias

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


def rounded_norm() -> float:
    """Return the L2 norm bound after systematic rounding, for a ball of 15 steps."""
    return rounded_norm_bound(128, 2.0, 15.0)


def gamma(norm: int, bits: int) -> float:
    """Return the factor by which rejection shrinks vectors of 128 dimensions."""
    return shrinkage(128, float(norm), 2.0 ** (bits - 1) - 1, 0.05)


def hadamard(projected: int) -> float:
    """Return the bound on the bias of FastProjUnit, as a share of the norm, in 2**20 dimensions."""
    return hadamard_bias(2**20, projected)


def coded(epsilon: float, candidates: int = 256) -> float:
    """Return the proven epsilon of plain random coding of an epsilon-private law."""
    ratio = math.exp(epsilon)
    return epsilon + math.log((1 + (candidates - 1) * ratio) / (ratio + candidates - 1))


def sqkr_rows() -> Iterator[list[str]]:
    """Return SQKR's largest error with and without a frame, and the bias of random rows."""
    for dimension, epsilon in ((16, 1.0), (64, 6.0), (200, 6.0), (512, 1.0), (1000, 6.0)):
        constants = (KASHIN_CONSTANT, math.sqrt(dimension))
        errors = (min(sqkr_error(dimension, epsilon, bits, constant) for bits in range(1, 9)) for constant in constants)
        bias = 1 - KASHIN_CONSTANT / math.sqrt(dimension)
        yield [f"{dimension}, {epsilon:g}", *(f"{error:.3g}" for error in errors), f"{bias**2:.2f}"]


def sqkr_error(dimension: int, epsilon: float, bits: int, constant: float) -> float:
    """Return the largest error of the mean of 100 000 vectors."""
    mechanism = SQKRMechanism(epsilon, bits, quietbits.NormBall(dimension, 2.0), kashin_constant=constant)
    return float(mechanism.worst_variance) / 100_000
