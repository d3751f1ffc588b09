"""The distributed Skellam mechanism: its account over rounds, and its noise and granularity for a number of bits."""

import math

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.guarantee import ADJACENCIES
from ...design.secure_sum.distributed_skellam import LARGEST_VARIANCE, LEAST_VARIANCE
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.divergences.discrete_gaussian_divergence import MOST_CLIENTS, rounded_norm
from ...solvers.divergences.near_gaussian_noise import skellam_near_gaussian_epsilon
from ...solvers.divergences.skellam_divergence import skellam_renyi_divergences
from ..calibration.granularity import NamedParameters, calibrate_granularity
from ..calibration.privacy_calibration import Calibration
from .privacy_account import AccountedMechanism, PrivacyAccount
from .secret_sampling import usual_adjacency, with_secret_sampling
from .subsampling import Sampling

FINITE_ORDERS = DEFAULT_ORDERS[:-1]
# A granularity is at least the standard deviation over this: of finer steps, noise would have a larger variance than is sampled.
MOST_STEPS = math.sqrt(LARGEST_VARIANCE) * (1 - 1e-9)


def distributed_skellam_accounting(
    clients: int,
    dimension: int,
    clip_norm: float,
    local_variance: float,
    granularity: float,
    *,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
) -> AccountedMechanism:
    """Return what accounting knows of the distributed Skellam mechanism.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9. Clients that drop out take their noise with them: count those that stay.
    dimension : int
        Number of coordinates that are rounded: after padding, where a rotation pads.
    clip_norm : float
        L2 norm that vectors are clipped to, before rounding.
    local_variance : float
        Variance of each client's Skellam noise on a coordinate, in squared units of the vectors; from 2e-6 to 2 * 10**10 squared steps.
    granularity : float
        What a whole number stands for, in the vectors' units.
    adjacency : str or None
        ``"add-or-remove-one"``: a client's vector is there or is zero, and the noise of `clients` clients is there either way.
        ``"replace-one"`` doubles the sensitivities. None for the one that the sampling asks for, and add-or-remove-one without.
    sampling : PoissonSampling, FixedSizeSampling or None
        How clients' vectors are chosen for a round, in secret (`quietbits.analysis.accounting.secret_sampling`).

    Returns
    -------
    AccountedMechanism
        For a secure sum, by Rényi divergences: the theorem of Agarwal, Kairouz, Liu 2021 for noise of `clients` times the local
        variance; and by the privacy loss of Gaussian noise, which the sum nearly is (`near_gaussian_noise`). The
        sensitivities are `rounded_norm` in steps and, for the L1 norm of whole vectors, the smaller of its square and
        sqrt(dimension) times it.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> account = distributed_skellam_accounting(1000, 1024, 1.0, 0.04, 0.001).account(delta=1e-5)
    >>> round(account.epsilon, 4), account.adjacency, account.trust_model
    (0.5617, 'add-or-remove-one', 'secure-sum')
    """
    if adjacency is None:
        adjacency = usual_adjacency(sampling)
    check_choice("adjacency", adjacency, ADJACENCIES)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    norm = rounded_norm(clip_norm, granularity, dimension) / granularity
    variance = _step_variance(local_variance, granularity)
    vectors = 2 if adjacency == "replace-one" else 1
    l1, l2 = vectors * min(math.sqrt(dimension) * norm, norm**2), vectors * norm
    orders = np.array(FINITE_ORDERS)
    everyone = AccountedMechanism(
        name=f"distributed Skellam, {clients} clients, dimension {dimension}, clip norm {clip_norm:g}",
        curve=RenyiCurve(orders, skellam_renyi_divergences(clients * variance * (1 - 1e-15), l1, l2, orders)),
        adjacency=adjacency,
        trust_model="secure-sum",
        epsilon_by_loss=lambda rounds, delta: skellam_near_gaussian_epsilon(clients * variance * (1 - 1e-15), l2, dimension, delta, rounds),
    )
    return with_secret_sampling(everyone, sampling)


def distributed_skellam_details(
    clients: int, dimension: int, clip_norm: float, local_variance: float, granularity: float
) -> dict[str, str | float | bool | None]:
    """Return what the account of the distributed Skellam mechanism rests on, by name.

    Parameters
    ----------
    clients, dimension, clip_norm, local_variance, granularity
        As in `distributed_skellam_accounting`.

    Returns
    -------
    dict
        The arguments; ``rounded_norm`` in the vectors' units; and ``squared_error`` of the mean of the clients' clipped vectors, noise
        and at most a quarter of a squared step for each client's rounding: errs upward as long as nothing wraps around.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(distributed_skellam_details(100, 8, 1.0, 0.25, 0.25)["squared_error"], 6)
    0.02125
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    norm = rounded_norm(clip_norm, granularity, dimension)
    _step_variance(local_variance, granularity)
    return {
        "clients": clients,
        "dimension": dimension,
        "clip_norm": clip_norm,
        "local_variance": local_variance,
        "granularity": granularity,
        "rounded_norm": norm,
        "squared_error": dimension * (local_variance + granularity**2 / 4) / clients,
    }


def calibrate_distributed_skellam(
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
    """Return the least noise of the distributed Skellam mechanism, and the granularity with which its sum fits the bits.

    Granularity and noise depend on each other: more noise needs coarser steps, and coarser steps raise the sensitivity. The granularity
    is that of `discrete_gaussian_divergence.granularity_for_bits` for noise of the same variance, or the standard
    deviation of a client's noise over 141 421 where that is coarser: finer noise is not sampled.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9.
    dimension : int
        Number of coordinates, after padding.
    clip_norm : float
        L2 norm that vectors are clipped to, from 1e-40 to 1e40.
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
        As in `distributed_skellam_accounting`.

    Returns
    -------
    Calibration
        Of ``local_variance`` in squared units of the vectors, and ``granularity`` in the vectors' units; errs toward more noise.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few for the clients and epsilon; the message says how many would do.

    Examples
    --------
    >>> found = calibrate_distributed_skellam(1000, 1024, 1.0, 16, 1.0, 1e-5)
    >>> [(name, round(value, 6)) for name, value in found.parameters], 0 <= 1.0 - found.account.epsilon <= 1e-6
    ([('local_variance', 0.014035), ('granularity', 0.003842)], True)
    """
    clip_norm = check_real("clip_norm", clip_norm, low=1e-40, high=1e40)

    def parameters(deviation: float, granularity: float) -> NamedParameters:
        return ("local_variance", deviation**2), ("granularity", max(granularity, deviation / MOST_STEPS))

    def account(named: NamedParameters) -> PrivacyAccount | None:
        found = dict(named)
        # So little noise is not sampled.
        if found["local_variance"] < LEAST_VARIANCE * found["granularity"] ** 2 * (1 + 1e-9):
            return None
        accounted = distributed_skellam_accounting(clients, dimension, clip_norm, **found, adjacency=adjacency, sampling=sampling)
        return accounted.account(rounds, delta)

    return calibrate_granularity(parameters, account, clients, dimension, clip_norm, bits, epsilon, delta, rounds, deviations)


def _step_variance(local_variance: float, granularity: float) -> float:
    """Return the variance of one client's noise in squared steps."""
    local_variance = check_real("local_variance", local_variance, low=1e-100, high=1e100)
    return check_real("local_variance in squared steps", local_variance / granularity**2, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
