"""Mechanisms of secure sums by name, each calibrated to keep a promise with so many bits per coordinate."""

from collections.abc import Callable

from ..design.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ..design.distributed_skellam import DistributedSkellamMechanism
from ..design.norm_ball import NormBall
from ..design.rotation import RandomisedHadamard
from ..design.secure_sum_protocol import SecureSumProtocol
from .discrete_gaussian_accounting import calibrate_discrete_gaussian
from .distributed_skellam_accounting import calibrate_distributed_skellam

Build = Callable[[NormBall, int, int, float, float, int], SecureSumProtocol]


def _discrete_gaussian(ball: NormBall, clients: int, bits: int, epsilon: float, delta: float, rotation_seed: int) -> SecureSumProtocol:
    padded = RandomisedHadamard(ball.dimension, rotation_seed).padded_dimension
    found = calibrate_discrete_gaussian(clients, padded, ball.clip_norm, bits, epsilon, delta)
    parameters = dict(found.parameters)
    return DistributedDiscreteGaussianMechanism(
        ball, clients, bits, parameters["granularity"], parameters["local_sigma"], delta, rotation_seed=rotation_seed
    )


def _skellam(ball: NormBall, clients: int, bits: int, epsilon: float, delta: float, rotation_seed: int) -> SecureSumProtocol:
    padded = RandomisedHadamard(ball.dimension, rotation_seed).padded_dimension
    found = calibrate_distributed_skellam(clients, padded, ball.clip_norm, bits, epsilon, delta)
    parameters = dict(found.parameters)
    return DistributedSkellamMechanism(
        ball, clients, bits, parameters["granularity"], parameters["local_variance"], delta, rotation_seed=rotation_seed
    )


BUILDS: dict[str, Build] = {"distributed-discrete-gaussian": _discrete_gaussian, "distributed-skellam": _skellam}
SECURE_SUM_MECHANISMS = tuple(BUILDS)


def build_secure_sum_mechanism(
    name: str, ball: NormBall, clients: int, bits: int, epsilon: float, delta: float, *, rotation_seed: int = 0
) -> SecureSumProtocol:
    """Return the mechanism of a name with the least noise that keeps a promise for one sum.

    Parameters
    ----------
    name : str
        One of `SECURE_SUM_MECHANISMS`. The promise of ``"distributed-discrete-gaussian"`` and ``"distributed-skellam"`` is for
        add-or-remove-one adjacency: a client's vector is there, or zero is in its place. Compare it with others at the adjacency that their
        `guarantee` states.
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients in the sum.
    bits : int
        Bits per coordinate of a message, from 1 to 62.
    epsilon, delta : float
        The promise.
    rotation_seed : int
        Public seed of the random rotation, from 0 to 2**128 - 1.

    Returns
    -------
    SecureSumProtocol
        The mechanism; its own `guarantee` is at most (epsilon, delta).

    Raises
    ------
    ValueError
        If an argument is out of range, or there is no such mechanism.
    InfeasibleError
        If the bits are too few; the message says how many would do.

    Examples
    --------
    >>> mechanism = build_secure_sum_mechanism("distributed-discrete-gaussian", NormBall(128, 2.0), 1000, 16, 1.0, 1e-5)
    >>> round(mechanism.guarantee.epsilon, 3), mechanism.guarantee.adjacency, mechanism.bits_per_client
    (1.0, 'add-or-remove-one', 2048.0)
    """
    if name not in BUILDS:
        raise ValueError(f"mechanism must be one of {', '.join(SECURE_SUM_MECHANISMS)}, got {name!r}")
    if ball.norm != 2:
        raise ValueError(f"ball must have norm 2 for a secure sum, got norm {ball.norm!r}")
    return BUILDS[name](ball, clients, bits, epsilon, delta, rotation_seed)
