"""Rounds of Gaussian and Laplace noise with sampled clients: Rényi divergences by sums and a series, privacy losses by dp-accounting.

The package is imported when it is needed: that takes a second.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .renyi_curve import DEFAULT_ORDERS, RenyiCurve
from .sampled_gaussian_orders import fixed_size_cumulants, poisson_cumulants
from .sampled_gaussian_series import sampled_gaussian_cumulants
from .sampling import FixedSizeSampling, PoissonSampling, Sampling, amplified_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Whole orders at which sums are added up; between them is a chord, or a series.
WHOLE_ORDERS = (*range(2, 32), *range(32, 64, 4), *(round(64 * 2 ** (k / 4)) for k in range(25)))
# Where noise is small and rounds are many, the best order is between 2 and 5: there and below in steps of 1/20.
SAMPLED_ORDERS = tuple(sorted({*(1 + k / 20 for k in range(1, 80)), *(order for order in DEFAULT_ORDERS if order < WHOLE_ORDERS[-1])}))
# The losses of one round are put on a grid of this many steps up to the largest that matters: fine enough where losses are small, and of
# dp-accounting's usual interval in between.
FEWEST_STEPS, MOST_STEPS, USUAL_INTERVAL = 2_000, 50_000, 1e-4
# Laplace noise spreads its losses evenly, and needs fewer.
LAPLACE_STEPS = 1_000
# Standard deviations of the noise beyond which its mass, below e^-50, counts as certain failure.
DEVIATIONS = 10.0
# Points of the grid that the losses of all rounds of sampled noise may spread over.
MOST_POINTS = 4e6


# Every number of rounds of a training asks for the curve of one round.
@lru_cache(maxsize=128)
def sampled_gaussian_curve(noise_multiplier: float, sampling: Sampling, adjacency: str) -> RenyiCurve:
    """Return the Rényi divergences of one sampled round of Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity for the adjacency.
    sampling : PoissonSampling or FixedSizeSampling
        How clients are chosen.
    adjacency : str
        ``"add-or-remove-one"`` for Poisson sampling, ``"replace-one"`` for samples of a fixed size.

    Returns
    -------
    RenyiCurve
        The curve; errs upward. Between whole orders a chord, or the series of `sampled_gaussian_cumulants` for Poisson sampling, whichever
        is lower.

    Raises
    ------
    ValueError
        If that sampling is not accounted for with that adjacency.
    """
    if isinstance(sampling, PoissonSampling) and adjacency == "add-or-remove-one":
        cumulants = poisson_cumulants(noise_multiplier, sampling.probability, np.array(WHOLE_ORDERS))
    elif isinstance(sampling, FixedSizeSampling) and adjacency == "replace-one":
        cumulants = fixed_size_cumulants(noise_multiplier, sampling.sample_size / sampling.population, np.array(WHOLE_ORDERS))
    else:
        raise ValueError(f"{_refusal(sampling, adjacency)} by Rényi divergences")
    # (a - 1) r(a), the cumulant generating function of the loss, is convex and 0 at a = 1: between two orders it lies below the chord.
    orders = np.array(SAMPLED_ORDERS)
    between = np.interp(orders, [1, *WHOLE_ORDERS], [0.0, *cumulants])
    if isinstance(sampling, PoissonSampling) and sampling.probability < 1:
        fractional = orders % 1 > 0
        series = sampled_gaussian_cumulants(noise_multiplier, sampling.probability, orders[fractional])
        between[fractional] = np.minimum(between[fractional], series)
    return RenyiCurve(orders, between / (orders - 1))


def sampled_gaussian_loss(noise_multiplier: float, sampling: Sampling, adjacency: str) -> "PrivacyLossDistribution":
    """Return the privacy loss distribution of one Poisson-sampled round of Gaussian noise, losses rounded upward.

    The grid of losses follows the largest loss of a round, so that small losses are not lost in rounding.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity for the adjacency.
    sampling : PoissonSampling
        How clients are chosen.
    adjacency : str
        ``"add-or-remove-one"``.

    Raises
    ------
    ValueError
        If that sampling is not accounted for with that adjacency.
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

    probability = _poisson_probability(sampling, adjacency)
    interval = gaussian_loss_interval(noise_multiplier, probability)
    if probability == 1:
        return from_gaussian_mechanism(noise_multiplier, value_discretization_interval=interval)
    kinds = (AdjacencyType.REMOVE, AdjacencyType.ADD)
    return PrivacyLossDistribution(*(_gaussian_masses(noise_multiplier, probability, interval, kind) for kind in kinds))


