"""The distributed discrete Gaussian mechanism: its account over rounds, and its noise and granularity for a number of bits."""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.guarantee import ADJACENCIES
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.divergences.discrete_gaussian_divergence import (
    LARGEST_DIMENSION,
    LARGEST_SIGMA,
    MOST_CLIENTS,
    SMALLEST_SIGMA,
    discrete_gaussian_renyi,
    discrete_gaussian_tau,
    rounded_norm,
)
from ...solvers.divergences.discrete_gaussian_smoothing import smoothed_gaussian_epsilon, smoothed_sums
from ..calibration.granularity import NamedParameters, calibrate_granularity
from ..calibration.privacy_calibration import Calibration
from .mechanism_accounting import gaussian_accounting
from .privacy_account import AccountedMechanism, PrivacyAccount
from .secret_sampling import usual_adjacency
from .subsampling import Sampling

FINITE_ORDERS = DEFAULT_ORDERS[:-1]
# What the noise of a sampled round may differ from Gaussian noise: a logarithm of a ratio, all coordinates together.
NEGLIGIBLE_RATIO = 1e-8


class TooLittleNoiseError(InfeasibleError):
    """There is too little noise for sampled rounds to be accounted for."""


@dataclass(frozen=True)
class DiscreteGaussianError:
    """Predicted mean squared error of the mean of the clients' vectors, by cause.

    Attributes
    ----------
    noise : float
        Expected squared L2 norm of the noise's part; the variance of a discrete Gaussian is at most the square of its parameter.
    rounding : float
        Bound on that of rounding: a quarter of a squared step for each client and coordinate.
    """

    noise: float
    rounding: float

    @property
    def total(self) -> float:
        """Both together: noise and rounding are independent. Clipping and wrap-around are left out."""
        return self.noise + self.rounding


def discrete_gaussian_accounting(
    clients: int,
    dimension: int,
    clip_norm: float,
    local_sigma: float,
    granularity: float,
    *,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
) -> AccountedMechanism:
    """Return what accounting knows of the distributed discrete Gaussian mechanism.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9. Clients that drop out take their noise with them: count those that stay.
    dimension : int
        Number of coordinates that are rounded: after padding, where a rotation pads.
    clip_norm : float
        L2 norm that vectors are clipped to, before rounding.
    local_sigma : float
        Parameter of each client's discrete Gaussian noise, in the vectors' units.
    granularity : float
        What a whole number stands for, in the vectors' units.
    adjacency : str or None
        ``"add-or-remove-one"``, as in the paper: a client's vector is there or is zero, and the noise of `clients` clients is there either
        way. ``"replace-one"`` doubles the sensitivity. None for the one that the sampling asks for, and add-or-remove-one without.
    sampling : PoissonSampling, FixedSizeSampling or None
        How the clients whose vectors are in a round are chosen. The choice must be secret from the server, so that all `clients` add noise
        and take part in the secure sum, those that were not chosen with a vector of zeros.

    Returns
    -------
    AccountedMechanism
        By Rényi divergences (Kairouz, Liu, Steinke 2021), and by the privacy loss of Gaussian noise which the sum nearly is a rounding of
        (`quietbits.solvers.divergences.discrete_gaussian_smoothing`). With sampling, both are those of that Gaussian noise.

    Raises
    ------
    ValueError
        If an argument is out of range, or dp-accounting does not support the sampling with this adjacency.
    TooLittleNoiseError
        If there is sampling, and too little noise for it to be accounted for.

    Examples
    --------
    >>> account = discrete_gaussian_accounting(1000, 1024, 1.0, 0.2, 0.001).account(delta=1e-5)
    >>> round(account.epsilon, 4), account.adjacency, account.trust_model
    (0.5617, 'add-or-remove-one', 'secure-sum')
    """
    if adjacency is None:
        adjacency = usual_adjacency(sampling)
    check_choice("adjacency", adjacency, ADJACENCIES)
    local_sigma = check_real("local_sigma", local_sigma, low=1e-100, high=1e100)
    sensitivity = (2 if adjacency == "replace-one" else 1) * rounded_norm(clip_norm, granularity, dimension) / granularity
    sigma = check_real("local_sigma in steps of the granularity", local_sigma / granularity, low=SMALLEST_SIGMA, high=LARGEST_SIGMA)
    name = f"distributed discrete Gaussian, {clients} clients, dimension {dimension}, clip norm {clip_norm:g}"
    if sampling is not None:
        return _sampled(name, clients, sigma, sensitivity, dimension, adjacency, sampling)
    orders = np.array(FINITE_ORDERS)
    return AccountedMechanism(
        name=name,
        curve=RenyiCurve(orders, discrete_gaussian_renyi(clients, sigma, sensitivity, dimension, orders)),
        adjacency=adjacency,
        trust_model="secure-sum",
        epsilon_by_loss=lambda rounds, delta: smoothed_gaussian_epsilon(clients, sigma, sensitivity, dimension, delta, rounds),
    )


