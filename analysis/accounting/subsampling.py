"""Rounds in which only some clients take part, chosen in secret: what dp-accounting proves about them, and nothing else.

Sampling amplifies a central guarantee, where the server does not let on who took part. It does not amplify a local one: the server sees
who reports.
"""

import math
from dataclasses import dataclass

import numpy as np
from dp_accounting import DpEvent, GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism, from_laplace_mechanism
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from ...arguments import check_choice, check_integer, check_real
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve

RELATIONS = {"add-or-remove-one": NeighboringRelation.ADD_OR_REMOVE_ONE, "replace-one": NeighboringRelation.REPLACE_ONE}
# Whole orders at which dp-accounting is asked about a sampled event: its series for others may fail to converge, and large ones take long.
WHOLE_ORDERS = (*range(2, 32), *range(32, 64, 4), *(float(round(64 * 2 ** (k / 4))) for k in range(25)))
SAMPLED_ORDERS = tuple(order for order in DEFAULT_ORDERS if order < WHOLE_ORDERS[-1])
# Losses of one round are put on a grid of so many steps up to the largest that matters: fine enough where losses are small, and of
# dp-accounting's usual interval in between.
FEWEST_STEPS, MOST_STEPS, USUAL_INTERVAL = 2_000, 50_000, 1e-4
# Laplace noise spreads its losses evenly, and does with fewer.
LAPLACE_STEPS = 1_000
# Standard deviations of the noise beyond which its mass, below e^-50, counts as certain failure.
DEVIATIONS = 10.0
LARGEST_POPULATION = 10**12


@dataclass(frozen=True)
class PoissonSampling:
    """Each client takes part in a round with the same probability, independently of the others.

    Attributes
    ----------
    probability : float
        Above 0 and at most 1.

    Raises
    ------
    ValueError
        If the probability is out of range.
    """

    probability: float

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        object.__setattr__(self, "probability", check_real("sampling_probability", self.probability, low=1e-9, high=1.0))

    def event(self, event: DpEvent) -> DpEvent:
        """Return dp-accounting's name for a round with this sampling.

        Parameters
        ----------
        event : DpEvent
            A round in which everyone takes part.

        Returns
        -------
        DpEvent
            The round.
        """
        return PoissonSampledDpEvent(self.probability, event)

    def __str__(self) -> str:
        """Return the sampling in words."""
        return f"Poisson sampling with probability {self.probability:g}"


