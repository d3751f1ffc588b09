"""The norm of a random projection of a unit vector: its mean, and bounds for Hadamard rows.

The mean is exact for a uniformly random subspace. `docs/proofs/unit-vectors.md` has the proof of `hadamard_bias`.
"""

import math

# Terms of the central moments E (X - 1)**4 and E (M - 1)**2 in the proof's bound.
FOURTH_MOMENT, SQUARED_SPREAD = 116.0, 8.25
# The bound takes the best of these cuts of the squared norm's lower tail, and of these powers in Hölder's inequality.
CUTS = tuple(step / 20 for step in range(1, 20))
POWERS = range(1, 33)
# Relative margin of the bound, which is computed in few operations.
ROUNDING = 1e-12
# Dimension beyond which the ratio of Gamma functions comes from its series.
SERIES_FROM = 1e4


def mean_norm(dimension: int) -> float:
    """Return the mean norm of standard normal vectors.

    The mean is ``sqrt(2) Gamma((dimension + 1) / 2) / Gamma(dimension / 2)``.

    Examples
    --------
    >>> [round(mean_norm(dimension), 4) for dimension in (1, 2, 100)]
    [0.7979, 1.2533, 9.975]
    """
    half = dimension / 2
    if half < SERIES_FROM:
        return math.sqrt(2) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))
    return math.sqrt(dimension) * (1 - (1 / 8 - (1 / 128 + 5 / 1024 / half) / half) / half)


def projected_mean_norm(dimension: int, projected: int) -> float:
    """Return the mean norm of `projected` coordinates of a uniformly random unit vector.

    The mean is 1 if all coordinates are taken.

    Examples
    --------
    >>> round(projected_mean_norm(256, 64), 5)
    0.49854
    """
    return 1.0 if projected == dimension else mean_norm(projected) / mean_norm(dimension)


def hadamard_bias(dimension: int, projected: int) -> float:
    """Return an upper bound on the bias of back-projected directions.

    Let P be `projected` different random rows of H D, H the normalised Hadamard matrix and D random signs, and u the direction of P v. Then
    the bias for every unit vector v is ``|| E P^T u / c - v ||``, c being `projected_mean_norm`.

    Parameters
    ----------
    dimension : int
        Number of coordinates, a power of two.
    projected : int
        Number of rows from 1 to `dimension`, for which the bias is 0.

    Examples
    --------
    >>> [round(hadamard_bias(2**20, projected), 4) for projected in (64, 256, 1024, 4096)]
    [0.0574, 0.0062, 0.0008, 0.0001]
    """
    n, k = dimension, projected
    if k == n:
        return 0.0
    gain = (n - k) / (k * (n - 1))
    spread = (n * (k - 1) + (3 - 2 / n) * (n - k)) / (k * (n - 1)) - 1
    fourth = (3 * (k - 1) * SQUARED_SPREAD + FOURTH_MOMENT) / k**3
    # The mean E W^T u is E P^T u times sqrt(n / k), and so is its scale.
    scale = projected_mean_norm(n, k) * math.sqrt(n / k)
    along = max(1 - max(0.0, 1 - 0.15 * spread - 0.35 * fourth) / scale, 1 / scale - 1)
    across = min(_across(cut, gain, fourth) for cut in CUTS) / scale
    # The estimates have the norm 1 / c.
    return min(math.hypot(along, across), 1 + 1 / projected_mean_norm(n, k)) * (1 + ROUNDING) + ROUNDING


def _across(cut: float, gain: float, fourth: float) -> float:
    """Return the bound on the component orthogonal to the vector, before scaling."""
    root = math.sqrt(cut)
    middle = math.sqrt(gain * fourth) * (2 + root) / (2 * root * (1 + root) ** 2)
    rare = min(1.0, fourth / (1 - cut) ** 4)
    tail = min(math.pow(math.prod(range(1, 2 * power, 2)), 0.5 / power) * math.pow(rare, 1 - 0.5 / power) for power in POWERS)
    return gain / 3 + middle + tail
