"""Lower bounds of local privacy on the squared L2 error of the mean of vectors of the L2 ball.

Every client's message is private. Messages are sent at the same time and have any length; all clients may share randomness. All bounds have
explicit constants and are lower bounds after rounding. `docs/limits.md` has the proofs.
"""

import math

import numpy as np

from .central_privacy import (
    check_budget,
    check_sizes,
    fingerprint_error,
    pure_spread,
    sign_risks,
    unbiased_central_bound,
)
from .prior_risk import PriorRisks, group_sizes, group_weights
from .private_posterior import posterior_odds, private_information


def local_bound(dimension: int, clients: int, epsilon: float, delta: float = 0.0, *, radius: float = 1.0) -> float:
    """Return a lower bound on the mean's worst-case squared error under local privacy.

    The bound holds for every protocol whose messages are (epsilon, delta) private each.

    The parameters are those of `central_bound`, with epsilon and delta for a client's message.

    Returns
    -------
    float
        With delta = 0, about ``1.47 * radius**2 * dimension / (clients * epsilon**2)`` for a small epsilon, if this is below a third of
        radius**2.

    Examples
    --------
    >>> round(local_bound(100, 10_000, 0.5), 4), round(100 / 10_000 / 0.5**2, 4)
    (0.0571, 0.04)
    """
    dimension, clients, radius = check_sizes(dimension, clients, radius)
    epsilon, delta = check_budget(epsilon, delta)
    sizes = group_sizes(clients)
    weights = group_weights(sizes, clients)
    if delta > 0:
        spread = pure_spread(epsilon, delta)
        of_groups = [
            max(sign_risks(dimension, int(size), epsilon, delta).error(), fingerprint_error(dimension, int(size), spread, delta))
            for size in sizes
        ]
        return radius**2 * float(np.max(weights * of_groups))
    with np.errstate(over="ignore"):
        by_caps = posterior_odds(dimension, sizes * epsilon)
        rate = 2 * private_information(epsilon) / (dimension - 2) if dimension > 2 else math.inf
        by_information = np.expm1(sizes * rate)
        by_signs = np.expm1(sizes * np.log1p(4 * np.sinh(epsilon / 2) ** 2)) / 2
    return radius**2 * max(PriorRisks(weights, odds).error() for odds in (by_caps, by_information, by_signs))


def unbiased_local_bound(dimension: int, clients: int, epsilon: float, delta: float = 0.0, *, radius: float = 1.0) -> float:
    """Return a lower bound on an unbiased mean's worst-case squared error under local privacy.

    The arguments are those of `local_bound`.

    Returns
    -------
    float
        The bound of a single client over the number of clients. With delta = 0, it equals the error of PrivUnit with its best cap (Asi,
        Feldman, Talwar 2022), up to the last digits computed.

    Examples
    --------
    >>> round(unbiased_local_bound(128, 1, 5.0), 2)
    36.73
    """
    clients = check_sizes(dimension, clients, radius)[1]
    of_one = unbiased_central_bound(dimension, 1, epsilon, delta, radius=radius)
    return max(of_one / clients, local_bound(dimension, clients, epsilon, delta, radius=radius))