@dataclass(frozen=True)
class FixedSizeSampling:
    """A fixed number of clients takes part in a round, drawn without replacement.

    Attributes
    ----------
    population : int
        Number of clients there are.
    sample_size : int
        Number of clients in a round, at most the population.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    population: int
    sample_size: int

    def __post_init__(self) -> None:
        """Refuse numbers that are none."""
        check_integer("population", self.population, low=1, high=LARGEST_POPULATION)
        check_integer("sample_size", self.sample_size, low=1, high=self.population)

    def event(self, event: DpEvent) -> DpEvent:
        """Return dp-accounting's name for a round with this sampling.

        Parameters
        ----------
        event : DpEvent
            A round in which everyone takes part.

        Returns
        -------
        DpEvent
            The round.
        """
        return SampledWithoutReplacementDpEvent(self.population, self.sample_size, event)

    def __str__(self) -> str:
        """Return the sampling in words."""
        return f"{self.sample_size} of {self.population} clients sampled without replacement"


Sampling = PoissonSampling | FixedSizeSampling


def refuse_local_sampling(mechanism: str, sampling: Sampling | None) -> None:
    """Refuse to amplify a local guarantee.

    Parameters
    ----------
    mechanism : str
        Name of a mechanism whose messages the server sees one by one.
    sampling : PoissonSampling, FixedSizeSampling or None
        Sampling that was asked for.

    Raises
    ------
    ValueError
        If there is one.
    """
    if sampling is not None:
        raise ValueError(
            f"sampling must be left out for {mechanism}, got {str(sampling)!r}: the server sees who reports, so that sampling does not "
            "amplify a local guarantee, and dp-accounting does not support this event"
        )


def sampled_curve(event: DpEvent, sampling: Sampling, adjacency: str) -> RenyiCurve:
    """Return the Rényi divergences of one sampled round, by dp-accounting's RDP accountant.

    Parameters
    ----------
    event : DpEvent
        A round in which everyone takes part: Gaussian noise, its multiplier the standard deviation over the L2 sensitivity for the
        adjacency.
    sampling : PoissonSampling or FixedSizeSampling
        How clients are chosen.
    adjacency : str
        ``"add-or-remove-one"`` for Poisson sampling, ``"replace-one"`` for samples of a fixed size.

    Returns
    -------
    RenyiCurve
        The curve; errs upward, between whole orders by a chord.

    Raises
    ------
    ValueError
        If dp-accounting does not support the event.
    """
    accountant = RdpAccountant(WHOLE_ORDERS, _relation(adjacency))
    sampled = sampling.event(event)
    if not accountant.supports(sampled):
        raise ValueError(f"{_refusal(event, sampling, adjacency)} by Rényi divergences")
    # (a - 1) r(a), the cumulant generating function of the loss, is convex and 0 at a = 1: between two orders it lies below the chord.
    whole = np.array([1.0, *WHOLE_ORDERS])
    cumulants = (whole - 1) * np.maximum([0.0, *accountant.compose(sampled).rdp], 0.0)
    orders = np.array(SAMPLED_ORDERS)
    return RenyiCurve(orders, np.interp(orders, whole, cumulants) / (orders - 1))


def sampled_loss(event: DpEvent, sampling: Sampling, adjacency: str) -> PrivacyLossDistribution:
    """Return the privacy loss distribution of one sampled round, by dp-accounting.

    The grid of losses follows the largest loss of a round, so that small losses are not lost in rounding.

    Parameters
    ----------
    event : DpEvent
        A round in which everyone takes part: Gaussian or Laplace noise, its multiplier the standard deviation (or the scale) over the
        sensitivity for the adjacency.
    sampling : PoissonSampling
        How clients are chosen.
    adjacency : str
        ``"add-or-remove-one"``.

    Returns
    -------
    PrivacyLossDistribution
        The distribution, losses rounded upward.

    Raises
    ------
    ValueError
        If dp-accounting does not support the event.
    """
    # With replace-one adjacency, dp-accounting's PLD accountant takes a noise multiplier to be relative to the clip norm, half of the
    # sensitivity, and its RDP accountant relative to the sensitivity itself. We ask for one adjacency alone, where both agree.
    supported = adjacency == "add-or-remove-one" and PLDAccountant(_relation(adjacency)).supports(sampling.event(event))
    if not supported or not isinstance(sampling, PoissonSampling):
        raise ValueError(f"{_refusal(event, sampling, adjacency)} by privacy loss distributions")
    probability, multiplier = sampling.probability, event.noise_multiplier
    if isinstance(event, GaussianDpEvent):
        interval = gaussian_loss_interval(multiplier, probability)
        return from_gaussian_mechanism(multiplier, sampling_prob=probability, value_discretization_interval=interval)
    interval = amplified_pure_epsilon(1 / multiplier, probability) / LAPLACE_STEPS
    return from_laplace_mechanism(multiplier, sampling_prob=probability, value_discretization_interval=interval)


def gaussian_loss_interval(noise_multiplier: float, probability: float) -> float:
    """Return the interval of the grid on which the losses of a round of sampled Gaussian noise are put.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity.
    probability : float
        Sampling probability.

    Returns
    -------
    float
        The interval: a continuous function of the multiplier, so that calibration finds its root.
    """
    largest = amplified_pure_epsilon(DEVIATIONS / noise_multiplier + 0.5 / noise_multiplier**2, probability)
    return min(largest / FEWEST_STEPS, max(largest / MOST_STEPS, USUAL_INTERVAL))


def amplified_pure_epsilon(epsilon: float, probability: float) -> float:
    """Return the pure epsilon of a round with Poisson sampling, for add-or-remove-one adjacency.

    Parameters
    ----------
    epsilon : float
        Pure epsilon of a round in which everyone takes part, at least 0.
    probability : float
        Sampling probability, above 0 and at most 1.

    Returns
    -------
    float
        ln(1 + q (e^epsilon - 1)) (Balle, Barthe, Gaboardi 2018, *Privacy amplification by subsampling*, theorem 8).

    Examples
    --------
    >>> round(amplified_pure_epsilon(1.0, 0.01), 6)
    0.017037
    """
    if epsilon > 1:
        return epsilon + math.log(probability + (1 - probability) * math.exp(-epsilon))
    return math.log1p(probability * math.expm1(epsilon))


def _relation(adjacency: str) -> NeighboringRelation:
    check_choice("adjacency", adjacency, RELATIONS)
    return RELATIONS[adjacency]


def _refusal(event: DpEvent, sampling: Sampling, adjacency: str) -> str:
    return (
        "sampling must be Poisson with add-or-remove-one adjacency, or, of Gaussian noise, without replacement with replace-one adjacency, "
        f"got {sampling} with {adjacency} adjacency: dp-accounting does not support this event ({type(event).__name__})"
    )
