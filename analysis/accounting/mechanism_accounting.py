"""The mechanisms there are, as accounting sees them: pure ones, tables for vectors, and noise."""

import math
from functools import cache

import numpy as np
from dp_accounting import GaussianDpEvent, LaplaceDpEvent
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp import RdpAccountant

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.guarantee import ADJACENCIES, TRUST_MODELS
from ...design.contracts.norm_ball import check_norm
from ...design.contracts.vector_protocol import COMPOSABLE_DIMENSION, VectorMeanProtocol
from ...design.tables.lookup_table import LookupTable
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon
from ...solvers.accounting.privacy_loss import dominating_privacy_loss
from ...solvers.accounting.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon
from ...solvers.accounting.pure_privacy import pure_renyi_divergences
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.divergences.skellam_divergence import skellam_renyi_divergences
from ...solvers.divergences.vector_composition import vector_divergences
from .privacy_account import AccountedMechanism
from .subsampling import (
    DEVIATIONS,
    PoissonSampling,
    Sampling,
    amplified_pure_epsilon,
    gaussian_loss_interval,
    refuse_local_sampling,
    sampled_curve,
    sampled_loss,
)

FINITE_ORDERS = DEFAULT_ORDERS[:-1]
LARGEST_PURE_EPSILON = 100.0
# Rounds times coordinates up to which a privacy loss distribution on a grid is composed.
MOST_COMPOSITIONS = 20_000
# What the Fourier transform of a composition may leave out of delta, for each use. dp-accounting does not count it; 1e-17 and
# 2e-17 were seen, up and down, against exact composition.
FOURIER_ERROR = 2e-15
# Points of the grid that the losses of all rounds of sampled noise may spread over.
MOST_POINTS = 4e6
LARGEST_MULTIPLIER = 1e6


def pure_accounting(name: str, epsilon: float, sampling: Sampling | None = None) -> AccountedMechanism:
    """Return what accounting knows of a local mechanism by its pure epsilon: that binary randomised response dominates it.

    Parameters
    ----------
    name : str
        Name of the mechanism: CLDP, SQKR, PrivUnit or any other.
    epsilon : float
        Pure privacy parameter of one round for replace-one adjacency, above 0, at most 100.
    sampling : PoissonSampling, FixedSizeSampling or None
        Must be None: a local guarantee is not amplified.

    Returns
    -------
    AccountedMechanism
        Composition by privacy loss is exact for randomised response, and an upper bound for others.

    Raises
    ------
    ValueError
        If epsilon is out of range, or sampling is asked for.

    Examples
    --------
    >>> account = pure_accounting("cldp", 0.1).account(rounds=100, delta=1e-5)
    >>> round(account.epsilon, 4), account.method, account.pure_epsilon
    (4.3068, 'pld', 10.0)
    """
    refuse_local_sampling(name, sampling)
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=LARGEST_PURE_EPSILON)
    return AccountedMechanism(
        name=f"{name}, epsilon {epsilon:g} per round",
        curve=RenyiCurve(np.array(DEFAULT_ORDERS), pure_renyi_divergences(epsilon, DEFAULT_ORDERS)),
        adjacency="replace-one",
        trust_model="local",
        epsilon_by_loss=lambda rounds, delta: composed_pure_epsilon(epsilon, rounds, delta) if rounds <= MOST_COMPOSED_ROUNDS else None,
    )


def laplace_accounting(epsilon: float, sampling: Sampling | None = None) -> AccountedMechanism:
    """Return what accounting knows of Laplace noise on every coordinate, its scale the L1 sensitivity over epsilon.

    A shift of one coordinate by the whole sensitivity dominates every other shift. From one input to the other one goes coordinate by
    coordinate; group privacy (Dong, Roth, Su 2022, *Gaussian differential privacy*, theorem 2.14) bounds the way from below by a
    composition of the steps' trade-off functions, which for noise of log-concave density is that of one shift by the sum of the steps.

    Parameters
    ----------
    epsilon : float
        Pure privacy parameter of one round in which everyone takes part, above 0, at most 100.
    sampling : PoissonSampling or None
        With it, the adjacency is add-or-remove-one and the trust model central; without it, replace-one and local.

    Returns
    -------
    AccountedMechanism
        The mechanism.

    Raises
    ------
    ValueError
        If epsilon is out of range, or dp-accounting does not support the sampling.

    Examples
    --------
    >>> account = laplace_accounting(0.1).account(rounds=100, delta=1e-5)
    >>> account.epsilon < pure_accounting("cldp", 0.1).account(rounds=100, delta=1e-5).epsilon
    True
    """
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=LARGEST_PURE_EPSILON)
    event = LaplaceDpEvent(1 / epsilon)
    adjacency, trust_model = ("replace-one", "local") if sampling is None else ("add-or-remove-one", "central")
    # Poisson sampling with certainty is no sampling.
    loss = sampled_loss(event, PoissonSampling(1.0) if sampling is None else sampling, "add-or-remove-one")
    if isinstance(sampling, PoissonSampling):
        curve = RenyiCurve(np.array([math.inf]), np.array([amplified_pure_epsilon(epsilon, sampling.probability)]))
    else:
        divergences = RdpAccountant(FINITE_ORDERS).compose(event).rdp
        curve = RenyiCurve(np.array(DEFAULT_ORDERS), np.append(np.minimum(divergences, epsilon), epsilon))
    return AccountedMechanism(
        name=f"Laplace noise, epsilon {epsilon:g} per round",
        curve=curve,
        adjacency=adjacency,
        trust_model=trust_model,
        epsilon_by_loss=lambda rounds, delta: _composed_loss(loss, rounds, delta),
        sampling=None if sampling is None else str(sampling),
    )


