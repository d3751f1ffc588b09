"""Lower bounds of compression on the error of a mean of vectors, for given bits.

Vectors lie in the L2 ball. The bounds hold for every encoder and decoder, with private or shared randomness, and are lower bounds after
rounding. Shared randomness must not depend on the vectors. `docs/proofs/compression-limits.md` has the proofs.
"""

import math

import numpy as np

from ...arguments import LARGEST_EXACT_INTEGER, MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ..numerics.bisection import bisect
from .prior_risk import ROUNDING, PriorRisks, group_sizes, group_weights

MOST_BITS = 1e25
# The package has no separate bound for shuffled messages.
BOUNDED_TRUST_MODELS = ("local", "secure-sum", "central")
LARGEST_RADIUS = 1e100
HALVINGS = 100


def compression_bound(dimension: int, bits: float, *, radius: float = 1.0, shared_randomness: bool = True) -> float:
    """Return a lower bound on the worst-case squared L2 error of a vector sent in a message.

    The bound also holds for a mean that the server decodes from a secure sum.

    Parameters
    ----------
    dimension : int
        Number of coordinates.
    bits : float
        Logarithm to base 2 of the number of different messages, at least 0. For a secure sum, logarithm of the modulus, over all
        coordinates; the bound is then on the error of the mean, since all clients may hold the same vector.
    radius : float
        Largest L2 norm of a vector.
    shared_randomness : bool
        Whether encoder and decoder may share randomness, such as a random rotation. Without shared randomness the bound is at least
        ``radius**2 * 2**(-2 * bits / dimension)``; with shared randomness, this is false.

    Returns
    -------
    float
        Lower bound on the error; ``radius**2`` for no bits.

    Examples
    --------
    >>> round(compression_bound(100, 50.0), 4), round(compression_bound(100, 50.0, shared_randomness=False), 4)
    (0.493, 0.5)
    """
    dimension, bits, radius = _checked(dimension, bits, radius)
    shared = _message_risks(dimension, np.array([bits])).error()
    own = 0.0 if shared_randomness else _covering_error(dimension, bits)
    return radius**2 * max(shared, own)


def unbiased_compression_bound(dimension: int, bits: float, *, radius: float = 1.0, shared_randomness: bool = True) -> float:
    """Return a lower bound on the worst-case variance of an unbiased estimate from a message.

    The arguments are those of `compression_bound`.

    Returns
    -------
    float
        At least ``radius**2 / (2**(2 * bits / (dimension - 2)) - 1)``, which is about ``0.72 * radius**2 * dimension / bits`` for few bits.
        The bound is infinite for no bits, and without shared randomness for fewer messages than dimension + 1.

    Examples
    --------
    >>> round(unbiased_compression_bound(1000, 100.0), 3)
    6.712
    """
    dimension, bits, radius = _checked(dimension, bits, radius)
    shared = _message_risks(dimension, np.array([bits])).unbiased_error()
    if shared_randomness:
        return radius**2 * shared
    # The ball must lie in the convex hull of the decoded vectors.
    spans = bits >= 53 or math.floor(2**bits) > dimension
    return radius**2 * max(shared, _covering_error(dimension, bits)) if spans else math.inf


def mean_compression_bound(dimension: int, bits: float, clients: int, *, radius: float = 1.0) -> float:
    """Return a lower bound on a mean's worst-case squared L2 error, with `bits` per client.

    The server sees every client's message. Messages are sent at the same time; all clients may share randomness. The other arguments are
    those of `compression_bound`.

    Returns
    -------
    float
        Lower bound, about ``0.26 * radius**2 * dimension / (clients * bits)`` where this is between 1/clients and 1, in units of the
        squared radius. The bound comes from groups of clients that hold the same vector.

    Examples
    --------
    >>> round(mean_compression_bound(1000, 1.0, 100), 4), round(mean_compression_bound(1000, 1000.0, 100), 5)
    (0.8703, 0.0025)
    """
    dimension, bits, radius = _checked(dimension, bits, radius)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    sizes = group_sizes(clients)
    risks = _message_risks(dimension, sizes * bits)
    weighted = PriorRisks(group_weights(sizes, clients) * risks.second_moments, risks.odds)
    return radius**2 * weighted.error()


