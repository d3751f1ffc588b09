"""Accounts of rounds in which some clients' vectors are left out, for every mechanism of a secure sum.

The sample must be secret from the server: all clients send a message, and those that were not chosen encode a vector of zeros. What is
amplified then is the guarantee of the sum, for the client whose vector may be there or not.
"""

import math
from dataclasses import replace

from ...solvers.accounting.sampled_renyi import fixed_size_sampled_curve, poisson_sampled_curve
from .privacy_account import AccountedMechanism
from .subsampling import FixedSizeSampling, Sampling, amplified_pure_epsilon


def usual_adjacency(sampling: Sampling | None) -> str:
    """Return the adjacency that bounds for a sampling are for.

    Parameters
    ----------
    sampling : PoissonSampling, FixedSizeSampling or None
        The sampling.

    Returns
    -------
    str
        ``"replace-one"`` for samples of a fixed size; ``"add-or-remove-one"`` for Poisson sampling, and without.
    """
    return "replace-one" if isinstance(sampling, FixedSizeSampling) else "add-or-remove-one"


def sampled_share(sampling: Sampling, adjacency: str) -> float:
    """Return the share of the clients whose vectors are in a round.

    Parameters
    ----------
    sampling : PoissonSampling or FixedSizeSampling
        How they are chosen.
    adjacency : str
        Which data sets are neighbours.

    Returns
    -------
    float
        Above 0 and at most 1.

    Raises
    ------
    ValueError
        If the sampling is not known to amplify guarantees of this adjacency.
    """
    needed = usual_adjacency(sampling)
    if adjacency != needed:
        raise ValueError(f"sampling must be for {adjacency} adjacency, got {sampling}, which is for {needed}")
    return sampling.sample_size / sampling.population if isinstance(sampling, FixedSizeSampling) else sampling.probability


def delta_of_everyone(delta: float, share: float) -> float:
    """Return the failure probability of a round with everyone's vector that makes this one of a sampled round.

    Parameters
    ----------
    delta : float
        Failure probability of a sampled round, above 0 and below 1.
    share : float
        Share of the clients whose vectors are in it, above 0 and at most 1.

    Returns
    -------
    float
        ``delta / share``, kept below 1; errs downward.

    Examples
    --------
    >>> round(delta_of_everyone(1e-6, 0.01), 12), delta_of_everyone(0.5, 0.1) < 1
    (0.0001, True)
    """
    return min(delta / share * (1 - 1e-15), math.nextafter(1, 0))


def with_secret_sampling(mechanism: AccountedMechanism, sampling: Sampling | None) -> AccountedMechanism:
    """Return the account of a mechanism whose clients' vectors are sampled.

    Parameters
    ----------
    mechanism : AccountedMechanism
        A round with everyone's vector, for add-or-remove-one adjacency with Poisson sampling and replace-one adjacency with samples of a
        fixed size.
    sampling : PoissonSampling, FixedSizeSampling or None
        How vectors are chosen; None for all of them.

    Returns
    -------
    AccountedMechanism
        Over rounds by Rényi divergences (`sampled_renyi`); one round also by privacy loss, where that is known:
        ``ln(1 + q (e^epsilon - 1))`` at ``q delta`` (Balle, Barthe, Gaboardi 2018, *Privacy amplification by subsampling*, theorems 8, 9).

    Raises
    ------
    ValueError
        If the adjacency is the other one, or messages are not hidden in a sum.

    Examples
    --------
    >>> from quietbits.analysis.accounting.discrete_gaussian import discrete_gaussian_accounting
    >>> from quietbits.analysis.accounting.subsampling import PoissonSampling
    >>> everyone = discrete_gaussian_accounting(1000, 64, 1.0, 0.1, 0.001)
    >>> account = with_secret_sampling(everyone, PoissonSampling(0.01)).account(rounds=10, delta=1e-6)
    >>> round(account.epsilon, 3), everyone.account(rounds=10, delta=1e-6).epsilon > 4, account.sampling
    (0.116, True, 'Poisson sampling with probability 0.01')
    """
    if sampling is None:
        return mechanism
    if mechanism.trust_model == "local":
        raise ValueError(f"sampling must be left out where the server sees each message, got {sampling}")
    share = sampled_share(sampling, mechanism.adjacency)
    sampled_curve = fixed_size_sampled_curve if isinstance(sampling, FixedSizeSampling) else poisson_sampled_curve
    curve = sampled_curve(mechanism.curve, share)

    def epsilon_by_loss(rounds: int, delta: float) -> float | None:
        by_loss = mechanism.epsilon_by_loss
        if by_loss is None or (rounds > 1 and share < 1):
            return None
        found = by_loss(rounds, delta_of_everyone(delta, share))
        return None if found is None else amplified_pure_epsilon(found, share)

    return replace(mechanism, curve=curve, epsilon_by_loss=epsilon_by_loss, sampling=str(sampling))