def gaussian_accounting(
    noise_multiplier: float, *, adjacency: str | None = None, trust_model: str | None = None, sampling: Sampling | None = None
) -> AccountedMechanism:
    """Return what accounting knows of Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a coordinate's noise over the L2 sensitivity for the adjacency that is stated; from 0.001 to 10**6. (For a
        clip norm c the sensitivity of a sum is 2 c with replace-one and c with add-or-remove-one adjacency.)
    adjacency : str or None
        ``"replace-one"`` or ``"add-or-remove-one"``; by default the one that the sampling asks for, and replace-one without.
    trust_model : str or None
        ``"local"``, ``"secure-sum"`` or ``"central"``; by default central with sampling and local without.
    sampling : PoissonSampling, FixedSizeSampling or None
        How the clients of a round are chosen.

    Returns
    -------
    AccountedMechanism
        Without sampling, composition by privacy loss is exact: T rounds are one with the noise multiplier divided by sqrt(T).

    Raises
    ------
    ValueError
        If an argument is out of range, or dp-accounting does not support the sampling with this adjacency.

    Examples
    --------
    >>> account = gaussian_accounting(20.0).account(rounds=100, delta=1e-5)
    >>> round(account.epsilon_rdp, 4), round(account.epsilon_pld, 4), account.adjacency
    (2.1659, 1.9931, 'replace-one')
    """
    multiplier = check_real("noise_multiplier", noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
    if adjacency is None:
        adjacency = "add-or-remove-one" if isinstance(sampling, PoissonSampling) else "replace-one"
    if trust_model is None:
        trust_model = "local" if sampling is None else "central"
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_choice("trust_model", trust_model, TRUST_MODELS)
    name = f"Gaussian noise, noise multiplier {multiplier:g}"
    if sampling is None:
        orders = np.array(FINITE_ORDERS)
        return AccountedMechanism(
            name=name,
            curve=RenyiCurve(orders, orders / (2 * multiplier**2)),
            adjacency=adjacency,
            trust_model=trust_model,
            epsilon_by_loss=lambda rounds, delta: _gaussian_epsilon(multiplier / math.sqrt(rounds), delta),
        )
    if trust_model != "central":
        refuse_local_sampling(f"the {trust_model} trust model", sampling)
    event = GaussianDpEvent(multiplier)
    curve = sampled_curve(event, sampling, adjacency)

    @cache
    def loss() -> PrivacyLossDistribution:
        return sampled_loss(event, sampling, adjacency)

    def epsilon_by_loss(rounds: int, delta: float) -> float | None:
        if not isinstance(sampling, PoissonSampling):
            return None
        # The divergence of order 2 is about the variance of the loss.
        spread = math.sqrt(rounds * float(curve.divergences[curve.orders == 2][0]))
        if 2 * DEVIATIONS * spread / gaussian_loss_interval(multiplier, sampling.probability) > MOST_POINTS:
            return None
        return _composed_loss(loss(), rounds, delta)

    return AccountedMechanism(
        name=name, curve=curve, adjacency=adjacency, trust_model=trust_model, epsilon_by_loss=epsilon_by_loss, sampling=str(sampling)
    )


def skellam_accounting(variance: float, l1_sensitivity: float, l2_sensitivity: float, *, trust_model: str = "local") -> AccountedMechanism:
    """Return what accounting knows of Skellam noise on whole numbers.

    Parameters
    ----------
    variance : float
        Variance of a coordinate's noise, all together, in squared steps; above 0.
    l1_sensitivity, l2_sensitivity : float
        Largest L1 and L2 distance, in steps, of two vectors of whole numbers; above 0.
    trust_model : str
        ``"local"``, ``"secure-sum"`` or ``"central"``.

    Returns
    -------
    AccountedMechanism
        By Rényi divergences alone: no dominating pair is known in more than one dimension.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    check_choice("trust_model", trust_model, TRUST_MODELS)
    if l1_sensitivity < l2_sensitivity:
        raise ValueError(f"l1_sensitivity must be at least l2_sensitivity, {l2_sensitivity!r}, as L1 norms are, got {l1_sensitivity!r}")
    orders = np.array(FINITE_ORDERS)
    return AccountedMechanism(
        name=f"Skellam noise, variance {variance:g}, sensitivities {l1_sensitivity:g} (L1) and {l2_sensitivity:g} (L2)",
        curve=RenyiCurve(orders, skellam_renyi_divergences(variance, l1_sensitivity, l2_sensitivity, orders)),
        adjacency="replace-one",
        trust_model=trust_model,
    )


def table_accounting(
    table: LookupTable, *, dimension: int = 1, norm: float = 1.0, radius: float = 1.0, sampling: Sampling | None = None
) -> AccountedMechanism:
    """Return what accounting knows of a vector whose coordinates go through the same table, one by one.

    Parameters
    ----------
    table : LookupTable
        The table.
    dimension : int
        Number of coordinates, at least 1.
    norm : float
        p of the L_p norm in which vectors are close, from 1 to 64, or infinity.
    radius : float
        Largest L_p distance of two vectors, on the table's unit scale, above 0: of the vectors of grid points that the table sees, after
        dithering.
    sampling : PoissonSampling, FixedSizeSampling or None
        Must be None: a local guarantee is not amplified.

    Returns
    -------
    AccountedMechanism
        By Rényi divergences of the whole vector; also by privacy loss for one coordinate, or where each coordinate has a bound of its own
        (p = infinity), since then the worst pair of rows is the worst in each.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    refuse_local_sampling("a table", sampling)
    dimension = check_integer("dimension", dimension, low=1, high=2**31)
    norm = check_norm(norm)
    radius = check_real("radius", radius, low=1e-9, high=1e6)
    divergences = vector_divergences(table.weights, DEFAULT_ORDERS, dimension, norm, radius)

    @cache
    def loss() -> PrivacyLossDistribution:
        return dominating_privacy_loss(table.weights, radius)

    alone = (dimension == 1 or math.isinf(norm)) and math.isfinite(divergences[-1])
    return AccountedMechanism(
        name=f"{table.mechanism} table, dimension {dimension}, L{norm:g} distance at most {radius:g}",
        curve=RenyiCurve(np.array(DEFAULT_ORDERS), divergences),
        adjacency=table.adjacency,
        trust_model=table.trust_model,
        epsilon_by_loss=(lambda rounds, delta: _composed_loss(loss(), rounds * dimension, delta)) if alone else None,
    )


def protocol_accounting(name: str, protocol: VectorMeanProtocol) -> AccountedMechanism:
    """Return what accounting knows of a mechanism for vectors, by what it says itself of one message.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    protocol : VectorMeanProtocol
        The mechanism.

    Returns
    -------
    AccountedMechanism
        With the adjacency and the trust model of the mechanism's own guarantee.
    """
    loss = protocol.privacy_loss()
    # Some compose their coordinates themselves, up to so many.
    composed = min(protocol.ball.dimension, COMPOSABLE_DIMENSION)
    return AccountedMechanism(
        name=name,
        curve=RenyiCurve(np.array(DEFAULT_ORDERS), protocol.renyi_divergences(DEFAULT_ORDERS)),
        adjacency=protocol.guarantee.adjacency,
        trust_model=protocol.guarantee.trust_model,
        epsilon_by_loss=None if loss is None else (lambda rounds, delta: _composed_loss(loss, rounds, delta, composed)),
    )


def _gaussian_epsilon(multiplier: float, delta: float) -> float | None:
    """Return the exact epsilon; None where there is hardly any noise, or a delta too small to be computed with."""
    within = multiplier >= SMALLEST_MULTIPLIER and delta >= SMALLEST_DELTA
    # What holds with a smaller delta holds with a larger one.
    return gaussian_epsilon(multiplier, min(delta, LARGEST_DELTA)) if within else None


def _composed_loss(loss: PrivacyLossDistribution, times: int, delta: float, composed_before: int = 1) -> float | None:
    """Return epsilon after so many independent uses; None where that is too expensive, or delta too small to be told from rounding."""
    allowed = delta - FOURIER_ERROR * times * composed_before
    if times > MOST_COMPOSITIONS or allowed < delta / 2:
        return None
    composed = loss.self_compose(times) if times > 1 else loss
    epsilon = float(composed.get_epsilon_for_delta(allowed))
    return epsilon if math.isfinite(epsilon) else None
