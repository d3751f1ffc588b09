"""An empirical audit of a mechanism behind a secure sum: whether the sum of messages modulo M tells if one client's vector is there."""

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_choice, check_integer
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.secure_sum.modular_arithmetic import centred_representatives, messages_modulo, residues
from ...design.transforms.dithering import finite_values
from .privacy_audit import AuditResult, Score, audit_mechanism

# Whole numbers that are drawn at a time, of all clients, coordinates and repetitions together.
BLOCK = 2**20
OTHERS = ("zero", "same")


def audit_secure_sum(
    protocol: SecureSumMechanism,
    repetitions: int,
    rng: np.random.Generator,
    *,
    delta: float | None = None,
    others: str = "zero",
    direction: ArrayLike | None = None,
    confidence: float = 0.999,
) -> AuditResult:
    """Bound the epsilon of a secure sum's mechanism from below, for one pair of neighbours and an adversary who sees the sum modulo M.

    Parameters
    ----------
    protocol : SecureSumMechanism
        The mechanism, made for few clients and coordinates: each repetition encodes all of them.
    repetitions : int
        How often the round is run on each of two neighbouring populations, from 100 to 10**8.
    rng : numpy.random.Generator
        Source of the mechanism's randomness.
    delta : float or None
        Delta of the audit; None for that of the mechanism's guarantee. Events that tell much at a small delta are too rare to be counted
        in few repetitions: ten over delta of them are a beginning.
    others, direction
        As in `neighbouring_vectors`.
    confidence : float
        Probability with which the bound holds, from 0.5 to 1 - 1e-12.

    Returns
    -------
    AuditResult
        The bound. It holds for any mechanism; how near it comes to epsilon depends on the pair, the score and the repetitions.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    Two clients, one coordinate, and a claim that would be wrong for half the noise:

    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> ball = NormBall(dimension=1, norm=2.0, clip_norm=8.0)
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=2, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2)
    >>> result = audit_secure_sum(mechanism, 100_000, np.random.default_rng(0))
    >>> 0.5 * mechanism.guarantee.epsilon < result.epsilon_lower_bound <= mechanism.guarantee.epsilon
    True
    """
    first, second = neighbouring_vectors(protocol, others=others, direction=direction)
    delta = protocol.guarantee.delta if delta is None else delta
    return audit_mechanism(secure_sum_score(protocol, first, second), first, second, delta, repetitions, rng, confidence=confidence)


def neighbouring_vectors(
    protocol: SecureSumMechanism, *, others: str = "zero", direction: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return two populations that differ in the first client, as far as the mechanism's adjacency lets them.

    Parameters
    ----------
    protocol : SecureSumMechanism
        The mechanism.
    others : str
        What the other clients' vectors are: ``"zero"``, or ``"same"`` as the first client's in the first population. Where clients add
        noise of their own it hardly matters, and zero is rounded without randomness; where the message itself is drawn at random around
        the vector, as in the Poisson-binomial mechanism, vectors at the edge of the ball leave the least noise.
    direction : array_like of shape (dimension,) or None
        Where the first client's vector points to; None for the first coordinate.

    Returns
    -------
    tuple of ndarray of shape (clients, dimension)
        In the first one, the first client's vector has the norm clip_norm; in the second one it is the opposite of that, for replace-one
        adjacency, or zero, for add-or-remove-one.

    Raises
    ------
    ValueError
        If `others` is unknown, or `direction` has another shape, is zero, or is not finite.
    """
    ball = protocol.ball
    check_choice("others", others, OTHERS)
    toward = np.eye(1, ball.dimension)[0] if direction is None else finite_values("direction", direction)
    if toward.shape != (ball.dimension,):
        raise ValueError(f"direction must have the shape ({ball.dimension},), got {toward.shape}")
    norm = ball.norms(toward[None])[0]
    if norm == 0:
        raise ValueError("direction must not be zero: neighbours would be the same")
    edge = toward * (ball.clip_norm / norm)
    first = np.zeros((protocol.clients, ball.dimension))
    first[0 if others == "zero" else slice(None)] = edge
    second = first.copy()
    second[0] = -edge if protocol.guarantee.adjacency == "replace-one" else 0.0
    return first, second


def secure_sum_score(protocol: SecureSumMechanism, first: ArrayLike, second: ArrayLike) -> Score:
    """Return the score of an adversary who projects the decoded sum on the difference of two populations' means.

    The adversary subtracts the expected sum for the first population from the residues before it picks representatives around zero: that is
    a function of the sum modulo M, and wraps less often than the estimate does.

    Parameters
    ----------
    protocol : SecureSumMechanism
        The mechanism. Its `decode` is taken to be linear, but for a constant, in the sum's whole numbers.
    first, second : array_like of shape (clients, dimension)
        The two populations.

    Returns
    -------
    callable
        As `audit_mechanism` takes it: runs whole rounds, several at a time.
    """
    difference = np.sum(protocol.ball.clip(first), axis=0) - np.sum(protocol.ball.clip(second), axis=0)
    length, modulus = protocol.padded_dimension, protocol.modulus
    unit = np.zeros(length, dtype=np.uint64)
    constant = protocol.decode(unit, protocol.clients) @ difference
    weights = np.empty(length)
    for place in range(length):
        unit[place] = 1
        weights[place] = protocol.decode(unit, protocol.clients) @ difference - constant
        unit[place] = 0
    # Any reference makes a valid audit; a round of its own, with a generator of its own, is near the middle.
    reference = _sums(protocol, np.asarray(first, dtype=np.float64), 1, np.random.default_rng(0))[0]

    def score(vectors: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        population = np.asarray(vectors, dtype=np.float64)
        at_once = max(1, BLOCK // (protocol.clients * length))
        parts = []
        for start in range(0, count, at_once):
            sums = _sums(protocol, population, min(at_once, count - start), rng)
            parts.append(centred_representatives(residues(sums - reference, modulus), modulus) @ weights)
        return np.concatenate(parts)

    return score


def _sums(protocol: SecureSumMechanism, vectors: FloatArray, rounds: int, rng: np.random.Generator) -> IntegerArray:
    """Return the sum of the messages of each of several rounds modulo M, shape (rounds, padded_dimension)."""
    clients = check_integer("clients of the population", len(vectors), low=protocol.clients, high=protocol.clients)
    steps = protocol.noisy_steps(np.tile(vectors, (rounds, 1)), rng)
    sums = steps.reshape(rounds, clients, protocol.padded_dimension).sum(axis=1)
    return messages_modulo(sums, protocol.modulus).astype(np.int64)
