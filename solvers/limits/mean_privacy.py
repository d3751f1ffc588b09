"""Lower bounds of privacy on the squared L2 error of a mean of vectors.

Vectors lie in the L2 ball, and privacy is central or local. Neighbours differ in one client's vector (replace-one). A mechanism with
(epsilon, delta) when a client is added or removed has (2 epsilon, (1 + e^epsilon) delta) in this sense. Central bounds hold for every
mechanism, however many bits it sends. Under local privacy every client's message is private. Clients send messages of any length at the
same time, and may share randomness. All bounds have explicit constants and are rounded down. `docs/proofs/privacy-limits.md` has the
proofs.
"""

import math
from functools import lru_cache

import numpy as np

from ...arguments import LARGEST_EXACT_INTEGER, MOST_CLIENTS, check_integer, check_real
from ...arrays import FloatArray
from .compression import LARGEST_RADIUS
from .prior_risk import ROUNDING, PriorRisks, group_sizes, group_weights
from .private_posterior import posterior_odds, private_information

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e5
LARGEST_RHO = 300.0


def central_bound(dimension: int, clients: int, epsilon: float, delta: float = 0.0, *, radius: float = 1.0) -> float:
    """Return a lower bound on a mean's worst-case squared error under (epsilon, delta) privacy.

    The bound holds for biased and unbiased mechanisms.

    Parameters
    ----------
    dimension : int
        Number of coordinates.
    clients : int
        Number of clients, which is public.
    epsilon : float
        Privacy parameter for the replacement of one client's vector, from 1e-6 to 10**5.
    delta : float
        Failure probability, from 0 to below 1; 0 for pure privacy, which has the higher bound.
    radius : float
        Largest L2 norm of a vector.

    Returns
    -------
    float
        At most ``radius**2``, the error of the estimate zero. With few clients for their dimension, the bound is about
        ``0.44 * dimension * (radius / (clients * epsilon))**2``, and with many clients four times as large; with delta = 0, it is of the
        order of dimension**2.

    Examples
    --------
    >>> [float(f"{central_bound(100, 10_000, 1.0, delta):.3g}") for delta in (0.0, 1e-6)]
    [1.6e-05, 1.68e-06]
    """
    dimension, clients, radius = check_sizes(dimension, clients, radius)
    epsilon, delta = check_budget(epsilon, delta)
    by_signs = sign_risks(dimension, clients, epsilon, delta).error()
    by_caps = 0.0 if delta > 0 else _cap_risks(dimension, clients, epsilon).error()
    return radius**2 * max(by_signs, by_caps, fingerprint_error(dimension, clients, pure_spread(epsilon, delta), delta))


def unbiased_central_bound(dimension: int, clients: int, epsilon: float, delta: float = 0.0, *, radius: float = 1.0) -> float:
    """Return a lower bound on an unbiased private mean's worst-case squared error.

    The arguments are those of `central_bound`.

    Returns
    -------
    float
        With at least as many clients as coordinates, about ``4 * dimension * (radius / (clients * epsilon))**2`` for a small epsilon, and
        more for delta = 0. With fewer clients and delta above 0, the bound is lower: a mechanism that shows each vector with probability
        delta is private and unbiased.

    Examples
    --------
    >>> [float(f"{unbiased_central_bound(100, 10_000, 1.0, delta):.3g}") for delta in (0.0, 1e-6)]
    [2e-05, 3.68e-06]
    """
    dimension, clients, radius = check_sizes(dimension, clients, radius)
    epsilon, delta = check_budget(epsilon, delta)
    by_signs = sign_risks(dimension, clients, epsilon, delta).unbiased_error()
    pure = delta == 0
    by_vectors = _cap_risks(dimension, clients, epsilon).unbiased_error() if pure else _frame_error(dimension, clients, epsilon, delta)
    biased = fingerprint_error(dimension, clients, pure_spread(epsilon, delta), delta)
    return radius**2 * max(by_signs, by_vectors, biased)


