"""Privacy of a secure sum to which each client adds discrete Gaussian noise."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_choice, check_integer, check_real
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import gaussian_epsilon_exceeds
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.accounting.sampled_noise import sampled_gaussian_curve
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.discrete_gaussian_divergence import (
    LARGEST_SIGMA,
    MOST_CLIENTS,
    ROUNDING,
    SMALLEST_SIGMA,
    SmoothedSum,
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    rounded_gaussian_epsilon,
    rounded_gaussian_exceeds,
    smoothed_sums,
)
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon
from ...solvers.numerics.bisection import first_true, least_up_to
from ..contracts.accounts import renyi_account
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.privacy import NearGaussianNoise, Privacy

# Largest logarithm of the ratio of a sampled round's noise to Gaussian noise, all coordinates together.
NEGLIGIBLE_RATIO = 1e-8


@dataclass(frozen=True)
class NoisySum:
    """One secure sum in whole numbers, as a subject of accounts.

    Attributes
    ----------
    sigma : float
        Parameter of each client's discrete Gaussian noise, from 0.001 to 10**20.
    l2_sensitivity : float
        Upper bound on the L2 distance by which a client moves the sum, for the adjacency of the account; above 0.
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
        check_integer("dimension", self.dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)


def noisy_sum_privacy(clients: int, noisy_sum: NoisySum, adjacency: str = "add-or-remove-one") -> Privacy:
    """Return the privacy of one secure sum; `joint_privacy` adds releases of the same round.

    The account ``"rdp"`` adds up Rényi divergences (Kairouz, Liu, Steinke 2021). The account ``"near-gaussian"`` uses that the sum nearly
    is a rounding of Gaussian noise (`quietbits.solvers.divergences.discrete_gaussian_divergence`). With sampled clients both accounts use
    that Gaussian noise. The choice of clients must be secret from the server: all `clients` add noise, and clients that were not chosen add
    their noise to zeros.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9.
    noisy_sum : NoisySum
        The sum, with its sensitivity for the adjacency.
    adjacency : str
        Adjacency of the guarantee.

    Examples
    --------
    >>> vector = NoisySum(sigma=200.0, l2_sensitivity=1000.0, dimension=1024)
    >>> round(noisy_sum_privacy(1000, vector).epsilon(1e-5), 4)
    0.5613
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    sigma, sensitivity, dimension = noisy_sum.sigma, noisy_sum.l2_sensitivity, noisy_sum.dimension

    def curve() -> RenyiCurve:
        orders = np.array(DEFAULT_ORDERS[:-1])
        return RenyiCurve(orders, discrete_gaussian_renyi(clients, sigma, sensitivity, dimension, orders) * (1 + ROUNDING))

    # The noise of other clients is independent, so a bound for the sum of fewer clients' noise also bounds the whole sum. Such a bound is
    # smaller if each client adds so little noise that the noise of more clients is further from Gaussian noise.
    all_count = discrete_gaussian_tau(clients, sigma) <= ROUNDING

    @cache
    def smoothed(count: int) -> list[SmoothedSum]:
        # Each choice of the share of noise for rounding has a Gaussian noise over the sensitivity and a log-ratio of all coordinates.
        return [SmoothedSum(part.sigma / sensitivity, dimension * part.log_ratio) for part in smoothed_sums(count, sigma)]

    # The multiplier is a client's noise over the sensitivity, rounded upward.
    multiplier = (1 + 5 * ROUNDING) * sigma / sensitivity

    def by_loss(rounds: int, delta: float) -> float | None:
        spread, best = math.sqrt(rounds), 0

        def of_some(count: int, most: float = math.inf) -> float:
            # The best choice of the last call comes first, since most other choices then need no computation.
            nonlocal best
            # No choice has an epsilon below that of the whole noise without a log-ratio.
            if gaussian_epsilon_exceeds(most, math.sqrt(count) * multiplier / spread, delta):
                return math.inf
            choices = [SmoothedSum(noise.sigma / spread, rounds * noise.log_ratio) for noise in smoothed(count)]
            if best >= len(choices):
                best = 0
            least = of_choice(choices[best], most) if choices else math.inf
            for choice in np.flatnonzero(~rounded_gaussian_exceeds(choices, delta, min(most, least))).tolist():
                epsilon = of_choice(choices[choice], min(most, least)) if choice != best else math.inf
                if epsilon < least:
                    least, best = epsilon, choice
            return least

        def of_choice(noise: SmoothedSum, most: float) -> float:
            epsilon = rounded_gaussian_epsilon(noise.sigma, noise.log_ratio, delta, most)
            return math.inf if epsilon is None else epsilon

        epsilon = of_some(clients) if all_count else least_up_to(clients, of_some)
        return epsilon if math.isfinite(epsilon) else None

    def nearly(choice: int) -> SmoothedSum | None:
        # The account takes the noise of the most clients that is near enough to Gaussian noise, less the share for rounding.
        def too_far(count: int) -> bool:
            return len(smoothed(count)) > choice and smoothed(count)[choice].log_ratio > NEGLIGIBLE_RATIO

        most = first_true(1, clients, too_far) - 1 if too_far(clients) else clients
        return smoothed(most)[choice] if most and len(smoothed(most)) > choice else None

    @cache
    def gaussian() -> SmoothedSum:
        choices = filter(None, map(nearly, range(len(smoothed(clients)))))
        largest = max(choices, key=lambda noise: noise.sigma, default=None)
        if largest is None:
            raise InfeasibleError(
                f"local_sigma must be larger for sampling to be accounted for: {clients} clients with noise of {sigma:g} steps are too far "
                "from Gaussian noise"
            )
        return largest

    # Mixtures of distributions whose probabilities differ by factors of at most e^r differ by factors of at most e^r, too. The integral
    # P^a Q^(1 - a) of a Rényi divergence of order a then changes by a factor of at most e^((2 a - 1) r).
    def sampled_curve(_: RenyiCurve, sampling: Sampling) -> RenyiCurve:
        of_gaussian = sampled_gaussian_curve(gaussian().sigma, sampling, adjacency)
        orders = of_gaussian.orders
        return RenyiCurve(orders, of_gaussian.divergences + (2 * orders - 1) / (orders - 1) * gaussian().log_ratio)

    def by_gaussian(delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
        if sampled is None:
            return by_loss(rounds, delta)
        ratio = rounds * gaussian().log_ratio
        epsilon = sampled(gaussian().sigma, delta * math.exp(-ratio) * (1 - 1e-15))
        return None if epsilon is None else epsilon + 2 * ratio

    too_little = "local_sigma must be larger for the noise to be nearly Gaussian"
    return Privacy(
        "secure-sum",
        (
            renyi_account(curve, adjacency, sampled=sampled_curve),
            near_gaussian_account(NearGaussianNoise(by_gaussian), adjacency, too_little),
        ),
    )
