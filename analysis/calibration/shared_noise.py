"""The noise that clients of a secure sum share, and the granularity with which their sum fits a number of bits."""

import math
from collections.abc import Callable

from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Budget
from ...design.noise.discrete_gaussian import LARGEST_SIGMA
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from ...design.secure_sum.distributed_skellam import LARGEST_VARIANCE, LEAST_VARIANCE, distributed_skellam_privacy
from ...design.transforms.conditional_rounding import LARGEST_RADIUS
from ...design.transforms.rotation import rotated_dimension
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import SMALLEST_SIGMA, granularity_for_bits
from .granularity import NamedParameters, calibrate_granularity

# Steps of a clip norm and of a client's noise at most: half of what is rounded, and of what is drawn.
MOST_CLIP_STEPS, MOST_NOISE_STEPS = LARGEST_RADIUS / 2, LARGEST_SIGMA / 2
# A granularity is at least the standard deviation over this: of finer steps, Skellam noise would have a larger variance than is sampled.
MOST_SKELLAM_STEPS = math.sqrt(LARGEST_VARIANCE) * (1 - 1e-9)


def calibrate_discrete_gaussian(
    clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget, deviations: float = 4.0
) -> dict[str, float]:
    """Return the least ``local_sigma`` within a budget, and its ``granularity``; errs toward more noise.

    Parameters are those of `calibrate_granularity`, and of `discrete_gaussian_privacy`, which accounts for what is found.

    Examples
    --------
    >>> found = calibrate_discrete_gaussian(1000, 1024, 1.0, 16, Budget(1.0, 1e-5, "add-or-remove-one"))
    >>> {name: round(value, 6) for name, value in found.items()}
    {'local_sigma': 0.118436, 'granularity': 0.003842}
    """
    neighbours = budget.adjacency

    def parameters(local_sigma: float, granularity: float) -> NamedParameters:
        return ("local_sigma", local_sigma), ("granularity", granularity)

    def epsilon_of(named: NamedParameters) -> float:
        found = dict(named)
        # Noise of less than a thousandth of a step is none.
        if found["local_sigma"] < SMALLEST_SIGMA * found["granularity"]:
            return math.inf
        privacy = discrete_gaussian_privacy(clients, dimension, clip_norm, found["local_sigma"], found["granularity"], neighbours)
        return privacy.epsilon(budget.delta, neighbours, budget.rounds, budget.sampling, account=budget.method)

    return dict(calibrate_granularity(parameters, epsilon_of, clients, dimension, clip_norm, bits, budget, deviations))


def calibrate_distributed_skellam(
    clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget, deviations: float = 4.0
) -> dict[str, float]:
    """Return the least ``local_variance`` within a budget, and its ``granularity``; errs toward more noise.

    Parameters are those of `calibrate_granularity`, and of `distributed_skellam_privacy`, which accounts for what is found. The granularity
    is the standard deviation of a client's noise over 141 421 where the bits would allow a finer one: finer noise is not sampled.

    Examples
    --------
    >>> found = calibrate_distributed_skellam(1000, 1024, 1.0, 16, Budget(1.0, 1e-5, "add-or-remove-one"))
    >>> {name: round(value, 6) for name, value in found.items()}
    {'local_variance': 0.014035, 'granularity': 0.003842}
    """
    neighbours = budget.adjacency

    def parameters(deviation: float, granularity: float) -> NamedParameters:
        return ("local_variance", deviation**2), ("granularity", max(granularity, deviation / MOST_SKELLAM_STEPS))

    def epsilon_of(named: NamedParameters) -> float:
        found = dict(named)
        # So little noise is not sampled.
        if found["local_variance"] < LEAST_VARIANCE * found["granularity"] ** 2 * (1 + 1e-9):
            return math.inf
        privacy = distributed_skellam_privacy(clients, dimension, clip_norm, found["local_variance"], found["granularity"], neighbours)
        return privacy.epsilon(budget.delta, neighbours, budget.rounds, budget.sampling, account=budget.method)

    return dict(calibrate_granularity(parameters, epsilon_of, clients, dimension, clip_norm, bits, budget, deviations))


def discrete_gaussian_of_noise(
    ball: NormBall, clients: int, bits: int, budget: Budget, noise_multiplier: float, rotation_seed: int = 0, rotation: str = "hadamard"
) -> DistributedDiscreteGaussianMechanism:
    """Return the mechanism whose sum has a given noise, in the finest steps that fit the bits: what it keeps, its account says.

    Parameters
    ----------
    ball, clients, bits, rotation_seed, rotation
        As in `DistributedDiscreteGaussianMechanism`.
    budget : Budget
        Its delta and adjacency; its epsilon is not asked for.
    noise_multiplier : float
        Standard deviation of the sum's noise over the L2 sensitivity of vectors that are not rounded.

    Raises
    ------
    InfeasibleError
        If the bits cannot even hold the rounding, or their steps are too coarse for the noise; the message says what would do.
    """
    adjacency = budget.adjacency
    sensitivity = ball.clip_norm * (2 if adjacency == "replace-one" else 1)
    deviation = noise_multiplier * sensitivity / math.sqrt(clients)
    padded = rotated_dimension(rotation, ball.dimension)
    fitting = granularity_for_bits(clients, padded, ball.clip_norm, deviation, bits)
    granularity = max(fitting, ball.clip_norm / MOST_CLIP_STEPS, deviation / MOST_NOISE_STEPS)
    if deviation < SMALLEST_SIGMA * granularity:
        raise InfeasibleError(
            f"noise_multiplier must be at least {noise_multiplier * SMALLEST_SIGMA * granularity / deviation:.3g} in steps that fit {bits} "
            f"bits, got {noise_multiplier:g}: of less than a thousandth of a step nothing is left"
        )
    return DistributedDiscreteGaussianMechanism(
        ball, clients, bits, granularity, deviation, budget.delta, rotation_seed, rotation, adjacency
    )


def finest_steps(
    calibrate: Callable[..., dict[str, float]], clients: int, dimension: int, clip_norm: float, bits: int, budget: Budget
) -> dict[str, float]:
    """Return noise and granularity for all bits, or for as many as are of use: finer steps cannot be handled, and would gain nothing.

    `calibrate` is one of the functions above; the other parameters are theirs.
    """
    while True:
        found = calibrate(clients, dimension, clip_norm, bits, budget)
        # Skellam noise is calibrated no larger, in steps, than it can be drawn.
        finest = max(clip_norm / MOST_CLIP_STEPS, found.get("local_sigma", 0.0) / MOST_NOISE_STEPS)
        if found["granularity"] >= finest:
            return found
        bits -= math.ceil(math.log2(finest / found["granularity"]))
