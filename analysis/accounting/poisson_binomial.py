"""The Poisson-binomial mechanism: its account over coordinates and rounds, and the largest theta that meets a budget."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, RenyiCurve, check_delta
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, PoissonBinomialPairs, poisson_binomial_pairs
from ...solvers.numerics.safe_root import safe_root
from ..calibration.privacy_calibration import LARGEST_TARGET, SMALLEST_TARGET, TOLERANCE, Calibration
from .privacy_account import AccountedMechanism, PrivacyAccount
from .secret_sampling import with_secret_sampling
from .subsampling import Sampling

ADJACENCY, TRUST_MODEL = "replace-one", "secure-sum"
MOST_COORDINATES = 2**40
# Every other order: with many clients each costs a sum over all values that are possible.
ORDERS = (*DEFAULT_ORDERS[:-1:2], math.inf)
SMALLEST_THETA = 1e-6


def poisson_binomial_accounting(
    clients: int, trials: int, theta: float, dimension: int = 1, sampling: Sampling | None = None
) -> AccountedMechanism:
    """Return what accounting knows of the Poisson-binomial mechanism.

    Parameters
    ----------
    clients : int
        Number of clients, 1 to 10**7.
    trials : int
        Number of trials of each client for each coordinate, 1 to 4096.
    theta : float
        Largest distance of a trial's probability from 1/2, from 1e-6 to 0.499.
    dimension : int
        Number of coordinates that a client sends, each of which may be at either extreme.
    sampling : FixedSizeSampling or None
        How clients' vectors are chosen for a round, in secret (`quietbits.analysis.accounting.secret_sampling`).

    Returns
    -------
    AccountedMechanism
        Rényi divergences of all coordinates together, for replace-one adjacency and a secure sum; the exact privacy loss where there is
        one coordinate and one round.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> account = poisson_binomial_accounting(1000, 4, 0.1, dimension=16).account(delta=1e-5)
    >>> round(account.epsilon, 4), account.adjacency, account.trust_model
    (0.3895, 'replace-one', 'secure-sum')
    """
    dimension = check_integer("dimension", dimension, low=1, high=MOST_COORDINATES)
    pairs = _pairs(clients, trials, theta)

    def epsilon_by_loss(rounds: int, delta: float) -> float | None:
        return pairs.epsilon(delta) if rounds * dimension == 1 else None

    everyone = AccountedMechanism(
        name=f"Poisson-binomial, {clients} clients, {trials} trials, theta {theta:g}, dimension {dimension}",
        curve=RenyiCurve(np.array(ORDERS), dimension * pairs.renyi_divergences(ORDERS)),
        adjacency=ADJACENCY,
        trust_model=TRUST_MODEL,
        epsilon_by_loss=epsilon_by_loss,
    )
    return with_secret_sampling(everyone, sampling)


def poisson_binomial_document(
    clients: int,
    trials: int,
    theta: float,
    *,
    order: float | None = None,
    dimension: int = 1,
    delta: float | None = None,
    rounds: int = 1,
    sampling: Sampling | None = None,
) -> dict[str, str | float | bool | None]:
    """Return the account of the Poisson-binomial mechanism as JSON holds it.

    Parameters
    ----------
    clients, trials, theta, dimension, sampling
        As in `poisson_binomial_accounting`; without delta there is no sampling.
    order : float or None
        Rényi order above 1 of the divergence of one coordinate in one round; may be infinite.
    delta : float or None
        Failure probability of all rounds together; None without an epsilon other than the pure one.
    rounds : int
        Number of rounds, at least 1.

    Returns
    -------
    dict
        ``rdp`` at ``rdp_order``, in nats, for one coordinate in one round (None without an order); ``rdp_proven``, `proven_divergences` of
        the same; ``worst_case``, how the worst case was found: ``"all configurations"`` or ``"all others at one extreme"``; the
        parameters; and the fields of the account.

    Raises
    ------
    ValueError
        If an argument is out of range, or neither an order nor delta is given.

    Examples
    --------
    >>> found = poisson_binomial_document(10, 1, 0.25, order=2.0)
    >>> round(found["rdp"], 6), found["worst_case"]
    (0.162801, 'all configurations')
    """
    if order is None and delta is None:
        raise ValueError("order or delta must be given: an order for the divergence of one coordinate, delta for epsilon after all rounds")
    if order is not None and not order > 1:
        raise ValueError(f"order must be a number above 1, got {order!r}")
    if delta is None and sampling is not None:
        raise ValueError(f"delta must be given for rounds with {sampling}: a number above 0 and below 1")
    pairs = _pairs(clients, trials, theta)
    dimension = check_integer("dimension", dimension, low=1, high=MOST_COORDINATES)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    account = (
        _pure_account(clients, trials, theta, dimension, rounds, pairs)
        if delta is None
        else poisson_binomial_accounting(clients, trials, theta, dimension, sampling).account(rounds, delta)
    )
    return account.document() | {
        "rdp": None if order is None else float(pairs.renyi_divergences([order])[0]),
        "rdp_proven": None if order is None else float(proven_divergences(clients, trials, theta, [order])[0]),
        "rdp_order": order,
        "worst_case": "all configurations" if pairs.proven else "all others at one extreme",
        "clients": clients,
        "trials": trials,
        "theta": theta,
        "dimension": dimension,
    }


def proven_divergences(clients: int, trials: int, theta: float, orders: ArrayLike) -> FloatArray:
    """Return a bound on the Rényi divergence of one coordinate that is proven however many clients there are.

    The worst configuration has each of the other clients' trials at one of two extremes, so that half of them or more are at the same one.
    The sum is what these and the client itself send, and further noise, which cannot raise a divergence.

    Parameters
    ----------
    clients, trials, theta
        As in `poisson_binomial_accounting`.
    orders : array_like of shape (orders,)
        Rényi orders above 1.

    Returns
    -------
    ndarray of shape (orders,)
        Divergences in nats: the worst case itself where all configurations were computed, and that of half as many other clients where
        not, about twice as much where that is small.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> worst = poisson_binomial_document(1000, 4, 0.25, order=2.0)["rdp"]
    >>> round(float(proven_divergences(1000, 4, 0.25, [2.0])[0]) / worst, 3)
    2.003
    """
    pairs = _pairs(clients, trials, theta)
    return (pairs if pairs.proven else _pairs((clients - 1) // 2 + 1, trials, theta)).renyi_divergences(orders)


def calibrate_poisson_binomial(
    clients: int,
    trials: int,
    epsilon: float,
    delta: float,
    dimension: int = 1,
    rounds: int = 1,
    sampling: Sampling | None = None,
) -> Calibration:
    """Return the largest theta with which all rounds of the Poisson-binomial mechanism stay within (epsilon, delta).

    Parameters
    ----------
    clients, trials, dimension, sampling
        As in `poisson_binomial_accounting`.
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    delta : float
        Failure probability, above 0 and below 1.
    rounds : int
        Number of rounds, at least 1.

    Returns
    -------
    Calibration
        Of ``theta``; errs downward.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no theta from 1e-6 to 0.499 will do.

    Examples
    --------
    >>> found = calibrate_poisson_binomial(1000, 4, 1.0, 1e-5, dimension=16)
    >>> round(found.parameters[0][1], 4), 0 <= 1.0 - found.account.epsilon <= 1e-6
    (0.2183, True)
    """
    epsilon = check_real("epsilon", epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET)
    delta = check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)

    def account(theta: float) -> PrivacyAccount:
        return poisson_binomial_accounting(clients, trials, theta, dimension, sampling).account(rounds, delta)

    def reached(theta: float) -> float:
        found = account(theta).epsilon
        return math.inf if found is None else found

    theta = safe_root(
        reached,
        epsilon,
        start=min(0.25, epsilon * math.sqrt(clients / (8 * trials * dimension * rounds * math.log(1 / delta)))),
        low=SMALLEST_THETA,
        high=LARGEST_THETA,
        tolerance=TOLERANCE * min(1.0, epsilon),
        name="theta",
    )
    return Calibration(epsilon, (("theta", theta),), account(theta))


@lru_cache(maxsize=4)
def _pairs(clients: int, trials: int, theta: float) -> PoissonBinomialPairs:
    return poisson_binomial_pairs(clients, trials, theta)


def _pure_account(clients: int, trials: int, theta: float, dimension: int, rounds: int, pairs: PoissonBinomialPairs) -> PrivacyAccount:
    """Return the account without delta, for which the curve at other orders is not needed."""
    return AccountedMechanism(
        name=f"Poisson-binomial, {clients} clients, {trials} trials, theta {theta:g}, dimension {dimension}",
        curve=RenyiCurve(np.array([math.inf]), np.array([dimension * pairs.largest_loss])),
        adjacency=ADJACENCY,
        trust_model=TRUST_MODEL,
    ).account(rounds)
