"""Rounds of Gaussian and Laplace noise with sampled clients: what dp-accounting proves about them, and a series between whole orders.

The package is imported when it is needed: that takes a second.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arguments import check_choice
from .renyi_curve import DEFAULT_ORDERS, RenyiCurve
from .sampled_gaussian_series import sampled_gaussian_cumulants
from .sampling import FixedSizeSampling, PoissonSampling, Sampling, amplified_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

ADJACENCIES = ("add-or-remove-one", "replace-one")
# Whole orders at which dp-accounting is asked about a sampled event: its series for others may fail to converge, and large ones take long.
WHOLE_ORDERS = (*range(2, 32), *range(32, 64, 4), *(float(round(64 * 2 ** (k / 4))) for k in range(25)))
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


# Every number of rounds of a training asks for the curve of one round, which takes a second where samples have a fixed size.
@lru_cache(maxsize=128)
def sampled_gaussian_curve(noise_multiplier: float, sampling: Sampling, adjacency: str) -> RenyiCurve:
    """Return the Rényi divergences of one sampled round of Gaussian noise, at whole orders by dp-accounting's RDP accountant.

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
        If dp-accounting does not support the event.
    """
    from dp_accounting import GaussianDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(WHOLE_ORDERS, _relation(adjacency))
    event = GaussianDpEvent(noise_multiplier)
    sampled = _sampled_event(event, sampling)
    if not accountant.supports(sampled):
        raise ValueError(f"{_refusal(event, sampling, adjacency)} by Rényi divergences")
    # (a - 1) r(a), the cumulant generating function of the loss, is convex and 0 at a = 1: between two orders it lies below the chord.
    whole = np.array([1.0, *WHOLE_ORDERS])
    cumulants = (whole - 1) * np.maximum([0.0, *accountant.compose(sampled).rdp], 0.0)
    orders = np.array(SAMPLED_ORDERS)
    between = np.interp(orders, whole, cumulants)
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
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    probability = _poisson_probability(GaussianDpEvent(noise_multiplier), sampling, adjacency)
    interval = gaussian_loss_interval(noise_multiplier, probability)
    return from_gaussian_mechanism(noise_multiplier, sampling_prob=probability, value_discretization_interval=interval)


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
    from dp_accounting import LaplaceDpEvent
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

    probability = _poisson_probability(LaplaceDpEvent(scale), sampling, adjacency)
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


def _poisson_probability(event: Any, sampling: Sampling, adjacency: str) -> float:
    from dp_accounting.pld import PLDAccountant

    # With replace-one adjacency, dp-accounting's PLD accountant takes a noise multiplier to be relative to the clip norm, half of the
    # sensitivity, and its RDP accountant relative to the sensitivity itself. We ask for one adjacency alone, where both agree.
    supported = adjacency == "add-or-remove-one" and PLDAccountant(_relation(adjacency)).supports(_sampled_event(event, sampling))
    if not supported or not isinstance(sampling, PoissonSampling):
        raise ValueError(f"{_refusal(event, sampling, adjacency)} by privacy loss distributions")
    return sampling.probability


def _sampled_event(event: Any, sampling: Sampling) -> Any:
    from dp_accounting import PoissonSampledDpEvent, SampledWithoutReplacementDpEvent

    if isinstance(sampling, FixedSizeSampling):
        return SampledWithoutReplacementDpEvent(sampling.population, sampling.sample_size, event)
    return PoissonSampledDpEvent(sampling.probability, event)


def _relation(adjacency: str) -> Any:
    from dp_accounting.privacy_accountant import NeighboringRelation

    check_choice("adjacency", adjacency, ADJACENCIES)
    return NeighboringRelation.REPLACE_ONE if adjacency == "replace-one" else NeighboringRelation.ADD_OR_REMOVE_ONE


def _refusal(event: Any, sampling: Sampling, adjacency: str) -> str:
    return (
        "sampling must be Poisson with add-or-remove-one adjacency, or, of Gaussian noise, without replacement with replace-one adjacency, "
        f"got {sampling} with {adjacency} adjacency: dp-accounting does not support this event ({type(event).__name__})"
    )