def unbiased_mean_compression_bound(dimension: int, bits: float, clients: int, *, radius: float = 1.0) -> float:
    """Return a lower bound on an unbiased mean's variance.

    The bound is a single client's bound divided by the number of clients.
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    return unbiased_compression_bound(dimension, bits, radius=radius) / clients


def necessary_bits(error: float, dimension: int, clients: int, trust_model: str, *, unbiased: bool = False, radius: float = 1.0) -> float:
    """Return the fewest bits per message for which compression permits an error of the mean.

    Parameters
    ----------
    error : float
        Worst-case squared L2 error; above 0.
    dimension : int
        Number of coordinates.
    clients : int
        Number of clients.
    trust_model : str
        ``"secure-sum"``: the server sees only a sum of as many bits as a message; ``"local"`` or ``"central"``: the server sees every
        message.
    unbiased : bool
        Whether the estimate must be unbiased.
    radius : float
        Largest L2 norm of a vector.

    Returns
    -------
    float
        Lower bound on the bits, not rounded to a whole number: with fewer bits no mechanism, private or not, has that error. 0.0 if every
        number of bits permits it.

    Examples
    --------
    >>> [round(necessary_bits(0.1, 10_000, 1000, "secure-sum", unbiased=unbiased)) for unbiased in (False, True)]
    [16608, 17296]
    """
    check_choice("trust_model", trust_model, BOUNDED_TRUST_MODELS)
    error = check_real("error", error, low=1e-300, high=1e300)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)

    def bound(bits: float) -> float:
        if trust_model == "secure-sum":
            return (unbiased_compression_bound if unbiased else compression_bound)(dimension, bits, radius=radius)
        return (unbiased_mean_compression_bound if unbiased else mean_compression_bound)(dimension, bits, clients, radius=radius)

    if bound(0.0) <= error:
        return 0.0
    low, high = 0.0, 1.0
    while bound(high) > error:
        low, high = high, 2 * high
    # The bound exceeds the error at this number of bits, and for all fewer bits.
    return bisect(lambda bits: bound(bits) > error, low, high, HALVINGS).holds


def _checked(dimension: int, bits: float, radius: float) -> tuple[int, float, float]:
    return (
        check_integer("dimension", dimension, low=1, high=LARGEST_EXACT_INTEGER),
        check_real("bits", bits, low=0.0, high=MOST_BITS),
        check_real("radius", radius, low=1 / LARGEST_RADIUS, high=LARGEST_RADIUS),
    )


def _message_risks(dimension: int, bits: FloatArray) -> PriorRisks:
    """Return the risks of three priors, one row each, for a message about a unit vector."""
    nats = bits * math.log(2)
    with np.errstate(over="ignore"):
        # The first prior is uniform on the ball.
        ball = np.expm1(2 * nats / dimension)
        # The second prior is uniform on the sphere.
        sphere = np.expm1(2 * nats / (dimension - 2)) if dimension > 2 else np.full_like(nats, np.inf)
    # The third prior has twice as many equidistant points on a diameter as there are messages; ROUNDING keeps the floor from losing a
    # message.
    messages = np.floor(np.exp2(np.minimum(nats / math.log(2), 400.0)) * (1 + ROUNDING))
    line = 4 * (messages - 1) * (messages + 1) / 3
    points = (2 * messages + 1) / (3 * (2 * messages - 1))
    moments = np.stack([np.full_like(nats, dimension / (dimension + 2)), np.ones_like(nats), points])
    return PriorRisks(moments, np.stack([ball, sphere, line]))


def _covering_error(dimension: int, bits: float) -> float:
    return math.exp(-2 * bits * math.log(2) / dimension) * (1 - ROUNDING)
