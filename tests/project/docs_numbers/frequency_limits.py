"""Numbers of docs/frequency-limits.md."""

import math


def histogram_bits(clients: int, dimension: int) -> float:
    """Return the entropy of a histogram that is uniform on all."""
    return math.log2(math.comb(clients + dimension - 1, clients))