def _gaussian_masses(noise_multiplier: float, probability: float, interval: float, kind: Any) -> Any:
    """Return what dp-accounting's `from_gaussian_mechanism` makes for one direction, to the last bit, in a seventh of the time.

    Its loss is inverted at all points of the grid at once, instead of one after the other.
    """
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(noise_multiplier, sampling_prob=probability, adjacency_type=kind)
    bounds = loss.connect_dots_bounds()
    low, high = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
    epsilons = np.arange(low, high + 1) * interval
    removed = kind == AdjacencyType.REMOVE
    sign = 1.0 if removed else -1.0
    inside = sign * epsilons > math.log1p(-probability)
    # Beyond the losses that there are, below them where the client is removed and above them where it is added.
    deltas = np.zeros_like(epsilons)
    if removed:
        deltas[~inside] = -np.expm1(epsilons[~inside])
    # The loss t without sampling: e^(sign t) = 1 + (e^(sign epsilon) - 1) / probability.
    sampled = sign * epsilons[inside]
    scaled = sampled + np.log(1 / probability)
    with np.errstate(divide="ignore"):
        unsampled = scaled + np.log1p(-np.exp(np.minimum(np.log(1 / probability - 1) - scaled, 0.0)))
    unsampled[sampled == 0] = np.log(1 / probability + (1 - 1 / probability))
    cutoffs = -0.5 - sign * unsampled * noise_multiplier**2 + (0.0 if removed else 1.0)
    deltas[inside] = loss.mu_upper_cdf(cutoffs) - np.exp(epsilons[inside] + loss.mu_lower_log_cdf(cutoffs))
    return create_pmf_pessimistic_connect_dots_fixed_gap(interval, low, high, np.clip(deltas, 0.0, 1.0))


def sampled_laplace_loss(scale: float, sampling: Sampling, adjacency: str, interval: float | None = None) -> "PrivacyLossDistribution":
    """Return the privacy loss distribution of one Poisson-sampled round of Laplace noise, losses rounded upward.

    Parameters
    ----------
    scale : float
        Scale of the noise over the L1 sensitivity for the adjacency.
    sampling, adjacency
        As in `sampled_gaussian_loss`.
    interval : float or None
        Steps of the grid of losses; None for a thousandth of the largest loss.

    Raises
    ------
    ValueError
        If that sampling is not accounted for with that adjacency.
    """
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

    probability = _poisson_probability(sampling, adjacency)
    if interval is None:
        interval = amplified_epsilon(1 / scale, probability) / LAPLACE_STEPS
    return from_laplace_mechanism(scale, sampling_prob=probability, value_discretization_interval=interval)


def gaussian_loss_interval(noise_multiplier: float, probability: float) -> float:
    """Return the interval of the grid on which the losses of a round of sampled Gaussian noise are put.

    It is a continuous function of the multiplier, so that calibration finds its root.
    """
    largest = amplified_epsilon(DEVIATIONS / noise_multiplier + 0.5 / noise_multiplier**2, probability)
    return min(largest / FEWEST_STEPS, max(largest / MOST_STEPS, USUAL_INTERVAL))


def is_loss_affordable(noise_multiplier: float, probability: float, rounds: int, curve: RenyiCurve) -> bool:
    """Return whether the grid of all rounds' losses together has at most `MOST_POINTS` points."""
    # The divergence of order 2 is about the variance of the loss.
    spread = math.sqrt(rounds * float(curve.divergences[curve.orders == 2][0]))
    return 2 * DEVIATIONS * spread / gaussian_loss_interval(noise_multiplier, probability) <= MOST_POINTS


def _poisson_probability(sampling: Sampling, adjacency: str) -> float:
    if not isinstance(sampling, PoissonSampling) or adjacency != "add-or-remove-one":
        raise ValueError(f"{_refusal(sampling, adjacency)} by privacy loss distributions")
    return sampling.probability


def _refusal(sampling: Sampling, adjacency: str) -> str:
    # dp-accounting has Poisson sampling with replace-one adjacency, too, for a multiplier over the clip norm: half of the distance between
    # neighbours, by which multipliers are meant here.
    return (
        "sampling must be Poisson with add-or-remove-one adjacency, or, of Gaussian noise, without replacement with replace-one adjacency, "
        f"got {sampling} with {adjacency} adjacency: it is not accounted for"
    )
