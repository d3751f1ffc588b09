"""Calibration of the noise that clients of a secure sum share, and of the granularity."""

import math
from collections.abc import Callable
from functools import cache, lru_cache

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.divergences.discrete_gaussian_divergence import (
    MOST_BITS,
    MOST_CLIENTS,
    SMALLEST_SIGMA,
    fewest_bits,
    granularity_for_bits,
)
from ...solvers.numerics.safe_root import safe_root
from ..contracts.calibration import TOLERANCE
from ..contracts.norm_ball import NormBall
from ..contracts.task import Budget
from ..noise.discrete_gaussian import LARGEST_SIGMA
from ..transforms.conditional_rounding import LARGEST_RADIUS
from ..transforms.rotation import rotated_dimension
from .distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from .distributed_skellam import LARGEST_VARIANCE, LEAST_VARIANCE, distributed_skellam_privacy

# Range of the search for the standard deviation of one client's noise, in units of the clip norm.
MOST_CLIP_NORMS, LEAST_CLIP_NORMS = 1e9, 1e-9

NamedParameters = tuple[tuple[str, float], ...]
"""Parameters of a mechanism by name, hashable."""
# Largest number of steps of a clip norm and of a client's noise: half of the limits of rounding and sampling.
MOST_CLIP_STEPS, MOST_NOISE_STEPS = LARGEST_RADIUS / 2, LARGEST_SIGMA / 2
# Largest ratio of the standard deviation to the granularity: the sampler does not support Skellam noise of more steps.
MOST_SKELLAM_STEPS = math.sqrt(LARGEST_VARIANCE) * (1 - 1e-9)


def calibrate_granularity(
    parameters: Callable[[float, float], NamedParameters],
    epsilon_of: Callable[[NamedParameters], float],
    clients: int,
    dimension: int,
    clip_norm: float,
    bits: int,
    budget: Budget,
    deviations: float,
) -> NamedParameters:
    """Return the least noise and its granularity that fit the bits. The noise is rounded up.

    Granularity and noise depend on each other: more noise needs coarser steps, and coarser steps raise the sensitivity. Epsilon falls as
    the noise grows and the granularity follows (`granularity_for_bits`), but not to zero, so that too few bits cannot reach every epsilon.

    Parameters
    ----------
    parameters : callable
        Function that returns the standard deviation of one client's noise and the finest granularity that fits, both in the vectors' units,
        by name.
    epsilon_of : callable
        Epsilon of all rounds with such parameters; infinite if there is too little noise for an account.
    clients : int
        Number of clients that add noise, 1 to 10**9; a sum of all of them must fit the bits.
    dimension : int
        Number of coordinates, after padding.
    clip_norm : float
        L2 norm that vectors are clipped to, above 0.
    bits : int
        Number of bits of a coordinate, 1 to 62; sums are modulo 2**bits.
    budget : Budget
        The budget of all rounds together, with an epsilon from 1e-5 to 10**4.
    deviations : float
        Number of standard deviations of a coordinate of the sum in half the modulus, 0.1 to 100; with 4, a Gaussian coordinate lies outside
        with probability 6.3e-5.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few for the clients and epsilon; the message states the necessary number.
    """
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    deviations = check_real("deviations", deviations, low=0.1, high=100.0)

    def fitting(inverse: float, width: int) -> NamedParameters:
        deviation = clip_norm / inverse
        return parameters(deviation, granularity_for_bits(clients, dimension, clip_norm, deviation, width, deviations=deviations))

    @cache
    def reached(inverse: float, width: int) -> float:
        return epsilon_of(fitting(inverse, width))

    most_noise = 1 / MOST_CLIP_NORMS
    tolerance = TOLERANCE * min(1.0, epsilon)
    fewest = fewest_bits(clients, deviations)
    if bits < fewest or reached(most_noise, bits) > epsilon - tolerance:
        wider = range(max(bits + 1, fewest), MOST_BITS + 1)
        enough = next((width for width in wider if reached(most_noise, width) <= epsilon - tolerance), None)
        goal = f"for {clients} clients to reach epsilon = {epsilon:g} at delta = {delta:g} in {dimension} dimensions"
        if enough is None:
            raise InfeasibleError(f"epsilon or delta must be larger: no number of bits up to {MOST_BITS} would be enough {goal}")
        raise InfeasibleError(f"bits must be at least {enough} {goal}, however much noise they add, got {bits}")
    inverse = safe_root(
        lambda argument: reached(argument, bits),
        epsilon,
        start=min(epsilon, 1.0) * math.sqrt(clients) / 4,
        low=most_noise,
        high=1 / LEAST_CLIP_NORMS,
        tolerance=tolerance,
        name="clip norm over the standard deviation of a client's noise",
    )
    return fitting(inverse, bits)


def calibrate_discrete_gaussian(
    clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget, deviations: float = 4.0
) -> dict[str, float]:
    """Return the least ``local_sigma`` within a budget, rounded up, and its ``granularity``.

    Parameters are those of `calibrate_granularity`, and of `discrete_gaussian_privacy`, the account of the result.

    Examples
    --------
    >>> values = calibrate_discrete_gaussian(1000, 1024, 1.0, 16, Budget(1.0, 1e-5, "add-or-remove-one"))
    >>> {name: round(value, 6) for name, value in values.items()}
    {'local_sigma': 0.118436, 'granularity': 0.003842}
    """
    return dict(_calibrated_discrete_gaussian(clients, dimension, clip_norm, bits, budget, deviations))