def concentrated_central_bound(dimension: int, clients: int, rho: float, *, radius: float = 1.0) -> float:
    """Return a lower bound on a mean's worst-case squared error under concentrated privacy.

    The bound holds for biased and unbiased mechanisms of zero-concentrated differential privacy.

    Parameters
    ----------
    rho : float
        Parameter of zero-concentrated privacy (Bun, Steinke 2016, *Concentrated differential privacy*, definition 1.1): Rényi divergences
        of order a are at most ``a * rho`` where one client's vector is replaced; from 1e-9 to 300. The other parameters are those of
        `central_bound`.

    Returns
    -------
    float
        Lower bound on the error.

    Examples
    --------
    >>> float(f"{concentrated_central_bound(100, 10_000, 0.5):.3g}")
    5.38e-07
    """
    dimension, clients, radius = check_sizes(dimension, clients, radius)
    sphere, signs = _concentrated_risks(dimension, clients, _checked_rho(rho))
    return radius**2 * max(sphere.error(), signs.error(), fingerprint_error(dimension, clients, _concentrated_spread(rho), 0.0))


def unbiased_concentrated_central_bound(dimension: int, clients: int, rho: float, *, radius: float = 1.0) -> float:
    """Return a lower bound on an unbiased mean's worst-case error under concentrated privacy.

    The arguments are those of `concentrated_central_bound`.

    Returns
    -------
    float
        With at least as many clients as coordinates, ``4 * dimension * (radius / clients)**2 / (exp(2 * rho) - 1)``: the error of Gaussian
        noise, ``2 * dimension * (radius / clients)**2 / rho``, is at most ``(exp(2 * rho) - 1) / (2 * rho)`` times as large.

    Examples
    --------
    >>> float(f"{unbiased_concentrated_central_bound(100, 10_000, 0.005):.4g}"), round(2 * 100 / 10_000**2 / 0.005, 6)
    (0.000398, 0.0004)
    """
    dimension, clients, radius = check_sizes(dimension, clients, radius)
    sphere, signs = _concentrated_risks(dimension, clients, _checked_rho(rho))
    spread = _concentrated_spread(rho)
    signed = min(dimension, clients)
    moved = (4 * signed + (dimension - signed)) / (clients * spread) ** 2 * (1 - ROUNDING)
    biased = fingerprint_error(dimension, clients, spread, 0.0)
    return radius**2 * max(moved, sphere.unbiased_error(), signs.unbiased_error(), biased)


def check_sizes(dimension: int, clients: int, radius: float) -> tuple[int, int, float]:
    """Return the checked sizes of a problem."""
    return (
        check_integer("dimension", dimension, low=1, high=LARGEST_EXACT_INTEGER),
        check_integer("clients", clients, low=1, high=MOST_CLIENTS),
        check_real("radius", radius, low=1 / LARGEST_RADIUS, high=LARGEST_RADIUS),
    )


