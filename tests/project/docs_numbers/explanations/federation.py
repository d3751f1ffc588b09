"""Numbers of docs/explanations/federation.md."""

from functools import cache

import numpy as np

import quietbits


@cache
def even_share(value: float) -> float:
    """Return the share of multiples of 2**-53 among small messages about a number.

    Messages have Laplace noise at epsilon = 1; small messages are between -1/4 and 1/4.
    """
    messages = quietbits.LaplaceMechanism(1.0).encode(np.full(100_000, value), np.random.default_rng(7))
    return float(np.mean(messages[np.abs(messages) < 0.25] * 2.0**53 % 1 == 0))