def discrete_gaussian_details(
    clients: int, dimension: int, clip_norm: float, local_sigma: float, granularity: float
) -> dict[str, str | float | bool | None]:
    """Return what the account of the distributed discrete Gaussian rests on, by name.

    Parameters
    ----------
    clients, dimension, clip_norm, local_sigma, granularity
        As in `discrete_gaussian_accounting`.

    Returns
    -------
    dict
        The arguments, ``tau``, ``rounded_norm`` in the vectors' units, and ``squared_error`` of the mean.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    return {
        "clients": clients,
        "dimension": dimension,
        "clip_norm": clip_norm,
        "local_sigma": local_sigma,
        "granularity": granularity,
        "tau": discrete_gaussian_tau(clients, local_sigma / granularity),
        "rounded_norm": rounded_norm(clip_norm, granularity, dimension),
        "squared_error": discrete_gaussian_error(clients, dimension, local_sigma, granularity).total,
    }


def discrete_gaussian_error(clients: int, dimension: int, local_sigma: float, granularity: float) -> DiscreteGaussianError:
    """Return the predicted mean squared error of the mean of the clients' clipped vectors.

    Parameters
    ----------
    clients, dimension, local_sigma, granularity
        As in `discrete_gaussian_accounting`.

    Returns
    -------
    DiscreteGaussianError
        Its parts, in the vectors' units squared; err upward as long as nothing wraps around.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> discrete_gaussian_error(100, 8, 0.5, 0.25)
    DiscreteGaussianError(noise=0.02, rounding=0.00125)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    local_sigma = check_real("local_sigma", local_sigma, low=1e-100, high=1e100)
    granularity = check_real("granularity", granularity, low=1e-100, high=1e100)
    return DiscreteGaussianError(noise=dimension * local_sigma**2 / clients, rounding=dimension * granularity**2 / (4 * clients))


def calibrate_discrete_gaussian(
    clients: int,
    dimension: int,
    clip_norm: float,
    bits: int,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    *,
    deviations: float = 4.0,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
) -> Calibration:
    """Return the least noise of the distributed discrete Gaussian mechanism, and the granularity with which its sum fits the bits.

    Granularity and noise depend on each other: more noise needs coarser steps, and coarser steps raise the sensitivity. Epsilon falls as
    the noise grows and the granularity follows (`granularity_for_bits`), but not to zero: too few bits cannot give every epsilon.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9.
    dimension : int
        Number of coordinates, after padding.
    clip_norm : float
        L2 norm that vectors are clipped to, from 1e-50 to 1e50.
    bits : int
        Bits of a coordinate: sums are taken modulo 2**bits; 1 to 62.
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.
    deviations : float
        Standard deviations of a coordinate of the sum in half the modulus: 4 leaves a Gaussian one outside with probability 6.3e-5.
    adjacency, sampling
        As in `discrete_gaussian_accounting`.

    Returns
    -------
    Calibration
        Of ``local_sigma`` and ``granularity``, in the vectors' units; errs toward more noise.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few for the clients and epsilon; the message says how many would do.

    Examples
    --------
    >>> found = calibrate_discrete_gaussian(1000, 1024, 1.0, 16, 1.0, 1e-5)
    >>> [(name, round(value, 6)) for name, value in found.parameters], 0 <= 1.0 - found.account.epsilon <= 1e-6
    ([('local_sigma', 0.118436), ('granularity', 0.003842)], True)
    """
    clip_norm = check_real("clip_norm", clip_norm, low=1e-50, high=1e50)

    def parameters(local_sigma: float, granularity: float) -> NamedParameters:
        return ("local_sigma", local_sigma), ("granularity", granularity)

    def account(named: NamedParameters) -> PrivacyAccount | None:
        found = dict(named)
        # Noise of less than a thousandth of a step is none.
        if found["local_sigma"] < SMALLEST_SIGMA * found["granularity"]:
            return None
        try:
            accounted = discrete_gaussian_accounting(clients, dimension, clip_norm, **found, adjacency=adjacency, sampling=sampling)
        except TooLittleNoiseError:
            return None
        return accounted.account(rounds, delta)

    return calibrate_granularity(parameters, account, clients, dimension, clip_norm, bits, epsilon, delta, rounds, deviations)


def _sampled(
    name: str, clients: int, sigma: float, sensitivity: float, dimension: int, adjacency: str, sampling: Sampling
) -> AccountedMechanism:
    """Return the account of sampled Gaussian noise, with what the sum of discrete Gaussians differs from it.

    Mixtures of distributions whose probabilities differ by factors of at most e^r differ by no more. Of a Rényi divergence of order a,
    ``P^a Q^(1 - a)`` then changes by a factor of at most ``e^((2 a - 1) r)``.
    """
    smoothed = next((one for one in smoothed_sums(clients, sigma) if dimension * one.log_ratio <= NEGLIGIBLE_RATIO), None)
    if smoothed is None:
        raise TooLittleNoiseError(
            f"local_sigma must be larger for sampling to be accounted for: {clients} clients with noise of {sigma:g} steps are too far "
            "from Gaussian noise"
        )
    gaussian = gaussian_accounting(smoothed.sigma / sensitivity, adjacency=adjacency, sampling=sampling)
    ratio, orders = dimension * smoothed.log_ratio, gaussian.curve.orders

    def epsilon_by_loss(rounds: int, delta: float) -> float | None:
        by_loss = gaussian.epsilon_by_loss
        found = None if by_loss is None else by_loss(rounds, delta * math.exp(-rounds * ratio) * (1 - 1e-15))
        return None if found is None else found + 2 * rounds * ratio

    return AccountedMechanism(
        name=name,
        curve=RenyiCurve(orders, gaussian.curve.divergences + (2 * orders - 1) / (orders - 1) * ratio),
        adjacency=adjacency,
        trust_model="secure-sum",
        epsilon_by_loss=epsilon_by_loss,
        sampling=gaussian.sampling,
    )
