"""Numbers of docs/proofs/kashin-frames.md."""

import math
from collections.abc import Iterator

import quietbits
from quietbits.design.local.sqkr import SQKRMechanism
from quietbits.design.transforms.kashin import KASHIN_CONSTANT


def sqkr_rows() -> Iterator[list[str]]:
    """Return the largest error of SQKR with and without a frame, and a squared bias.

    Rows are dimensions and epsilons; the squared bias is that of a frame of random rows.
    """
    for dimension, epsilon in ((16, 1.0), (64, 6.0), (200, 6.0), (512, 1.0), (1000, 6.0)):
        constants = (KASHIN_CONSTANT, math.sqrt(dimension))
        errors = (min(sqkr_error(dimension, epsilon, bits, constant) for bits in range(1, 9)) for constant in constants)
        bias = 1 - KASHIN_CONSTANT / math.sqrt(dimension)
        yield [f"{dimension}, {epsilon:g}", *(f"{error:.3g}" for error in errors), f"{bias**2:.2f}"]


def sqkr_error(dimension: int, epsilon: float, bits: int, constant: float) -> float:
    """Return the largest error of the mean of 100 000 vectors."""
    mechanism = SQKRMechanism(epsilon, bits, quietbits.NormBall(dimension, 2.0), kashin_constant=constant)
    return float(mechanism.variance_bound) / 100_000