def check_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the checked privacy budget."""
    epsilon = check_real("epsilon", epsilon, low=SMALLEST_EPSILON, high=LARGEST_EPSILON)
    return epsilon, check_real("delta", delta, low=0.0, high=1 - 1e-16)


def sign_risks(dimension: int, clients: int, epsilon: float, delta: float) -> PriorRisks:
    """Return the risks of a prior with a group of clients for each coordinate.

    All clients of a group hold the same random end of the coordinate's axis.
    """
    sizes = group_sizes(clients)
    axes = np.minimum(dimension, np.floor(clients / sizes))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        group_delta = group_deltas(sizes, epsilon, delta)
        odds = (np.sinh(sizes * epsilon / 2) ** 2 + group_delta) / (1 - group_delta)
    return PriorRisks(axes * (sizes / clients) ** 2, np.where(group_delta < 1, odds, np.inf))


def group_deltas(sizes: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """Return delta of groups of k clients, whose epsilon is k times a client's.

    By group privacy it is delta (e^(k epsilon) - 1)/(e^epsilon - 1).
    """
    if delta == 0:
        return np.zeros_like(sizes)
    return np.asarray(delta * np.exp((sizes - 1) * epsilon) * np.expm1(-sizes * epsilon) / np.expm1(-epsilon))


def pure_spread(epsilon: float, delta: float) -> float:
    """Return the root of the largest chi-square divergence of neighbours' pure parts.

    The pure parts of two neighbours are epsilon indistinguishable.
    """
    return 2 * _sinh_of_half(epsilon) * math.sqrt(1 - delta)


def fingerprint_error(dimension: int, clients: int, spread: float, delta: float) -> float:
    """Return the bound that follows from the estimate's correlation with the clients' vectors.

    The vectors lie in the unit ball. `spread` is the root of the largest chi-square divergence between neighbours, apart from a part of
    mass delta.
    """
    active = group_sizes(clients)
    root = math.sqrt(dimension)
    with np.errstate(invalid="ignore"):
        correlated = (2 / 3 - 11 / 6 * delta * active) * root - spread * np.sqrt(2 * active / 3)
        error = active / clients * np.maximum(correlated, 0.0) / (active * spread + 2 * root / math.sqrt(3))
    return float(np.nanmax(error, initial=0.0)) ** 2 * (1 - ROUNDING)


@lru_cache(maxsize=64)
def _cap_risks(dimension: int, clients: int, epsilon: float) -> PriorRisks:
    """Return the risks of groups that hold a random vector of a sphere of their own block."""
    blocks = sorted({*(2**power for power in range(0, dimension.bit_length(), 2)), dimension})
    moments, odds = [], []
    for size in blocks:
        count = min(dimension // size, clients)
        groups = group_sizes(clients // count)
        moments.append(count * (groups / clients) ** 2)
        odds.append(posterior_odds(size, groups * epsilon))
    risks = PriorRisks(np.concatenate(moments), np.concatenate(odds))
    # The cache shares these arrays among all callers.
    for shared in (risks.second_moments, risks.odds):
        shared.setflags(write=False)
    return risks


def _frame_error(dimension: int, clients: int, epsilon: float, delta: float) -> float:
    """Return the bound for unbiased estimates of random orthogonal vectors, for delta above 0."""
    active = group_sizes(min(clients, dimension))
    pure = math.hypot(pure_spread(epsilon, delta), math.sqrt(delta))
    root = 1 / (pure / np.sqrt(dimension - active + 1) + np.sqrt(delta / active)) / clients
    return max(0.0, float(np.max(root**2 * (1 - ROUNDING) - active / clients**2 * (1 + ROUNDING))))


def _concentrated_risks(dimension: int, clients: int, rho: float) -> tuple[PriorRisks, PriorRisks]:
    """Return the risks of one group with a random unit vector, and of a signed group per axis."""
    sizes = group_sizes(clients)
    axes = np.minimum(dimension, np.floor(clients / sizes))
    with np.errstate(over="ignore"):
        sphere = np.expm1(2 * sizes**2 * rho / (dimension - 2)) if dimension > 2 else np.full_like(sizes, np.inf)
        signs = np.expm1(2 * sizes**2 * rho) / 2
    return PriorRisks((sizes / clients) ** 2, sphere), PriorRisks(axes * (sizes / clients) ** 2, signs)


def _checked_rho(rho: float) -> float:
    return check_real("rho", rho, low=1e-9, high=LARGEST_RHO)


def _concentrated_spread(rho: float) -> float:
    return math.sqrt(math.expm1(2 * rho))


def _sinh_of_half(epsilon: float) -> float:
    return math.sinh(min(epsilon / 2, 350.0))


def local_bound(dimension: int, clients: int, epsilon: float, delta: float = 0.0, *, radius: float = 1.0) -> float:
    """Return a lower bound on the mean's worst-case squared error under local privacy.

    The bound holds for every protocol with (epsilon, delta) private messages. The parameters are those of `central_bound`, with epsilon and
    delta for a client's message.

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
        Bound of a single client, divided by the number of clients. With delta = 0, it equals the error of PrivUnit with its best cap (Asi,
        Feldman, Talwar 2022), up to the last digits computed.

    Examples
    --------
    >>> round(unbiased_local_bound(128, 1, 5.0), 2)
    36.73
    """
    clients = check_sizes(dimension, clients, radius)[1]
    of_one = unbiased_central_bound(dimension, 1, epsilon, delta, radius=radius)
    return max(of_one / clients, local_bound(dimension, clients, epsilon, delta, radius=radius))
