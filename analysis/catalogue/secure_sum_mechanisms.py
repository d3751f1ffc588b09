"""Mechanisms of secure sums by name, each calibrated to keep a promise with so many bits per coordinate."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...arguments import check_choice, check_integer
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.secure_sum_protocol import SecureSumProtocol
from ...design.noise.discrete_gaussian import LARGEST_SIGMA
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ...design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from ...design.transforms.conditional_rounding import LARGEST_RADIUS
from ...design.transforms.kashin import LARGEST_SEED
from ...design.transforms.rotation import RandomisedHadamard
from ...solvers.divergences.discrete_gaussian_divergence import MOST_BITS
from ..accounting.discrete_gaussian import calibrate_discrete_gaussian
from ..accounting.distributed_skellam import calibrate_distributed_skellam
from ..calibration.cpsgd import MOST_BITS as MOST_CPSGD_BITS
from ..calibration.cpsgd import calibrate_cpsgd
from ..calibration.poisson_binomial import calibrate_poisson_binomial_mechanism
from ..calibration.privacy_calibration import Calibration

# Steps of a clip norm and of a client's noise at most: half of what is rounded, and of what is drawn.
MOST_CLIP_STEPS, MOST_NOISE_STEPS = LARGEST_RADIUS / 2, LARGEST_SIGMA / 2


@dataclass(frozen=True)
class _Promise:
    """What a mechanism is built for."""

    ball: NormBall
    clients: int
    bits: int
    epsilon: float
    delta: float
    adjacency: str
    rotation_seed: int

    @property
    def padded_dimension(self) -> int:
        return RandomisedHadamard(self.ball.dimension, self.rotation_seed).padded_dimension


def _parameters(asked: _Promise, calibrate: Callable[..., Calibration]) -> dict[str, float]:
    """Return noise and granularity for all bits, or for as many as are of use: finer steps cannot be handled, and would gain nothing."""
    bits = asked.bits
    while True:
        found = calibrate(
            asked.clients, asked.padded_dimension, asked.ball.clip_norm, bits, asked.epsilon, asked.delta, adjacency=asked.adjacency
        )
        parameters = dict(found.parameters)
        # Skellam noise is calibrated no larger, in steps, than it can be drawn.
        finest = max(asked.ball.clip_norm / MOST_CLIP_STEPS, parameters.get("local_sigma", 0.0) / MOST_NOISE_STEPS)
        if parameters["granularity"] >= finest:
            return parameters
        bits -= math.ceil(math.log2(finest / parameters["granularity"]))


def _discrete_gaussian(asked: _Promise) -> SecureSumProtocol:
    parameters = _parameters(asked, calibrate_discrete_gaussian)
    return DistributedDiscreteGaussianMechanism(
        asked.ball,
        asked.clients,
        asked.bits,
        parameters["granularity"],
        parameters["local_sigma"],
        asked.delta,
        rotation_seed=asked.rotation_seed,
        adjacency=asked.adjacency,
    )


def _skellam(asked: _Promise) -> SecureSumProtocol:
    parameters = _parameters(asked, calibrate_distributed_skellam)
    return DistributedSkellamMechanism(
        asked.ball,
        asked.clients,
        asked.bits,
        parameters["granularity"],
        parameters["local_variance"],
        asked.delta,
        rotation_seed=asked.rotation_seed,
        adjacency=asked.adjacency,
    )


def _cpsgd(asked: _Promise) -> SecureSumProtocol:
    return calibrate_cpsgd(
        asked.clients,
        asked.ball.dimension,
        asked.ball.clip_norm,
        # No such mechanism is in need of more.
        min(asked.bits, MOST_CPSGD_BITS),
        asked.epsilon,
        asked.delta,
        adjacency=asked.adjacency,
        rotation_seed=asked.rotation_seed,
    ).mechanism


def _poisson_binomial(asked: _Promise) -> SecureSumProtocol:
    return calibrate_poisson_binomial_mechanism(
        asked.clients, asked.ball.dimension, asked.ball.clip_norm, asked.bits, asked.epsilon, asked.delta, frame_seed=asked.rotation_seed
    ).mechanism


BUILDS: dict[str, Callable[[_Promise], SecureSumProtocol]] = {
    "distributed-discrete-gaussian": _discrete_gaussian,
    "distributed-skellam": _skellam,
    "cpsgd": _cpsgd,
    "poisson-binomial": _poisson_binomial,
}
SECURE_SUM_MECHANISMS = tuple(BUILDS)
# Adjacencies that a mechanism can state its guarantee for; the first one is that of its paper.
ADJACENCIES_OF: dict[str, tuple[str, ...]] = {
    "distributed-discrete-gaussian": ("add-or-remove-one", "replace-one"),
    "distributed-skellam": ("add-or-remove-one", "replace-one"),
    "cpsgd": ("replace-one", "add-or-remove-one"),
    "poisson-binomial": ("replace-one",),
}


def build_secure_sum_mechanism(
    name: str,
    ball: NormBall,
    clients: int,
    bits: int,
    epsilon: float,
    delta: float,
    *,
    adjacency: str | None = None,
    rotation_seed: int = 0,
) -> SecureSumProtocol:
    """Return the mechanism of a name with the least error among those that keep a promise for one sum.

    Parameters
    ----------
    name : str
        One of `SECURE_SUM_MECHANISMS`.
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients in the sum.
    bits : int
        Bits per coordinate of a message, from 1 to 62; the modulus is at most 2**bits.
    epsilon, delta : float
        The promise.
    adjacency : str or None
        Neighbours that the promise is for; None for those of the mechanism's paper. ``"add-or-remove-one"``: a client's vector is there,
        or zero is in its place, with the noise of all clients either way. ``"replace-one"``: another vector is in its place, which may be
        twice as far. `ADJACENCIES_OF` says who offers what; compare mechanisms at the same one.
    rotation_seed : int
        Public seed of the random rotation, or of the frame of ``"poisson-binomial"``, from 0 to 2**63 - 1.

    Returns
    -------
    SecureSumProtocol
        The mechanism; its own `guarantee` is at most (epsilon, delta).

    Raises
    ------
    ValueError
        If an argument is out of range, there is no such mechanism, or it has no guarantee for this adjacency.
    InfeasibleError
        If the bits are too few; the message says how many would do.

    Examples
    --------
    >>> mechanism = build_secure_sum_mechanism("distributed-discrete-gaussian", NormBall(128, 2.0), 1000, 16, 1.0, 1e-5)
    >>> round(mechanism.guarantee.epsilon, 3), mechanism.guarantee.adjacency, mechanism.bits_per_client
    (1.0, 'add-or-remove-one', 2048.0)
    """
    check_choice("mechanism", name, SECURE_SUM_MECHANISMS)
    if ball.norm != 2:
        raise ValueError(f"ball must have norm 2 for a secure sum, got norm {ball.norm!r}")
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    rotation_seed = check_integer("rotation_seed", rotation_seed, low=0, high=LARGEST_SEED)
    offered = ADJACENCIES_OF[name]
    if adjacency is None:
        adjacency = offered[0]
    if adjacency not in offered:
        raise ValueError(f"adjacency must be {' or '.join(offered)} for {name}, got {adjacency!r}")
    return BUILDS[name](_Promise(ball, clients, bits, epsilon, delta, adjacency, rotation_seed))
