"""Numbers of docs/explanations/rotation-and-rounding.md."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from quietbits.design.transforms.conditional_rounding import ConditionalRounding
from quietbits.design.transforms.vector_dithering import rejection_bias_bound as rejection_bias_bound
from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound

DIMENSION = 2**16
RATIOS = (10, 20, 50, 100, 1000)
BOUNDS = ("published", "sharp")


@cache
def rounded_norms(ratio: int) -> np.ndarray:
    """Return the norms of ten random vectors after a first rounding attempt with relative steps."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(10, DIMENSION))
    positions = ratio * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.linalg.norm(np.floor(positions + rng.random(positions.shape)), axis=1) / ratio


def norm_bounds(ratio: int) -> list[float]:
    return [ConditionalRounding(DIMENSION, 1 / ratio, 1.0, bound=bound).norm_bound for bound in BOUNDS]


def rejections() -> list[bool]:
    """Return the rejected first attempts by either bound."""
    return [bool(norm > bound) for ratio in RATIOS for bound in norm_bounds(ratio) for norm in rounded_norms(ratio)]


def norm_rows() -> Iterator[list[object]]:
    """Return bounds on rounded norms, and the mean norm of rounded vectors."""
    for ratio, digits, mean_digits in zip(RATIOS, (3, 3, 3, 3, 4), (2, 2, 2, 3, 4), strict=True):
        bounds = [*norm_bounds(ratio), rounded_norm_bound(DIMENSION, 2.0, float(ratio)) / ratio]
        yield [str(ratio), *(f"{bound:.{digits}f}" for bound in bounds), f"{rounded_norms(ratio).mean():.{mean_digits}f}"]
