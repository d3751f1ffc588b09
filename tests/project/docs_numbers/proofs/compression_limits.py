"""Numbers of docs/proofs/compression-limits.md."""

import math


def above_shannon(dimension: int) -> float:
    """Return the factor of the ball's bound over Shannon's."""
    return 2 * math.e / (dimension + 2) * math.exp(2 / dimension * math.lgamma(dimension / 2 + 1))