@lru_cache(maxsize=64)
def _calibrated_discrete_gaussian(
    clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget, deviations: float
) -> NamedParameters:
    neighbours, hiding = budget.adjacency, budget.survivors(clients)

    def parameters(local_sigma: float, granularity: float) -> NamedParameters:
        return ("local_sigma", local_sigma), ("granularity", granularity)

    def epsilon_of(named: NamedParameters) -> float:
        values = dict(named)
        # Noise below a thousandth of a step rounds to zero.
        if values["local_sigma"] < SMALLEST_SIGMA * values["granularity"]:
            return math.inf
        privacy = discrete_gaussian_privacy(hiding, dimension, clip_norm, values["local_sigma"], values["granularity"], neighbours)
        return privacy.epsilon(budget.delta, neighbours, budget.rounds, budget.sampling, account=budget.method)

    return calibrate_granularity(parameters, epsilon_of, clients, dimension, clip_norm, bits, budget, deviations)


def calibrate_distributed_skellam(
    clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget, deviations: float = 4.0
) -> dict[str, float]:
    """Return the least ``local_variance`` within a budget, rounded up, and its ``granularity``.

    Parameters are those of `calibrate_granularity`, and of `distributed_skellam_privacy`, the account of the result. The granularity is the
    standard deviation of a client's noise over 141 421 if the bits would permit a finer granularity, which the sampler does not support.

    Examples
    --------
    >>> values = calibrate_distributed_skellam(1000, 1024, 1.0, 16, Budget(1.0, 1e-5, "add-or-remove-one"))
    >>> {name: round(value, 6) for name, value in values.items()}
    {'local_variance': 0.014035, 'granularity': 0.003842}
    """
    return dict(_calibrated_distributed_skellam(clients, dimension, clip_norm, bits, budget, deviations))


@lru_cache(maxsize=64)
def _calibrated_distributed_skellam(
    clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget, deviations: float
) -> NamedParameters:
    neighbours, hiding = budget.adjacency, budget.survivors(clients)

    def parameters(deviation: float, granularity: float) -> NamedParameters:
        return ("local_variance", deviation**2), ("granularity", max(granularity, deviation / MOST_SKELLAM_STEPS))

    def epsilon_of(named: NamedParameters) -> float:
        values = dict(named)
        # The sampler does not support so little noise.
        if values["local_variance"] < LEAST_VARIANCE * values["granularity"] ** 2 * (1 + 1e-9):
            return math.inf
        privacy = distributed_skellam_privacy(hiding, dimension, clip_norm, values["local_variance"], values["granularity"], neighbours)
        return privacy.epsilon(budget.delta, neighbours, budget.rounds, budget.sampling, account=budget.method)

    return calibrate_granularity(parameters, epsilon_of, clients, dimension, clip_norm, bits, budget, deviations)


def discrete_gaussian_of_noise(
    ball: NormBall, clients: int, bits: int, budget: Budget, noise_multiplier: float, rotation_seed: int = 0, rotation: str = "hadamard"
) -> DistributedDiscreteGaussianMechanism:
    """Return the mechanism with a given noise of its sum, in the finest steps that fit the bits.

    Parameters
    ----------
    ball, clients, bits, rotation_seed, rotation
        Ball, clients, bits and rotation, as in `DistributedDiscreteGaussianMechanism`.
    budget : Budget
        Budget with the delta, the adjacency and the drop-outs; its epsilon has no effect.
    noise_multiplier : float
        Standard deviation of the noise of the clients that remain over the L2 sensitivity of unrounded vectors.

    Raises
    ------
    InfeasibleError
        If the bits cannot even hold the rounding, or their steps are too coarse for the noise; the message states the requirement.
    """
    adjacency = budget.adjacency
    sensitivity = ball.clip_norm * (2 if adjacency == "replace-one" else 1)
    deviation = noise_multiplier * sensitivity / math.sqrt(budget.survivors(clients))
    padded = rotated_dimension(rotation, ball.dimension)
    fitting = granularity_for_bits(clients, padded, ball.clip_norm, deviation, bits)
    granularity = max(fitting, ball.clip_norm / MOST_CLIP_STEPS, deviation / MOST_NOISE_STEPS)
    if deviation < SMALLEST_SIGMA * granularity:
        raise InfeasibleError(
            f"noise_multiplier must be at least {noise_multiplier * SMALLEST_SIGMA * granularity / deviation:.3g} in steps that fit {bits} "
            f"bits, got {noise_multiplier:g}: noise below a thousandth of a step rounds to zero"
        )
    return DistributedDiscreteGaussianMechanism(
        ball, clients, bits, granularity, deviation, budget.delta, rotation_seed, rotation, adjacency, budget.stated_survivors(clients)
    )


def calibrate_finest_steps(
    calibrate: Callable[..., dict[str, float]], clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget
) -> dict[str, float]:
    """Return noise and granularity for the bits, or for as many bits as are useful.

    More bits than useful would permit steps that rounding and sampling do not support, and would gain nothing. `calibrate` is a calibration
    function of this module, and takes the other arguments.
    """
    while True:
        noise = calibrate(clients, dimension, clip_norm, bits, budget)
        # The calibration of Skellam noise stays within the steps that the sampler supports.
        finest = max(clip_norm / MOST_CLIP_STEPS, noise.get("local_sigma", 0.0) / MOST_NOISE_STEPS)
        if noise["granularity"] >= finest:
            return noise
        bits -= math.ceil(math.log2(finest / noise["granularity"]))
