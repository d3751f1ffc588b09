"""Rounds of Gaussian and Laplace noise with sampled clients: what dp-accounting proves about them, and a series between whole orders.

The package is imported when losses are composed: that takes a second.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...arguments import check_choice
from .renyi_curve import DEFAULT_ORDERS, RenyiCurve
from .sampled_gaussian_orders import fixed_size_cumulants, poisson_cumulants
from .sampled_gaussian_series import sampled_gaussian_cumulants
from .sampling import FixedSizeSampling, PoissonSampling, Sampling, amplified_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

ADJACENCIES = ("add-or-remove-one", "replace-one")
# Whole orders at which a sampled round is bounded, the larger ones far apart.
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
    """Return the Rényi divergences of one sampled round of Gaussian noise, at whole orders as dp-accounting's RDP accountant does.

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
        If the sampling is not one for the adjacency.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    if adjacency != ("replace-one" if isinstance(sampling, FixedSizeSampling) else "add-or-remove-one"):
        raise ValueError(f"{_refusal('GaussianDpEvent', sampling, adjacency)} by Rényi divergences")
    cumulants = fixed_size_cumulants if isinstance(sampling, FixedSizeSampling) else poisson_cumulants
    # (a - 1) r(a), the cumulant generating function of the loss, is convex and 0 at a = 1: between two orders it lies below the chord.
    at_whole = np.maximum(cumulants(noise_multiplier, sampling.share, np.array(WHOLE_ORDERS)), 0.0)
    orders = np.array(SAMPLED_ORDERS)
    between = np.interp(orders, [1, *WHOLE_ORDERS], [0.0, *at_whole])
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
        If dp-accounting does not support the event.
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

    probability = _poisson_probability("GaussianDpEvent", sampling, adjacency)
    interval = gaussian_loss_interval(noise_multiplier, probability)
    if probability == 1:
        return from_gaussian_mechanism(noise_multiplier, value_discretization_interval=interval)
    directions = (AdjacencyType.REMOVE, AdjacencyType.ADD)
    return PrivacyLossDistribution(*(_sampled_gaussian_losses(noise_multiplier, probability, one, interval) for one in directions))


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
        If dp-accounting does not support the event.
    """
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

    probability = _poisson_probability("LaplaceDpEvent", sampling, adjacency)
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


def _sampled_gaussian_losses(noise_multiplier: float, probability: float, direction: "AdjacencyType", interval: float) -> "PLDPmf":
    """Return the losses of one direction as `from_gaussian_mechanism` does, which inverts the loss at one point of the grid at a time."""
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(noise_multiplier, sampling_prob=probability, adjacency_type=direction)
    bounds = loss.connect_dots_bounds()
    low, high = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
    epsilons = np.arange(low, high + 1) * interval
    removed = direction == AdjacencyType.REMOVE
    # The sampled loss reaches epsilon where the noise's own is ln(1 + (e^epsilon - 1) / q), up to both signs; or everywhere or nowhere.
    within = np.expm1(epsilons if removed else -epsilons) / probability > -1
    signed = np.log1p(np.expm1(epsilons[within] if removed else -epsilons[within]) / probability)
    cutoffs = -0.5 - noise_multiplier**2 * signed if removed else 0.5 + noise_multiplier**2 * signed
    deltas = -np.expm1(epsilons) if removed else np.zeros(len(epsilons))
    deltas[within] = loss.mu_upper_cdf(cutoffs) - np.exp(epsilons[within] + loss.mu_lower_log_cdf(cutoffs))
    return create_pmf_pessimistic_connect_dots_fixed_gap(interval, low, high, np.clip(deltas, 0.0, 1.0))


def _poisson_probability(event: str, sampling: Sampling, adjacency: str) -> float:
    # With replace-one adjacency, dp-accounting's PLD accountant takes a noise multiplier to be relative to the clip norm, half of the
    # sensitivity, and its RDP accountant relative to the sensitivity itself. We ask for one adjacency alone, where both agree.
    check_choice("adjacency", adjacency, ADJACENCIES)
    if adjacency != "add-or-remove-one" or not isinstance(sampling, PoissonSampling):
        raise ValueError(f"{_refusal(event, sampling, adjacency)} by privacy loss distributions")
    return sampling.probability


def _refusal(event: str, sampling: Sampling, adjacency: str) -> str:
    return (
        "sampling must be Poisson with add-or-remove-one adjacency, or, of Gaussian noise, without replacement with replace-one adjacency, "
        f"got {sampling} with {adjacency} adjacency: dp-accounting does not support this event ({event})"
    )
