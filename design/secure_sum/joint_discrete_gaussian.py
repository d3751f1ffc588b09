"""Several secure sums with discrete Gaussian noise in one round, accounted for together: a vector and a count, or the layers of a model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import gaussian_epsilon_exceeds
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.accounting.sampled_noise import sampled_gaussian_curve
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.discrete_gaussian_divergence import (
    LARGEST_DIMENSION,
    LARGEST_SIGMA,
    MOST_CLIENTS,
    ROUNDING,
    SMALLEST_SIGMA,
    SmoothedSum,
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    rounded_gaussian_epsilon,
    smoothed_sums,
)
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon
from ...solvers.numerics.bisection import first_true, least_up_to
from ..contracts.accounts import renyi_account
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.privacy import NearGaussianNoise, Privacy

# What the noise of a sampled round may differ from Gaussian noise: a logarithm of a ratio, all coordinates together.
NEGLIGIBLE_RATIO = 1e-8
MOST_SUMS = 2**20


@dataclass(frozen=True)
class NoisySum:
    """One secure sum as accounting sees it, in whole numbers.

    Attributes
    ----------
    sigma : float
        Parameter of each client's discrete Gaussian noise, from 0.001 to 10**20.
    l2_sensitivity : float
        How far one client moves the sum, at most, for the adjacency that is accounted for; above 0.
    dimension : int
        Number of coordinates.
    """

    sigma: float
    l2_sensitivity: float
    dimension: int

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "sigma", check_real("sigma", self.sigma, low=SMALLEST_SIGMA, high=LARGEST_SIGMA))
        object.__setattr__(self, "l2_sensitivity", check_real("l2_sensitivity", self.l2_sensitivity, low=1e-100, high=1e100))
        check_integer("dimension", self.dimension, low=1, high=LARGEST_DIMENSION)


def joint_discrete_gaussian_privacy(clients: int, sums: Sequence[NoisySum], adjacency: str = "add-or-remove-one") -> Privacy:
    """Return what several sums of one round reveal together, with independent noise in each.

    By ``"rdp"``: the divergences of the sums add up (Kairouz, Liu, Steinke 2021, for each); and by ``"near-gaussian"``: each sum nearly is
    a rounding of Gaussian noise (`quietbits.solvers.divergences.discrete_gaussian_divergence`), and Gaussian noises with multipliers z_i
    are together one with the multiplier ``sum(z_i**-2)**(-1/2)``. With sampled clients both are those of that Gaussian noise. The choice
    must be secret from the server: all `clients` add noise, those that were not chosen to zeros.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9.
    sums : sequence of NoisySum
        The sums, from 1, each with its sensitivity for the adjacency.
    adjacency : str
        Which data sets are neighbours.

    Examples
    --------
    A vector alone, and with a count of the same clients.

    >>> vector, count = NoisySum(sigma=200.0, l2_sensitivity=1000.0, dimension=1024), NoisySum(sigma=10.0, l2_sensitivity=1.0, dimension=1)
    >>> [round(joint_discrete_gaussian_privacy(1000, sums).epsilon(1e-5), 4) for sums in ([vector], [vector, count])]
    [0.5613, 0.5614]
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_integer("number of sums", len(sums), low=1, high=MOST_SUMS)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)

    def curve() -> RenyiCurve:
        orders = np.array(DEFAULT_ORDERS[:-1])
        divergences = [discrete_gaussian_renyi(clients, one.sigma, one.l2_sensitivity, one.dimension, orders) for one in sums]
        return RenyiCurve(orders, np.sum(divergences, axis=0) * (1 + len(sums) * ROUNDING))

    # The noise of other clients is independent: what holds for the sum of fewer clients' noise holds for all of it. That is less where each
    # adds so little that the sum of more is further from Gaussian noise.
    all_count = all(discrete_gaussian_tau(clients, one.sigma) <= ROUNDING for one in sums)

    @cache
    def smoothed(count: int) -> list[SmoothedSum]:
        # Each sum with the same share of its noise taken for rounding.
        return [_together(sums, parts) for parts in zip(*(smoothed_sums(count, one.sigma) for one in sums), strict=False)]

    # A client's noise over the sensitivity, rounded upward.
    multiplier = (1 + (4 + len(sums)) * ROUNDING) / math.hypot(*(one.l2_sensitivity / one.sigma for one in sums))

    def by_loss(rounds: int, delta: float) -> float | None:
        spread, best = math.sqrt(rounds), 0

        def of_some(count: int, most: float = math.inf) -> float:
            # The last choice that was the best is tried first: the others mostly are not computed then.
            nonlocal best
            # With all of the noise, which each choice has less of, and without a ratio.
            if gaussian_epsilon_exceeds(most, math.sqrt(count) * multiplier / spread, delta):
                return math.inf
            found, choices = math.inf, smoothed(count)
            for choice in sorted(range(len(choices)), key=lambda choice: choice != best):
                one = choices[choice]
                epsilon = rounded_gaussian_epsilon(one.sigma / spread, rounds * one.log_ratio, delta, min(most, found))
                if epsilon is not None and epsilon < found:
                    found, best = epsilon, choice
            return found

        least = of_some(clients) if all_count else least_up_to(clients, of_some)
        return least if math.isfinite(least) else None

    def nearly(choice: int) -> SmoothedSum | None:
        # The most clients whose noise is near enough to Gaussian noise, with that share of it taken for rounding.
        def too_far(count: int) -> bool:
            return len(smoothed(count)) > choice and smoothed(count)[choice].log_ratio > NEGLIGIBLE_RATIO

        most = first_true(1, clients, too_far) - 1 if too_far(clients) else clients
        return smoothed(most)[choice] if most and len(smoothed(most)) > choice else None

    @cache
    def gaussian() -> SmoothedSum:
        found = max(filter(None, map(nearly, range(len(smoothed(clients))))), key=lambda one: one.sigma, default=None)
        if found is None:
            noise = " and ".join(f"{one.sigma:g}" for one in sums[:3])
            raise InfeasibleError(
                f"local_sigma must be larger for sampling to be accounted for: {clients} clients with noise of {noise} steps are too far "
                "from Gaussian noise"
            )
        return found

    # Mixtures of distributions whose probabilities differ by factors of at most e^r differ by no more. Of a Rényi divergence of order a,
    # P^a Q^(1 - a) then changes by a factor of at most e^((2 a - 1) r).
    def sampled_curve(_: RenyiCurve, sampling: Sampling) -> RenyiCurve:
        of_gaussian = sampled_gaussian_curve(gaussian().sigma, sampling, adjacency)
        orders = of_gaussian.orders
        return RenyiCurve(orders, of_gaussian.divergences + (2 * orders - 1) / (orders - 1) * gaussian().log_ratio)

    def by_gaussian(delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
        if sampled is None:
            return by_loss(rounds, delta)
        ratio = rounds * gaussian().log_ratio
        found = sampled(gaussian().sigma, delta * math.exp(-ratio) * (1 - 1e-15))
        return None if found is None else found + 2 * ratio

    too_little = "local_sigma must be larger for the noise to be nearly Gaussian"
    return Privacy(
        "secure-sum",
        (
            renyi_account(curve, adjacency, sampled=sampled_curve),
            near_gaussian_account(NearGaussianNoise(by_gaussian), adjacency, too_little),
        ),
    )


def _together(sums: Sequence[NoisySum], parts: tuple[SmoothedSum, ...]) -> SmoothedSum:
    """Return Gaussian noise over the joint sensitivity, and the logarithm of the ratio of all coordinates together."""
    ratio = sum(one.dimension * part.log_ratio for one, part in zip(sums, parts, strict=True))
    if len(sums) == 1:
        return SmoothedSum(parts[0].sigma / sums[0].l2_sensitivity, ratio)
    inverse = math.hypot(*(one.l2_sensitivity / part.sigma for one, part in zip(sums, parts, strict=True)))
    return SmoothedSum((1 - (4 + len(sums)) * ROUNDING) / inverse, ratio * (1 + len(sums) * ROUNDING))
